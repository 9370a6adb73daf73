"""What a server's refusals tell about how to call a model: with another name for a field, or without it.

What was learnt is kept here until it is written to the model's rows in the registry (`registry.learnt`), so that no
other process has to learn it.
"""

import re
from dataclasses import replace

from app.games.base import JSON
from app.players.api.client import ChatFailure
from app.players.api.options import ApiOptions
from app.players.api.reasoning import FIELDS, SERVER
from app.players.api.server_errors import REFUSABLE_FIELDS, SAMPLING_FIELDS, TOKEN_FIELDS

_REASONING = re.compile(r"reasoning|thinking", re.IGNORECASE)
_unwritten: dict[tuple[str, str], JSON] = {}  # options that differ, by model and address


def asked_differently(options: ApiOptions, before: ApiOptions, failure: ChatFailure) -> ApiOptions | None:
    """The options without the field that a server refuses; None where there is no other way to ask.

    `before` are those of the first attempt, so that no name is tried twice.
    """
    if failure.outcome != "ask_again_differently":
        return None
    if failure.field in TOKEN_FIELDS and options.token_field == before.token_field:
        return replace(options, token_field=next(name for name in TOKEN_FIELDS if name != options.token_field))
    if failure.field in options.extra:
        return None
    if failure.field in REFUSABLE_FIELDS and failure.field not in options.refused_fields:
        return replace(options, refused_fields=(*options.refused_fields, failure.field))
    return None


def option_to_change(options: ApiOptions, failure: ChatFailure) -> str:
    """The model's option to change if the server refuses a field; otherwise empty."""
    if failure.field in TOKEN_FIELDS:
        option: str | None = "max_tokens"
    elif failure.field in options.extra:
        option = "extra"
    else:
        option = failure.field if failure.field in SAMPLING_FIELDS else _reasoning_option(options, failure)
    return f"; change the model's option {option}" if option else ""


def _reasoning_option(options: ApiOptions, failure: ChatFailure) -> str | None:
    about_reasoning = failure.field in FIELDS or (failure.field is None and _REASONING.search(failure.what))
    return "reasoning" if options.reasoning != SERVER and about_reasoning else None


def remember(options: ApiOptions) -> None:
    """Remember that the model accepts these options."""
    learnt: JSON = {"token_field": options.token_field, "refused_fields": [*options.refused_fields]}
    _unwritten[options.model, options.base_url] = learnt


def unwritten() -> dict[tuple[str, str], JSON]:
    """Options that were learnt and not written yet, by model and address."""
    return dict(_unwritten)


def written(learnt: dict[tuple[str, str], JSON]) -> None:
    """Forget options that have been written to the registry."""
    for model, options in learnt.items():
        if _unwritten.get(model) == options:
            del _unwritten[model]
