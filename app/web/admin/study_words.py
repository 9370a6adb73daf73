"""What the admin pages of studies call endings, steps, stages, payments and what happened: English, to be translated
where it is shown.
"""

from collections.abc import Mapping

from app.studies.endings import EndingName
from app.studies.participant_steps import StepKind
from app.web.admin.blueprint import blueprint
from app.web.translations import N_

ENDINGS: Mapping[EndingName, str] = {
    "completed": N_("completed"), "declined": N_("declined"), "ineligible": N_("not eligible"),
    "quiz_failed": N_("failed the quiz"), "no_partner": N_("found no partner"), "partner_left": N_("partner left"),
    "technical": N_("technical problem"), "inactive": N_("inactive"), "withdrawn": N_("withdrew"),
    "removed": N_("removed"), "full": N_("wave was full"), "closed": N_("wave was closed"),
}  # fmt: skip
STEPS: Mapping[StepKind, str] = {
    "consent": N_("Consent"), "survey": N_("Questions"), "instructions": N_("Instructions"), "quiz": N_("Quiz"),
    "practice": N_("Practice match"), "match": N_("Match"), "partner": N_("Question about the partner"),
    "debrief": N_("Debrief"), "done": N_("Last page"),
}  # fmt: skip
STAGES: Mapping[str, str] = {
    "entry": N_("Opened the link"), "before": N_("First questions"), "quiz": N_("Instructions and quiz"),
    "practice": N_("Practice"), "block": N_("Matches"), "end": N_("Last questions and debrief"),
}  # fmt: skip
WHERE: Mapping[str, str] = {
    "here": N_("here now"), "completed": N_("completed"), "ended early": N_("ended early"),
}  # fmt: skip
WAVE_STATES: Mapping[str, str] = {
    "open": N_("open"), "paused": N_("paused"), "closed": N_("closed"), "frozen": N_("frozen"),
}  # fmt: skip
BATCH_STATES: Mapping[str, str] = {
    "drafted": N_("drafted"), "uploaded": N_("uploaded"), "confirmed": N_("confirmed"),
}  # fmt: skip
SUBMISSION_STATES: Mapping[str, str] = {
    "active": N_("active"), "submitted": N_("submitted"), "approved": N_("approved"), "rejected": N_("rejected"),
    "returned": N_("returned"), "timed_out": N_("timed out"), "screened_out": N_("screened out"),
    "partial": N_("approved in part"),
}  # fmt: skip
PAY_DOUBTS: Mapping[str, str] = {
    "another person": N_("The recruiter’s table says that this person’s visit is another person’s."),
    "no submission": N_("The recruiter has named no submission of this person, so that approving may pay nothing."),
    "paid twice": N_("The recruiter has paid this submission, and the base is in a batch as well."),
    "would pay twice": N_("The recruiter has paid this submission, and the next batch would pay the base as well."),
    "paid in part": N_("The recruiter has paid another amount than the base."),
    "returned": N_("The recruiter calls this submission returned."),
    "asked to return": N_(
        "The recruiter calls this submission returned. The last page asks for that, as the ending has no code."
    ),
    "rejected": N_("The recruiter calls this submission rejected."),
    "unknown": N_("No table of the recruiter names this person."),
    "no id": N_("The recruiter’s id was removed, so that no file can pay this person."),
    "bad id": N_("The recruiter’s file takes no such id."),
    "too much": N_("The recruiter’s file pays nobody so much at once."),
    "under way": N_("The recruiter calls this submission submitted or approved, and the person is under way here."),
    "overpaid": N_("More was sent to be paid than is owed. It is held against what this person is still to be paid."),
}
# What happened to somebody, of events of which the page says no more.
HAPPENED: Mapping[str, str] = {
    "entry": N_("opened the link"), "consent": N_("answered the consent"), "assignment": N_("was given an arm"),
    "match": N_("began a match"), "settled": N_("pay was worked out"), "place freed": N_("place was freed"),
}  # fmt: skip
HANDED_IN: Mapping[str, str] = {
    "no code": N_("without a code"), "other code": N_("with a code of no ending"),
}  # fmt: skip
REPORT_REASONS: Mapping[str, str] = {
    "broken": N_("something does not work"), "stuck": N_("game or partner does not go on"),
    "upsetting": N_("upsetting or offensive"), "unclear": N_("does not understand what to do"),
    "too long": N_("takes longer than stated"), "other": N_("something else"),
}  # fmt: skip
REPORT_STATES: Mapping[str, str] = {"new": N_("new"), "read": N_("read"), "handled": N_("handled")}
RECRUITERS: Mapping[str, str] = {
    "prolific": "Prolific", "mturk": "Amazon Mechanical Turk", "connect": "CloudResearch Connect",
    "link": N_("your own link"),
}  # fmt: skip


@blueprint.app_context_processor
def _word_lists() -> dict[str, object]:
    return {
        "ending_words": ENDINGS, "step_words": STEPS, "stage_words": STAGES, "where_words": WHERE,
        "wave_words": WAVE_STATES, "batch_words": BATCH_STATES, "submission_words": SUBMISSION_STATES,
        "report_reasons": REPORT_REASONS, "report_states": REPORT_STATES, "recruiter_words": RECRUITERS,
        "doubt_words": PAY_DOUBTS, "handed_in_words": HANDED_IN, "happened_words": HAPPENED,
    }  # fmt: skip
