"""How fast trainings compute their losses, beside a plain implementation of the published recipes on the same rows.

    python -m bench.training                              # a Llama of 25 million random weights, on two threads
    python -m bench.training --quick                      # fewer rows, each measured once
    python -m bench.training --device cuda --size 0.5b    # on a GPU, with the share of its peak that is reached

Matches have five moves and prompts of 220 to 805 tokens, comparisons three responses to a query that is 1.6 times as
long as one of them. The plain implementation makes a sequence of each move, pads two of them on the right, computes all
logits, and asks the reference at every step. What is measured is the forward and backward passes of an optimizer step;
the sides take turns, and the best of their times counts. Where others keep the cores busy, seconds of CPU are a better
measure. docs/results.md has figures.
"""

import argparse
import ctypes
import gc
import math
import random
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM

from bench.processes import BenchError
from training.log_probs import span_log_probs
from training.losses.base import IGNORED, find_span_loss, step_mean
from training.methods.offline_po import OfflinePoConfig
from training.methods.stable_alignment import StableAlignmentConfig
from training.onednn import is_onednn_faster, use_onednn
from training.packing import enable_packing, on_device
from training.rendering import MarkedTokens
from training.span_data import KINDS, REWARDED, SpanCollator, SpanItem, span_batch

# width, width inside the layers, layers, heads, key and value heads
SIZES = {
    "25m": (384, 1024, 7, 6, 6),
    "0.5b": (1024, 4096, 24, 16, 8),
    "1b": (2048, 5632, 20, 32, 8),
    "1.5b": (2048, 8192, 24, 32, 8),
}
WORDS = 32_000
RULES, MOVE, REPLY = 220, 60, 86  # tokens: 220 before the first move, 220 + 4 · (60 + 86) = 804 before the fifth
MOVES = 5
RESPONSE = 150  # tokens, roughly
PLAIN_BATCH = 2  # rows in a micro-batch of the published recipe
AT_ONCE = 2  # matches, or queries, in one of our micro-batches
# Dense bfloat16 operations a second, as stated by the manufacturers.
PEAK_TFLOPS = {"H100": 989.0, "H200": 989.0, "A100": 312.0, "L40S": 362.0, "L4": 121.0, "A10G": 70.0, "RTX 4090": 165.0}
FOLDERS: dict[str, Any] = {"data": Path(), "base": Path(), "output": Path()}


class Side(NamedTuple):
    """One way of making a step: its name, and the step, which returns the loss."""

    name: str
    step: Callable[[], float]


@dataclass
class Figures:
    """A side's best figures: wall-clock and CPU seconds (all cores), peak memory (MiB); and its loss."""

    wall: float = math.inf
    cpu: float = math.inf
    memory: float = 0.0
    loss: float = 0.0


def matches(count: int, rng: random.Random) -> list[SpanItem]:
    """Matches of random tokens as one sequence each, with a reward for each move."""
    found = []
    for _ in range(count):
        marked = MarkedTokens()
        for move in range(MOVES):
            prompt = _tokens(RULES if move == 0 else REPLY, rng)
            marked.extend(prompt, _tokens(MOVE, rng), {"reward": rng.uniform(-1, 1)})
        found.append(SpanItem((marked,), (REWARDED,) * MOVES))
    return found


def moves_of(items: Sequence[SpanItem], rng: random.Random) -> list[SpanItem]:
    """The same moves in the published form: one sequence for each, in random order."""
    found = [
        SpanItem((MarkedTokens(marked.ids[: span.end], [span]),), (REWARDED,), item.reference[at : at + 1])
        for item in items
        for marked in item.sequences
        for at, span in enumerate(marked.spans)
    ]
    rng.shuffle(found)
    return found


def comparisons(count: int, rng: random.Random) -> list[SpanItem]:
    """Queries with three responses each, the best one first."""
    found = []
    for _ in range(count):
        sizes = [round(RESPONSE * rng.uniform(0.6, 1.4)) for _ in range(3)]
        query = _tokens(round(1.6 * sum(sizes) / 3), rng)
        sequences = []
        for rating, size in zip((7.0, 4.0, 2.0), sizes, strict=True):
            sequences.append(MarkedTokens())
            sequences[-1].extend(query, _tokens(size, rng), {"reward": rating})
        found.append(SpanItem(tuple(sequences), (REWARDED,)))
    return found


def _tokens(count: int, rng: random.Random) -> list[int]:
    return [rng.randrange(1, WORDS) for _ in range(count)]


