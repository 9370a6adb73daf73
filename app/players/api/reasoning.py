"""How a server is told whether and how long a model should reason, and the extra tokens that this gets. Pure."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from app.core.errors import Invalid, Phrase, either
from app.games.base import JSON
from app.players.api.addresses import is_within

OFF, SERVER = "off", "server"  # no reasoning; the server's own default, as nothing is sent
ROOM = {SERVER: 0, OFF: 0, "low": 2_000, "medium": 8_000, "high": 24_000}  # tokens beside the limit of a move
FORMS = (
    EFFORT := "effort", SWITCH := "switch", THINKING := "thinking", BUDGET := "budget", REASONING := "reasoning",
    TEMPLATE := "template",
)  # fmt: skip
TEMPLATE_FIELD = "chat_template_kwargs"
FIELDS = ("reasoning_effort", "reasoning", "thinking", TEMPLATE_FIELD, "thinking_token_budget")
_NUMBERED = (BUDGET, REASONING, TEMPLATE)  # take a number of tokens
_FORM_OF_HOST = {
    "openai.com": EFFORT, "azure.com": EFFORT, "googleapis.com": EFFORT, "groq.com": EFFORT, "fireworks.ai": EFFORT,
    "mistral.ai": EFFORT, "x.ai": EFFORT, "together.ai": SWITCH, "together.xyz": SWITCH, "deepseek.com": THINKING,
    "anthropic.com": BUDGET, "openrouter.ai": REASONING,
}  # fmt: skip
_OLLAMA_PORT = 11434
_MOST = 1_000_000  # tokens


def read_reasoning(raw: object, words: Iterable[str] = tuple(ROOM)) -> str | int:
    """How much to reason: one of the words, or a number of tokens. Raises Invalid."""
    words = tuple(words)
    if isinstance(raw, str) and raw in words:
        return raw
    text = str(raw)
    if not isinstance(raw, bool) and text.isascii() and text.isdigit() and 1 <= int(text) <= _MOST:
        return int(text)
    expected = Phrase("%(words)s or a number of tokens from 1 to %(most)s", words=", ".join(words), most=_MOST)
    raise Invalid("reasoning", expected=expected, got=raw)


def form_of(base_url: str) -> str:
    """The form that the server at an address accepts; self-hosted servers accept arguments of the chat template."""
    address = urlsplit(base_url)
    host = address.hostname or ""
    known = (form for domain, form in _FORM_OF_HOST.items() if is_within(host, domain))
    return next(known, EFFORT if address.port == _OLLAMA_PORT else TEMPLATE)


def reasoning_fields(reasoning: str | int, form: str) -> JSON:
    """The fields to send. Raises Invalid for a number of tokens if the form accepts none."""
    if reasoning == SERVER:
        return {}
    if isinstance(reasoning, int) and form not in _NUMBERED:
        raise Invalid(
            "reasoning",
            expected=Phrase("%(words)s at this server, which takes no number", words=", ".join(ROOM)),
            got=reasoning,
        )
    on = reasoning != OFF
    tokens = reasoning if isinstance(reasoning, int) else ROOM[reasoning]
    effort: JSON = {"reasoning_effort": reasoning} if on and isinstance(reasoning, str) else {}
    switch = {"type": "enabled" if on else "disabled"}
    if form == EFFORT:
        return effort or {"reasoning_effort": "none"}
    if form == SWITCH:
        return {"reasoning": {"enabled": on}, **effort}
    if form == THINKING:
        return {"thinking": switch, **effort}
    if form == BUDGET:
        return {"thinking": {**switch, "budget_tokens": tokens} if on else switch}
    if form == REASONING:
        return {"reasoning": {"enabled": False} if not on else _effort_or_tokens(reasoning)}
    limit = {"thinking_token_budget": reasoning} if isinstance(reasoning, int) else {}
    return {TEMPLATE_FIELD: {"enable_thinking": on, "thinking": on, **effort}, **limit}


def _effort_or_tokens(reasoning: str | int) -> JSON:
    return {"max_tokens": reasoning} if isinstance(reasoning, int) else {"effort": reasoning}


def read_form(raw: object, base_url: str) -> str:
    """The chosen form, or else that of the address. Raises Invalid."""
    if raw is not None and raw not in FORMS:
        raise Invalid("reasoning_form", expected=either(FORMS), got=raw)
    return form_of(base_url) if raw is None else str(raw)


def check_extra(sent: JSON, extra: Iterable[str]) -> None:
    """Raises Invalid for a field of `extra` that the option reasoning sends as well."""
    if twice := sorted(set(sent) & set(extra)):
        raise Invalid(
            "extra",
            expected=Phrase("no field that the option reasoning sends"),
            got=", ".join(twice),
        )
