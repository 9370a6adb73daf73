"""The codebook: what every column of every CSV means, as CSV."""

from collections.abc import Iterator, Mapping, Sequence

from app.analysis.leaderboard_table import LEADERBOARD_COLUMNS
from app.analysis.tables import analysis_columns, campaign_columns
from app.core.csv_tables import Column, to_csv
from app.matches.export import TABLES


def all_columns() -> Mapping[str, Sequence[Column]]:
    """The columns of what `flask export` writes, and of what `flask analyze`, `flask campaign show` and
    `flask model leaderboard` print with `--csv`, by table.
    """
    return {
        **{name: table.columns for name, table in TABLES.items()},
        ANALYSIS: analysis_columns(),
        CAMPAIGN: campaign_columns(),
        LEADERBOARD: LEADERBOARD_COLUMNS,
    }


ANALYSIS, CAMPAIGN, LEADERBOARD = "analysis", "campaign", "leaderboard"
CODEBOOK = (
    Column("table", "text", "The table.", " | ".join((*TABLES, ANALYSIS, CAMPAIGN, LEADERBOARD)), lambda row: row[0]),
    Column("column", "text", "The column of that table.", "a name", lambda row: row[1].name),
    Column("type", "text", "The type of its values.", "text | json | integer | number | boolean | time",
           lambda row: row[1].type),
    Column("meaning", "text", "What it says.", "a sentence", lambda row: row[1].meaning),
    Column("values", "text", "Which values it may hold.", "a list or an example", lambda row: row[1].values),
)  # fmt: skip


def codebook(*, guard: bool = False, bom: bool = False) -> Iterator[bytes]:
    """The codebook as CSV: a row a column of every table."""
    rows = ((name, column) for name, columns in all_columns().items() for column in columns)
    return to_csv(CODEBOOK, rows, guard=guard, bom=bom)
