"""The words of the admin pages of studies for stages, payments and events, in English, for pages to translate."""

from collections.abc import Mapping

from app.studies.listing import wave_state
from app.studies.monitor.inbox import REASON_WORDS
from app.studies.monitor.words import DOUBTS, ENDINGS, ending_cell, step_words
from app.web.admin.blueprint import blueprint
from app.web.translations import N_

STAGES: Mapping[str, str] = {
    "entry": N_("Opened the link"), "before": N_("First questions"), "quiz": N_("Instructions and quiz"),
    "practice": N_("Practice"), "block": N_("Matches"), "end": N_("Last questions and debrief"),
}  # fmt: skip
SUBMISSION_STATES: Mapping[str, str] = {
    "active": N_("active"), "submitted": N_("submitted"), "approved": N_("approved"), "rejected": N_("rejected"),
    "returned": N_("returned"), "timed_out": N_("timed out"), "screened_out": N_("screened out"),
    "partial": N_("approved in part"),
}  # fmt: skip
# Events about a person of which the page says no more.
HAPPENED: Mapping[str, str] = {
    "entry": N_("opened the link"), "consent": N_("answered the consent"), "assignment": N_("was given an arm"),
    "match": N_("began a match"), "settled": N_("pay was worked out"), "place freed": N_("place was freed"),
}  # fmt: skip
HANDED_IN: Mapping[str, str] = {
    "no code": N_("without a code"), "other code": N_("with an unknown code"),
}  # fmt: skip
RECRUITERS: Mapping[str, str] = {
    "prolific": "Prolific", "mturk": "Amazon Mechanical Turk", "connect": "CloudResearch Connect",
    "link": N_("your own link"),
}  # fmt: skip


@blueprint.app_context_processor
def _word_lists() -> dict[str, object]:
    return {
        "ending_words": ENDINGS, "stage_words": STAGES, "submission_words": SUBMISSION_STATES,
        "report_words": REASON_WORDS, "recruiter_words": RECRUITERS, "doubt_words": DOUBTS,
        "handed_in_words": HANDED_IN, "happened_words": HAPPENED,
    }  # fmt: skip


blueprint.add_app_template_filter(step_words)
blueprint.add_app_template_global(ending_cell)
blueprint.add_app_template_global(wave_state, "wave_cell")
