"""Reads the output folder of the published self-play on Deal or No Deal (see `lm_folder`).

Matches are kept as they were played: a proposal that only the published grammar accepts has the numbers that this
grammar read in it. Points are counted again by our rules and the objective given by the caller: no file has it.

Source: Liao, Tomlin & Klein 2024, arXiv 2406.18872.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from app.core.errors import Invalid, Verbatim
from app.core.failures import MODEL_FAULT
from app.core.files import file_problem
from app.datasets.importers.attempts import Attempt, attempts_in, take_corrections
from app.datasets.lm_folder import (
    ABORT,
    LIMIT,
    LOGS,
    PROPOSE,
    RESULTS,
    SCORES,
    TEXTS,
    Message,
    PublishedGame,
    facts_of,
    number,
)  # fmt: skip
from app.datasets.records import (
    MODEL,
    ImportedMatch,
    ImportedSeat,
    closed,
    packed,
    read_json,
    read_text,
    whole,
)
from app.games.base import JSON, Event, Violation
from app.games.negotiation.contexts import ITEMS
from app.games.negotiation.rules import NEGOTIATION
from app.matches import engine
from app.matches.engine import Match, readable
from app.matches.events import LogEvent, Started, Violated
from training.json_rows import plain_message

_FILES = {
    LOGS: re.compile(r"(?P<number>[0-9]{1,9})_p(?P<seat>[01])\.json"),
    RESULTS: re.compile(r"(?P<number>[0-9]{1,9})\.json"),
    TEXTS: re.compile(r"(?P<number>[0-9]{1,9})_(?:full|p(?P<seat>[01]))\.txt"),
}
_RESULT_FIELDS = (
    "counts", "p0_values", "p1_values", "p0_allocation", "p1_allocation", "p0_score", "p1_score", "message_count",
    "token_count", "is_valid_deal",
)  # fmt: skip
_DIGITS = re.compile(r"\d{1,6}")
_MOST_TOKENS = 2**31  # the limit of a match's column
_SCORE = re.compile(r"-?[0-9]{1,6}(\.[0-9]{1,9})?")


class LmSelfplay:
    """The games of a folder in numerical order; it can be iterated repeatedly, `len` is their number.

    Raises Invalid if it is not a folder and, while it is read, for a missing or malformed file.
    """

    game = NEGOTIATION.name

    def __init__(self, folder: Path | str, objective: str | float = "self", limit: int = LIMIT) -> None:
        self.folder = Path(folder)
        self._settings = NEGOTIATION.config({"objective": objective, "limit": limit})
        self._numbers, self._unusual = _list(self.folder)
        if not self._numbers:
            wanted = f"{self.folder / RESULTS / '000.json'} and what belongs to it"
            raise Invalid(
                None,
                expected=f"a folder of self-play games with {wanted}",
                got=Verbatim("no game"),
                subject=self.folder,
            )

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def objective(self) -> str | int | float:
        """The objective by which points are counted."""
        return self._settings.objective

    def __iter__(self) -> Iterator[ImportedMatch]:
        first, second = (self._read_scores(name) for name in SCORES)
        for index, score_0, score_1 in zip(self._numbers, first, second, strict=True):
            yield self._read_game(index, score_0, score_1)

    def _read_scores(self, name: str) -> list[int | float]:
        """All scores in a file; one number per line, line k for the k-th game."""
        path = self.folder / name
        lines = read_text(path, "one score a line").split("\n")
        if lines[-1] == "":
            lines.pop()
        if len(lines) != len(self._numbers):
            raise Invalid(None, expected=f"{len(self._numbers)} lines, one score a game", got=len(lines), subject=path)
        for at, line in enumerate(lines, 1):
            if not _SCORE.fullmatch(line.strip()):
                raise Invalid(None, expected="a score", got=line, subject=f"{path}, line {at}")
        return [float(line) if "." in line else int(line) for line in lines]

    def _path_in_folder(self, name: str) -> Path:
        return self.folder / self._unusual.get(name, name)

    def _read_game(self, index: int, score_0: int | float, score_1: int | float) -> ImportedMatch:
        stem = number(index)
        paths = [self._path_in_folder(f"{LOGS}/{stem}_p{seat}.json") for seat in range(2)]
        logs = [_read_message_log(path) for path in paths]
        result_path = self._path_in_folder(f"{RESULTS}/{stem}.json")
        result = _read_result(result_path)
        full = read_text(self._path_in_folder(f"{TEXTS}/{stem}_full.txt"), "the text log of a game")
        texts = [self._player_text(f"{TEXTS}/{stem}_p{seat}.txt") for seat in range(2)]
        source = PublishedGame(logs[0], logs[1], result, full, texts[0], texts[1], score_0, score_1)
        turns = _merge(logs, paths)
        started = self._started(result, turns.first, result_path)
        before = turns.attempts or attempts_in(texts, [turns.of(seat) for seat in range(2)], started.config)
        events = _events_of_turns(started, turns, before, paths)
        facts: JSON = {
            "system": [log[0]["content"] if log and log[0]["role"] == "system" else None for log in logs],
            "notice": turns.notice,
            "token_count": result["token_count"],
        }
        tokens = result["token_count"]
        seats = (ImportedSeat(MODEL), ImportedSeat(MODEL))
        tokens = tokens if isinstance(tokens, int) and 0 <= tokens < _MOST_TOKENS else None
        match = ImportedMatch(index, NEGOTIATION.name, started.config, events, seats, facts, tokens)
        kept = packed(facts_of(match, source))
        return ImportedMatch(index, match.game, match.config, events, seats, kept, tokens)

    def _player_text(self, name: str) -> str | None:
        path = self._path_in_folder(name)
        return read_text(path, "what one model wrote") if path.exists() else None

    def _started(self, result: JSON, first: int, path: Path) -> Started:
        raw = self._settings.to_json() | {
            "counts": _by_item(result["counts"], f"{path}, counts"),
            "values": [_by_item(result[f"p{seat}_values"], f"{path}, p{seat}_values") for seat in range(2)],
            "first": first,
        }
        try:
            config = NEGOTIATION.config(raw)
        except Invalid as error:
            raise error.at(path) from None
        return Started(NEGOTIATION.name, NEGOTIATION.version, config.to_json())


# ---- Files -------------------------------------------------------------------


def _list(folder: Path) -> tuple[list[int], dict[str, str]]:
    """The numbers of all games, and the files whose names have more or fewer zeros than ours, by our name."""
    numbers: set[int] = set()
    unusual: dict[str, str] = {}
    for part, pattern in _FILES.items():
        try:
            with os.scandir(folder / part) as files:
                for file in files:
                    if found := pattern.fullmatch(file.name):
                        index = int(found["number"])
                        numbers.add(index)
                        ours = f"{number(index)}{file.name[len(found['number']) :]}"
                        if ours != file.name:
                            _note_unusual(folder / part, f"{part}/{ours}", file.name, unusual)
        except OSError as error:
            raise Invalid(
                None,
                expected=f"the folder {part} of self-play games",
                got=Verbatim(file_problem(error)),
                subject=folder / part,
            ) from None
    return sorted(numbers), unusual


def _note_unusual(folder: Path, ours: str, name: str, unusual: dict[str, str]) -> None:
    other = unusual.get(ours, ours)
    if other != ours or (folder.parent / ours).exists():
        raise Invalid(None, expected="one such file of a game", got=Verbatim(f"{other}, too"), subject=folder / name)
    unusual[ours] = f"{folder.name}/{name}"


def _read_message_log(path: Path) -> list[Message]:
    raw = read_json(path, "a list of messages")
    if not isinstance(raw, list):
        raise Invalid(None, expected="a list of messages", got=raw, subject=path)
    raw = [plain_message(each) for each in raw]
    for at, message in enumerate(raw):
        good = isinstance(message, dict) and all(isinstance(message.get(key), str) for key in ("role", "content"))
        if not good or message["role"] not in ("system", "user", "assistant"):
            wanted = "role (system, user, assistant) and content"
            raise Invalid(None, expected=f"an object with {wanted}", got=message, subject=f"{path}, message {at}")
        if message["role"] == "system" and at > 0:
            raise Invalid(
                None, expected="a move", got=Verbatim("another system prompt"), subject=f"{path}, message {at}"
            )
    return raw


def _read_result(path: Path) -> JSON:
    raw = read_json(path, "the result of a game")
    if not isinstance(raw, dict):
        raise Invalid(None, expected=f"an object with {', '.join(_RESULT_FIELDS)}", got=raw, subject=path)
    for name in _RESULT_FIELDS:
        if name not in raw:
            raise Invalid(
                None,
                expected=f"{name} in it",
                got=Verbatim(f"only {', '.join(map(str, raw)) or 'nothing'}"),
                subject=path,
            )
    for seat in range(2):
        if raw[f"p{seat}_allocation"] is not None:
            _by_item(raw[f"p{seat}_allocation"], f"{path}, p{seat}_allocation")
        score = raw[f"p{seat}_score"]
        if isinstance(score, bool) or not isinstance(score, int | float):
            raise Invalid(None, expected="a number", got=score, subject=f"{path}, p{seat}_score")
    whole(raw["message_count"], f"{path}, message_count")
    return raw


def _by_item(raw: Any, where: str) -> list[int]:
    if not isinstance(raw, dict) or set(raw) != set(ITEMS):
        raise Invalid(None, expected=f"numbers of {', '.join(ITEMS)}", got=raw, subject=where)
    return [whole(raw[item], f"{where}, {item}") for item in ITEMS]


# ---- From both seats' logs to one match -----------------------------------------


class _Turns:
    """The moves of both logs in one sequence, by the seat that made them, with the failed attempts before each."""

    def __init__(self, moves: list[tuple[int, str]], attempts: dict[int, list[Attempt]], notice: str | None) -> None:
        self.moves = moves
        self.attempts = attempts  # by following move: (seat, text, reason)
        self.notice = notice  # what a seat read in place of its partner's proposal

    @property
    def first(self) -> int:
        return self.moves[0][0]

    def of(self, seat: int) -> dict[int, str]:
        """A seat's moves by their place in the sequence."""
        return {at: text for at, (mover, text) in enumerate(self.moves) if mover == seat}


