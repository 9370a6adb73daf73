"""Deal or No Deal: two negotiators share out books, hats and balls that are worth different points to each.

Source: Lewis et al. 2017 (the game and its contexts); Liao, Tomlin & Klein 2024, arXiv 2406.18872 (hidden
proposals, the objective λ, the move grammar). docs/papers.md names where this departs from their code.
"""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from string import Template
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from app.core.errors import Invalid, Phrase
from app.core.validation import Schema
from app.games.answers import object_schema
from app.games.base import JSON, Event, Game, Outcome, TypicalCalls, View, Violation, transcript
from app.games.config import GameConfig
from app.games.negotiation.contexts import ITEMS, POINTS, Context, Counts, context_of, generate_context, three
from app.games.negotiation.item_orders import ITEM_ORDERS
from app.games.negotiation.material import Contexts
from app.games.negotiation.measures import measures_of
from app.games.negotiation.metrics import METRICS
from app.games.negotiation.outcomes import DEAL, MOVE_LIMIT, NO_DEAL
from app.games.negotiation.points import Split, best_joint_score, is_pareto_optimal, scores, utilities
from app.games.negotiation.rewards import REWARDS
from app.games.negotiation.talk import talk_of
from app.games.talk import Talk

PRESETS: Mapping[str, Fraction] = {"self": Fraction(0), "coop": Fraction(1), "comp": Fraction(-1)}
NAME = "negotiation"
MOST_MOVES = 50

_END = re.compile(r"\[end\]", re.IGNORECASE)
_PREFIX = re.compile(r"\[(message|propose)\]", re.IGNORECASE)
_MESSAGE = re.compile(r"\A\s*\[message\]", re.IGNORECASE)  # which a model may repeat in an answer of that form
_PROPOSAL = re.compile(
    r"\(\s*([0-9]{1,6})\s+books?\s*,\s*([0-9]{1,6})\s+hats?\s*,\s*([0-9]{1,6})\s+balls?\s*\)", re.IGNORECASE
)
_FORM = "[propose] (x books, y hats, z balls)"


def _objective(raw: Any) -> str | int | float:
    if isinstance(raw, str) and raw in PRESETS:
        return raw
    try:
        if isinstance(raw, bool):
            raise ValueError
        lam = float(raw)
    except (TypeError, ValueError):
        lam = float("nan")
    if not -1 <= lam <= 1:
        raise Invalid("objective", expected=Phrase("self, coop, comp or a number from -1 to 1"), got=raw)
    return int(lam) if lam.is_integer() else lam


def _as_it_came(raw: Any) -> Any:
    return raw


_OBJECTIVE = {"anyOf": [{"type": "string", "enum": list(PRESETS)}, {"type": "number", "minimum": -1, "maximum": 1}]}


class Config(GameConfig):
    """Settings of a negotiation. `counts` with `values`, and `first`, are None until they are drawn."""

    objective: Annotated[str | int | float, BeforeValidator(_objective), WithJsonSchema(_OBJECTIVE)] = Field(
        default="self",
        title="Objective",
        description="What a partner’s point is worth to a player.",
        json_schema_extra={
            "labels": {
                "self": "own points (λ = 0)",
                "coop": "points of both (λ = 1)",
                "comp": "lead over the partner (λ = −1)",
            },
            "other": {
                "word": "lambda",
                "label": "another λ",
                "name": "lam",
                "title": "λ",
                "description": "From −1 to 1.",
                "default": 0.5,
            },
        },
    )
    limit: int = Field(
        default=MOST_MOVES,
        ge=1,
        le=1000,
        title="Maximum moves per match",
        description="Then it is over without a deal.",
    )
    counts: Annotated[Counts | None, BeforeValidator(_as_it_came)] = Field(
        default=None, title="Counts", json_schema_extra={"drawn": True}
    )
    values: Annotated[tuple[Counts, Counts] | None, BeforeValidator(_as_it_came)] = Field(
        default=None, title="Values", json_schema_extra={"drawn": True}
    )
    first: int | None = Field(default=None, ge=0, le=1, title="First seat", json_schema_extra={"form": False})

    @model_validator(mode="before")
    @classmethod
    def _context_is_whole(cls, raw: Any) -> Any:
        """Counts without values are half a context. Raises Invalid, also for what cannot be a context."""
        counts, values = raw.get("counts"), raw.get("values")
        if (counts is None) != (values is None):
            raise Invalid(
                "config",
                expected=Phrase("counts and values together"),
                got=Phrase("only one of them"),
                subject=Phrase("config of %(game)s", game=NAME),
            )
        if counts is None:
            return raw
        context = context_of(counts, values)
        return {**raw, "counts": context.counts, "values": context.values}

    @property
    def lam(self) -> Fraction:
        """λ, exactly: how much a partner's point counts for a seat (self 0, coop 1, comp −1)."""
        return _lam(self.objective)

    @property
    def context(self) -> Context | None:
        """The context, or None until it is drawn."""
        return None if self.counts is None or self.values is None else Context(self.counts, self.values)


