"""The page of an alignment: its jobs, their results, and what was requested."""

from dataclasses import replace

from app.alignments.job import ALIGNMENT
from app.alignments.listing import AlignmentListItem, figures_of, jobs_of, progress_of
from app.alignments.spec import AlignmentSpec
from app.assessments.page import FIGURES
from app.core.errors import Phrase, Verbatim
from app.core.lists import COMMANDS, PAGES, ListColumn, Reference
from app.jobs.page import ASKED, JobPage, JobTable, Section, fact, json_fact, spec_facts
from app.models import Alignment
from app.registry.listing import model_cell

JOBS = JobTable(
    "jobs",
    "Its steps",
    [
        fact("part", "Step"),
        fact("job", "Job", seen=COMMANDS),
        json_fact("kind"),
        json_fact("number"),
        fact("status", "Status", none=Phrase("not begun")),
        fact("made", "Model"),
    ],
    lines=jobs_of,
)


def _material_column(name: str, title: str) -> ListColumn:
    def source(item: AlignmentListItem) -> Phrase:
        source, texts = item.row.material[name]
        return Phrase("%(count)s from %(source)s", source=Verbatim(source), count=len(texts))

    return fact(f"{name}_source", title, source, seen=PAGES)


def _alignment_lead(item: AlignmentListItem) -> list[Phrase]:
    learner, made = model_cell(item.base), model_cell(item.model)
    return [
        Phrase("%(model)s lives in a society, learns from it, and lives in it again.", model=learner),
        *([Phrase("Result: %(model)s.", model=made)] if made else []),
    ]


_ASKED = (
    *spec_facts(AlignmentSpec, lambda each: each.row.spec, "name", "questions", "priors", "held_out", "budget"),
    _material_column("questions", "Questions"),
    _material_column("held_out", "Held-out questions"),
    _material_column("priors", "First memories from"),
    json_fact("base", lambda each: model_cell(each.base)),
    json_fact("demonstrations_id", lambda each: each.demonstrations_id),
    json_fact("dataset_id", lambda each: each.dataset_id),
    json_fact("realignment_id", lambda each: each.realignment_id),
    json_fact("spec", lambda each: AlignmentSpec.of_json(each.row.spec).to_json()),
)
_RATED = replace(FIGURES, lines=lambda session, items: [figures_of(session, each) for each in items])


def _links(item: AlignmentListItem) -> list[Reference]:
    made = [Reference("lineage", item.model.id, Phrase("Lineage"))] if item.model else []
    report = Reference("alignment report", item.row.id, Phrase("Report"))
    return [*made, report, Reference("alignment recipe", item.row.id, Phrase("As a recipe"))]


PAGE: JobPage[Alignment] = JobPage(
    kind=ALIGNMENT,
    lead=_alignment_lead,
    links=_links,
    like=lambda _each: True,
    figures=progress_of,
    sections=[
        Section("chain", "Its steps", table=JOBS, fragment="alignment-steps.html"),
        Section("compared", "On held-out questions", table=_RATED, fragment="alignment-compared.html", alone=True),
        Section("worlds", "The first society and the last", fragment="alignment-societies.html"),
        Section(ASKED, "What was asked for", _ASKED),
    ],
)