def _merge(logs: Sequence[Sequence[Message]], paths: Sequence[Path]) -> _Turns:
    own, attempts = [], {}
    for seat, log in enumerate(logs):
        messages, corrected = take_corrections([message for message in log if message["role"] != "system"])
        own.append(messages)
        attempts.update({at: [Attempt(seat, *each) for each in some] for at, some in corrected.items()})
    if len(own[0]) != len(own[1]):
        raise Invalid(None, expected=f"the {len(own[0])} moves of {paths[0].name}", got=len(own[1]), subject=paths[1])
    if not own[0]:
        raise Invalid(None, expected="at least one move", got=Verbatim("none"), subject=paths[0])
    moves: list[tuple[int, str]] = []
    notice = None
    for at, (zero, one) in enumerate(zip(*own, strict=True)):
        seat = 0 if zero["role"] == "assistant" else 1
        if one["role"] == zero["role"]:
            raise Invalid(
                None,
                expected="the move to be of one seat in both logs",
                got=Verbatim("it of both"),
                subject=f"{paths[1]}, move {at}",
            )
        text, heard = (zero["content"], one["content"]) if seat == 0 else (one["content"], zero["content"])
        if notice is None and _is_proposal(text):
            notice = heard
        moves.append((seat, text))
    return _Turns(moves, attempts, notice)


