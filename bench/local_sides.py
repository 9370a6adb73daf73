"""The sides of `bench.local`: each plays the same matches of Adversarial Taboo with one checkpoint, in its own process.

The checkpoint's words are made up, so that no match ends before its last turn, and it cannot say that it is done, so
that each move has TOKENS tokens. The likeliest word is said each time, so all sides say the same but for rounding.
"""

import argparse
import asyncio
import hashlib
import json
import resource
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import httpx

from app.games.taboo.rules import TABOO
from app.inference import scheduler
from app.inference.requests import Checkpoint, GenerationFailure, GenerationRequest, Sampling
from app.matches import engine as rules
from app.players import prompts
from bench.processes import BenchError, Server, answers, free_port, usage

TOKENS = 32  # in a move
TURNS = 5  # for each seat
LENGTH = 2048  # tokens that the checkpoint can take
WORDS = 8000  # further words of its vocabulary, at most
MADE_UP = 7400  # words that it can say
PAGE = 64  # tokens in a block of the paged cache
ANSWER_SECONDS = 600.0


class Table:
    """A match in progress: the prompt of the move that is due, and what was said so far."""

    def __init__(self, seed: int) -> None:
        """The seed determines the first move: otherwise all matches, and their prompts, might be the same."""
        self._prompt = prompts.default_prompt(TABOO.name)
        _, self._match = rules.begin(TABOO.name, {"max_turns": TURNS}, seed, (self._prompt, self._prompt))
        self.said: list[str] = []
        self.say(" ".join(Random(seed).choices(made_up_words(), k=TOKENS)))

    @property
    def is_over(self) -> bool:
        return self._match.to_move is None

    def asked(self) -> list[dict[str, str]]:
        """The chat before the move that is due."""
        assert self._match.to_move is not None
        return prompts.messages(self._match.view(self._match.to_move), self._prompt)

    def say(self, text: str) -> None:
        """Make the move that is due."""
        assert self._match.to_move is not None
        _, self._match = rules.advance(self._match, self._match.to_move, text, by_model=True)
        self.said.append(text)


Play = Callable[[Sequence[Table]], None]


@cache
def made_up_words() -> list[str]:
    """Words that occur in no prompt and no game, each one token of the checkpoint."""
    chance = Random(1)
    words: dict[str, None] = {}
    while len(words) < MADE_UP:
        words["".join(chance.choice(part) for part in ("bdgkprtvz", "aeiou") * 3) + "x"] = None
    return [*words]


