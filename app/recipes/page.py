"""The page of a recipe run: its steps with their jobs, its tables, and what was requested."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.core.errors import Phrase, Verbatim
from app.core.lists import PAGES, Reference, State
from app.jobs.listing import MARKS, JobListItem
from app.jobs.page import ASKED, JobPage, JobTable, Section, fact, json_fact
from app.models import RecipeRun
from app.recipes.job import RECIPE
from app.recipes.listing import RecipeStepLine, in_words, lines_of, progress_of
from app.recipes.spec import RecipeSpec
from app.recipes.sweep_results import results_of, sweep_of
from app.recipes.tables import TableCell, cells_of


def _step_state(line: RecipeStepLine) -> State | None:
    return None if line.status is None else State(line.status, MARKS.get(line.status, ""))


STEPS = JobTable(
    "steps",
    "Its steps",
    [
        fact("key", "Step"),
        fact("do", "What is done"),
        fact("job", "Job", lambda line: line.job, none=Phrase("none")),
        fact("status", "Status", _step_state, none=Phrase("not begun")),
        fact("made", "Made", lambda line: [*line.made]),
        fact("figures", "Figures", lambda line: [*line.figures]),
        json_fact("result", lambda line: line.result),
    ],
    lines=lambda session, items: [lines_of(session, each.row) for each in items],
)


def _swept(session: Session, items: Sequence[JobListItem]) -> list[Sequence[TableCell]]:
    """The figures of each run's sweep; none for a run without a sweep."""
    rows = [each.row for each in items]
    return [cells_of(results_of(row, lines_of(session, row)).table) if sweep_of(row).variables else [] for row in rows]


SWEEP_FIGURES = JobTable(
    "sweep",
    "Its sweep",
    [json_fact(name, lambda cell, name=name: getattr(cell, name)) for name in TableCell._fields],  # type: ignore[misc]
    lines=_swept,
)


def _recipe_lead(item: JobListItem) -> list[Phrase]:
    return [Phrase("Its models are called %(name)s-STEP.", name=Verbatim(item.row.name))]


def _inputs(item: JobListItem) -> list[str]:
    return [f"{name} = {in_words(value)}" for name, value in item.row.spec["inputs"].items()]


def _fields_swept(item: JobListItem) -> list[str]:
    return [f"{name} = {in_words(values)}" for name, values in RecipeSpec.of_json(item.row.spec).swept.items()]


PAGE: JobPage[RecipeRun] = JobPage(
    kind=RECIPE,
    lead=_recipe_lead,
    links=lambda each: [
        Reference("recipe side by side", each.row.id, Phrase("Side by side")),
        Reference("recipe report", each.row.id, Phrase("Report")),
        Reference("recipe archive", each.row.id, Phrase("Download")),
    ],
    like=lambda _each: True,
    figures=progress_of,
    progress=Phrase("%(done)s of %(all)s steps are done."),
    sections=[
        Section("chain", "Its steps", table=STEPS, alone=True),
        Section("sweep", "Its sweep", table=SWEEP_FIGURES, alone=True),
        Section("tables", "Its tables", fragment="recipe-tables.html", alone=True),
        Section(
            ASKED,
            "What was asked for",
            (
                fact("file", "File", lambda each: each.row.spec.get("recipe"), seen=PAGES),
                fact("inputs", "Inputs", _inputs, seen=PAGES, none=Phrase("none")),
                fact("swept", "Sweep", _fields_swept, seen=PAGES),
                json_fact("spec", lambda each: RecipeSpec.of_json(each.row.spec).to_json()),
            ),
        ),
    ],
)
