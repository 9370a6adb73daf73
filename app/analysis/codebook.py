"""The codebook: what every column of every CSV means, as CSV."""

from collections.abc import Iterator, Mapping, Sequence

from app.analysis.tables import analysis_columns, campaign_columns
from app.csv_tables import Column, to_csv
from app.matches.export import TABLES

# What `flask export`, `flask analyze --csv` and `flask campaign show --csv` write.
ALL_COLUMNS: Mapping[str, Sequence[Column]] = {
    **{name: table.columns for name, table in TABLES.items()},
    "analysis": analysis_columns(),
    "campaign": campaign_columns(),
}

CODEBOOK = (
    Column("table", "text", "The table.", " | ".join(ALL_COLUMNS), lambda row: row[0]),
    Column("column", "text", "The column of that table.", "a name", lambda row: row[1].name),
    Column("type", "text", "The type of its values.", "text | json | integer | number | boolean | time",
           lambda row: row[1].type),
    Column("meaning", "text", "What it says.", "a sentence", lambda row: row[1].meaning),
    Column("values", "text", "Which values it may hold.", "a list or an example", lambda row: row[1].values),
)  # fmt: skip


def codebook(*, guard: bool = False, bom: bool = False) -> Iterator[bytes]:
    """The codebook as CSV: a row a column of every table."""
    rows = ((name, column) for name, columns in ALL_COLUMNS.items() for column in columns)
    return to_csv(CODEBOOK, rows, guard=guard, bom=bom)
