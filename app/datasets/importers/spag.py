"""Reads recorded games of Adversarial Taboo, a JSON list of
`{history: [{role, content}], target_word, max_turns}`.

Every game is judged again by the rule given by the caller, and ends at the verdict; later moves in the source are kept
in the facts. A game that stops before its last turn without a verdict is a tie, as in `flask judge`. Moves are stripped
of surrounding blanks, as moves made here are, and as the published program does for training; the original text is kept
in the facts.

Source: Cheng et al. 2024, arXiv 2404.10642.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.core.errors import Invalid, either
from app.datasets.json_list import read_list
from app.datasets.records import MODEL, ImportedMatch, ImportedSeat, closed, packed
from app.datasets.spag_episode import facts_of
from app.games.base import JSON, Event
from app.games.taboo.episodes import Episode, read_episode
from app.games.taboo.judges import RULES, judge
from app.games.taboo.outcomes import TIED
from app.games.taboo.rules import TABOO, decision
from app.matches.engine import readable
from app.matches.events import LogEvent, Started


class Spag:
    """The games of a file in order; it can be iterated repeatedly. Memory does not grow with their number.

    Raises Invalid for an unknown rule and, while it is read, with the file, the episode and the field.
    """

    game = TABOO.name

    def __init__(self, file: Path | str, rule: str = "strict") -> None:
        if rule not in RULES:
            raise Invalid("rule", expected=either(RULES), got=rule)
        self.file = Path(file)
        self.rule = rule

    def __iter__(self) -> Iterator[ImportedMatch]:
        for index, raw in enumerate(read_list(self.file, "a JSON list of episodes", "episode")):
            yield _read_match(index, raw, self.rule, f"{self.file}, episode {index}")


def _read_match(index: int, raw: Any, rule: str, where: str) -> ImportedMatch:
    episode = read_episode(raw, where)
    try:
        config = TABOO.config({"word": episode.target, "max_turns": episode.max_turns, "rule": rule}).to_json()
    except Invalid as error:
        raise error.at(where) from None
    moves = _up_to_the_verdict(episode, rule)
    events = closed([Started(TABOO.name, TABOO.version, config), *moves], TIED)
    facts = packed(facts_of(raw, events))
    return ImportedMatch(index, TABOO.name, config, events, (ImportedSeat(MODEL), ImportedSeat(MODEL)), facts)


def _up_to_the_verdict(episode: Episode, rule: str) -> list[LogEvent]:
    moves: list[LogEvent] = []
    for seat, text in episode.moves[: 2 * episode.max_turns]:
        verdict = judge(rule, episode.target, text)
        declared = verdict.guess is not None
        data: JSON = {"said": None if verdict.said is None else readable(verdict.said)}
        if verdict.guess is not None:
            data |= {"guess": readable(verdict.guess), "right": verdict.right}
        moves.append(Event("declaration" if declared else "message", seat, readable(text.strip()), data))
        if decision(seat, said=verdict.said is not None, declared=declared, right=verdict.right):
            break
    return moves