def _is_proposal(text: str) -> bool:
    return text.strip().lower().startswith(PROPOSE)


def _events_of_turns(
    started: Started, turns: _Turns, before: dict[int, list[Attempt]], paths: Sequence[Path]
) -> tuple[LogEvent, ...]:
    log: list[LogEvent] = [started]
    match = engine.replay(log)
    for at, (seat, text) in enumerate(turns.moves):
        where = f"{paths[seat]}, move {at}"
        if match.to_move is None:
            raise Invalid(None, expected=f"the game to be over after {at} moves", got=text, subject=where)
        log += [_violated(match, attempt) for attempt in before.get(at, ())]
        if text.strip() == ABORT:
            if at + 1 != len(turns.moves):
                raise Invalid(
                    None,
                    expected=f"nothing after {ABORT}",
                    got=Verbatim(f"{len(turns.moves) - at - 1} moves"),
                    subject=where,
                )
            detail = f"the source says {ABORT}: refused attempts at one turn"
            return (*log, *engine.abort(match, MODEL_FAULT, seat, detail))
        event = _event_of_move(match, seat, text, where)
        match = engine.apply(match, event)
        log.append(event)
    if match.to_move is not None:
        limit = started.config["limit"]
        wanted = f"two proposals, {ABORT} or {limit} moves"
        raise Invalid(
            None,
            expected=f"a game that ends with {wanted}",
            got=Verbatim(f"one that stops after {match.ply}"),
            subject=paths[0],
        )
    return closed(log)


def _event_of_move(match: Match, seat: int, text: str, where: str) -> Event:
    if not _is_proposal(text):
        return Event("message", seat, readable(text))
    move = NEGOTIATION.parse(match.state, seat, text)
    if isinstance(move, Event):
        return Event(move.kind, seat, readable(text), move.data)
    numbers = _DIGITS.findall(text)
    if len(numbers) < 3:
        raise Invalid(None, expected="three counts in a proposal", got=text, subject=where)
    return Event("proposal", seat, readable(text), {"allocation": [int(count) for count in numbers[:3]]})


def _violated(match: Match, attempt: Attempt) -> Violated:
    """A failed attempt, with our code for it if our rules refuse it too."""
    ours = NEGOTIATION.parse(match.state, attempt.seat, attempt.text)
    code = ours.code if isinstance(ours, Violation) else "refused"
    return Violated(attempt.seat, readable(attempt.text), code, readable(attempt.reason))
