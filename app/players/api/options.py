"""The validated options of an API model's registry row. Knows no SDK, so that a command can check them at once."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from app.core.errors import FieldName, Invalid, Phrase, Verbatim, either
from app.core.validation import real_number, whole_number
from app.games.base import JSON
from app.jobs.call_costs import Prices
from app.players.api import structured
from app.players.api.reasoning import (
    ROOM,
    SERVER,
    TEMPLATE_FIELD,
    check_extra,
    read_form,
    read_reasoning,
    reasoning_fields,
)
from app.players.api.server_errors import REFUSABLE_FIELDS, SAMPLING_FIELDS, TOKEN_FIELDS
from app.players.api.server_findings import SAMPLING_STATES, UNVERIFIED
from app.players.stop_strings import read_stop

VENDOR_URL = "https://api.openai.com/v1"
_OPTIONS = (
    "model", "base_url", "organisation", "key_env", "timeout", "retries", "temperature", "top_p", "seed",
    "max_tokens", "token_field", "extra", "in_flight", "tokens_per_minute", "price_in", "price_out",
    "price_cached", "price_cache_write", "price_reasoning", "price_training", "key_host", "refused_fields",
    "sampling_state", "reasoning", "reasoning_room", "reasoning_form", "stop", "structured_output",
    "structured_form",
)  # fmt: skip
_OWN_FIELDS = {"model", "messages", "n", "stream", *SAMPLING_FIELDS, *TOKEN_FIELDS}  # never in `extra`
_NOT_ITS_OWN = Phrase("fields that have no option of their own")
_MOST_EXTRA = 10_000
HIGHEST_PRICE = 1e6  # USD for a million tokens
_MOST_ADDRESS = 500
_ADDRESS = re.compile(r"https?://[^\s/?#@]+(/[^\s?#@]*)?", re.IGNORECASE)
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class ApiOptions:
    """The options of an API model in a registry row. If temperature, top_p or seed is None, it is not sent."""

    model: str
    base_url: str
    organisation: str | None
    key_env: str  # NAME of the variable that holds the key; "" for a server without keys
    timeout: float  # seconds, of each attempt
    retries: int
    temperature: float | None
    top_p: float | None
    seed: int | None
    max_tokens: int | None  # None: the game's own limit
    token_field: str
    extra: JSON
    in_flight: int  # simultaneous requests to the model, from all matches of a process
    tokens_per_minute: int | None  # for prompts and completions together; None: unlimited
    price_in: float | None  # USD per million prompt tokens; None: unknown
    price_out: float | None  # likewise for answers
    price_cached: float | None  # likewise for prompt tokens read from the cache; None: as price_in
    price_cache_write: float | None  # likewise for those written to the cache; None: as price_in
    price_reasoning: float | None  # likewise for reasoning; None: as price_out
    price_training: float | None  # likewise for the tokens of a training at the vendor
    key_host: str | None  # the only host that gets the key; None: wherever the model is
    refused_fields: tuple[str, ...]  # those of REFUSABLE_FIELDS that the server has refused and is not sent
    sampling_state: str  # of a temperature that is sent: with a proven effect, or unverified
    reasoning: str | int  # server, off, low, medium, high, or a number of tokens
    reasoning_room: int  # tokens for reasoning beside the limit of a move
    reasoning_form: str  # how the server is told
    stop: tuple[str, ...]  # texts before which an answer ends
    structured_output: str  # whether answers must follow schemas if a call has one: off or json_schema
    structured_form: str  # how the server is told

    @property
    def prices(self) -> Prices | None:
        """The prices of its tokens; None if the price of prompts or of answers is unknown."""
        if self.price_in is None or self.price_out is None:
            return None
        return Prices(self.price_in, self.price_out, self.price_cached, self.price_cache_write, self.price_reasoning)


def read_options(raw: Mapping[str, Any]) -> ApiOptions:
    """Validate a row's options; numbers may be given as text. Raises Invalid, which never shows a key."""
    unknown = sorted(set(raw) - set(_OPTIONS))
    if unknown:
        # Only the names: a key stored here by mistake must not appear in a log.
        raise Invalid(
            "option",
            expected=Verbatim(", ".join(_OPTIONS)),
            got=Verbatim(", ".join(map(repr, unknown))),
            subject=Phrase("option of an API model"),
        )
    token_field = raw.get("token_field", TOKEN_FIELDS[0])
    if token_field not in TOKEN_FIELDS:
        raise Invalid("token_field", expected=either(TOKEN_FIELDS), got=token_field)
    base_url = _url(raw.get("base_url") or os.environ.get("OPENAI_BASE_URL") or VENDOR_URL)
    extra = _extra(raw.get("extra"))
    reasoning, form = read_reasoning(raw.get("reasoning", SERVER)), read_form(raw.get("reasoning_form"), base_url)
    check_extra(reasoning_fields(reasoning, form), extra)
    structured_output = structured.read_structured(raw.get("structured_output", structured.OFF))
    structured.check_extra(structured_output, extra)
    stop = read_stop(raw.get("stop"))
    if stop and "stop" in extra:
        raise Invalid("extra", expected=_NOT_ITS_OWN, got=Verbatim("stop"))
    room = reasoning if isinstance(reasoning, int) else ROOM[reasoning]
    seed, max_tokens, a_minute = raw.get("seed"), raw.get("max_tokens"), raw.get("tokens_per_minute")
    return ApiOptions(
        model=_read_name(raw.get("model"), "model"),
        base_url=base_url,
        organisation=None if raw.get("organisation") is None else _read_name(raw["organisation"], "organisation"),
        key_env=_variable(raw.get("key_env", "OPENAI_API_KEY")),
        timeout=real_number(raw.get("timeout", 60), "timeout", 0.1, 3600),
        retries=whole_number(raw.get("retries", 4), "retries", 0, 20),
        temperature=None if (t := raw.get("temperature", 1.0)) is None else real_number(t, "temperature", 0, 2),
        top_p=None if (p := raw.get("top_p")) is None else real_number(p, "top_p", 0, 1),
        seed=None if seed is None else whole_number(seed, "seed", -(2**63), 2**63 - 1),
        max_tokens=None if max_tokens is None else whole_number(max_tokens, "max_tokens", 1, 1_000_000),
        token_field=token_field,
        extra=extra,
        in_flight=whole_number(raw.get("in_flight", 32), "in_flight", 1, 1024),
        tokens_per_minute=None if a_minute is None else whole_number(a_minute, "tokens_per_minute", 1, 10**9),
        price_in=_price(raw, "price_in"),
        price_out=_price(raw, "price_out"),
        price_cached=_price(raw, "price_cached"),
        price_cache_write=_price(raw, "price_cache_write"),
        price_reasoning=_price(raw, "price_reasoning"),
        price_training=_price(raw, "price_training"),
        key_host=None if raw.get("key_host") is None else _read_name(raw["key_host"], "key_host"),
        refused_fields=_refused_fields(raw.get("refused_fields")),
        sampling_state=_read_state(raw.get("sampling_state", UNVERIFIED)),
        reasoning=reasoning,
        reasoning_room=whole_number(raw.get("reasoning_room", room), "reasoning_room", 0, 1_000_000),
        reasoning_form=form,
        stop=stop,
        structured_output=structured_output,
        structured_form=structured.read_form(raw.get("structured_form"), base_url),
    )