class Bench:
    """A model and its reference, for the plain recipes and for ours."""

    def __init__(self, size: str, device: str) -> None:
        width, inner, layers, heads, groups = SIZES[size]
        torch.manual_seed(0)
        self.device = torch.device(device)
        self.model: Any = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=WORDS, hidden_size=width, intermediate_size=inner, num_hidden_layers=layers,
                num_attention_heads=heads, num_key_value_heads=groups, max_position_embeddings=2048,
                tie_word_embeddings=True,
            )
        ).to(self.device)  # fmt: skip
        self.reference = deepcopy(self.model).eval()
        for weights in self.reference.parameters():
            weights.requires_grad_(False)
            weights.add_(0.002 * torch.randn_like(weights))
        self.plain, self.plain_reference = deepcopy(self.model), deepcopy(self.reference)
        for each in (self.model, self.reference):
            if not enable_packing(each):
                raise BenchError("expected a model whose sequences can be packed, got another one")
        self.model_by_onednn, self.reference_by_onednn = deepcopy(self.model), deepcopy(self.reference)
        for each in (self.model_by_onednn, self.reference_by_onednn):
            use_onednn(each)

    def forget_gradients(self) -> None:
        """Free the gradients of all models."""
        for each in (self.model, self.plain, self.model_by_onednn):
            each.zero_grad()

    def autocast(self, half: bool) -> AbstractContextManager[Any]:
        """The precision of a side."""
        return torch.autocast(self.device.type, torch.bfloat16) if half else nullcontext()

    def reference_of(self, items: Sequence[SpanItem], half: bool = False, onednn: bool = False) -> list[SpanItem]:
        """The items with ℓ_ref of each span, as `training.log_probs` computes them."""
        model = self.reference_by_onednn if onednn else self.reference
        found = []
        with torch.inference_mode(), self.autocast(half):
            for at, item in enumerate(items):
                batch = on_device(SpanCollator(0, packed=True)([(at, item)]), self.device)
                found.append(replace(item, reference=tuple(span_log_probs(model, batch, True).tolist())))
        return found

    def step(
        self, items: Sequence[SpanItem], method: str, config: Any, *, at_once: int, positions: bool = True,
        packed: bool = True, half: bool = False, onednn: bool = False,
    ) -> float:  # fmt: skip
        """One optimizer step as our trainer makes it, in micro-batches of `at_once` items."""
        model = self.model_by_onednn if onednn else self.model
        model.zero_grad()
        collate, loss = SpanCollator(0, packed), find_span_loss(method)
        totals = torch.tensor([sum(len(each.kinds) for each in items)] * KINDS, device=self.device)
        whole = 0.0
        for begin in range(0, len(items), at_once):
            batch = on_device(collate(list(enumerate(items[begin : begin + at_once]))), self.device)
            with self.autocast(half):
                values = loss(span_batch(batch, span_log_probs(model, batch, positions)), config).values
                part = step_mean(values, batch["kinds"], totals)
            part.backward()
            whole += part.item()
        return whole

    def plain_log_probs(self, model: Any, sequences: Sequence[MarkedTokens]) -> Tensor:
        """ℓ of the one span of each sequence, from all logits of sequences that are padded on the right."""
        longest = max(len(each.ids) for each in sequences)
        shape = len(sequences), longest
        ids, labels, mask = torch.zeros(shape, dtype=torch.long), torch.full(shape, IGNORED), torch.zeros(shape)
        for at, each in enumerate(sequences):
            [span] = each.spans
            ids[at, : len(each.ids)] = torch.tensor(each.ids)
            mask[at, : len(each.ids)] = 1
            labels[at, span.begin : span.end] = ids[at, span.begin : span.end]
        ids, labels, mask = (each.to(self.device) for each in (ids, labels, mask))
        logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits[:, :-1]
        wanted = labels[:, 1:]
        losses = functional.cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="none")
        return -losses.view(shape[0], -1).sum(dim=1) / wanted.ne(IGNORED).sum(dim=1)

    def plain_offline_po(self, items: Sequence[SpanItem], config: OfflinePoConfig) -> float:
        """One optimizer step of the published recipe; the reference is computed unless the items have its values."""
        self.plain.zero_grad()
        whole = 0.0
        for begin in range(0, len(items), PLAIN_BATCH):
            chosen = items[begin : begin + PLAIN_BATCH]
            sequences = [item.sequences[0] for item in chosen]
            if chosen[0].reference:
                reference = torch.tensor([item.reference[0] for item in chosen], device=self.device)
            else:
                with torch.no_grad():
                    reference = self.plain_log_probs(self.plain_reference, sequences)
            drift = self.plain_log_probs(self.plain, sequences) - reference
            rewards = torch.tensor([float(each.spans[0].reward or 0) for each in sequences], device=self.device)
            advantage, ratio = rewards - config.kl * drift, drift.exp()
            clipped = ratio.clamp(1 - config.clip_range, 1 + config.clip_range)
            loss = -torch.minimum(advantage * ratio, advantage * clipped).sum() / len(items)
            loss.backward()
            whole += loss.item()
        return whole

    def plain_stable_alignment(self, items: Sequence[SpanItem], config: StableAlignmentConfig) -> float:
        """One optimizer step of the published recipe: one query with its responses at a time."""
        self.plain.zero_grad()
        whole = 0.0
        for item in items:
            losses = -self.plain_log_probs(self.plain, item.sequences)
            ratings = torch.tensor([float(each.spans[0].reward or 0) for each in item.sequences], device=self.device)
            flows = losses[0] - losses[1:] + (ratings[0] - ratings[1:]) / config.rating_scale * config.margin
            loss = (losses[0] + config.ratio * flows.mean().clamp(min=0)) / len(items)
            loss.backward()
            whole += loss.item()
        return whole


