"""Matches as a log for Inspect's viewer: a sample for each match, and the figures of all as its results.

Source: Inspect (UK AI Security Institute, MIT licence), log format version 2 as inspect_ai 0.3.285 reads it. A `.eval`
file is a zip archive with a file for each sample, the samples' list entries in `summaries.json`, and everything else in
`header.json`; a `.json` file is the same as one object. Samples are written as they are read, so that memory does not
grow with their number.
"""

import json
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session, undefer

from app import __version__
from app.analysis.matches import analyse_matches
from app.core.errors import Conflict, Invalid, NotFound, Phrase
from app.core.zip_files import plain_entry
from app.games import find_game
from app.games.base import JSON
from app.jobs import states
from app.matches.blinding import is_blinded
from app.matches.export import MATCHES, rows
from app.matches.filter import MatchFilter, check_known, conditions, in_words, is_over
from app.matches.stored import iso
from app.models import EventRow, GenerationRow, LanguageModel, MatchRow, RoundRow

FORMS = ("eval", "json")
_VERSION = 2
_AT_ONCE = 50  # matches whose events and calls are in memory
_PIECE = 1 << 16  # bytes
_SCORES = (
    "utility_0", "utility_1", "points_0", "points_1", "winner", "agreed", "pareto_optimal", "moves", "violations",
)  # fmt: skip
_STATUS = {
    states.DONE: "success", states.FAILED: "error", states.CANCELLED: "cancelled", states.CANCELLING: "cancelled",
}  # fmt: skip
_STOP_REASONS = {"stop": "stop", "length": "max_tokens", "content_filter": "content_filter"}
_SAMPLING = ("temperature", "top_p", "max_tokens", "seed", "stop_seqs")  # same names in Inspect


def inspect_log(session: Session, choice: MatchFilter, form: str) -> Iterator[bytes]:
    """The log of a filter's matches in one of FORMS, in pieces.

    Raises NotFound for what `check_known` does not know and where there is no match, Invalid for several games, and
    Conflict where some matches are blinded, because a log shows the players and their scores.
    """
    check_known(session, choice)
    games = list(session.scalars(select(MatchRow.game).where(*conditions(choice)).distinct()))
    if not games:
        raise NotFound("matches", expected=Phrase("at least one"), got=in_words(choice))
    if len(games) > 1:
        raise Invalid("game", expected=Phrase("only one, as a log covers one game"), got=", ".join(sorted(games)))
    hidden = session.scalar(select(func.count()).select_from(MatchRow).where(*conditions(choice), is_blinded())) or 0
    if hidden:
        raise Conflict(
            "matches",
            expected=Phrase("no matches from unfrozen waves"),
            got=hidden,
            remedy=Phrase("freeze the wave, or choose other matches"),
        )
    log = _Log(session, choice, games[0])
    return log.archive() if form == "eval" else log.document()


