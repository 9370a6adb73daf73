"""What a form's page calls its fields, where the layers below refuse one under the name that the command line knows."""

import re
from collections.abc import Mapping

from flask_babel import gettext

from app.web.admin.blueprint import blueprint
from app.web.translations import N_
from training.methods import all_methods

_OF_TRAININGS = {
    name: schema["title"]
    for method in all_methods().values()
    for name, schema in method.job_fields.items()
    if "rank" in schema
}
LABELS: Mapping[str, str] = {
    **_OF_TRAININGS,
    "base": N_("Base"), "base_url": N_("Address"), "contexts": N_("Contexts"),
    "dataset": N_("Dataset"),
    "evaluation": N_("Matches of an evaluation"), "extra": N_("Further fields"), "filter": N_("Kept transcripts"),
    "further": N_("Further fields"), "game": N_("Game"), "games": N_("Plays"), "in_flight": N_("Requests at once"),
    "iterations": N_("Iterations"), "key_env": N_("Variable of the key"), "label": N_("Label"), "lam": N_("λ"),
    "limit": N_("Most moves of a match"), "matches": N_("Matches"),
    "max_tokens": N_("Most tokens of a move"), "max_turns": N_("Turns of each side"), "method": N_("Method"),
    "model": N_("Model"), "model_0": N_("First seat"), "model_1": N_("Second seat"),
    "models": N_("Models of the cross-play"), "name": N_("Name"), "objective": N_("Objective"),
    "order": N_("How matches get them"), "organisation": N_("Organisation"), "players": N_("Pairs"),
    "price_in": N_("Price of tokens in"), "price_out": N_("Price of tokens out"), "prompt_style": N_("Prompt style"),
    "reason": N_("Ended as"), "retries": N_("Retries"), "rule": N_("Judge"), "seed": N_("Seed"),
    "source": N_("Said by"), "start": N_("Each training goes on from"), "style": N_("Prompt style"),
    "temperature": N_("Temperature"), "timeout": N_("Timeout"), "token_field": N_("Sent as"),
    "tokens_per_minute": N_("Tokens a minute"), "top_k": N_("Top-k"), "top_p": N_("Top-p"),
    "words": N_("Target words"),
}  # fmt: skip
_INSIDE = re.compile(r"\b(base_url|key_env)\b")  # fields that refusals of others name


@blueprint.app_template_filter("with_labels")
def with_labels(message: str) -> str:
    """A refusal that begins with the name of a field, with the label that the page has for it."""
    field, mark, rest = message.partition(": ")
    if not mark or field not in LABELS:
        return message
    rest = _INSIDE.sub(lambda found: f"“{gettext(LABELS[found[0]])}”", rest)
    return f"{gettext(LABELS[field])}: {rest}"
