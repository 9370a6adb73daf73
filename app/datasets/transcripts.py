"""Matches as chats to learn from: what a seat's player was prompted with, its accepted moves, and nothing else.

Where a model was prompted, its messages are the stored ones of its turns' first attempts, which hold no corrections.
Who was not (people, scripted players, imported matches), or is to be told in another wording, is told in the prompt
that the caller names, through the same `players.prompts` that prompts models. A chat whose moves a local model all drew
under its prompt has their tokens, too. What a model thought before a move is told only where it is asked for.
"""

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from app.games import find_game, permutations_of
from app.games.base import JSON, Event
from app.games.permutations import Order
from app.matches.events import LogEvent, Started, from_json
from app.models import EventRow, GenerationRow, LanguageModel
from app.players.prompts import Message, asking_for_text, messages, rendered_as, renderer_of
from training.marks import FIRST_RENDERER, OTHERS, broken_chat

Turn = tuple[str, int]  # a match and the ply of a move in it


class SampledTurn(NamedTuple):
    """What a local model drew at a turn: the tokens, their text, and the tokenizer's hash.

    `log_probs` are float32 bytes, None for turns of before they were stored; `prompt_sha256` is the hash of the tokens
    before the answer, `dtype` the numbers in which the model computed, and `policy` the hash of its checkpoint.
    `has_reasoning` says whether some of the tokens are reasoning, and `engine` which server computed, None: a worker.
    """

    ids: Sequence[int]
    text: str
    tokenizer: str
    log_probs: bytes | None
    prompt_sha256: str | None
    dtype: str
    policy: str
    has_reasoning: bool = False
    engine: str | None = None


class PromptedTranscript(NamedTuple):
    """A seat, its chat, and the kinds of its own moves in it.

    `sampled` has these moves in order where a model of one tokenizer drew all of them. `wording` is the template in
    which it is told, where one was asked for. Where reasoning was, own moves have `reasoning`. `order` is that of the
    item types, None for the one that was played.
    """

    seat: int
    chat: list[Message]
    kinds: Sequence[str]
    sampled: Sequence[SampledTurn] = ()
    wording: str | None = None
    order: Order | None = None


class TranscriptRequest(NamedTuple):
    """The seats of a match whose chats are wanted, and the prompt in which moves are told that nobody was asked for.

    `wordings` are prompts in which seats are told whatever they were prompted with: what was sampled under another
    prompt has no tokens then, and a chat holds all moves. Tokens that are reasoning are left out with their chat's, but
    with `keeps_reasoning`. In each of `orders` of its item types the match is told once more, without tokens, if its
    words can be exchanged.
    """

    seats: Sequence[int]
    prompt: JSON
    wordings: Mapping[int, JSON] = {}
    keeps_reasoning: bool = False
    orders: Sequence[Order] = ()


def transcripts(session: Session, wanted: Mapping[str, TranscriptRequest]) -> dict[str, list[PromptedTranscript]]:
    """The chats of matches by seat, each of which ends with an own move; a seat that made no move has none.

    A chat holds all moves of the seat, unless its prompts were cut to fit the model: then it has several chats, and
    each move is the model's in one of them, as it was when it was made.
    """
    logs = _logs(session, wanted)
    last = [
        (match, own[-1])
        for match, log in logs.items()
        for seat in wanted[match].seats
        if _prompt_of(log, seat, wanted[match]) == log.started.prompts[seat] and (own := _plies(log, seat))
    ]
    stored, drawn = _stored_prompts(session, last), _sampled_turns(session, {match for match, _ in last})
    thoughts = _thoughts(session, {match for match, request in wanted.items() if request.keeps_reasoning})
    found: dict[str, list[PromptedTranscript]] = {match: [] for match in logs}
    for match, log in logs.items():
        permuted = [(order, other) for order in wanted[match].orders if (other := _permuted(log, order)) is not None]
        for seat in wanted[match].seats:
            prompt = _prompt_of(log, seat, wanted[match])
            sampled = drawn if prompt == log.started.prompts[seat] else {}
            wording = prompt["template"] if wanted[match].wordings else None
            chats = _chats(session, match, log, seat, prompt, stored)
            transcript = []
            for chat, own in chats:
                tokens = _tokens(match, log, own, sampled)
                if not wanted[match].keeps_reasoning and any(turn.has_reasoning for turn in tokens):
                    tokens = ()
                told = _with_thoughts(chat, [thoughts.get((match, ply, _written(log.moves[ply]))) for ply in own])
                transcript.append(PromptedTranscript(seat, told, [log.moves[ply].kind for ply in own], tokens, wording))
            found[match] += reversed(transcript)
            thought = [thoughts.get((match, ply, _written(log.moves[ply]))) for ply in _plies(log, seat)]
            for order, other in permuted:
                if (renamed := _renamed(log, thought, order)) is not None:
                    for chat, own in _chats(session, match, other, seat, prompt, None):
                        kinds = [log.moves[ply].kind for ply in own]
                        told = _with_thoughts(chat, renamed)
                        found[match].append(PromptedTranscript(seat, told, kinds, wording=wording, order=order))
    return found


