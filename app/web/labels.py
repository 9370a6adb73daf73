"""Error texts on pages: in the page's language, and with the label that a form gives to the field.

The layers below name a field as the command line does, and know no languages.
"""

from collections.abc import Mapping

from flask_babel import get_locale, gettext
from markupsafe import Markup, escape

from app.core.config import ENGLISH
from app.core.errors import AppError
from app.finetuning.backends import all_backends
from app.games import GAMES
from app.jobs.spec import JobBudget, fields_of
from app.web.game_options import field_titles
from app.web.translations import N_
from training.methods import all_methods

_FIELDS = [
    field
    for method in all_methods().values()
    for fields in (method.fields, *(backend.fields(method.name) for backend in all_backends().values()))
    for field in fields.items()
]
TRAINING_TITLES: Mapping[str, str] = {name: schema["title"] for name, schema in _FIELDS}
_OF_TRAININGS = {name: schema["title"] for name, schema in _FIELDS if "rank" in schema}  # those with a box in the form
_OF_GAMES = dict(names for game in GAMES.values() for names in field_titles(game))
_OF_BUDGETS = {name: schema["title"] for name, schema in fields_of(JobBudget).items()}
LABELS: Mapping[str, str] = {
    **_OF_TRAININGS,
    **_OF_GAMES,
    **_OF_BUDGETS,
    "adjustment": N_("Adjustment"),
    "agents": N_("Agents"), "backend": N_("Where it is trained"), "base": N_("Base"), "base_url": N_("Address"),
    "amount": N_("Amount"), "arm": N_("Arm"), "batch": N_("Batch"), "bots": N_("Bots"), "campaign": N_("Campaign"),
    "codes": N_("Codes"), "consent": N_("Consent to training"),
    "dataset": N_("Dataset"), "days": N_("Valid for (days)"), "decay": N_("Decay (γ)"),
    "demonstrations": N_("Demonstrations"),
    "embedder": N_("Embedder"), "extra": N_("Further fields"),
    "factor": N_("Extra time factor"),
    "fee": N_("Recruiter’s fee"),
    "file": N_("File"), "files": N_("Files of the study"),
    "filter": N_("Kept transcripts"), "format": N_("What the rows are like"),
    "game": N_("Game"), "games": N_("Plays"),
    "held_out": N_("Held-out questions"), "in_flight": N_("Requests at once"),
    "iterations": N_("Iterations"), "key_env": N_("Variable of the key"), "label": N_("Label"),
    "item_limit": N_("Items of each task"), "match": N_("Match"), "matches": N_("Matches"),
    "max_tokens": N_("Maximum tokens per move"), "minimum_per_hour": N_("Minimum pay per hour"), "method": N_("Method"),
    "mixing": N_("Mixing ratio"), "observers": N_("Observers"), "priors": N_("First memories"),
    "questions": N_("Questions"), "raters": N_("Raters"), "sampling": N_("Sampling"),
    "model": N_("Model"), "model_0": N_("First seat"), "model_1": N_("Second seat"),
    "models": N_("Models of the cross-play"), "most_spent": N_("Spend cap"), "name": N_("Name"),
    "not_if_took_part_in": N_("People who took part in"),
    "of": N_("Study"),
    "order": N_("How matches get them"), "over_cap": N_("Reason to exceed the spend cap"),
    "organisation": N_("Organisation"),
    "pause_after": N_("Pause after the first"),
    "person": N_("Person"), "places": N_("Places"),
    "player": N_("Player"),
    "players": N_("Pairs"),
    "price_cache_write": N_("Price of tokens put into the cache"), "price_cached": N_("Price of cached tokens in"),
    "price_in": N_("Price of tokens in"), "price_out": N_("Price of tokens out"),
    "price_reasoning": N_("Price of reasoning tokens"),
    "preset": N_("Preset"), "provider": N_("Recruiter"),
    "price_training": N_("Price of trained tokens"), "prompt_style": N_("Prompt style"),
    "reason": N_("Ended as"), "reasoning": N_("Reasoning"), "reasoning_form": N_("Reasoning is sent as"),
    "reasoning_room": N_("Room for reasoning"), "recruiter": N_("Recruiter"), "recruiter_id": N_("Id or parameter"),
    "retries": N_("Retries"), "role": N_("Role"), "scope": N_("What it may do"), "seed": N_("Seed"),
    "set_aside": N_("Reason not to wait for the reports"),
    "signed": N_("Signed links"),
    "sft": N_("Fields of the first training"),
    "structured_form": N_("Structured output is asked for as"), "structured_output": N_("Structured output"),
    "sft_data": N_("Supervised rows"), "share": N_("Share of the model that learns"),
    "shots": N_("Examples before each item"), "source": N_("Source"),
    "speakers": N_("Said by"), "study": N_("Study"),
    "stop": N_("Stop sequences"), "style": N_("Prompt style"), "tasks": N_("Tasks"),
    "temperature": N_("Temperature"), "timeout": N_("Timeout"), "token_field": N_("Sent as"),
    "tokens_per_minute": N_("Tokens a minute"), "top_k": N_("Top-k"), "top_p": N_("Top-p"),
    "train": N_("Fields of the second training"),
    "wave": N_("Wave"), "wordings": N_("Wordings of the rules"),
}  # fmt: skip
_LINES = (
    "training",
    "start_training",
    "sft",
    "train",
)  # form fields in which training fields are typed, one per line
_ENGLISH = Markup(' lang="en"')  # for the element around the text


def error_text(error: AppError, *, labels: bool = False, at: str = "") -> str:
    """An error in one line, in the page's language or else entirely in English; with `labels`, with a form's field
    labels.

    `at` is the form field that was refused; a training field that was entered there gets its training title.
    """
    called = _label_of_training if at in _LINES else _label_of_field
    return error.line(str if _is_english(error) else gettext, called if labels else str)


def in_code(text: str) -> Markup:
    """A text for a page, with anything in back-ticks set as code. The texts are also written for terminals."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # the last one has no partner, and opens nothing
        parts[-2:] = ["`".join(parts[-2:])]
    marked = Markup("<code>{}</code>")
    return Markup().join(marked.format(part) if place % 2 else escape(part) for place, part in enumerate(parts))


def error_lang(error: AppError) -> str:
    """The attribute of the element that shows `error_text`: it marks English text."""
    return _ENGLISH if _is_english(error) else ""


def _is_english(error: AppError) -> bool:
    return str(get_locale() or ENGLISH) == ENGLISH or not error.is_translatable()


def _label_of_training(field: str) -> str:
    return gettext(TRAINING_TITLES[field]) if field in TRAINING_TITLES else _label_of_field(field)


def _label_of_field(field: str) -> str:
    return gettext(LABELS[field]) if field in LABELS else field
