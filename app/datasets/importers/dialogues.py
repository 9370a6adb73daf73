"""Reads human dialogues on Deal or No Deal (see `dialogue_lines`) and scores them by the choices.

Both perspectives of a dialogue are adjacent; such a pair becomes one match, with the YOU of the first line in seat 0. A
single line is also a match. Turns become messages, choices become proposals, beginning with whoever selected first. If
a single line says that both agreed, the partner chose the rest; if it says that they disagreed, only the known choice
is proposed, and there is no deal. The published reward is kept; without a deal it counts for nothing.

Source: Lewis et al. 2017, arXiv 1706.05125.
"""

import codecs
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from app.core.errors import Invalid, Verbatim, shown
from app.core.failures import OUR_FAULT
from app.core.files import file_problem
from app.datasets.dialogue_lines import AGREE, DISCONNECT, YOU, Perspective, read_line, read_record
from app.datasets.records import PERSON, ImportedMatch, ImportedSeat, closed, read_json
from app.datasets.row_files import RawRow, read_row, read_rows
from app.games.base import Event
from app.games.negotiation.contexts import Counts, three
from app.games.negotiation.rules import MOST_MOVES, NEGOTIATION
from app.matches import engine
from app.matches.engine import readable
from app.matches.events import LogEvent, Started

_HEAD = 1 << 12  # bytes searched for a file's first character
_Numbered = tuple[int, Perspective]


class Dialogues:
    """The dialogues of a file in order; it can be iterated repeatedly. Memory does not grow with their number.

    While it is read, raises Invalid, which names the file and the line, the expectation and the given value.
    """

    game = NEGOTIATION.name

    def __init__(self, file: Path | str) -> None:
        self.file = Path(file)

    def __iter__(self) -> Iterator[ImportedMatch]:
        index = 0
        waiting: _Numbered | None = None
        for line in self._numbered_lines():
            if waiting is None:
                waiting = line
                continue
            if line[1].mirrors(waiting[1]):
                yield _read_match(index, [waiting, line])
                waiting = None
            else:
                yield _read_match(index, [waiting])
                waiting = line
            index += 1
        if waiting is not None:
            yield _read_match(index, [waiting])
        elif index == 0:
            raise Invalid(None, expected="a dialogue a line", got=Verbatim("an empty file"), subject=self.file)

    def _numbered_lines(self) -> Iterator[_Numbered]:
        try:
            with self.file.open("rb") as file:
                begin = file.read(_HEAD).removeprefix(codecs.BOM_UTF8).lstrip()
                file.seek(0)
                if begin.startswith(b"["):
                    for row in read_rows(file, str(self.file)):
                        yield from self._of_object(row, f"row {row.number}")
                elif begin.partition(b"\n")[0].strip() == b"{":  # one object over several lines
                    yield from self._of_object(RawRow(1, read_json(self.file, "dialogues")), "row 1")
                else:
                    for number, line in enumerate(file, 1):
                        yield from self._of_line(number, line.removeprefix(codecs.BOM_UTF8).strip())
        except OSError as error:
            raise Invalid(
                None, expected="a file of dialogues", got=Verbatim(file_problem(error)), subject=self.file
            ) from None

    def _of_line(self, number: int, raw: bytes) -> Iterator[_Numbered]:
        place = f"line {number}"
        if raw.startswith(b"{"):
            yield from self._of_object(read_row(number, raw), place)
            return
        where = f"{self.file}, {place}"
        try:
            line = raw.decode()
        except UnicodeDecodeError:
            raise Invalid(
                None, expected="a dialogue", got=Verbatim("bytes that are not UTF-8"), subject=where
            ) from None
        if line:
            yield number, read_line(line, where)

    def _of_object(self, row: RawRow, place: str) -> Iterator[_Numbered]:
        """A dialogue, or several, if the object is a dataset viewer's answer with rows."""
        if row.error is not None:
            raise row.error.at(f"{self.file}, {place}")
        rows = row.value.get("rows") if isinstance(row.value, dict) else None
        if not isinstance(rows, list):
            yield row.number, self._record(row.value, place)
            return
        for number, each in enumerate(rows, 1):
            yield number, self._record(each, f"row {number}")

    def _record(self, raw: Any, place: str) -> Perspective:
        where = f"{self.file}, {place}"
        if isinstance(raw, dict) and "row" in raw:  # wrapped by a dataset viewer
            if cut := raw.get("truncated_cells"):
                got, remedy = Verbatim(f"{shown(cut)} cut off"), "take the file of the dataset instead"
                raise Invalid(None, expected="whole cells", got=got, remedy=remedy, subject=where)
            raw = raw["row"]
        return read_record(raw, where)


def _read_match(index: int, lines: Sequence[_Numbered]) -> ImportedMatch:
    """One match from a single line, or from both lines of a dialogue."""
    sides = [side for _, side in lines]
    main = sides[0]
    started = Started(NEGOTIATION.name, NEGOTIATION.version, _game_config(main))
    talk = [Event("message", who, readable(f"[message] {text}".rstrip())) for who, text in main.turns]
    facts = {
        "form": main.form,
        "lines": [number for number, _ in lines],
        "verdicts": [side.verdict for side in sides],
        "rewards": [side.reward for side in sides],
        "choices": [[choice and list(choice) for choice in side.choices] for side in sides],
    }
    events = _log_with_end([started, *talk], sides)
    seats = (ImportedSeat(PERSON), ImportedSeat(PERSON))
    return ImportedMatch(index, NEGOTIATION.name, started.config, events, seats, facts)


def _game_config(side: Perspective) -> dict[str, object]:
    speakers = [who for who, _ in side.turns]
    raw = {
        "objective": "self",
        "limit": max(MOST_MOVES, len(side.turns) + 2),
        "counts": list(side.context.counts),
        "values": [list(values) for values in side.context.values],
        "first": speakers[0] if speakers else side.selector or YOU,
    }
    return NEGOTIATION.config(raw).to_json()


def _log_with_end(log: list[LogEvent], sides: Sequence[Perspective]) -> tuple[LogEvent, ...]:
    if any(side.verdict == DISCONNECT for side in sides):
        return (*log, *engine.abort(engine.replay(log), OUR_FAULT, None, "the source says disconnect"))
    selector = sides[0].selector or YOU
    choices = _choices(sides)
    chosen = [(seat, choices[seat]) for seat in (selector, 1 - selector)]
    proposals = [_proposal(seat, choice) for seat, choice in chosen if choice is not None]
    return closed([*log, *proposals], "no deal")


def _choices(sides: Sequence[Perspective]) -> list[Counts | None]:
    """The choice of each seat: from its own line, else from its partner's, else the rest that an agreement leaves."""
    main = sides[0]
    mine, theirs = main.choices
    if len(sides) == 2:
        theirs = sides[1].choices[YOU] or theirs
    elif mine is not None and theirs is None and main.verdict == AGREE:
        theirs = three([count - n for count, n in zip(main.context.counts, mine, strict=True)])
    return [mine, theirs]


def _proposal(seat: int, choice: Counts) -> Event:
    books, hats, balls = choice
    text = f"[propose] ({books} books, {hats} hats, {balls} balls)"
    return Event("proposal", seat, text, {"allocation": list(choice)})
