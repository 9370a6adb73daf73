"""The parts common to all reports: the order of their sections, and how a reader reproduces the result."""

import shlex
from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.analysis.bootstrap import Figure
from app.analysis.wording import beside, number, signed, signed_beside
from app.core.errors import Conflict, Phrase
from app.jobs.kind import JobKind
from app.reports.origins import Origins, ReportContext, training_section, versions_section
from app.reports.report import FoldedText, KeyFigure, Report, ReportSection, ReportTable


def whole_report(
    session: Session,
    context: ReportContext,
    origins: Origins,
    *,
    name: str,
    title: str,
    about: str,
    finding: str,
    more: str = "",
    key_figures: Sequence[KeyFigure] = (),
    results: Sequence[ReportSection],
    methods: Sequence[str],
    tables: Sequence[ReportTable] = (),
    versions: Sequence[Sequence[str]] = (),
    texts: Sequence[FoldedText],
    texts_title: str = "Prompts and settings",
    limits: Sequence[str],
    commands: Sequence[str],
    before_commands: Sequence[str] = (),
) -> Report:
    """A report with its own results and the sections that all reports have.

    `methods` are paragraphs, with `tables` below them; `versions` are rows in addition to those from `origins`, each
    with what it is, its version and its SHA-256. `commands` reproduce the result, and `before_commands` are paragraphs.
    """
    return Report(
        f"report-{name}", title, about, finding, more, key_figures,
        sections=[
            *results,
            training_section(session, origins),
            ReportSection("methods", "Methods", methods, tables=tables),
            versions_section(session, origins, context, *versions),
            ReportSection("prompts", texts_title, folded=texts),
            ReportSection("limits", "Limits", points=limits),
            _reproduction_section(commands, before_commands, context),
        ],
    )  # fmt: skip


def nothing_yet(kind: JobKind[Any], number: int, expected: Phrase, remedy: Phrase) -> Conflict:
    """The error for a job without results yet."""
    subject = kind.subject(number)
    return Conflict(kind.name, expected=expected, got=Phrase("none so far"), remedy=remedy, subject=subject)


def key_figure(title: str, figure: Figure, unit: str) -> KeyFigure:
    """A figure with its interval below."""
    return KeyFigure(title, number(figure.value, unit), beside(figure, unit))


def key_difference(title: str, figure: Figure, unit: str) -> KeyFigure:
    """A signed difference with its interval below."""
    return KeyFigure(title, signed(figure.value, unit), signed_beside(figure, unit))


def commands_of_recipe(
    kind: JobKind[Any], number: int, archive: str, recipe: str, control: str | None = None
) -> list[str]:
    """Commands to export a job as a recipe, run and report it. `recipe` is what follows `flask recipe run`."""
    beside = f" --control {shlex.quote(control)}" if control else ""
    return [
        f"flask {kind.name} export {number} --out {archive}.zip",
        f"unzip {archive}.zip",
        f"flask recipe run {recipe}",
        f"flask report --recipe N{beside}    # the number that the run printed",
    ]


def _reproduction_section(commands: Sequence[str], before: Sequence[str], context: ReportContext) -> ReportSection:
    """How to reproduce it: check out the program's version, then run these commands."""
    checkout = [] if context.commit is None else [f"git checkout {context.commit.sha}"]
    return ReportSection(
        "again",
        "How to reproduce it",
        paragraphs=[
            *before,
            "Run this in a checkout of Parlor. The same data give the same report, apart from the line with its date.",
        ],
        commands=[
            *checkout,
            "make install",
            *(f".venv/bin/{each}" if each.startswith("flask ") else each for each in commands),
        ],
    )
