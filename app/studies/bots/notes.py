"""The habits of bots, and what each bot saw. Pure."""

from dataclasses import dataclass, field

HABITS = (
    "plain", "refreshes", "double-clicks", "two browsers", "leaves and comes back", "pastes", "fails the quiz",
    "goes silent", "withdraws", "declines", "sends old forms",
)  # fmt: skip


@dataclass(slots=True)
class BotNotes:
    """What a bot saw. `code` and `token` are None if it was shown none; `surprises` are what should not have
    happened.
    """

    number: int
    habit: str
    steps: list[str] = field(default_factory=list)
    matches: int = 0
    moves: int = 0  # accepted by the server
    utilities: dict[str, float] = field(default_factory=dict)  # of the matches whose end it saw, by match id
    token: str | None = None
    code: str | None = None
    arrived: bool = False  # at a last page
    surprises: list[str] = field(default_factory=list)
