"""How a server is told the JSON Schema for an answer, if the model's row asks for one. Pure."""

import json
from urllib.parse import urlsplit

from app.core.errors import Invalid, Phrase, either
from app.games.base import JSON
from app.players.api.addresses import is_within
from app.players.api.server_errors import FORMAT_FIELD

OFF, JSON_SCHEMA = "off", "json_schema"
STRUCTURED = (OFF, JSON_SCHEMA)  # the values of the option structured_output
# A schema with a name, as OpenAI and nearly all others take it; a bare schema; or any JSON, without a schema.
FORMS = (NAMED := "named", BARE := "bare", ANY_JSON := "any_json")
_FORM_OF_HOST = {"together.ai": BARE, "together.xyz": BARE, "deepseek.com": ANY_JSON}


def form_of(base_url: str) -> str:
    """The form that the server at an address takes."""
    host = urlsplit(base_url).hostname or ""
    known = (form for domain, form in _FORM_OF_HOST.items() if is_within(host, domain))
    return next(known, NAMED)


def read_structured(raw: object) -> str:
    """Whether answers are held to schemas: a word of STRUCTURED. Raises Invalid."""
    if raw not in STRUCTURED:
        raise Invalid("structured_output", expected=either(STRUCTURED), got=raw)
    return str(raw)


def read_form(raw: object, base_url: str) -> str:
    """The chosen form, or else that of the address. Raises Invalid."""
    if raw is not None and raw not in FORMS:
        raise Invalid("structured_form", expected=either(FORMS), got=raw)
    return form_of(base_url) if raw is None else str(raw)


def check_extra(structured: str, extra: JSON) -> None:
    """Raises Invalid where `extra` has the field that the option structured_output sends."""
    if structured != OFF and FORMAT_FIELD in extra:
        raise Invalid("extra", expected=Phrase("no field that the option structured_output sends"), got=FORMAT_FIELD)


def response_format(schema: str, form: str) -> JSON:
    """The field's value for a JSON Schema; the schema's `title` is the name of the answer."""
    read = json.loads(schema)
    if form == ANY_JSON:
        return {"type": "json_object"}
    if form == BARE:
        return {"type": "json_schema", "schema": read}
    return {"type": "json_schema", "json_schema": {"name": read["title"], "strict": True, "schema": read}}
