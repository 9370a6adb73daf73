"""Token sequences → batches of target spans, for losses that are means over spans or over queries."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from training.data import Collator, TokenRows
from training.losses.base import SpanBatch
from training.rendering import MarkedTokens, TargetSpan

REWARDED, SUPERVISED, KINDS = 0, 1, 2  # of values, which are averaged apart; and how many kinds there are


def learnt_spans(sequence: MarkedTokens) -> list[TargetSpan]:
    """The spans of a sequence that hold a token to be learnt."""
    learnt = sequence.learnt
    return [span for span in sequence.spans if any(learnt[span.begin : span.end])]


def stored_log_probs(sequence: MarkedTokens) -> tuple[float, ...] | None:
    """ℓ in play of each span to be learnt, the mean over its tokens to be learnt; None if that of one is not known."""
    found = []
    for span in learnt_spans(sequence):
        if span.log_probs is None:
            return None
        known = [value for at, value in enumerate(span.log_probs, span.begin) if at not in sequence.left_out]
        found.append(math.fsum(known) / len(known))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class SpanItem:
    """What a loss needs together: a sequence, or those of all responses to a query.

    `reference` holds ℓ_ref of each of the learnt spans, in their order; empty without a reference model. `kinds` is the
    kind of each value that the loss makes of the item.
    """

    sequences: tuple[MarkedTokens, ...]
    kinds: tuple[int, ...]
    reference: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class SpanRows:
    """What is trained on: items and the group of each, and how many conversations had to be shortened."""

    items: tuple[SpanItem, ...]
    groups: tuple[str, ...]
    shortened: int

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, at: int) -> tuple[int, SpanItem]:
        return at, self.items[at]

    @property
    def sequences(self) -> tuple[MarkedTokens, ...]:
        """The sequences of all items."""
        return tuple(sequence for item in self.items for sequence in item.sequences)

    @property
    def lengths(self) -> Sequence[int]:
        """The tokens of each item's longest sequence."""
        return [max(len(each.ids) for each in item.sequences) for item in self.items]

    @property
    def targets(self) -> int:
        """How many tokens are to be learnt."""
        return sum(sum(each.learnt) for each in self.sequences)

    @property
    def totals(self) -> Tensor:
        """How many values of each kind there are. Shape (KINDS,)."""
        return torch.bincount(torch.tensor([kind for item in self.items for kind in item.kinds]), minlength=KINDS)

    def with_reference(self, log_probs: Callable[[Sequence[MarkedTokens]], Sequence[tuple[float, ...]]]) -> "SpanRows":
        """The same rows with ℓ_ref of each span, which `log_probs` finds for the sequences in their order."""
        found = iter(log_probs(self.sequences))
        items = (replace(item, reference=tuple(x for _ in item.sequences for x in next(found))) for item in self.items)
        return replace(self, items=tuple(items))


def rows_of_spans(rows: TokenRows, rewarded: bool) -> SpanRows:
    """An item of each sequence. With `rewarded`, spans without a reward are supervised."""
    items = []
    for sequence in rows.sequences:
        bare = [rewarded and span.reward is None for span in learnt_spans(sequence)]
        items.append(SpanItem((sequence,), tuple(SUPERVISED if each else REWARDED for each in bare)))
    return SpanRows(tuple(items), rows.groups, rows.shortened)


class SpanCollator:
    """Pads the sequences of items on the right and numbers their spans."""

    def __init__(self, padding: int) -> None:
        self._tokens = Collator(padding)

    def __call__(self, rows: Sequence[tuple[int, SpanItem]]) -> dict[str, Tensor]:
        """A batch of N sequences with S spans, of which a loss makes U values:

        `input_ids`, `labels` and `owners` (N, T), the last with the number of each token's span, −1 for none;
        `reference`, `weights`, `rewards`, `supervised` and `items` (S,), as in SpanBatch; `kinds` and `origins` (U,),
        the kind of each value and the item it is of; and `rows` (B,), the items' numbers.
        """
        items = [item for _, item in rows]
        sequences = [(at, sequence) for at, item in enumerate(items) for sequence in item.sequences]
        padded = self._tokens([(number, sequence) for number, (_, sequence) in enumerate(sequences)])
        found = [
            (at, number, span) for number, (at, sequence) in enumerate(sequences) for span in learnt_spans(sequence)
        ]
        owners = torch.full(padded["weights"].shape, -1)
        for count, (_, number, span) in enumerate(found):
            owners[number, span.begin : span.end] = count
        references = [value for item in items for value in item.reference] or [0.0] * len(found)
        return {
            "input_ids": padded["input_ids"],
            "labels": padded["labels"],
            "owners": torch.where(padded["weights"] > 0, owners, -1),
            "reference": torch.tensor(references),
            "weights": torch.tensor([span.weight for *_, span in found]),
            "rewards": torch.tensor([float(span.reward or 0) for *_, span in found]),
            "supervised": torch.tensor([span.reward is None for *_, span in found]),
            "items": torch.tensor([at for at, *_ in found]),
            "kinds": torch.tensor([kind for item in items for kind in item.kinds]),
            "origins": torch.tensor([at for at, item in enumerate(items) for _ in item.kinds]),
            "rows": torch.tensor([number for number, _ in rows]),
        }


def span_batch(batch: dict[str, Tensor], log_probs: Tensor) -> SpanBatch:
    """The spans of a collated batch with their log-probabilities."""
    names = ("reference", "weights", "rewards", "supervised", "items")
    return SpanBatch(log_probs, *(batch[name] for name in names))
