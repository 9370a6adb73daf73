"""The losses of spans are what their formulas say, worked out here in float64, one span after another."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from training import checkpoints
from training.data import read_conversations, render_rows
from training.log_probs import span_log_probs
from training.losses.base import SpanBatch, find_span_loss, step_mean
from training.methods.offline_po import OfflinePoConfig
from training.methods.sft_kl import SftKlConfig
from training.methods.stable_alignment import StableAlignmentConfig
from training.packing import takes_positions
from training.rendering import MarkedTokens, Renderer, TargetSpan
from training.span_data import SpanCollator, SpanItem, rows_of_spans, span_batch

Formula = Callable[[Tensor, list[SpanItem]], Tensor]
BASE = {"data": "d", "base": "b", "output": "o"}
WORDS = 13


def sequence(rng: torch.Generator, spans: int, rewards: Iterator[float | None]) -> MarkedTokens:
    """A prompt and so many moves of random tokens, with a reward and a weight each."""
    marked = MarkedTokens()
    for number in range(spans):
        prompt, move = (torch.randint(WORDS, (int(size),), generator=rng).tolist() for size in (3, 4))
        marked.extend(prompt, move, {"reward": next(rewards), "weight": 0.5 + number})
    marked.left_out = frozenset({5})
    return marked


def conversations(seed: int) -> list[SpanItem]:
    """Rows of one to three moves; those of the last two rows have no reward."""
    rng = torch.Generator().manual_seed(seed)
    rewards = iter([0.7, -0.3, 1.2, 0.0, 0.4, -1.0, None, None, None])
    items = []
    for spans in (2, 1, 3, 2, 1):
        marked = sequence(rng, spans, rewards)
        bare = tuple(int(span.reward is None) for span in marked.spans)
        reference = tuple((-2.5 + 0.6 * torch.randn(spans, generator=rng)).tolist())
        items.append(SpanItem((marked,), bare, reference))
    return items


def of_one_kind(seed: int) -> list[SpanItem]:
    """The same rows for a method that takes no rewards."""
    return [replace(each, kinds=(0,) * len(each.kinds)) for each in conversations(seed)]


def comparisons(seed: int) -> list[SpanItem]:
    """Queries with three responses, of two equal best ones, of one alone, and of equal ones alone."""
    rng = torch.Generator().manual_seed(seed)
    ratings = ([2.0, 7.0, 4.0], [5.0, 5.0, 1.0], [3.0], [4.0, 4.0])
    return [SpanItem(tuple(sequence(rng, 1, iter([each])) for each in of), (0,)) for of in ratings]


def mean_log_prob(logits: Tensor, marked: MarkedTokens, span: TargetSpan) -> Tensor:
    """ℓ from the definition."""
    found = [
        logits[at - 1].double().log_softmax(-1)[marked.ids[at]]
        for at in range(span.begin, span.end)
        if at not in marked.left_out
    ]
    return torch.stack(found).mean()


def spans_in(logits: Tensor, items: list[SpanItem]) -> Iterator[tuple[int, Tensor, float, TargetSpan]]:
    """Item, ℓ, ℓ_ref and span of each span."""
    rows = iter(logits)
    for at, item in enumerate(items):
        reference = iter(item.reference or [0.0] * 9)
        for marked in item.sequences:
            row = next(rows)
            yield from ((at, mean_log_prob(row, marked, span), next(reference), span) for span in marked.spans)


def sft_kl(logits: Tensor, items: list[SpanItem]) -> Tensor:
    terms = [span.weight * (-own + 0.1 * torch.exp(own) * (own - ref)) for _, own, ref, span in spans_in(logits, items)]
    return torch.stack(terms).sum() / len(terms)


def offline_po(logits: Tensor, items: list[SpanItem]) -> Tensor:
    reinforced, supervised = [], []
    for _, own, ref, span in spans_in(logits, items):
        if span.reward is None:
            supervised.append(-span.weight * own)
            continue
        ratio, advantage = torch.exp(own - ref), span.reward - 0.2 * (own - ref)
        clipped = min(max(ratio, torch.tensor(0.8).double()), torch.tensor(1.2).double())
        reinforced.append(-span.weight * min(advantage * ratio, advantage * clipped))
    return sum(reinforced) / len(reinforced) + 0.5 * sum(supervised) / len(supervised)


def stable_alignment(largest: bool) -> Formula:
    def formula(logits: Tensor, items: list[SpanItem]) -> Tensor:
        values = []
        for at in range(len(items)):
            rated = [(-own, span.reward or 0.0) for item, own, _, span in spans_in(logits, items) if item == at]
            best, rating = max(rated, key=lambda pair: pair[1])
            terms = [best - other + (rating - lower) / 7 * 3 for other, lower in rated if lower < rating]
            whole = (max(terms) if largest else sum(terms) / len(terms)) if terms else torch.tensor(0.0).double()
            values.append(best + 0.2 * max(whole, torch.tensor(0.0).double()))
        return sum(values) / len(values)

    return formula


CASES: dict[str, tuple[str, Any, Formula, Callable[[int], list[SpanItem]]]] = {
    "sft-kl": ("sft_kl", SftKlConfig(**BASE), sft_kl, of_one_kind),
    "offline-po": ("offline_po", OfflinePoConfig(**BASE), offline_po, conversations),
    "stable-alignment": (
        "stable_alignment", StableAlignmentConfig(**BASE, margin=3), stable_alignment(False), comparisons,
    ),
    "max_flow": (
        "stable_alignment", StableAlignmentConfig(**BASE, margin=3, max_flow=True), stable_alignment(True), comparisons,
    ),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", CASES)
def test_a_loss_and_its_gradient_are_those_of_the_formula(name: str, seed: int) -> None:
    module, config, formula, made = CASES[name]
    items = made(seed)
    batch = SpanCollator(0)(list(enumerate(items)))
    torch.manual_seed(seed)
    logits = torch.randn(*batch["input_ids"].shape, WORDS, requires_grad=True)
    log_probs = span_log_probs(lambda **_: {"logits": logits}, batch, positions=False)
    values = find_span_loss(module)(span_batch(batch, log_probs), config).values
    found = step_mean(values, batch["kinds"], torch.bincount(batch["kinds"], minlength=2))
    expected = formula(logits.double(), items)
    assert abs(found.item() - expected.item()) <= 1e-6
    gradients = [torch.autograd.grad(each, logits, retain_graph=True)[0] for each in (found, expected)]
    assert (gradients[0] - gradients[1]).abs().max() <= 1e-6
    assert gradients[1].abs().max() > 1e-3


def spans(log_probs: list[float], reference: list[float], rewards: list[float]) -> SpanBatch:
    count = len(log_probs)
    given = [torch.tensor(each) for each in (log_probs, reference, rewards)]
    given[0].requires_grad_()
    return SpanBatch(
        given[0], given[1], torch.ones(count), given[2], torch.zeros(count, dtype=torch.bool), torch.arange(count)
    )


@pytest.mark.parametrize("name", ["sft-kl", "offline-po"])
def test_losses_and_gradients_stay_finite_however_far_a_model_is_from_its_reference(name: str) -> None:
    module, config, *_ = CASES[name]
    far = [0.0, -1e-9, -50.0, -1e3, -1e4, -1e4, 0.0]
    batch = spans(far, far[::-1], [1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 0.0])
    found = find_span_loss(module)(batch, config)
    assert torch.isfinite(found.values).all()
    [gradient] = torch.autograd.grad(found.values.sum(), batch.log_probs)
    assert torch.isfinite(gradient).all()
    assert all(math.isfinite(float(total)) for total, _ in found.figures.values())


def test_what_offline_po_tells_is_of_spans_with_a_reward_alone() -> None:
    batch = spans([-1.0, -1.0, -1.0, -1.0], [-1.0, -2.0, -0.5, -1.1], [0.0, 3.0, -1.0, 0.5])
    batch.supervised[3] = True
    figures = find_span_loss("offline_po")(batch, OfflinePoConfig(**BASE)).figures
    told = {name: float(total / count) for name, (total, count) in figures.items()}
    assert told == pytest.approx({"reward": 2 / 3, "kl": (0 + 1 - 0.5) / 3, "clip_fraction": 2 / 3})


def test_the_head_on_target_positions_gives_what_all_logits_give(base: Path, data: Path, tokenizer: Any) -> None:
    model, _ = checkpoints.load(base)
    model.eval()
    rows = rows_of_spans(render_rows(read_conversations(data), Renderer(tokenizer, 128)), rewarded=False)
    batch = SpanCollator(0)([rows[at] for at in range(6)])
    assert takes_positions(model)
    found = [span_log_probs(model, batch, positions) for positions in (True, False)]
    assert (found[0] - found[1]).abs().max() <= 1e-5
    gradients = [
        torch.cat([each.flatten() for each in torch.autograd.grad(log_probs.sum(), model.parameters())])
        for log_probs in found
    ]
    assert (gradients[0] - gradients[1]).abs().max() <= 1e-5