def sides_of_offline_po(bench: Bench, count: int) -> list[Side]:
    """From the plain recipe to all optimizations; each side includes those of the sides before it."""
    rng, config = random.Random(1), OfflinePoConfig(**FOLDERS)
    bare = matches(count, rng)
    known = bench.reference_of(bare)
    rows, rows_known = moves_of(bare, random.Random(2)), moves_of(known, random.Random(2))

    def ours(items: Sequence[SpanItem], **how: Any) -> Callable[[], float]:
        return lambda: bench.step(items, "offline_po", config, **how)

    def with_reference(**how: bool) -> Callable[[], float]:
        return lambda: bench.step(bench.reference_of(bare, **how), "offline_po", config, at_once=AT_ONCE, **how)

    by_onednn = [
        Side("+ products by oneDNN", ours(known, at_once=AT_ONCE, onednn=True)),
        Side("  the same with its reference pass", with_reference(onednn=True)),
    ]

    return [
        Side("plain recipe", lambda: bench.plain_offline_po(rows, config)),
        Side("+ reference computed before", lambda: bench.plain_offline_po(rows_known, config)),
        Side("+ head on targets", ours(rows_known, at_once=PLAIN_BATCH, packed=False)),
        Side("+ packed (published arrays)", ours(rows_known, at_once=MOVES)),
        Side("+ a match in one forward pass", ours(known, at_once=AT_ONCE)),
        Side("  the same with its reference pass", with_reference()),
        *(by_onednn if is_onednn_faster() else ()),
        Side("+ bfloat16", ours(known, at_once=AT_ONCE, half=True)),
        Side("  the same with its reference pass", with_reference(half=True)),
    ]


def sides_of_stable_alignment(bench: Bench, count: int) -> list[Side]:
    """From the plain recipe to all optimizations; each side includes those of the sides before it."""
    items, config = comparisons(count, random.Random(1)), StableAlignmentConfig(**FOLDERS)
    # Queries with different beginnings have nothing to share.
    apart = [
        replace(item, sequences=tuple(_with_first_token(each, at) for at, each in enumerate(item.sequences)))
        for item in items
    ]

    def ours(of: Sequence[SpanItem], **how: bool) -> Callable[[], float]:
        return lambda: bench.step(of, "stable_alignment", config, at_once=AT_ONCE, **how)

    return [
        Side("plain recipe", lambda: bench.plain_stable_alignment(items, config)),
        Side("+ head on targets, packed", ours(apart)),
        Side("+ query shared", ours(items)),
        *([Side("+ products by oneDNN", ours(items, onednn=True))] if is_onednn_faster() else ()),
        Side("+ bfloat16", ours(items, half=True)),
    ]


WORKLOADS = {"offline-po": sides_of_offline_po, "stable-alignment": sides_of_stable_alignment}


def _with_first_token(marked: MarkedTokens, token: int) -> MarkedTokens:
    return MarkedTokens([token, *marked.ids[1:]], marked.spans)