class _Log:
    """A log being written: its header's figures of all samples are known once the last one has been read."""

    def __init__(self, session: Session, choice: MatchFilter, game: str) -> None:
        self._session = session
        self._choice = choice
        self._game = game
        self._usage: dict[str, JSON] = defaultdict(dict)  # by model
        self._players: dict[str, dict[str, None]] = defaultdict(dict)  # player names, by role
        own: Any = select(func.count(), func.min(MatchRow.started_at), func.max(MatchRow.ended_at))
        self._matches, self._began, self._ended = session.execute(own.where(*conditions(choice))).one()
        over = [*conditions(choice), is_over()]
        self._over: int = session.scalar(select(func.count()).select_from(MatchRow).where(*over)) or 0
        self._round = None if choice.round is None else session.get(RoundRow, choice.round)

    def archive(self) -> Iterator[bytes]:
        """The pieces of a zip archive."""
        out = _Pieces()
        with tempfile.TemporaryFile() as summaries, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for number, sample in enumerate(self._samples()):
                summaries.write((b"," if number else b"[") + _bytes(_sample_summary(sample)))
                archive.writestr(plain_entry(f"samples/{sample['id']}_epoch_1.json"), _bytes(sample))
                yield out.take()
            summaries.write(b"]")
            summaries.seek(0)
            with archive.open(plain_entry("summaries.json"), "w") as entry:
                while piece := summaries.read(_PIECE):
                    entry.write(piece)
                    yield out.take()
            archive.writestr(plain_entry("header.json"), _bytes(self._header()))
        yield out.take()

    def document(self) -> Iterator[bytes]:
        """The pieces of a JSON object, the samples first."""
        for number, sample in enumerate(self._samples()):
            yield (b"," if number else b'{"samples":[') + _bytes(sample)
        yield b"]," + _bytes(self._header())[1:]

    # ---- What is said of all samples ----------------------------------------------

    def _header(self) -> JSON:
        return {
            "version": _VERSION,
            "status": self._status(),
            "eval": self._spec(),
            "plan": {"name": "match", "steps": [{"solver": self._game, "params": self._config_and_seed()}]},
            "results": self._figures_as_results(),
            "stats": {
                "started_at": iso(self._began),
                "completed_at": "" if self._ended is None else iso(self._ended),
                "model_usage": self._usage,
            },
            **({"error": _error(self._round.error)} if self._round is not None and self._round.error else {}),
        }

    def _status(self) -> str:
        if self._round is not None:
            return _STATUS.get(self._round.status, "started")
        return "success" if self._over == self._matches else "started"

    def _spec(self) -> JSON:
        """What was played and by whom; the players are known once the samples have been read."""
        of_all = list(dict.fromkeys(name for names in self._players.values() for name in names))
        alone = {role: next(iter(names)) for role, names in self._players.items() if len(names) == 1}
        name = in_words(self._choice)
        return {
            "eval_id": f"parlor-{name}",
            "run_id": f"parlor-{name}",
            "task_id": f"parlor-{self._game}",
            "created": iso(self._began),
            "task": self._game,
            "task_version": find_game(self._game).version,
            "task_args": self._config_and_seed(),
            "dataset": {"name": name, "samples": self._matches, "shuffled": False},
            "model": " | ".join(of_all) or "none",
            "model_roles": {role: {"model": model} for role, model in alone.items()} or None,
            "config": {"epochs": 1},
            "packages": {"parlor": __version__},
            "metadata": {"filter": name, **({} if self._round is None else {"round": self._round.name or None})},
        }

    def _config_and_seed(self) -> JSON:
        return {} if self._round is None else {"config": self._round.config, "seed": str(self._round.seed)}

    def _figures_as_results(self) -> JSON | None:
        """The figures of docs/analysis.md for all matches and for each model, by λ where there are several."""
        scores = []
        for each in analyse_matches(self._session, self._choice):
            parts = [(f"{part.player}{f' as {part.role}' if part.role else ''}", part) for part in each.metrics.parts]
            for name, columns in [(each.key, each.metrics.columns), *((title, part.columns) for title, part in parts)]:
                metrics = {
                    key: {"name": key, "value": figure.value, "metadata": figure._asdict()}
                    for key, figure in columns.items()
                    if figure.value is not None
                }
                scores.append({"name": name, "scorer": "parlor", "metrics": metrics, "scored_samples": each.matches})
        return {"total_samples": self._matches, "completed_samples": self._over, "scores": scores} if scores else None

    # ---- Samples ---------------------------------------------------------------------

    def _samples(self) -> Iterator[JSON]:
        found: list[Row[Any]] = []
        for row in rows(self._session, MATCHES, self._choice):
            found.append(row)
            if len(found) == _AT_ONCE:
                yield from self._samples_of(found)
                found.clear()
        yield from self._samples_of(found)

    def _samples_of(self, found: Sequence[Row[Any]]) -> Iterator[JSON]:
        ids = [row.id for row in found]
        events: dict[str, list[EventRow]] = defaultdict(list)
        of_events = select(EventRow).where(EventRow.match_id.in_(ids)).order_by(EventRow.seq)
        for event in self._session.scalars(of_events):
            events[event.match_id].append(event)
        calls: dict[str, list[tuple[GenerationRow, str | None]]] = defaultdict(list)
        of_calls = (
            select(GenerationRow, LanguageModel.name)
            .outerjoin(LanguageModel, LanguageModel.id == GenerationRow.language_model_id)
            .where(GenerationRow.match_id.in_(ids))
            .options(undefer(GenerationRow.reasoning))
            .order_by(GenerationRow.id)
        )
        for call, name in self._session.execute(of_calls):
            calls[str(call.match_id)].append((call, name))
        for row in found:
            sample = _sample_of_match(row, events[row.id], calls[row.id])
            for seat in (0, 1):
                self._players[sample["metadata"][f"role_{seat}"]][sample["metadata"][f"player_{seat}"]] = None
            for model, usage in sample["model_usage"].items():
                _add_usage(self._usage[model], usage)
            yield sample
        self._session.expunge_all()


def _sample_of_match(
    row: Row[Any], events: Sequence[EventRow], calls: Sequence[tuple[GenerationRow, str | None]]
) -> JSON:
    """A match: its moves as messages, its scores, and its log and model calls as events."""
    said = {column.name: column.read(row) for column in MATCHES.columns}
    about = {name: iso(value) if isinstance(value, datetime) else value for name, value in said.items()}
    players = about["player_0"], about["player_1"]
    roles = about["role_0"], about["role_1"]
    usage: dict[str, JSON] = defaultdict(dict)
    for call, name in calls:
        _add_usage(usage[name or call.model], _usage_of(call))
    scores = {name: {"value": about[name]} for name in _SCORES if about[name] is not None}
    messages = [_message_of_move(event, players, roles) for event in events if _is_move(event)]
    timeline = [
        *((event.at, _info_event(event, row.started_at)) for event in events),
        *((call.at, _model_event(call, name, roles, row.started_at)) for call, name in calls),
    ]
    ended = row.ended_at
    seconds = None if ended is None else (ended - row.started_at).total_seconds()
    detail = next((event.body.get("detail") for event in events if event.kind == "aborted"), None)
    return {
        "id": row.id,
        "epoch": 1,
        "input": f"{about['game']}: {json.dumps(about['config'], ensure_ascii=False, sort_keys=True)}",
        "target": "",
        "messages": messages,
        "output": {"model": players[1], "choices": [], "completion": about["reason"] or ""},
        "scores": scores,
        "metadata": about,
        "events": [event for _, event in sorted(timeline, key=lambda each: each[0])],
        "model_usage": usage,
        "started_at": iso(row.started_at),
        "completed_at": None if ended is None else iso(ended),
        "total_time": seconds,
        "uuid": row.id,
        **({} if detail is None else {"error": _error(detail)}),
    }


