"""Token sequences → batches of target spans, for losses that are means over spans or over queries."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from training.data import TokenRows
from training.losses.base import IGNORED, SpanBatch
from training.packing import common_beginning, pack
from training.rendering import MarkedTokens, TargetSpan

REWARDED, SUPERVISED, KINDS = 0, 1, 2  # kinds of values, which are averaged separately, and their number


def learnt_spans(sequence: MarkedTokens) -> list[TargetSpan]:
    """The spans of a sequence that hold a token to be learnt."""
    learnt = sequence.learnt
    return [span for span in sequence.spans if any(learnt[span.begin : span.end])]


def stored_log_probs(sequence: MarkedTokens) -> tuple[float, ...] | None:
    """ℓ in play of each span to be learnt, the mean over its tokens to be learnt; None if any is unknown."""
    found = []
    for span in learnt_spans(sequence):
        if span.log_probs is None:
            return None
        known = [value for at, value in enumerate(span.log_probs, span.begin) if at not in sequence.left_out]
        found.append(math.fsum(known) / len(known))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class SpanItem:
    """The unit that a loss needs together: one sequence, or those of all responses to a query.

    `reference` holds ℓ_ref of each learnt span, in order; empty without a reference model. `kinds` is the kind of each
    value that the loss makes of the item.
    """

    sequences: tuple[MarkedTokens, ...]
    kinds: tuple[int, ...]
    reference: tuple[float, ...] = ()

    @property
    def is_compared(self) -> bool:
        """Whether any value of the item is not for a supervised span."""
        return REWARDED in self.kinds


@dataclass(frozen=True, slots=True)
class SpanRows:
    """The items to train on, the group of each, and what was done with rows that were too long."""

    items: tuple[SpanItem, ...]
    groups: tuple[str, ...]
    too_long: Counter[str]

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
        """The same rows with ℓ_ref of each span, which `log_probs` gives for the sequences in order.

        Items with no compared span get 0: `log_probs` is not asked for them.
        """
        compared = [sequence for item in self.items if item.is_compared for sequence in item.sequences]
        found = iter(log_probs(compared))
        items = (
            replace(item, reference=tuple(x for _ in item.sequences for x in next(found)))
            if item.is_compared
            else replace(item, reference=(0.0,) * len(item.kinds))
            for item in self.items
        )
        return replace(self, items=tuple(items))


def rows_of_spans(rows: TokenRows, rewarded: bool) -> SpanRows:
    """One item for each sequence. With `rewarded`, spans without a reward are supervised."""
    items = []
    for sequence in rows.sequences:
        bare = [rewarded and span.reward is None for span in learnt_spans(sequence)]
        items.append(SpanItem((sequence,), tuple(SUPERVISED if each else REWARDED for each in bare)))
    return SpanRows(tuple(items), rows.groups, rows.too_long)


class SpanCollator:
    """Puts the sequences of items into a batch and numbers their spans.

    Each row of the batch is one sequence, padded on the right; with `packed`, a single row holds them all, and the
    sequences of an item that begin with the same tokens share these.
    """

    def __init__(self, padding: int, packed: bool = False) -> None:
        self._padding = padding
        self._packed = packed

    def __call__(self, rows: Sequence[tuple[int, SpanItem]]) -> dict[str, Any]:
        """A batch of N rows of T tokens with S spans, from which a loss makes U values.

        `input_ids`, `labels` and `owners` (N, T), the last with the number of each token's span, −1 for none;
        `reference`, `weights`, `rewards`, `supervised` and `items` (S,), as in SpanBatch; `kinds` and `origins` (U,),
        each value's kind and item; and `rows` (B,), the items' numbers. A packed batch also has `position_ids` (N, T)
        and `segments`, as in Packed.
        """
        items = [item for _, item in rows]
        found = [(at, span) for at, item in enumerate(items) for each in item.sequences for span in learnt_spans(each)]
        references = [value for item in items for value in item.reference] or [0.0] * len(found)
        return {
            **(self._packed_tokens(items) if self._packed else self._padded_tokens(items)),
            "reference": torch.tensor(references),
            "weights": torch.tensor([span.weight for _, span in found]),
            "rewards": torch.tensor([float(span.reward or 0) for _, span in found]),
            "supervised": torch.tensor([span.reward is None for _, span in found]),
            "items": torch.tensor([at for at, _ in found]),
            "kinds": torch.tensor([kind for item in items for kind in item.kinds]),
            "origins": torch.tensor([at for at, item in enumerate(items) for _ in item.kinds]),
            "rows": torch.tensor([number for number, _ in rows]),
        }

    def _padded_tokens(self, items: Sequence[SpanItem]) -> dict[str, Any]:
        sequences = [sequence for item in items for sequence in item.sequences]
        shape = len(sequences), max(len(each.ids) for each in sequences)
        ids, owners = torch.full(shape, self._padding), torch.full(shape, -1)
        for number, (each, of) in enumerate(zip(sequences, _owners(sequences), strict=True)):
            ids[number, : len(each.ids)] = torch.tensor(each.ids)
            owners[number, : len(each.ids)] = of
        return {"input_ids": ids, "labels": torch.where(owners >= 0, ids, IGNORED), "owners": owners}

    def _packed_tokens(self, items: Sequence[SpanItem]) -> dict[str, Any]:
        sequences = [sequence for item in items for sequence in item.sequences]
        packed = pack([each.ids for each in sequences], [count for item in items for count in _shared(item)])
        ids, owners = torch.tensor([packed.ids]), torch.full((1, len(packed.ids)), -1)
        for each, of, (_, shared, own) in zip(sequences, _owners(sequences), packed.offsets, strict=True):
            owners[0, own : own + len(each.ids) - shared] = of[shared:]
        return {
            "input_ids": ids,
            "labels": torch.where(owners >= 0, ids, IGNORED),
            "owners": owners,
            "position_ids": torch.tensor([packed.position_ids]),
            "segments": packed.segments,
        }


def _owners(sequences: Sequence[MarkedTokens]) -> Iterator[Tensor]:
    """For each sequence, the number of each token's span, counted across all sequences; −1 for none."""
    count = 0
    for each in sequences:
        owners, learnt = torch.full((len(each.ids),), -1), torch.tensor(each.learnt)
        for span in learnt_spans(each):
            owners[span.begin : span.end] = count
            count += 1
        yield torch.where(learnt, owners, -1)


def _shared(item: SpanItem) -> list[int]:
    """How many tokens each sequence of an item shares with the one before it.

    The token before the first learnt one is not shared: each sequence continues differently from there.
    """
    sequences = item.sequences
    if len(sequences) == 1:
        return [0]
    most = min(span.begin for each in sequences for span in each.spans) - 1
    return [0, *[common_beginning([each.ids for each in sequences], most)] * (len(sequences) - 1)]


def span_batch(batch: Mapping[str, Any], log_probs: Tensor) -> SpanBatch:
    """The spans of a collated batch with their log-probabilities."""
    names = ("reference", "weights", "rewards", "supervised", "items")
    return SpanBatch(log_probs, *(batch[name] for name in names))
