"""The subjects of reports, each by the option of `flask report` and the page address that request it."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.core.errors import Invalid, Phrase, either
from app.core.validation import whole_number
from app.jobs.kind import LARGEST
from app.reports.alignments import alignment_report
from app.reports.campaigns import campaign_report
from app.reports.origins import ReportContext
from app.reports.recipes import recipe_report
from app.reports.report import Report
from app.reports.societies import society_report
from app.reports.studies import study_report
from app.reports.tournaments import tournament_report

Build = Callable[[Session, str, ReportContext], Report]


class Subject(NamedTuple):
    """A subject of reports: how one is named, what that means, what builds the report, and whether a control can be
    compared with it.
    """

    metavar: str
    help: str
    build: Build
    has_control: bool = False


def _numbered(name: str, build: Callable[[Session, int, ReportContext], Report]) -> Build:
    def built(session: Session, reference: str, context: ReportContext) -> Report:
        return build(session, whole_number(reference, name, 1, LARGEST), context)

    return built


SUBJECTS: Mapping[str, Subject] = {
    "recipe": Subject("R", "A run of a recipe.", _numbered("recipe", recipe_report), has_control=True),
    "campaign": Subject("N", "A campaign.", _numbered("campaign", campaign_report), has_control=True),
    "alignment": Subject("N", "An alignment.", _numbered("alignment", alignment_report)),
    "study": Subject("S", "A study, or STUDY:WAVE: its frozen waves.", study_report),
    "society": Subject("W", "A society.", _numbered("society", society_report)),
    "tournament": Subject("T", "A game, GAME:λ, or the number of the first round of a cross-play.", tournament_report),
}


def build_report(session: Session, name: str, reference: str, context: ReportContext) -> Report:
    """The report of a subject, by its name in SUBJECTS. Raises AppError."""
    if context.control is not None and not SUBJECTS[name].has_control:
        known = [each for each, subject in SUBJECTS.items() if subject.has_control]
        raise Invalid(
            "control", expected=Phrase("one only for a report of %(names)s", names=either(known)), got=context.control
        )
    return SUBJECTS[name].build(session, reference, context)
