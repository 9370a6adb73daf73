"""Adversarial Taboo: an attacker lures a defender into saying a word that only the attacker knows.

Source: Cheng et al. 2024, arXiv 2404.10642. The verdict on each text is that of `words`; docs/papers.md names where
the default, strict judge departs from the published rule.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.errors import Invalid, either
from app.games.base import JSON, Event, Outcome, View, Violation, known_fields, transcript
from app.games.taboo.judges import RULES, judge
from app.games.taboo.outcomes import ATTACKER, ATTACKER_WINS, DEFENDER, DEFENDER_WINS, ROLES, RULES_BROKEN, TIED
from app.games.taboo.spelling import is_blank
from app.games.taboo.words import read_word, target_words
from app.validation import whole_number

MOST_TURNS = 50

_WINNERS: Mapping[str, tuple[int | None, tuple[float, float]]] = {
    ATTACKER_WINS: (ATTACKER, (1, -1)),
    DEFENDER_WINS: (DEFENDER, (-1, 1)),
    RULES_BROKEN: (None, (-1, 0)),
    TIED: (None, (0, 0)),
}


@dataclass(frozen=True, slots=True)
class Config:
    """Settings of a game of taboo. `word` is None until it is drawn from the list."""

    word: str | None = None
    max_turns: int = 5
    rule: str = "strict"

    def to_json(self) -> JSON:
        raw: JSON = {"max_turns": self.max_turns, "rule": self.rule}
        if self.word is not None:
            raw["word"] = self.word
        return raw


@dataclass(frozen=True, slots=True)
class State:
    """A game of taboo in progress: its resolved config and its accepted moves."""

    config: Config
    word: str
    events: tuple[Event, ...] = ()

    @property
    def ply(self) -> int:
        return len(self.events)


class Taboo:
    """The rules, as one value without state of its own."""

    name = "taboo"
    title = "Adversarial Taboo"
    version = 2  # docs/papers.md says what changed
    roles = ROLES
    material: tuple[str, ...] = ("word",)
    unfinished: JSON = {}  # noqa: RUF012

    def prepare(self) -> None:
        """Load the libraries of inflections, which takes about a second and 55 MB."""
        judge("strict", "mouse", "mice")

    def config(self, raw: Mapping[str, Any]) -> Config:
        """Read `word`, `max_turns` and `rule`; all of them may be left out."""
        known_fields(raw, ("word", "max_turns", "rule"), self.name)
        rule = raw.get("rule", "strict")
        if rule not in RULES:
            raise Invalid("rule", expected=either(RULES), got=rule)
        return Config(
            word=read_word(raw.get("word")),
            max_turns=whole_number(raw.get("max_turns", 5), "max_turns", 1, MOST_TURNS),
            rule=rule,
        )

    def initial(self, config: Config, rng: random.Random) -> State:
        word = config.word or rng.choice(target_words())
        return State(replace(config, word=word), word)

    def to_move(self, state: State) -> int | None:
        return None if _reason(state) else state.ply % 2

    def parse(self, state: State, seat: int, text: str) -> Event | Violation:
        """Have the judge look at the text. Every text is a move, except one that holds nothing."""
        move = text.strip()
        if is_blank(move):
            return Violation(seat, text, "empty", "Please write something first: the message is empty.")
        verdict = judge(state.config.rule, state.word, move)
        if verdict.guess is None:
            return Event("message", seat, move, {"said": verdict.said})
        data = {"said": verdict.said, "guess": verdict.guess, "right": verdict.right}
        return Event("declaration", seat, move, data)

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

    def outcome(self, state: State) -> Outcome | None:
        reason = _reason(state)
        if reason is None:
            return None
        winner, utilities = _WINNERS[reason]
        return Outcome(reason, winner, utilities, {"word": state.word, "rule": state.config.rule})


def decision(seat: int, *, said: bool, declared: bool, right: bool) -> str | None:
    """What a move decides: the reason of the outcome, or None when the game goes on.

    A declaration is weighed before an utterance, as every right one is an utterance, too.
    """
    if seat == ATTACKER:
        return RULES_BROKEN if said or declared else None
    if declared:
        return DEFENDER_WINS if right else ATTACKER_WINS
    return ATTACKER_WINS if said else None


def _reason(state: State) -> str | None:
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
