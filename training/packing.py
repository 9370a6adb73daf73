"""Packs several token sequences into one row of a batch without padding, with attention that separates them.

Positions restart with each sequence, and a token attends only to earlier tokens of its own sequence, so all values are
the same as for each sequence alone. Sequences with a common beginning, such as the responses to a query, can share it:
it is in the row once, its keys and values are computed once, and gradients flow back through them from all sequences
that continue it.
"""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import AttentionInterface

IMPLEMENTATION = "sdpa_of_segments"  # the attention's name in transformers
MODEL_INPUTS = ("input_ids", "position_ids", "segments", "logits_to_keep")  # what a collated batch passes to the model
_PROBE = (3, 2)  # lengths of the two sequences with which a model is tried
_TOLERANCE = 1e-3  # of their logits: sequences that see each other differ by a hundred times as much

Segments = tuple[tuple[int, int], ...]


class Packed(NamedTuple):
    """Sequences in one row of T tokens.

    `segments` has the length of each run of tokens and the number of the run that it continues, −1 for none; a run that
    others continue does not continue another itself. `offsets` has for each sequence where its tokens are: the start of
    its shared tokens, how many it shares, and the start of its own tokens, which follow them.
    """

    ids: list[int]
    position_ids: list[int]
    segments: Segments
    offsets: tuple[tuple[int, int, int], ...]


def pack(sequences: Sequence[Sequence[int]], shared: Sequence[int]) -> Packed:
    """Pack sequences of token ids; `shared[i]` is how many tokens sequence i shares with the one before it.

    Consecutive sequences that share the same number of tokens share them with the first of these; 0 starts a new group.
    """
    ids: list[int] = []
    positions: list[int] = []
    segments: list[tuple[int, int]] = []
    offsets: list[tuple[int, int, int]] = []

    def add(tokens: Sequence[int], after: int, first: int) -> int:
        ids.extend(tokens)
        positions.extend(range(first, first + len(tokens)))
        segments.append((len(tokens), after))
        return len(ids) - len(tokens)

    prefix = begin = 0
    for at, sequence in enumerate(sequences):
        common = shared[at]
        follows = shared[at + 1] if at + 1 < len(sequences) else 0
        if common == 0 and follows:
            common = follows
            begin = add(sequence[:common], -1, 0)
            prefix = len(segments) - 1
        own = add(sequence[common:], prefix if common else -1, common)
        offsets.append((begin, common, own) if common else (own, 0, own))
    return Packed(ids, positions, tuple(segments), tuple(offsets))


def common_beginning(sequences: Sequence[Sequence[int]], most: int) -> int:
    """How many initial tokens all sequences have in common, at most `most`."""
    shortest = min(most, *(len(each) for each in sequences))
    first = sequences[0]
    return next((at for at in range(shortest) if any(each[at] != first[at] for each in sequences)), shortest)


def model_inputs(batch: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments to call a model with for a collated batch."""
    return {name: batch[name] for name in MODEL_INPUTS if name in batch}


def on_device(batch: Mapping[str, Any], device: torch.device) -> dict[str, Any]:
    """A collated batch with its tensors on a device."""
    return {name: each.to(device) if isinstance(each, Tensor) else each for name, each in batch.items()}


def takes_positions(model: Any) -> bool:
    """Whether a model can compute logits at requested positions only. PEFT adapters pass on the arguments they get."""
    adapted = model.get_base_model() if hasattr(model, "get_base_model") else model
    return "logits_to_keep" in inspect.signature(adapted.forward).parameters


def enable_packing(model: Any) -> bool:
    """Give a model the attention of packed sequences; returns False, and leaves the model unchanged, if unsupported.

    It is supported if every layer computes scaled dot-product attention over all earlier tokens, if the model can
    compute logits at requested positions only, and if two short sequences in one row get the same logits as each alone.
    """
    if not _attends_to_all(model):
        return False
    before = model.config._attn_implementation
    if before == IMPLEMENTATION:
        return True
    AttentionInterface.register(IMPLEMENTATION, _attention)
    model.config._attn_implementation = IMPLEMENTATION
    if _keeps_apart(model):
        return True
    model.config._attn_implementation = before
    return False


def _attends_to_all(model: Any) -> bool:
    config = model.config
    layers = getattr(config, "layer_types", None) or ("full_attention",)
    return (
        takes_positions(model)
        and config._attn_implementation in ("sdpa", IMPLEMENTATION)
        and bool(getattr(model, "_supports_attention_backend", False))
        and not getattr(model, "_is_stateful", False)
        and set(layers) == {"full_attention"}
        and getattr(config, "sliding_window", None) is None
    )


def _keeps_apart(model: Any) -> bool:
    """Whether two sequences in one row get the same logits as each alone."""
    count = model.get_input_embeddings().num_embeddings
    sequences = [[(7 * at + 3 * number + 1) % count for at in range(size)] for number, size in enumerate(_PROBE)]
    packed = pack(sequences, (0, 0))
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            alone = [model(input_ids=_batch_of_one(each, model), use_cache=False).logits for each in sequences]
            together = model(
                input_ids=_batch_of_one(packed.ids, model),
                position_ids=_batch_of_one(packed.position_ids, model),
                segments=packed.segments,
                use_cache=False,
            ).logits
    except TypeError:  # a model that takes no such arguments
        return False
    finally:
        model.train(training)
    return bool(torch.allclose(together, torch.cat(alone, dim=1), rtol=_TOLERANCE, atol=_TOLERANCE))


def _batch_of_one(values: Sequence[int], model: Any) -> Tensor:
    return torch.tensor([values], device=model.device)


def _attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    segments: Segments | None = None,
    **given: Any,
) -> tuple[Tensor, None]:
    """Scaled dot-product attention within each segment and the segment that it continues.

    Shapes: query (B, H, T, D), key and value (B, G, T, D) → (B, T, H, D). Without segments it is that of transformers.
    """
    attend = AttentionInterface()["sdpa"]
    if segments is None:
        found: tuple[Tensor, None] = attend(module, query, key, value, attention_mask, **given)
        return found
    lengths = [length for length, _ in segments]
    queries, keys, values = (each.split(lengths, dim=2) for each in (query, key, value))
    outputs = []
    for at, (length, after) in enumerate(segments):
        if after < 0:
            output, _ = attend(module, queries[at], keys[at], values[at], None, **given)
        else:
            mask = query.new_ones((1, 1, length, lengths[after] + length), dtype=torch.bool).tril(lengths[after])
            both = (torch.cat([each[after], each[at]], dim=2) for each in (keys, values))
            output, _ = attend(module, queries[at], *both, mask, **given)
        outputs.append(output)
    return torch.cat(outputs, dim=1), None