def make_checkpoint(folder: Path, width: int, layers: int, heads: int) -> int:
    """Make a checkpoint of Llama's architecture with random weights; returns their number.

    It can read the words that occur in prompts, but not say them.
    """
    import torch
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

    from training.data import Conversation
    from training.tiny import CONTROL, make_tokenizer, words_of

    torch.manual_seed(1)
    talks = [Conversation("", "", tuple(Table(seed).asked()[:1])) for seed in range(256)]
    read = [word for word in words_of(talks, 1, WORDS) if word not in set(made_up_words())]
    words = [*read, *made_up_words()]
    tokenizer = make_tokenizer(words, LENGTH)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=width,
            intermediate_size=-(-width * 8 // 24) * 8,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=-(-heads // 4),  # one for four, as in most current models
            max_position_embeddings=LENGTH,
            tie_word_embeddings=False,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    with torch.no_grad():
        model.lm_head.weight[: len(CONTROL) + len(read)] = 0  # so that some made-up word is always likelier
    model.generation_config = GenerationConfig(
        do_sample=False, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return int(model.num_parameters())


# ---- Sides: each loads the checkpoint, and gives what plays matches to their end -------------


@contextmanager
def generate(folder: Path, at_once: int) -> Iterator[Play]:
    """A plain loop: matches in lockstep in one batch, recomputing every prompt from its first token."""
    import torch

    model, tokenizer, prompt = _loaded(folder)

    def play(tables: Sequence[Table]) -> None:
        for first in range(0, len(tables), at_once):
            group = tables[first : first + at_once]
            while not group[0].is_over:
                rows = tokenizer.pad({"input_ids": [prompt(each) for each in group]}, return_tensors="pt")
                with torch.inference_mode():
                    found = model.generate(**rows, do_sample=False, max_new_tokens=TOKENS, use_cache=True)
                for each, row in zip(group, found[:, rows["input_ids"].shape[1] :], strict=True):
                    each.say(tokenizer.decode(row, skip_special_tokens=True))

    yield play


@contextmanager
def continuous_batching(folder: Path, at_once: int) -> Iterator[Play]:
    """The continuous batching of transformers, in this process, with room for all matches in its cache."""
    from transformers import ContinuousBatchingConfig, GenerationConfig

    model, tokenizer, prompt = _loaded(folder)
    config = GenerationConfig(do_sample=False, max_new_tokens=TOKENS, eos_token_id=tokenizer.eos_token_id)
    batching = ContinuousBatchingConfig(
        page_size=PAGE, num_blocks=at_once * LENGTH // PAGE, max_batch_tokens=LENGTH, use_async_batching=False
    )
    with model.continuous_batching_context_manager(
        generation_config=config, continuous_batching_config=batching
    ) as manager:

        def play(tables: Sequence[Table]) -> None:
            waiting = iter(tables)
            playing: dict[str, Table] = {}

            def ask(table: Table | None) -> None:
                if table is not None:
                    playing[manager.add_request(prompt(table), max_new_tokens=TOKENS)] = table

            for _ in range(at_once):
                ask(next(waiting, None))
            while playing:
                found = manager.get_result(timeout=ANSWER_SECONDS)
                if found is None or found.error:
                    raise BenchError(f"continuous batching gave no answer: {found and found.error}")
                if found.is_finished():
                    table = playing.pop(found.request_id)
                    table.say(tokenizer.decode(found.generated_tokens, skip_special_tokens=True))
                    ask(next(waiting, None) if table.is_over else table)

        yield play


@contextmanager
def serve(folder: Path, at_once: int, *options: str) -> Iterator[Play]:
    """`transformers serve` on loopback."""
    port, cache = free_port(), Path(tempfile.mkdtemp(prefix="parlor-hub-"))
    (cache / "hub").mkdir()  # without it /v1/models answers 500
    where = ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu", "--dtype", "float32"]
    env = {"HF_HOME": str(cache), "HF_HUB_OFFLINE": "1"}
    arguments = ["serve", str(folder), *where, *options]
    with Server("transformers serve", "transformers.cli.transformers", arguments, env, cache / "log") as server:
        server.wait_until(lambda: answers(f"http://127.0.0.1:{port}/health"))
        _children.append(server.process.pid)

        async def play(tables: Sequence[Table]) -> None:
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=ANSWER_SECONDS) as client:

                async def answer(table: Table) -> str:
                    body = {"model": str(folder), "messages": table.asked(), "max_tokens": TOKENS, "temperature": 0}
                    response = await client.post("/v1/chat/completions", json=body)
                    if response.status_code != httpx.codes.OK:
                        raise BenchError(f"transformers serve answered {response.status_code}: {response.text[:200]}")
                    return str(response.json()["choices"][0]["message"]["content"])

                await _play(tables, at_once, answer)

        yield lambda tables: asyncio.run(play(tables))


@contextmanager
def serve_batching(folder: Path, at_once: int) -> Iterator[Play]:
    """`transformers serve` with continuous batching."""
    room = ["--cb-block-size", str(PAGE), "--cb-num-blocks", str(at_once * LENGTH // PAGE)]
    with serve(folder, at_once, "--continuous-batching", *room, "--cb-max-batch-tokens", str(LENGTH)) as play:
        yield play


@contextmanager
def parlor(folder: Path, at_once: int) -> Iterator[Play]:
    """Parlor's own engine, as workers use it."""
    from training.hashes import checkpoint_hash

    checkpoint = Checkpoint(folder, checkpoint_hash(folder), "cpu", "auto")
    greedy = Sampling(0, None, None)

    async def answer(table: Table) -> str:
        loop = asyncio.get_running_loop()
        ask = GenerationRequest(table.asked(), greedy, TOKENS, None, loop, loop.create_future())
        found = await scheduler.complete(checkpoint, ask, at_once)
        if isinstance(found, GenerationFailure):
            raise BenchError(found.what)
        return found.text

    yield lambda tables: asyncio.run(_play(tables, at_once, answer))


SIDES: dict[str, Any] = {each.__name__: each for each in (generate, serve, serve_batching, continuous_batching, parlor)}
_children: list[int] = []  # processes whose time and memory also count for a side


def _loaded(folder: Path) -> tuple[Any, Any, Callable[[Table], list[int]]]:
    """The checkpoint, its tokenizer, and a function that makes the prompt of the move that is due."""
    from training import checkpoints
    from training.rendering import Renderer

    model, tokenizer = checkpoints.load(folder)
    renderer = Renderer(tokenizer, checkpoints.length_of(model))
    return model.eval(), tokenizer, lambda table: list(renderer.prompt(table.asked(), TOKENS))


async def _play(tables: Sequence[Table], at_once: int, answer: Callable[[Table], Awaitable[str]]) -> None:
    """Play `at_once` matches at a time; when one is over, the next begins."""
    waiting = iter(tables)

    async def seat() -> None:
        for table in waiting:
            while not table.is_over:
                table.say(await answer(table))

    await asyncio.gather(*(seat() for _ in range(at_once)))


def _cpu() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime + sum(usage(pid).cpu for pid in _children)


def main() -> None:
    """Play, and print the cost as one JSON object; a first warm-up match is not counted."""
    parser = argparse.ArgumentParser(prog="python -m bench.local_sides")
    parser.add_argument("side", choices=SIDES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("matches", type=int)
    parser.add_argument("at_once", type=int)
    options = parser.parse_args()
    scheduler.set_library_environment()
    with SIDES[options.side](options.folder, options.at_once) as play:
        play([Table(-1)])
        tables = [Table(seed) for seed in range(options.matches)]
        began, cpu = time.perf_counter(), _cpu()
        play(tables)
        seconds, cpu = time.perf_counter() - began, _cpu() - cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 + sum(usage(pid).peak for pid in _children)
    said = [hashlib.sha256("\n".join(table.said).encode()).hexdigest()[:12] for table in tables]
    moves = sum(len(table.said) - 1 for table in tables)
    print(json.dumps({"moves": moves, "seconds": seconds, "cpu": cpu, "peak_mib": peak, "said": said}))


if __name__ == "__main__":
    main()