@dataclass(frozen=True, slots=True)
class State:
    """A negotiation in progress: its resolved config and its accepted moves."""

    config: Config
    context: Context
    first: int
    events: tuple[Event, ...] = ()

    @property
    def ply(self) -> int:
        return len(self.events)


class Negotiation(Game[State]):
    """The rules, as one stateless value."""

    name = NAME
    title = "Deal or No Deal"
    version = 1
    roles = ("negotiator", "negotiator")
    settings = Config
    outcomes = (DEAL, NO_DEAL, MOVE_LIMIT)
    unfinished: ClassVar[JSON] = {"agreed": False, "pareto_optimal": False}
    material = Contexts()
    metrics = METRICS
    rewards = REWARDS
    permutations = ITEM_ORDERS
    first_field = "first"
    limit_field = ("limit", 1)
    most_tokens = 200  # Source: docs/papers.md
    typical = TypicalCalls(3.6, 3200, 125, 1.0)  # rules of 650 to 800 tokens, then moves of 35 to 40

    def config(self, raw: Mapping[str, Any]) -> Config:
        return Config.read(raw, self.name)

    def partner_weight(self, config: Mapping[str, Any]) -> Fraction:
        return _lam(_objective(config.get("objective", "self")))

    def joint_share(
        self, config: Mapping[str, Any], utilities: tuple[float, float], facts: JSON | None
    ) -> float | None:
        """Points of both before λ, divided by those of the best joint split; with λ = −1 only the facts of a deal
        tell.
        """
        if facts is not None:
            points = float(sum(facts.get("scores", (0, 0))))
        else:
            weight = float(self.partner_weight(config))
            if weight == -1:
                return None
            points = sum(utilities) / (1 + weight)
        return points / best_joint_score(_raw_context(config))

    def measures(self, config: Mapping[str, Any], moves: Sequence[Event]) -> Mapping[str, float]:
        lam = _lam(_objective(config.get("objective", "self")))
        return measures_of(_raw_context(config), lam, config["first"], moves)

    def talk(self, config: Mapping[str, Any], moves: Sequence[Event], seat: int) -> Talk:
        return talk_of(_raw_context(config), moves, seat)

    def prompt_words(self, facts: JSON, sections: Mapping[str, str]) -> Mapping[str, str]:
        """λ in plain words."""
        lam = facts["lambda"]
        presets: Mapping[float, str] = {0: "objective self", 1: "objective coop", -1: "objective comp"}
        section = presets.get(lam) or ("objective friendly" if lam > 0 else "objective rival")
        return {"objective": Template(sections[section]).substitute(weight=abs(lam))}

    def initial(self, config: Config, rng: random.Random) -> State:
        context = config.context or generate_context(rng)
        first = rng.randrange(2) if config.first is None else config.first
        drawn = {"counts": context.counts, "values": context.values, "first": first}
        return State(config.model_copy(update=drawn), context, first)

    def to_move(self, state: State) -> int | None:
        ply = len(state.events)
        if ply >= state.config.limit or len(_proposals(state)) == 2:
            return None
        return (state.first + ply) % 2

    def parse(self, state: State, seat: int, text: str) -> Event | Violation:
        """Cut at the end marker, take a proposal's first line, then check prefix, order of play and grammar."""
        move = _END.split(text, maxsplit=1)[0].strip()
        opening = _PREFIX.match(move)
        if opening is None:
            reason = f"Start the move with [message] and your words, or with {_FORM}."
            return Violation(seat, text, "no_prefix", reason)
        proposing = opening[1].lower() == "propose"
        if proposing:
            move = move.splitlines()[0].rstrip()
        if len(_PREFIX.findall(move)) > 1:
            reason = "Make one move at a time: a message or an offer, with [message] or [propose] only once in it."
            return Violation(seat, text, "two_prefixes", reason)
        body = move[opening.end() :].strip()
        if not proposing:
            refusal = _refuse_message(state, body)
            return Event("message", seat, move) if refusal is None else Violation(seat, text, *refusal)
        allocation = _read_proposal(state, body)
        if isinstance(allocation[0], str):
            return Violation(seat, text, *allocation)
        return Event("proposal", seat, move, {"allocation": list(allocation)})

    def answer_forms(self, view: View) -> Mapping[str, Schema]:
        """A message, or the seat's share of each item: whichever its turn allows."""
        counts: Mapping[str, int] = view.facts["counts"]
        wanted = {item: {"type": "integer", "enum": [*range(count + 1)]} for item, count in counts.items()}
        forms: Mapping[str, Schema] = {"message": {"type": "string"}, "proposal": object_schema(wanted)}
        return {move["kind"]: forms[move["kind"]] for move in view.may}

    def written_move(self, view: View, form: str, content: Any) -> str | None:  # noqa: ARG002  both seats write alike
        if form == "message" and isinstance(content, str):
            return f"[message] {_MESSAGE.sub('', content).strip()}"
        if form != "proposal" or not isinstance(content, dict) or content.keys() != {*ITEMS}:
            return None
        if any(type(number) is not int for number in content.values()):
            return None
        return "[propose] ({book} books, {hat} hats, {ball} balls)".format(**content)

    def apply(self, state: State, event: Event) -> State:
        return State(state.config, state.context, state.first, (*state.events, event))

    def view(self, state: State, seat: int, *, over: bool = False) -> View:
        mover = None if over else self.to_move(state)
        over = mover is None
        may: tuple[JSON, ...] = ()
        if mover == seat:
            message, proposal = {"kind": "message"}, {"kind": "proposal"}
            may = (proposal,) if _proposals(state) else (message,) if state.ply == 0 else (message, proposal)
        facts: JSON = {
            "counts": _by_item(state.context.counts),
            "lambda": _json_number(state.config.lam),
            "limit": state.config.limit,
        }
        if over and (split := _agreed_split(state)) is not None:
            facts["split"] = {"you": _by_item(split[seat]), "partner": _by_item(split[1 - seat])}
        return View(
            game=self.name,
            role=self.roles[seat],
            seat=seat,
            ply=state.ply,
            to_move=None if over else "you" if mover == seat else "partner",
            transcript=transcript(state.events, seat, frozenset() if over else frozenset({"proposal"})),
            facts=facts,
            secret={"values": _by_item(state.context.values[seat])},
            may=may,
        )

    def utility_range(self, config: Mapping[str, Any]) -> tuple[Decimal, Decimal]:
        """All items together are worth 10 to each seat."""
        lam = self.config(config).lam
        partners = POINTS * Decimal(lam.numerator) / lam.denominator
        return min(Decimal(0), partners), POINTS + max(Decimal(0), partners)

    def outcome(self, state: State) -> Outcome | None:
        if self.to_move(state) is not None:
            return None
        split = _agreed_split(state)
        if split is None:
            reason = NO_DEAL if len(_proposals(state)) == 2 else MOVE_LIMIT
            return Outcome(reason, None, (0, 0), dict(self.unfinished))
        lam = state.config.lam
        first, second = utilities(state.context, split, lam)
        return Outcome(
            DEAL,
            None,
            (_json_number(first), _json_number(second)),
            {
                "agreed": True,
                "pareto_optimal": is_pareto_optimal(state.context, split, lam),
                "scores": list(scores(state.context, split)),
                "allocations": [list(side) for side in split],
            },
        )


