"""A test call's findings about a model at its address, and the options that follow from them. Pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from app.games.base import JSON
from app.players.api.server_errors import FORMAT_FIELD

SamplingState = Literal["sent", "refused", "unverified"]
SENT: SamplingState = "sent"  # and shown to have an effect
REFUSED: SamplingState = "refused"  # by the server, so it is left out
UNVERIFIED: SamplingState = "unverified"  # taken by the server, which may ignore it
SAMPLING_STATES: tuple[SamplingState, ...] = get_args(SamplingState)

PROBE_SECONDS = 45.0  # that a test call may take to find out more than its move, or a check of sampling to be made
DRAWS = 8  # at each of two temperatures, to see whether they differ

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
    changed_at: datetime | None = None  # when a later call was refused what is said here to be taken
    token_field: str
    keeps_limit: bool | None  # of tokens; None where the answer was too short to tell
    sampling: dict[str, SamplingState]  # by field; what was not tried is missing
    check: SamplingCheck | None = None
    reasoning: Reasoning  # whether it reasoned as the row asks for; hidden: only its tokens are told
    reasoning_tokens: int | None  # most of one call
    reasoning_switch: Switch  # what was found to switch it; always: it cannot be off
    reasoning_form: str | None  # in which it was switched
    reasoning_room: int | None  # tokens beside a move that are enough; None where it does not reason
    usage: bool
    cached_tokens: bool
    cost: bool
    log_probs: Extent
    structured_output: Extent
    streams: bool  # though nobody asked for it
    model: str | None  # the name that the server gives the model
    fingerprint: str | None
    provider: str | None
    calls: int
    prompt_tokens: int
    completion_tokens: int
    usd: float | None  # what the calls have cost, as far as the server or the row's prices say; None: unknown
    options: dict[str, Any] = {}  # of the row, which follow from this and were set by the test call
    unanswered: tuple[str, ...] = ()  # calls of the test that brought no answer, a line each

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