def _permuted(log: "_Log", order: Order) -> "_Log | None":
    """A match as if its item types had been others; None where its words do not say for sure which they name."""
    permutations = permutations_of(log.started.game)
    moves = []
    for move in log.moves:
        told = permutations.of_move(move.kind, move.text, move.data, order)
        if told is None:
            return None
        moves.append(Event(move.kind, move.seat, *told))
    return _Log(replace(log.started, config=permutations.of_config(log.started.config, order)), moves)


def _renamed(log: "_Log", thoughts: Sequence[str | None], order: Order) -> list[str | None] | None:
    """What was thought, in an order of the item types; None where it does not say for sure which it names."""
    of_text = permutations_of(log.started.game).of_text
    renamed = [thought and of_text(thought, order) for thought in thoughts]
    return None if any(b is None for a, b in zip(thoughts, renamed, strict=True) if a) else renamed


def _prompt_of(log: "_Log", seat: int, request: TranscriptRequest) -> JSON:
    """The prompt in which a seat's chat begins: that of its model, unless there was none or a wording is asked for.

    Moves that were asked for as JSON are told as if they had been asked for as they are.
    """
    own, wording = log.started.prompts[seat], request.wordings.get(seat)
    if wording is None:
        return request.prompt if own is None else asking_for_text(own)
    return wording if own is None else rendered_as(wording, own)


class _Log(NamedTuple):
    started: Started
    moves: list[Event]  # accepted


def _logs(session: Session, matches: Collection[str]) -> dict[str, _Log]:
    rows = session.execute(
        select(EventRow.match_id, EventRow.body).where(EventRow.match_id.in_(matches)).order_by(EventRow.seq)
    )
    found: dict[str, list[LogEvent]] = {match: [] for match in matches}
    for row in rows:
        found[row.match_id].append(from_json(row.body))
    return {
        match: _Log(first, [event for event in rest if isinstance(event, Event)])
        for match, (first, *rest) in found.items()
        if isinstance(first, Started)
    }


def _plies(log: _Log, seat: int) -> list[int]:
    """Where the seat's own moves are."""
    return [ply for ply, event in enumerate(log.moves) if event.seat == seat]


def _stored_prompts(session: Session, turns: Sequence[Turn]) -> dict[Turn, list[Message]]:
    """What models were prompted with at these turns, before any correction."""
    rows = session.execute(
        select(GenerationRow.match_id, GenerationRow.ply, GenerationRow.attempt, GenerationRow.prompt)
        .where(tuple_(GenerationRow.match_id, GenerationRow.ply).in_(turns))
        .order_by(GenerationRow.attempt, GenerationRow.id)
    )
    found: dict[Turn, list[Message]] = {}
    for row in rows:
        base = row.prompt[: len(row.prompt) - 2 * row.attempt]  # each refused attempt adds itself and its correction
        found.setdefault((row.match_id, row.ply), base)
    return found