# ---- Reading a move ---------------------------------------------------------


def _refuse_message(state: State, body: str) -> tuple[str, str] | None:
    """Code and reason for refusing a message, if it is refused."""
    if _proposals(state):
        return "talking_is_over", "Your partner has made an offer, so the talking is over: make yours."
    if not body:
        return "empty", "Please write something first: the message is empty."
    return None


def _read_proposal(state: State, body: str) -> Counts | tuple[str, str]:
    """The share that a proposal claims, or code and reason for refusing it."""
    if state.ply == 0:
        return "too_early", "Please say something first: offers come after at least one message."
    grammar = _PROPOSAL.fullmatch(body)
    if grammar is None:
        return "grammar", f"An offer has three whole numbers in this form, and nothing else: {_FORM}."
    allocation = three([int(number) for number in grammar.groups()])
    for item, wanted, count in zip(ITEMS, allocation, state.context.counts, strict=True):
        if wanted > count:
            return "too_many", f"You can take 0 to {count} {_plural(item, count)} in an offer, but not {wanted}."
    return allocation


# ---- Small things -----------------------------------------------------------


def _raw_context(config: Mapping[str, Any]) -> Context:
    """The context of a match's resolved config, which was checked when it was stored."""
    first, second = config["values"]
    return Context(three(config["counts"]), (three(first), three(second)))


def _proposals(state: State) -> Sequence[Event]:
    if not state.events or state.events[-1].kind != "proposal":  # nearly all of a match, as talk never resumes
        return ()
    return [event for event in state.events[-2:] if event.kind == "proposal"]


def _agreed_split(state: State) -> Split | None:
    """The deal, by seat, if there are two proposals that add up to the counts."""
    proposals = _proposals(state)
    if len(proposals) < 2:
        return None
    sides = {event.seat: three(event.data["allocation"]) for event in proposals}
    if any(a + b != count for a, b, count in zip(sides[0], sides[1], state.context.counts, strict=True)):
        return None
    return sides[0], sides[1]


@lru_cache(maxsize=256)
def _lam(objective: str | int | float) -> Fraction:
    return PRESETS[objective] if isinstance(objective, str) else Fraction(repr(objective))


def _by_item(numbers: Counts) -> JSON:
    book, hat, ball = numbers
    return {"book": book, "hat": hat, "ball": ball}


def _json_number(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def _plural(item: str, count: int) -> str:
    return item if count == 1 else f"{item}s"


NEGOTIATION = Negotiation()
