"""Adversarial Taboo: an attacker lures a defender into saying a word that only the attacker knows.

Source: Cheng et al. 2024, arXiv 2404.10642. `words` gives the verdict on each text; docs/papers.md lists where the
default, strict judge departs from the published rule.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from app.core.validation import Schema
from app.games.base import JSON, Event, Game, Outcome, TypicalCalls, View, Violation, transcript
from app.games.config import GameConfig
from app.games.taboo.judges import judge
from app.games.taboo.metrics import METRICS
from app.games.taboo.outcomes import ATTACKER, ATTACKER_WINS, DEFENDER, DEFENDER_WINS, ROLES, RULES_BROKEN, TIED
from app.games.taboo.rewards import REWARDS
from app.games.taboo.spelling import is_blank
from app.games.taboo.words import TargetWords, read_word, target_words

_TYPICAL_TURNS = 5  # turns per side that the typical figures assume

_FORMS = {"message": "message", "declaration": "guess"}  # of answers, by the kind of the move

_WINNERS: Mapping[str, tuple[int | None, tuple[float, float]]] = {
    ATTACKER_WINS: (ATTACKER, (1, -1)),
    DEFENDER_WINS: (DEFENDER, (-1, 1)),
    RULES_BROKEN: (None, (-1, 0)),
    TIED: (None, (0, 0)),
}


class Config(GameConfig):
    """Settings of a game of taboo. `word` is None until it is drawn from the list."""

    max_turns: int = Field(default=5, ge=1, le=50, title="Turns of each side", description="Then it is a tie.")
    rule: Literal["strict", "released"] = Field(
        default="strict",
        title="Judge",
        description="Which texts hold the target word.",
        json_schema_extra={
            "labels": {
                "strict": "strict: the word and its inflections",
                "released": "released: as in the published code",
            }
        },
    )
    word: Annotated[str | None, BeforeValidator(read_word)] = Field(
        default=None, title="Word", json_schema_extra={"drawn": True}
    )


@dataclass(frozen=True, slots=True)
class State:
    """A game of taboo in progress: its resolved config and its accepted moves."""

    config: Config
    word: str
    events: tuple[Event, ...] = ()

    @property
    def ply(self) -> int:
        return len(self.events)


class Taboo(Game[State]):
    """The rules, as one stateless value."""

    name = "taboo"
    title = "Adversarial Taboo"
    version = 2  # docs/papers.md says what changed
    roles = ROLES
    settings = Config
    outcomes = (ATTACKER_WINS, DEFENDER_WINS, TIED, RULES_BROKEN)
    material = TargetWords()
    metrics = METRICS
    rewards = REWARDS
    limit_field = ("max_turns", 2)
    list_field = "word"
    most_tokens = 256  # Source: docs/papers.md
    typical = TypicalCalls(4.2, 3400, 170, 1.0)  # rules of 650 to 800 tokens, then moves of 35 to 40
    sampling: ClassVar[Mapping[str, float]] = {"temperature": 1.2, "top_k": 50}

    def prepare(self) -> None:
        """Load the inflection libraries, which takes about a second and 55 MB."""
        judge("strict", "mouse", "mice")

    def config(self, raw: Mapping[str, Any]) -> Config:
        return Config.read(raw, self.name)

    def typical_calls(self, config: Mapping[str, Any]) -> TypicalCalls:
        """Prompts grow with the number of turns."""
        turns = config.get("max_turns", _TYPICAL_TURNS)
        scale = turns / _TYPICAL_TURNS if isinstance(turns, int) else 1
        calls, prompt, completion, latency = self.typical
        return TypicalCalls(calls * scale, prompt * scale**1.3, completion * scale, latency)

    def initial(self, config: Config, rng: random.Random) -> State:
        word = config.word or rng.choice(target_words())
        return State(config.model_copy(update={"word": word}), word)

    def to_move(self, state: State) -> int | None:
        return None if _ending_reason(state) else state.ply % 2

    def parse(self, state: State, seat: int, text: str) -> Event | Violation:
        """Have the judge check the text. Every text is a move, unless it is blank."""
        move = text.strip()
        if is_blank(move):
            return Violation(seat, text, "empty", "Please write something first: the message is empty.")
        verdict = judge(state.config.rule, state.word, move)
        if verdict.guess is None:
            return Event("message", seat, move, {"said": verdict.said})
        data = {"said": verdict.said, "guess": verdict.guess, "right": verdict.right}
        return Event("declaration", seat, move, data)

    def answer_forms(self, view: View) -> Mapping[str, Schema]:
        """What the seat says, or its guess where it may declare one."""
        return {_FORMS[move["kind"]]: {"type": "string"} for move in view.may}

    def written_move(self, view: View, form: str, content: Any) -> str | None:
        if form not in self.answer_forms(view) or not isinstance(content, str) or is_blank(content):
            return None
        return content if form == "message" else f"I know the word! It is `{content.strip()}`!"

    def apply(self, state: State, event: Event) -> State:
        return State(state.config, state.word, (*state.events, event))

    def view(self, state: State, seat: int, *, over: bool = False) -> View:
        mover = None if over else self.to_move(state)
        over = mover is None
        may: tuple[JSON, ...] = ()
        if mover == seat:
            may = ({"kind": "message"},) if seat == ATTACKER else ({"kind": "message"}, {"kind": "declaration"})
        made = (state.ply + 1 - seat) // 2
        facts: JSON = {"max_turns": state.config.max_turns, "turns_left": state.config.max_turns - made}
        if over:
            facts["word"] = state.word
        return View(
            game=self.name,
            role=self.roles[seat],
            seat=seat,
            ply=state.ply,
            to_move=None if over else "you" if mover == seat else "partner",
            transcript=transcript(state.events, seat),
            facts=facts,
            secret={"word": state.word} if seat == ATTACKER else {},
            may=may,
        )

    def utility_range(self, config: Mapping[str, Any]) -> tuple[Decimal, Decimal]:  # noqa: ARG002  always the same
        """The loser gets -1, the winner 1."""
        return Decimal(-1), Decimal(1)

    def outcome(self, state: State) -> Outcome | None:
        reason = _ending_reason(state)
        if reason is None:
            return None
        winner, utilities = _WINNERS[reason]
        return Outcome(reason, winner, utilities, {"word": state.word, "rule": state.config.rule})


def decision(seat: int, *, said: bool, declared: bool, right: bool) -> str | None:
    """What a move decides: the reason of the outcome, or None if the game continues.

    A declaration is checked before an utterance, since every correct one is an utterance, too.
    """
    if seat == ATTACKER:
        return RULES_BROKEN if said or declared else None
    if declared:
        return DEFENDER_WINS if right else ATTACKER_WINS
    return ATTACKER_WINS if said else None


def _ending_reason(state: State) -> str | None:
    if state.events:
        last = state.events[-1]  # only it can have decided: nothing is played after a decision
        decided = decision(
            last.seat,
            said=last.data["said"] is not None,
            declared=last.kind == "declaration",
            right=last.data.get("right", False),
        )
        if decided:
            return decided
    return TIED if state.ply >= 2 * state.config.max_turns else None


TABOO = Taboo()
