"""Matches as chats to train on: the prompts of a seat's player, its accepted moves, and nothing else.

If a model was prompted, its messages are the stored ones of its turns' first attempts, which hold no corrections. Other
players (people, scripted players, imported matches), and seats requested in another wording, get the prompt given by
the caller, through the same `players.prompts` that prompts models. A chat whose moves were all sampled by a local model
under its prompt also has their tokens. A model's reasoning before a move is included only on request.
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
    """The output sampled by a local model at a turn: the tokens, their text, and the tokenizer's hash.

    `log_probs` are float32 bytes, None for turns from before they were stored; `prompt_sha256` is the hash of the
    tokens before the answer, `dtype` the number format of the model's computation, and `policy` the hash of its
    checkpoint. `has_reasoning` says whether some of the tokens are reasoning, and `engine` which server computed, None:
    a worker.
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

    `sampled` has these moves in order if they were all sampled with one tokenizer. `wording` is the template of the
    prompt, if a wording was requested. Own moves with reasoning have it as `reasoning`. `order` is the order of the
    item types, None for the one that was played.
    """

    seat: int
    chat: list[Message]
    kinds: Sequence[str]
    sampled: Sequence[SampledTurn] = ()
    wording: str | None = None
    order: Order | None = None


class TranscriptRequest(NamedTuple):
    """The seats of a match whose chats are wanted, and the prompt for moves whose player was not prompted.

    `wordings` are prompts that replace those of seats: output sampled under another prompt then has no tokens, and a
    chat holds all moves. If tokens include reasoning, the tokens of the chat are left out, except with
    `keeps_reasoning`. For each of `orders` of its item types the match is added once more, without tokens, if its words
    can be exchanged.
    """

    seats: Sequence[int]
    prompt: JSON
    wordings: Mapping[int, JSON] = {}
    keeps_reasoning: bool = False
    orders: Sequence[Order] = ()


def transcripts(session: Session, wanted: Mapping[str, TranscriptRequest]) -> dict[str, list[PromptedTranscript]]:
    """The chats of matches by seat, each of which ends with an own move; a seat without moves has none.

    A chat holds all moves of the seat, unless its prompts were cut to fit the model: then it has several chats, and
    each move is the model's own in one of them, as it was when it was made.
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
                tokens = _turns_of_one_tokenizer(match, log, own, sampled)
                if not wanted[match].keeps_reasoning and any(turn.has_reasoning for turn in tokens):
                    tokens = ()
                told = _with_thoughts(
                    chat, [thoughts.get((match, ply, _original_output(log.moves[ply]))) for ply in own]
                )
                transcript.append(PromptedTranscript(seat, told, [log.moves[ply].kind for ply in own], tokens, wording))
            found[match] += reversed(transcript)
            thought = [thoughts.get((match, ply, _original_output(log.moves[ply]))) for ply in _plies(log, seat)]
            for order, other in permuted:
                if (renamed := _permuted_thoughts(log, thought, order)) is not None:
                    for chat, own in _chats(session, match, other, seat, prompt, None):
                        kinds = [log.moves[ply].kind for ply in own]
                        told = _with_thoughts(chat, renamed)
                        found[match].append(PromptedTranscript(seat, told, kinds, wording=wording, order=order))
    return found


def _permuted(log: "_Log", order: Order) -> "_Log | None":
    """A match with its item types exchanged; None if its words are ambiguous about which they name."""
    permutations = permutations_of(log.started.game)
    moves = []
    for move in log.moves:
        told = permutations.of_move(move.kind, move.text, move.data, order)
        if told is None:
            return None
        moves.append(Event(move.kind, move.seat, *told))
    return _Log(replace(log.started, config=permutations.of_config(log.started.config, order)), moves)


def _permuted_thoughts(log: "_Log", thoughts: Sequence[str | None], order: Order) -> list[str | None] | None:
    """Reasoning in an order of the item types; None if it is ambiguous about which it names."""
    of_text = permutations_of(log.started.game).of_text
    renamed = [thought and of_text(thought, order) for thought in thoughts]
    return None if any(b is None for a, b in zip(thoughts, renamed, strict=True) if a) else renamed


def _prompt_of(log: "_Log", seat: int, request: TranscriptRequest) -> JSON:
    """The prompt of a seat's chat: that of its model, unless it had none or a wording is requested.

    Moves requested as JSON are rendered as if they had been requested as plain text.
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
    """The plies of the seat's own moves."""
    return [ply for ply, event in enumerate(log.moves) if event.seat == seat]


def _stored_prompts(session: Session, turns: Sequence[Turn]) -> dict[Turn, list[Message]]:
    """The prompts of models at these turns, before any correction."""
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
    """The complete outputs sampled by local models in these matches; of several attempts at a turn the last."""
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
    """The reasoning of models in these matches before their output at a ply; of several attempts at it the last."""
    if not matches:
        return {}
    rows = session.execute(
        select(GenerationRow.match_id, GenerationRow.ply, GenerationRow.text, GenerationRow.reasoning)
        .where(GenerationRow.match_id.in_(matches), GenerationRow.reasoning.is_not(None))
        .order_by(GenerationRow.attempt, GenerationRow.id)
    )
    return {(row.match_id, row.ply, row.text): row.reasoning for row in rows}


def _original_output(move: Event) -> str | None:
    """The original output for a move, which may be wrapped, or JSON that contains it."""
    return move.text if move.original is None else move.original


def _with_thoughts(chat: Sequence[Message], thoughts: Sequence[str | None]) -> list[Message]:
    """A chat with reasoning added to its own moves; `thoughts` are those of the last of them."""
    own = [at for at, message in enumerate(chat) if message["role"] == "assistant"]
    thought = {at: each for at, each in zip(reversed(own), reversed(thoughts), strict=False) if each}
    return [{**each, "reasoning": thought[at]} if at in thought else each for at, each in enumerate(chat)]


def _turns_of_one_tokenizer(
    match: str, log: _Log, own: Sequence[int], drawn: Mapping[Turn, SampledTurn]
) -> Sequence[SampledTurn]:
    """The sampled turns of the moves at these plies, if tokens of one tokenizer give all of them word for word."""
    found = [each for ply in own if (each := drawn.get((match, ply))) and each.text == log.moves[ply].text]
    if len(found) < len(own) or len({each.tokenizer for each in found}) != 1:
        return ()
    return found


def _chats(
    session: Session, match: str, log: _Log, seat: int, prompt: JSON, stored: Mapping[Turn, list[Message]] | None
) -> Iterator[tuple[list[Message], list[int]]]:
    """The chat up to the seat's last move, chats for earlier moves that its prompt does not reach, and the plies of the
    own moves in each. Without `stored` prompts they are rebuilt from the log, as for players who were not prompted.
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
    """The chat of a seat up to its move at `ply`, rebuilt from the log, for a player who was not prompted."""
    game: Any = find_game(log.started.game)
    # A resolved config leaves nothing to draw, so the generator given here is never used.
    state = game.initial(game.config(log.started.config), random.Random(0))
    for event in log.moves[:ply]:
        state = game.apply(state, event)
    return messages(game.view(state, seat), prompt)
