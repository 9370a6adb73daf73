"""The page of a rehearsal: how its bots ended, what was unexpected, and what was requested."""

from app.core.errors import Phrase, Verbatim
from app.core.lists import PAGES, Reference
from app.jobs.page import ASKED, JobPage, Section, fact
from app.models import Rehearsal
from app.studies.bots.job import REHEARSAL
from app.studies.bots.listing import RehearsalListItem


def _partners_of_bots(item: RehearsalListItem) -> Phrase:
    return Phrase("the models of the study") if item.row.live else Phrase("scripted players")


_ASKED = (
    fact("bots", "Bots"),
    fact("seed", "Seed", digits="0"),
    fact("partners", "Partners", _partners_of_bots, seen=PAGES),
    fact("wave", "Wave of the copy", lambda each: Reference("wave", each.row.wave_id, Verbatim(each.row.wave_id))),
)
PAGE: JobPage[Rehearsal] = JobPage(
    kind=REHEARSAL,
    lead=lambda each: [Phrase("Bots go through a copy of %(study)s.", study=Verbatim(each.reference))],
    progress=Phrase("%(done)s of %(all)s bots have finished"),
    sections=[
        Section("surprises", "Surprises", fragment="rehearsal-surprises.html"),
        Section("endings", "How they ended", fragment="rehearsal-endings.html"),
        Section(ASKED, "What was asked for", _ASKED),
    ],
)
