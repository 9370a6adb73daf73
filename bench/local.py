"""How fast a small local model plays, many matches together, beside one move at a time.

    python -m bench.local                             # 128 matches at once, a fresh model of about a million weights
    python -m bench.local --model data/models/tiny --at-once 32 128

Scripted players have played the matches before, so each move has as many tokens as the script needed, on the prompts
that a small model gets (the style `compact`); the partner's moves are the script's, the model's own are what it said.
Together is how rounds are played: one engine, rows that come and go, what was computed for a seat's last turn used
again. The baseline is what reference play loops do: one match after the other, `model.generate` on each whole prompt.
A second of CPU is one of one core; where others are busy, too, it is the better measure. docs/results.md has figures.
"""

import argparse
import asyncio
import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from app.games.negotiation.rules import NEGOTIATION
from app.inference import scheduler
from app.inference.requests import Checkpoint, GenerationFailure, GenerationRequest, Sampling
from app.matches import engine as rules
from app.matches.live import turn_rng
from app.players import make_player, prompts
from app.players.base import PlayerSpec
from bench.processes import yardstick_ms

GREEDY = Sampling(0, None, None)
ALONE = 60  # moves that are made one at a time
WARM_UP = 16  # matches


class Move(NamedTuple):
    """The chat before a move, whose it is, and how many tokens it is to have."""

    messages: list[dict[str, str]]
    seat: int
    tokens: int

    def after(self, said: Sequence[str]) -> list[dict[str, str]]:
        """The chat with what the seat has really said."""
        own = iter(said)
        return [each | {"content": next(own)} if each["role"] == "assistant" else each for each in self.messages]


class Rate(NamedTuple):
    """Moves a second of the clock, and of one core."""

    wall: float
    cpu: float