def _sample_summary(sample: JSON) -> JSON:
    """A sample's entry in a list of samples."""
    same = (
        "id", "epoch", "input", "target", "scores", "metadata", "model_usage", "started_at", "completed_at",
        "total_time", "uuid",
    )  # fmt: skip
    error = sample.get("error")
    return {
        **{name: sample[name] for name in same},
        **({} if error is None else {"error": error["message"]}),
        "completed": sample["completed_at"] is not None,
        "message_count": len(sample["messages"]),
    }


def _is_move(event: EventRow) -> bool:
    return "data" in event.body


def _message_of_move(event: EventRow, players: tuple[str, str], roles: tuple[str, str]) -> JSON:
    """An accepted move as a message. Inspect knows a user and an assistant: seats 0 and 1 respectively."""
    seat = event.seat or 0
    about = {"seat": seat, "role": roles[seat], "player": players[seat], "ply": event.ply, "kind": event.kind}
    of_model = {"role": "assistant", "model": players[1], "source": "generate"} if seat else {"role": "user"}
    return {**of_model, "content": event.body["text"], "metadata": about}


def _info_event(event: EventRow, began: datetime) -> JSON:
    data = {"kind": event.kind, "seq": event.seq, "ply": event.ply, **event.body}
    return {"event": "info", **_when(event.at, began), "source": f"parlor/{event.kind}", "data": data}


def _model_event(call: GenerationRow, name: str | None, roles: tuple[str, str], began: datetime) -> JSON:
    """A language model call: its exact prompt, answer and tokens."""
    text: Any = call.text or ""
    content = text if call.reasoning is None else [
        {"type": "reasoning", "reasoning": call.reasoning}, {"type": "text", "text": text},
    ]  # fmt: skip
    reason = _STOP_REASONS.get(str(call.sampling.get("finish_reason")), "unknown")
    message = {"role": "assistant", "content": content, "source": "generate", "model": call.model}
    return {
        "event": "model",
        **_when(call.at, began),
        "model": name or call.model,
        "role": roles[call.seat or 0],
        "input": [{"role": each["role"], "content": each["content"]} for each in call.prompt],
        "tools": [],
        "tool_choice": "none",
        "config": {key: call.sampling[key] for key in _SAMPLING if call.sampling.get(key) is not None},
        "output": {
            "model": call.model,
            "choices": [] if call.error is not None else [{"message": message, "stop_reason": reason}],
            "completion": text,
            "usage": _usage_of(call),
            "time": call.latency,
        },
        "retries": call.retries,
        "error": call.error,
        "working_time": call.latency,
        "metadata": {"ply": call.ply, "seat": call.seat, "attempt": call.attempt},
    }


def _when(at: datetime, began: datetime) -> JSON:
    return {"timestamp": iso(at), "working_start": max(0.0, (at - began).total_seconds())}


def _usage_of(call: GenerationRow) -> JSON:
    prompt, completion = call.prompt_tokens or 0, call.completion_tokens or 0
    found = {
        "input_tokens": prompt,
        "output_tokens": completion,
        "total_tokens": prompt + completion,
        "input_tokens_cache_read": call.cached_tokens,
        "input_tokens_cache_write": call.cache_write_tokens,
        "reasoning_tokens": call.reasoning_tokens,
        "total_cost": call.cost,
    }
    return {name: value for name, value in found.items() if value is not None}


def _add_usage(total: JSON, more: Mapping[str, float]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def _error(message: str) -> JSON:
    return {"message": message, "traceback": "", "traceback_ansi": ""}


def _bytes(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


class _Pieces:
    """A file that cannot seek, whose content is taken as it is written."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, content: bytes) -> int:
        """Keep the content until it is taken."""
        self._pieces.append(bytes(content))
        return len(content)

    def flush(self) -> None:
        """Do nothing, as nothing is buffered."""

    def close(self) -> None:
        """Do nothing, as there is nothing to release."""

    def take(self) -> bytes:
        """What has been written since the last call."""
        found = b"".join(self._pieces)
        self._pieces.clear()
        return found