def measured(bench: Bench, sides: Sequence[Side], repeats: int) -> list[Figures]:
    """The figures of the sides, which take `repeats` turns. Each starts without gradients, which count towards its
    memory.
    """
    device = bench.device
    found = [Figures() for _ in sides]
    for _ in range(repeats):
        for side, figures in zip(sides, found, strict=True):
            bench.forget_gradients()
            before = _memory_before(device)
            wall, cpu = time.perf_counter(), time.process_time()
            figures.loss = side.step()
            if device.type == "cuda":
                torch.cuda.synchronize()
            figures.wall = min(figures.wall, time.perf_counter() - wall)
            figures.cpu = min(figures.cpu, time.process_time() - cpu)
            figures.memory = max(figures.memory, _peak_memory(device) - before)
    return found


def _memory_before(device: torch.device) -> float:
    """MiB in use once everything that ran before is freed; the peak is measured from here on."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        return float(torch.cuda.memory_allocated()) / 2**20
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # resets VmHWM
    return _status("VmRSS")


def _peak_memory(device: torch.device) -> float:
    return float(torch.cuda.max_memory_allocated()) / 2**20 if device.type == "cuda" else _status("VmHWM")


def _status(name: str) -> float:
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines())
    return int(lines[name].split()[0]) / 1024


def peak_of(asked: float | None) -> float | None:
    """The GPU's peak TFLOPS: as given, or as its maker states; None if neither is known."""
    if asked is not None:
        return asked
    name = torch.cuda.get_device_name()
    return next((tflops for part, tflops in PEAK_TFLOPS.items() if part in name), None)


def table(title: str, sides: Sequence[Side], found: Sequence[Figures]) -> str:
    """The figures of all sides beside those of the first, in Markdown."""
    rows = [
        f"| {title} | s | × | CPU s | × | MiB | loss differs by |",
        "|---|---|---|---|---|---|---|",
    ]
    first = found[0]
    for side, each in zip(sides, found, strict=True):
        ratios = f"{each.wall:.2f} | {first.wall / each.wall:.1f} | {each.cpu:.2f} | {first.cpu / each.cpu:.1f}"
        rows.append(f"| {side.name} | {ratios} | {each.memory:,.0f} | {abs(each.loss - first.loss):.0e} |")
    return "\n".join(rows)


def throughput(bench: Bench, figures: Figures, tokens: int, asked: float | None) -> str:
    """Tokens of matches per second, and the share of the GPU's peak, at 6 operations per weight and token."""
    speed = tokens / figures.wall
    reached = 6 * bench.model.num_parameters() * speed / 1e12
    peak = peak_of(asked)
    share = f"{reached / peak:.0%} of {peak:g}" if peak else "name its peak with --peak-tflops"
    return f"{speed:,.0f} tokens of matches/s; {reached:.1f} TFLOPS, {share} ({torch.cuda.get_device_name()})"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.training", description=__doc__.partition("\n")[0])
    parser.add_argument("--size", choices=SIZES, default="25m", help="weights of the model [25m]")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="[cpu]")
    parser.add_argument("--workload", action="append", choices=WORKLOADS, help="measure this one alone [both]")
    parser.add_argument("--threads", type=int, default=2, help="of the CPU [2]")
    parser.add_argument("--repeats", type=int, default=3, help="how often the sides take turns [3]")
    parser.add_argument("--matches", type=int, default=4, help="in an optimizer step; and as many queries [4]")
    parser.add_argument("--quick", action="store_true", help="two matches, two queries, each side once")
    parser.add_argument("--peak-tflops", type=float, help="of the GPU, in bfloat16 [by its name]")
    asked = parser.parse_args(arguments)
    if asked.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device: expected a GPU that torch can use, got none; leave it out")
    torch.set_num_threads(asked.threads)
    count, repeats = (2, 1) if asked.quick else (asked.matches, asked.repeats)
    bench = Bench(asked.size, asked.device)
    print(f"{bench.model.num_parameters():,} weights, {asked.device}, {asked.threads} threads, {count} matches a step")
    for title in asked.workload or WORKLOADS:
        sides = WORKLOADS[title](bench, count)
        found = measured(bench, sides, repeats)
        print("", table(title, sides, found), sep="\n", flush=True)
        if asked.device == "cuda" and title == "offline-po":
            tokens = count * (RULES + MOVES * MOVE + (MOVES - 1) * REPLY)
            print(throughput(bench, found[-2], tokens, asked.peak_tflops))


if __name__ == "__main__":
    main()