def template_arguments(options: ApiOptions) -> object:
    """The chat template's variables that are sent with each chat, for reasoning or from `extra`; not validated yet."""
    return {**reasoning_fields(options.reasoning, options.reasoning_form), **options.extra}.get(TEMPLATE_FIELD)


def _price(raw: Mapping[str, Any], option: str) -> float | None:
    price = raw.get(option)
    return None if price is None else real_number(price, option, 0, HIGHEST_PRICE)


def _read_name(raw: object, option: str) -> str:
    if not isinstance(raw, str) or not raw.strip() or len(raw) > 200 or not raw.isprintable():
        raise Invalid(option, expected=Phrase("a name of 1 to 200 characters"), got=raw)
    return raw.strip()


def _refused_fields(raw: object) -> tuple[str, ...]:
    if raw is None:
        return ()
    if not isinstance(raw, list | tuple) or not set(map(str, raw)) <= set(REFUSABLE_FIELDS):
        raise Invalid(
            "refused_fields", expected=Phrase("a list of %(names)s", names=", ".join(REFUSABLE_FIELDS)), got=raw
        )
    return tuple(raw)


def _read_state(raw: object) -> str:
    if raw not in SAMPLING_STATES:
        raise Invalid("sampling_state", expected=either(SAMPLING_STATES), got=raw)
    return str(raw)


def _url(raw: object) -> str:
    """An address without user, password, query or fragment: all of them can hide a key that logs would show."""
    address = raw if isinstance(raw, str) else ""
    try:
        sound = (
            _ADDRESS.fullmatch(address)
            and len(address) <= _MOST_ADDRESS
            and address.isprintable()
            and urlsplit(address).port != 0
        )
    except ValueError:
        sound = False
    if not sound:
        raise Invalid(
            "base_url",
            expected=Phrase(
                "an address such as https://host/v1, http or https, without user, password, query or spaces"
            ),
            got=Phrase("one with a user or a password") if "@" in address else Phrase("something else"),
            remedy=Phrase("put a key into the variable that %(field)s names", field=FieldName("key_env")),
        )
    return address.rstrip("/")


def _variable(raw: object) -> str:
    if raw != "" and not (isinstance(raw, str) and _VARIABLE.fullmatch(raw)):
        raise Invalid(
            "key_env",
            expected=Phrase(
                "the NAME of an environment variable, in capitals such as OPENAI_API_KEY, or nothing for a server"
                " without keys"
            ),
            got=Phrase("something else (not shown, as it may be the key)"),
        )
    return str(raw)


def _can_be_stored(raw: object) -> bool:
    """Whether every database and every server accepts the value as JSON."""
    try:
        text = json.dumps(raw, allow_nan=False, ensure_ascii=False)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return len(text) <= _MOST_EXTRA and "\\u0000" not in text


def _extra(raw: object) -> JSON:
    if raw is None:
        return {}
    if not isinstance(raw, Mapping):
        raise Invalid(
            "extra", expected=Phrase("a mapping of further fields of the request"), got=Verbatim(type(raw).__name__)
        )
    own = sorted(_OWN_FIELDS & set(raw))
    if own:
        raise Invalid("extra", expected=_NOT_ITS_OWN, got=Verbatim(", ".join(own)))
    if not _can_be_stored(raw):
        raise Invalid(
            "extra",
            expected=Phrase(
                "at most %(most)s characters of JSON, without NaN, Infinity, half characters and NUL", most=_MOST_EXTRA
            ),
            got=Phrase("something else"),
        )
    return dict(raw)
