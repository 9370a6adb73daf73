"""The codebook: every table that Parlor writes as CSV, its columns, and code that reads it in other programs.

Archives of studies and of recipes have tables and code of their own, because their columns depend on the design.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app import accounts
from app.accounts import tokens
from app.analysis.leaderboard_table import LEADERBOARD_COLUMNS
from app.analysis.side_by_side.tables import CODEBOOK_TABLES as SIDE_BY_SIDE_TABLES
from app.analysis.tables import analysis_columns, campaign_columns
from app.assessments.figures import COLUMNS as ASSESSMENT_COLUMNS
from app.benchmarks.table import comparison_columns
from app.core.csv_tables import CODEBOOK, Column, to_csv, with_short_names
from app.core.errors import NotFound, either
from app.core.lists import Listing, csv_columns
from app.core.r_and_stata import PROGRAMS
from app.job_kinds import JOB_KINDS, modules_below
from app.jobs.listing import list_of
from app.matches.export import TABLES
from app.matches.export_codings import COLUMNS as CODING_COLUMNS
from app.registry import prompts
from app.society.statistics import ITERATION_COLUMNS
from app.spend.figures import SpendLines, spend_columns
from app.studies.monitor import inbox, pay, people


@dataclass(frozen=True, slots=True)
class CodebookTable:
    """A table written as CSV: its name, its file's name, its columns, and its list if it is one."""

    name: str
    file: str
    columns: Sequence[Column]
    listing: Listing[Any] | None = None

    def lines(self, program: str) -> str:
        """Code in one of PROGRAMS that reads the file."""
        return PROGRAMS[program](self.file, self.columns)


def all_tables() -> Mapping[str, CodebookTable]:
    """Every table, by its name: those of exports, of analyses, and of lists."""
    columns = {
        **{name: table.columns for name, table in TABLES.items()},
        "codings": CODING_COLUMNS,
        "analysis": analysis_columns(),
        "campaign": campaign_columns(),
        "leaderboard": LEADERBOARD_COLUMNS,
        **SIDE_BY_SIDE_TABLES,
        "assessment": ASSESSMENT_COLUMNS,
        "benchmarks": comparison_columns(),
        "society": ITERATION_COLUMNS,
        "spend": spend_columns(SpendLines((), {}, {})),
    }
    exported = [CodebookTable(name, f"{name}.csv", with_short_names(found)) for name, found in columns.items()]
    lists = [
        CodebookTable(f"list of {each.name}", f"{each.name}.csv", with_short_names(csv_columns(each.columns)), each)
        for each in _listings()
    ]
    codebook = CodebookTable("codebook", "codebook.csv", CODEBOOK)
    return {table.name: table for table in (*exported, codebook, *lists)}


def _listings() -> Iterator[Listing[Any]]:
    """The lists of kinds of job, those of modules called `listing.py` or `…_list.py`, and those elsewhere."""
    modules = [each for name in ("listing", "*_list") for each in modules_below(Path(__file__).parent, "app", name)]
    declared = [vars(module).values() for module in modules]
    elsewhere = (
        people.PEOPLE, pay.BATCHES, inbox.REPORTS, accounts.LIST, tokens.LIST, tokens.CHANGES, prompts.LIST,
    )  # fmt: skip
    found = [each for values in declared for each in values if isinstance(each, Listing)]
    yield from (*found, *(list_of(kind) for kind in JOB_KINDS), *elsewhere)


def find_table(name: str) -> CodebookTable:
    """The table with this name. Raises NotFound."""
    found = all_tables()
    if name not in found:
        raise NotFound("table", expected=either(found), got=name)
    return found[name]


def codebook_rows(tables: Iterable[CodebookTable]) -> Iterator[tuple[str, Column]]:
    """The rows of the codebook, one per column."""
    return ((table.name, column) for table in tables for column in table.columns)


def codebook(*, guard: bool = False, bom: bool = False) -> Iterator[bytes]:
    """The codebook as CSV: one row for each column of every table."""
    return to_csv(CODEBOOK, codebook_rows(all_tables().values()), guard=guard, bom=bom)
