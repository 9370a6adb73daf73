"""Judges recorded games of Adversarial Taboo in their authors' format: `{history, target_word, max_turns}`.

Source: Cheng et al. 2024, arXiv 2404.10642.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.core.errors import Invalid, Verbatim, either
from app.games.taboo.judges import RULES, judge
from app.games.taboo.outcomes import ROLES, TIED
from app.games.taboo.rules import decision
from training.json_rows import plain_text


@dataclass(frozen=True, slots=True)
class Judged:
    """The outcome of an episode and its number of moves up to the verdict, the deciding move included."""

    outcome: str
    plies: int


@dataclass(frozen=True, slots=True)
class Episode:
    """A recorded game: its moves as (seat, text), its target word and its turns per seat."""

    moves: tuple[tuple[int, str], ...]
    target: str
    max_turns: int


def judge_episodes(raw: Any, rule: str = "released") -> list[Judged]:
    """The outcome of every episode, in their order.

    Raises Invalid, which names the episode (from 0), the field, what was expected and what came.
    """
    if rule not in RULES:
        raise Invalid("rule", expected=either(RULES), got=rule)
    return [judge_episode(episode, rule) for episode in read_episodes(raw)]


def judge_episode(episode: Episode, rule: str) -> Judged:
    """Play an episode through to its verdict; what follows the verdict or the last turn is ignored."""
    moves = episode.moves[: 2 * episode.max_turns]
    for plies, (seat, text) in enumerate(moves, 1):
        verdict = judge(rule, episode.target, text)
        outcome = decision(seat, said=verdict.said is not None, declared=verdict.guess is not None, right=verdict.right)
        if outcome:
            return Judged(outcome, plies)
    return Judged(TIED, len(moves))


def read_episodes(raw: Any) -> list[Episode]:
    """Check a list of episodes parsed from JSON. Unneeded fields are ignored. Raises Invalid."""
    if not isinstance(raw, Sequence) or isinstance(raw, str):
        raise Invalid("episodes", expected="a list", got=Verbatim(_short(raw)))
    return [read_episode(episode, f"episode {index}") for index, episode in enumerate(raw)]


def read_episode(raw: Any, where: str) -> Episode:
    """Check one episode; `where` names it in a refusal. Raises Invalid."""
    history = _field(raw, "history", where)
    target = _field(raw, "target_word", where)
    max_turns = _field(raw, "max_turns", where)
    if not isinstance(history, Sequence) or isinstance(history, str):
        raise Invalid(None, expected="a list of moves", got=Verbatim(_short(history)), subject=f"{where}, history")
    if not isinstance(target, str) or not target.strip():
        raise Invalid(None, expected="a word", got=Verbatim(_short(target)), subject=f"{where}, target_word")
    if isinstance(max_turns, bool) or not isinstance(max_turns, int) or max_turns < 1:
        raise Invalid(
            None, expected="a whole number from 1", got=Verbatim(_short(max_turns)), subject=f"{where}, max_turns"
        )
    moves = tuple(_read_move(move, f"{where}, history[{n}]") for n, move in enumerate(history))
    return Episode(moves, target, max_turns)


def _read_move(raw: Any, where: str) -> tuple[int, str]:
    role = _field(raw, "role", where)
    content = plain_text(_field(raw, "content", where))
    if role not in ROLES:
        raise Invalid(None, expected=either(ROLES), got=Verbatim(_short(role)), subject=f"{where}, role")
    if not isinstance(content, str):
        raise Invalid(None, expected="text", got=Verbatim(_short(content)), subject=f"{where}, content")
    return ROLES.index(role), content


def _field(raw: Any, name: str, where: str) -> Any:
    if not isinstance(raw, Mapping):
        raise Invalid(None, expected=f"an object with {name}", got=Verbatim(_short(raw)), subject=where)
    if name not in raw:
        raise Invalid(
            None, expected="it to be there", got=Verbatim(_short(sorted(map(str, raw)))), subject=f"{where}, {name}"
        )
    return raw[name]


def _short(raw: Any) -> str:
    text = repr(raw)
    return text if len(text) <= 60 else f"{text[:57]}..."
