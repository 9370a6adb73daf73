"""Counts kept while the rows of an imported file are read: good rows, bad rows, and figures for its page."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.core.errors import Invalid, Phrase, Verbatim
from app.datasets.importers.row_checks import is_learnt
from app.datasets.importers.training_rows import ImportFormat, kind_of, line_of
from app.datasets.reward_tally import DatasetTally, RewardTally
from app.datasets.row_files import RawRow
from app.datasets.store import UnregisteredDataset, unregistered
from app.games.base import JSON
from training.methods.base import COMPARISONS, CONVERSATIONS, SUPERVISED

MOST_REFUSED = 1_000  # bad rows whose errors are kept
_WEIGHTS = 8  # different ones; no further ones are counted
_TOO_DEEP = Invalid(None, expected=Phrase("a row"), got=Phrase("lists within lists without end"))
_NONE = (None, (None,))  # the origin of a row without a match here


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A row that its format does not allow: its number in the file, from 1, and why."""

    number: int
    error: Invalid


class ImportTally(DatasetTally):
    """The counts of a file. `refused` has its first bad rows, `bad` their number, `groups` the match and seat that each
    good row states.
    """

    def __init__(self, row_format: ImportFormat) -> None:
        super().__init__()
        self.refused: list[RefusedRow] = []
        self.read = self.bad = 0
        self.groups: list[tuple[str, int] | None] = []
        self._format = row_format
        self._kind = row_format.kind
        self._weights: set[float] = set()  # some weights of moves to learn

    def lines(self, rows: Iterable[RawRow]) -> Iterator[bytes]:
        """The good rows as bytes, counted; bad rows are kept with their errors."""
        return (line for row in rows if (line := self._read_and_count_row(row)) is not None)

    def _read_and_count_row(self, raw: RawRow) -> bytes | None:
        self.read += 1
        try:
            if raw.error is not None:
                raise raw.error
            row = self._format.read(raw.value)
            self._check_kind(row)
            line = line_of(row)
        except (Invalid, RecursionError) as error:
            self.bad += 1
            if len(self.refused) < MOST_REFUSED:
                self.refused.append(RefusedRow(raw.number, error if isinstance(error, Invalid) else _TOO_DEEP))
            return None
        self._count_row(line, row)
        return line

    def _check_kind(self, row: JSON) -> None:
        kind = kind_of(row)
        self._kind = self._kind or kind
        if kind != self._kind:
            expected = Phrase("%(kind)s, as in the rows before", kind=Verbatim(self._kind))
            raise Invalid(None, expected=expected, got=Phrase("one of another kind"))

    def _count_row(self, line: bytes, row: JSON) -> None:
        own, others = _learnt_and_other_texts(row)
        own_words = sum(len(text.split()) for text in own)
        self.add_row(line, own_words + sum(len(text.split()) for text in others), own_words, len(own))
        self.groups.append(_seat_of(row.get("group")))
        if self._kind != COMPARISONS:
            _count_rewards(self.rewards, row)
            if len(self._weights) <= _WEIGHTS:
                self._weights.update(each.get("weight", 1) for each in row["messages"] if is_learnt(each))

    def draft(self, path: Path, source: JSON, here: set[str]) -> UnregisteredDataset:
        """The dataset; `here` are the matches of its rows that exist in this database."""
        known = (each if each is not None and each[0] in here else None for each in self.groups)
        origins: list[Any] = [_NONE if each is None else (each[0], (each[1],)) for each in known]
        figures: JSON = {
            "matches": len({match for match, _ in origins if match is not None}),
            **self.lengths(),
            "weights": sorted(self._weights),
        }
        if self.rewards.moves:
            figures["rewards"] = self.rewards.figures()
        spec: JSON = {"imported": source, "rounds": [], "prompts": {}, "style": None}
        return unregistered(path, self, spec, figures, origins, self._kind or CONVERSATIONS)


def _count_rewards(rewards: RewardTally, row: JSON) -> None:
    """Count the moves of a row that have a reward; a supervised row has none."""
    if row.get("type") == SUPERVISED:
        return
    rewarded = [each for each in row["messages"] if is_learnt(each) and each.get("reward") is not None]
    for each in rewarded:
        game, role = str(row.get("game", "")), str(each.get("player_role", ""))
        rewards.add(game, role, each["reward"], each.get("weight", 1))
    if rewarded and row.get("policy") is not None:
        rewards.add_policy(str(row["policy"]))


def _learnt_and_other_texts(row: JSON) -> tuple[list[str], list[str]]:
    """The texts of a row to train on, and all others."""
    if "responses" in row:
        return row["responses"], [row["query"], *(each["content"] for each in row.get("history") or ())]
    own = [each["content"] for each in row["messages"] if is_learnt(each)]
    return own, [each["content"] for each in row["messages"] if not is_learnt(each)]


def _seat_of(group: Any) -> tuple[str, int] | None:
    """The match and seat named by a group."""
    match, mark, seat = str(group).rpartition(":")
    return (match, int(seat)) if mark and seat in ("0", "1") else None