def _sampled_turns(session: Session, matches: Collection[str]) -> dict[Turn, SampledTurn]:
    """What local models drew in these matches to the end; of several attempts at a turn the last."""
    models = select(LanguageModel.id, LanguageModel.options).where(LanguageModel.kind == "local")
    local = {row.id: row.options["sha256"] for row in session.execute(models)}
    if not local:
        return {}
    tokenizer, finish, prompt, dtype, engine = (
        GenerationRow.sampling[name].as_string()
        for name in ("tokenizer", "finish_reason", "prompt_sha256", "dtype", "engine")
    )
    rows = session.execute(
        select(
            GenerationRow.match_id, GenerationRow.ply, GenerationRow.token_ids, GenerationRow.text,
            GenerationRow.log_probs, GenerationRow.language_model_id, GenerationRow.reasoning_tokens,
            tokenizer.label("tokenizer"), prompt.label("prompt"), dtype.label("dtype"),
            engine.label("engine"),
        )
        .where(GenerationRow.match_id.in_(matches), GenerationRow.language_model_id.in_(local))
        .where(tokenizer.is_not(None), finish == "stop")
        .order_by(GenerationRow.attempt, GenerationRow.id)
    )  # fmt: skip
    return {
        (row.match_id, row.ply): SampledTurn(
            row.token_ids,
            row.text,
            row.tokenizer,
            row.log_probs,
            row.prompt,
            row.dtype,
            local[row.language_model_id],
            bool(row.reasoning_tokens),
            row.engine,
        )
        for row in rows
    }


def _thoughts(session: Session, matches: Collection[str]) -> dict[tuple[str, int, str | None], str]:
    """What models thought in these matches before what they said at a ply; of several attempts at it the last."""
    if not matches:
        return {}
    rows = session.execute(
        select(GenerationRow.match_id, GenerationRow.ply, GenerationRow.text, GenerationRow.reasoning)
        .where(GenerationRow.match_id.in_(matches), GenerationRow.reasoning.is_not(None))
        .order_by(GenerationRow.attempt, GenerationRow.id)
    )
    return {(row.match_id, row.ply, row.text): row.reasoning for row in rows}


def _written(move: Event) -> str | None:
    """What was written for a move, which may be wrapped, or JSON that says it."""
    return move.text if move.original is None else move.original


def _with_thoughts(chat: Sequence[Message], thoughts: Sequence[str | None]) -> list[Message]:
    """A chat with what was thought before its own moves, the last of which these are of."""
    own = [at for at, message in enumerate(chat) if message["role"] == "assistant"]
    thought = {at: each for at, each in zip(reversed(own), reversed(thoughts), strict=False) if each}
    return [{**each, "reasoning": thought[at]} if at in thought else each for at, each in enumerate(chat)]


def _tokens(match: str, log: _Log, own: Sequence[int], drawn: Mapping[Turn, SampledTurn]) -> Sequence[SampledTurn]:
    """What was drawn as the moves at these plies, if tokens of one tokenizer make all of them word for word."""
    found = [each for ply in own if (each := drawn.get((match, ply))) and each.text == log.moves[ply].text]
    if len(found) < len(own) or len({each.tokenizer for each in found}) != 1:
        return ()
    return found


def _chats(
    session: Session, match: str, log: _Log, seat: int, prompt: JSON, stored: Mapping[Turn, list[Message]] | None
) -> Iterator[tuple[list[Message], list[int]]]:
    """The chat up to the seat's last move, and, where its prompt does not reach back so far, those of earlier ones; and
    the plies of the own moves in each. Without `stored` prompts it is what no model was prompted with.
    """
    own, prompted = _plies(log, seat), prompt == log.started.prompts[seat]
    while own:
        turn = match, own[-1]
        base = None
        if stored is not None and prompted:
            base = stored.get(turn) or _stored_prompts(session, [turn]).get(turn)
        if base is None:
            base = _rebuilt(log, seat, own[-1], prompt)
        move = {"role": "assistant", "content": log.moves[own[-1]].text or ""}
        chat = [*base, *([move] if renderer_of(prompt) == FIRST_RENDERER else broken_chat([move], OTHERS))]
        begin = max(0, len(own) - sum(each["role"] == "assistant" for each in chat))
        yield chat, own[begin:]
        own = own[:begin]


def _rebuilt(log: _Log, seat: int, ply: int, prompt: JSON) -> list[Message]:
    """The chat of a seat up to where its move at `ply` is due, made of the log: what no model was prompted with."""
    game: Any = find_game(log.started.game)
    # A resolved config leaves nothing to draw, so the generator given here is never used.
    state = game.initial(game.config(log.started.config), random.Random(0))
    for event in log.moves[:ply]:
        state = game.apply(state, event)
    return messages(game.view(state, seat), prompt)
