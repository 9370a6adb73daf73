"""Wordings of endings, steps and pay doubts for experimenters; commands and files keep the names."""

from collections.abc import Mapping

from app.core.errors import Phrase
from app.core.lists import State
from app.studies.endings import COMPLETED, EndingName
from app.studies.participant_steps import Step, StepKind

ENDINGS: Mapping[EndingName, Phrase] = {
    "completed": Phrase("completed"), "declined": Phrase("declined"), "ineligible": Phrase("not eligible"),
    "quiz_failed": Phrase("failed the quiz"), "no_partner": Phrase("found no partner"),
    "partner_left": Phrase("partner left"), "technical": Phrase("technical problem"), "inactive": Phrase("inactive"),
    "withdrawn": Phrase("withdrew"), "removed": Phrase("removed"), "full": Phrase("wave was full"),
    "closed": Phrase("wave was closed"),
}  # fmt: skip
_STEPS: Mapping[StepKind, Phrase] = {
    "consent": Phrase("Consent"), "survey": Phrase("Questions"), "instructions": Phrase("Instructions"),
    "quiz": Phrase("Quiz"), "partner": Phrase("Question about the partner"), "debrief": Phrase("Debrief"),
    "done": Phrase("Last page"),
}  # fmt: skip

# Why a person's pay needs review.
DOUBTS: Mapping[str, Phrase] = {
    "no submission": Phrase("the recruiter has named no submission, so that approving may not pay the base"),
    "paid twice": Phrase("the recruiter has paid the submission, and the base is in a batch as well"),
    "would pay twice": Phrase("the recruiter has paid the submission, and the next batch would pay the base as well"),
    "paid in part": Phrase("the recruiter has paid an amount other than the base"),
    "returned": Phrase("the recruiter lists the submission as returned"),
    "asked to return": Phrase(
        "the recruiter lists the submission as returned, as the last page asks where an ending has no code"
    ),
    "rejected": Phrase("the recruiter lists the submission as rejected"),
    "unknown": Phrase("no table of the recruiter names this person"),
    "another person": Phrase("the recruiter's table assigns their visit to another person"),
    "no id": Phrase("the recruiter's id was removed, so that no file can pay them"),
    "bad id": Phrase("the recruiter's file does not accept this id"),
    "too much": Phrase("the recruiter's file cannot pay this much at once"),
    "under way": Phrase("the recruiter lists the submission as submitted or approved, and they are under way here"),
    "overpaid": Phrase("more was sent for payment than is owed; the excess is deducted from later pay"),
}


def ending_cell(name: str | None) -> State:
    """A person's ending; empty for a person who is under way."""
    if name is None:
        return State("", "open", Phrase("here now"))
    return State(name, "good" if name == COMPLETED else "", ENDINGS.get(name))  # type: ignore[call-overload]


def step_words(step: Step) -> Phrase:
    """A person's position: the kind of the step, and which one it is."""
    number = (step.number or 0) + 1
    if step.kind == "match":
        return Phrase("Match %(number)s", number=number)
    if step.kind == "practice":
        return Phrase("Practice match %(number)s", number=number)
    if step.kind in ("quiz", "instructions") and step.block:
        return Phrase("%(step)s of block %(number)s", step=_STEPS[step.kind], number=step.block + 1)
    return _STEPS[step.kind]