class _Stopwatch:
    def __init__(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    def rate(self, moves: int) -> Rate:
        wall, cpu = self._began
        return Rate(moves / (time.perf_counter() - wall), moves / (time.process_time() - cpu))


def scripted(seed: int) -> Iterator[tuple[list[dict[str, str]], int, str]]:
    """The chats of a negotiation's turns, whose turn it was, and what was said."""
    prompt = prompts.default_prompt(NEGOTIATION.name, "compact")
    player: Any = make_player(PlayerSpec("scripted", "scripted"))
    _, match = rules.begin(NEGOTIATION.name, {}, seed, (prompt, prompt))
    while (seat := match.to_move) is not None:
        view = match.view(seat)
        text = player.choose(view, turn_rng(seed, seat, match.ply, 0))
        yield prompts.messages(view, prompt), seat, text
        _, match = rules.advance(match, seat, text, by_model=True)


def fresh_model(folder: Path, talks: Sequence[Sequence[tuple[Any, int, str]]]) -> Path:
    """A model with the words of the talks and random weights."""
    from training.data import Conversation
    from training.methods.tiny import TinyConfig
    from training.tiny import make_model, make_tokenizer, words_of

    chats = [(*talk[-1][0], {"role": "assistant", "content": talk[-1][2]}) for talk in talks]
    tokenizer = make_tokenizer(words_of([Conversation("", "", chat) for chat in chats], 1, 8000), 512)
    make_model(TinyConfig(data=folder, output=folder), tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


async def play(checkpoint: Checkpoint, matches: Sequence[Sequence[Move]], at_once: int) -> Rate:
    """So many matches at once."""
    loop, begun = asyncio.get_running_loop(), iter(matches)

    async def table() -> None:
        for match in begun:
            said: tuple[list[str], list[str]] = [], []
            for move in match:
                ask = GenerationRequest(
                    move.after(said[move.seat]), GREEDY, move.tokens, None, loop, loop.create_future()
                )
                found = await scheduler.complete(checkpoint, ask, at_once)
                if isinstance(found, GenerationFailure):
                    raise AssertionError(found.what)
                said[move.seat].append(found.text)

    watch = _Stopwatch()
    await asyncio.gather(*(table() for _ in range(at_once)))
    return watch.rate(sum(map(len, matches)))


def baseline(model: Any, renderer: Any, moves: Sequence[Move]) -> Rate:
    """With `generate`, one at a time."""
    import torch

    watch = _Stopwatch()
    for move in moves:
        ids = torch.tensor([renderer.prompt(move.messages, move.tokens)])
        model.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=False, min_new_tokens=move.tokens,
            max_new_tokens=move.tokens, use_cache=True,
        )  # fmt: skip
    return watch.rate(len(moves))


def measure(options: argparse.Namespace, home: Path) -> dict[str, Any]:
    """All sides."""
    scheduler.set_library_environment()
    from training import checkpoints, hashes
    from training.rendering import Renderer

    talks = [list(scripted(seed)) for seed in range(max(options.at_once) * options.rounds)]
    folder = (options.model or fresh_model(home / "model", talks)).resolve()
    checkpoint = Checkpoint(folder, hashes.checkpoint_hash(folder), options.device, "auto")
    model, tokenizer = checkpoints.load(folder)
    renderer = Renderer(tokenizer, checkpoints.length_of(model))
    matches = [
        [Move(chat, seat, len(tokenizer(said, add_special_tokens=False)["input_ids"]) + 1) for chat, seat, said in talk]
        for talk in talks
    ]
    moves = [move for match in matches for move in match]
    before = yardstick_ms()
    asyncio.run(play(checkpoint, matches[:WARM_UP], WARM_UP))
    sides = {
        "one at a time, generate": baseline(model.eval(), renderer, moves[:ALONE]),
        "one at a time, the engine": asyncio.run(play(checkpoint, matches[: ALONE * len(matches) // len(moves)], 1)),
    }
    for at_once in options.at_once:
        matches_of = matches[: at_once * options.rounds]
        sides[f"{at_once} matches together"] = asyncio.run(play(checkpoint, matches_of, at_once))
    return {
        "parameters": model.num_parameters(),
        "prompt_tokens": sum(len(renderer.prompt(move.messages, move.tokens)) for move in moves) / len(moves),
        "answer_tokens": sum(move.tokens for move in moves) / len(moves),
        "sides": {name: rate._asdict() for name, rate in sides.items()},
        "yardstick_ms": [before, yardstick_ms()],
    }


def table(found: dict[str, Any]) -> str:
    """All that was found, for a terminal."""
    sizes = f"{found['prompt_tokens']:.0f} tokens a prompt, {found['answer_tokens']:.0f} a move"
    heading = f"{'moves a second of':30} {'clock':>7} {'ratio':>6} {'CPU':>7} {'ratio':>6}"
    lines = [f"{found['parameters']:,} weights; {sizes}", heading]
    first = next(iter(found["sides"].values()))
    for name, side in found["sides"].items():
        wall, cpu = side["wall"], side["cpu"]
        lines.append(f"{name:30} {wall:>7.1f} {wall / first['wall']:>6.1f} {cpu:>7.1f} {cpu / first['cpu']:>6.1f}")
    before, after = found["yardstick_ms"]
    return "\n".join([*lines, f"a fixed piece of Python before / after, ms: {before:.1f} / {after:.1f}"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.local", description="Moves a second of a local model.")
    parser.add_argument("--model", type=Path, metavar="FOLDER", help="another one than a fresh one")
    parser.add_argument("--at-once", type=int, nargs="+", default=[128], help="matches together (128)")
    parser.add_argument("--rounds", type=int, default=2, help="matches for each of them (2)")
    parser.add_argument("--device", default="cpu", help="of the engine; generate stays on the CPU (cpu)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    home = Path(tempfile.mkdtemp(prefix="parlor-bench-"))
    try:
        found = measure(options, home)
    finally:
        shutil.rmtree(home)
    print(json.dumps(found) if options.json else table(found))


if __name__ == "__main__":
    main()
