"""What is shown of a run of a recipe: its steps with their jobs, its tables, and what was asked for."""

from app.core.errors import Phrase, Verbatim
from app.core.lists import PAGES, Reference, State
from app.jobs.listing import MARKS, JobListItem
from app.jobs.page import ASKED, JobPage, JobTable, Section, fact, json_fact
from app.models import RecipeRun
from app.recipes.job import RECIPE
from app.recipes.listing import RecipeStepLine, in_words, lines_of, progress_of
from app.recipes.spec import RecipeSpec


def _state(line: RecipeStepLine) -> State | None:
    return None if line.status is None else State(line.status, MARKS.get(line.status, ""))


STEPS = JobTable(
    "steps",
    "Its steps",
    [
        fact("key", "Step"),
        fact("do", "What is done"),
        fact("job", "Job", lambda line: line.job, none=Phrase("none")),
        fact("status", "Status", _state, none=Phrase("not begun")),
        fact("made", "Made", lambda line: [*line.made]),
        fact("figures", "Figures", lambda line: [*line.figures]),
        json_fact("result", lambda line: line.result),
    ],
    lines=lambda session, items: [lines_of(session, each.row) for each in items],
)


def _lead(item: JobListItem) -> list[Phrase]:
    return [
        Phrase("Recipe run %(number)s.", number=Verbatim(item.row.id)),
        Phrase("Its models are called %(name)s-STEP.", name=Verbatim(item.row.name)),
    ]


def _inputs(item: JobListItem) -> list[str]:
    return [f"{name} = {in_words(value)}" for name, value in item.row.spec["inputs"].items()]


PAGE: JobPage[RecipeRun] = JobPage(
    kind=RECIPE,
    name=lambda each: each.row.name,
    lead=_lead,
    links=lambda each: [
        Reference("recipe report", each.row.id, Phrase("Report")),
        Reference("recipe archive", each.row.id, Phrase("Download")),
    ],
    like=lambda _each: True,
    figures=progress_of,
    progress=Phrase("%(done)s of %(all)s steps are done."),
    sections=[
        Section("chain", "Its steps", table=STEPS, alone=True),
        Section("tables", "Its tables", fragment="recipe-tables.html", alone=True),
        Section(
            ASKED,
            "What was asked for",
            (
                fact("file", "File", lambda each: each.row.spec.get("recipe"), seen=PAGES),
                fact("inputs", "Inputs", _inputs, seen=PAGES, none=Phrase("none")),
                json_fact("spec", lambda each: RecipeSpec.of_json(each.row.spec).to_json()),
            ),
        ),
    ],
)
