"""A test call's findings about a model at its address, and the options that follow from them. Pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from app.games.base import JSON
from app.players.api.server_errors import FORMAT_FIELD

SamplingState = Literal["sent", "refused", "unverified"]
SENT: SamplingState = "sent"  # sent, and shown to have an effect
REFUSED: SamplingState = "refused"  # refused by the server, so it is left out
UNVERIFIED: SamplingState = "unverified"  # accepted by the server, which may ignore it
SAMPLING_STATES: tuple[SamplingState, ...] = get_args(SamplingState)

PROBE_SECONDS = 45.0  # that a test call may take beyond its move, or a check of sampling in all
DRAWS = 8  # at each of two temperatures, to see whether these differ

Switch = Literal["off", "on", "always", "not found", "not tried"]
Extent = Literal["yes", "ignored", "refused", "not tried"]
Reasoning = Literal["yes", "hidden", "no"]


class SamplingCheck(BaseModel):
    """Draws at the lowest and at the highest temperature that the server takes, and whether they differ in variety."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    at: datetime
    verdict: SamplingState
    draws: int  # at each temperature
    lowest: float
    highest: float
    different_at_lowest: int  # answers
    different_at_highest: int
    p_value: float | None  # one-sided, by permutation; None where the temperature was refused


class ServerFindings(BaseModel):
    """How a model at an address has to be called, and what its answers contain, as found by a test call."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    at: datetime
    changed_at: datetime | None = None  # when a later call was refused something accepted here
    token_field: str
    keeps_limit: bool | None  # the limit of tokens; None if the answer was too short to tell
    sampling: dict[str, SamplingState]  # by field; untested fields are missing
    check: SamplingCheck | None = None
    reasoning: Reasoning  # whether it reasoned as the row asks for; hidden: only token counts are shown
    reasoning_tokens: int | None  # the most in one call
    reasoning_switch: Switch  # what was found to switch it; always: it cannot be switched off
    reasoning_form: str | None  # in which it was switched
    reasoning_room: int | None  # tokens that are enough beside a move; None if it does not reason
    usage: bool
    cached_tokens: bool
    cost: bool
    log_probs: Extent
    structured_output: Extent
    streams: bool  # although nobody asked for it
    model: str | None  # the server's name for the model
    fingerprint: str | None
    provider: str | None
    calls: int
    prompt_tokens: int
    completion_tokens: int
    usd: float | None  # the cost of the calls, as far as the server or the row's prices tell; None: unknown
    options: dict[str, Any] = {}  # options of the row that follow from this and were set by the test call
    unanswered: tuple[str, ...] = ()  # calls of the test without an answer, one line each

    def after_refusal(self, token_field: str, refused: Iterable[str], now: datetime) -> "ServerFindings":
        """The findings updated with what a later call was refused."""
        fields = {*refused}
        sampling: dict[str, SamplingState] = {**self.sampling, **dict.fromkeys(fields - {FORMAT_FIELD}, REFUSED)}
        structured: Extent = "refused" if FORMAT_FIELD in fields else self.structured_output
        if (token_field, sampling, structured) == (self.token_field, self.sampling, self.structured_output):
            return self
        changed = {"token_field": token_field, "sampling": sampling, "structured_output": structured}
        return self.model_copy(update={**changed, "changed_at": now})

    def after_check(self, check: SamplingCheck) -> "ServerFindings":
        """The findings updated with the verdict on the temperature."""
        return self.model_copy(update={"check": check, "sampling": {**self.sampling, "temperature": check.verdict}})


def read_findings(raw: Mapping[str, Any] | None) -> ServerFindings | None:
    """The findings of a row; None if it has none, or if they are of another version."""
    if raw is None:
        return None
    try:
        return ServerFindings.model_validate(raw)
    except ValidationError:
        return None


def options_found(findings: ServerFindings, given: Mapping[str, Any]) -> JSON:
    """The options that follow from findings, without those that are set in the row."""
    found: JSON = {}
    if findings.reasoning_room is not None and "reasoning_room" not in given:
        found["reasoning_room"] = findings.reasoning_room
    if findings.reasoning_form is not None and "reasoning_form" not in given:
        found["reasoning_form"] = findings.reasoning_form
    return found


def sampling_state(wanted: Iterable[str], refused: Iterable[str], state: str) -> str | None:
    """The state of the temperature and top-p that a request wanted, for its record; None where it wanted neither."""
    fields = set(wanted) & {"temperature", "top_p"}
    if not fields:
        return None
    return REFUSED if fields & set(refused) else state
