"""ℓ of target spans, under the model being trained and, once per dataset, under the reference model."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from training.devices import any_process, autocast, own_device, summed
from training.errors import TrainingFailed, TrainingRefused, is_disk_full, one_line
from training.losses.base import IGNORED, losses_overwriting, span_means
from training.methods.base import Config
from training.onednn import use_onednn
from training.packing import enable_packing, model_inputs, on_device, takes_positions
from training.processes import process_number, processes
from training.rendering import MarkedTokens
from training.span_data import SpanCollator, SpanItem, learnt_spans, stored_log_probs

_NAME = "log_probs"


def span_log_probs(model: Any, batch: Mapping[str, Any], positions: bool) -> Tensor:
    """ℓ of each span of a batch: the mean log-probability of its tokens. Shape (S,).

    With `positions`, the model's head is computed only before tokens that a sequence of the batch learns.
    """
    before = batch["labels"][:, 1:].ne(IGNORED).any(dim=0).nonzero()[:, 0]
    kept = {"logits_to_keep": before} if positions else {}
    logits = model(**model_inputs(batch), use_cache=False, **kept)["logits"]
    logits = logits if positions else logits[:, before]
    losses = losses_overwriting(logits, batch["labels"][:, before + 1])
    return span_means(losses, batch["owners"][:, before + 1], len(batch["items"]))


class ReferenceLogProbs:
    """ℓ_ref of sequences' spans under a frozen model, cached in a file named by the hash of everything they depend on.

    Nothing is computed for sequences whose spans carry log-probabilities from play: only rows that this same model
    played, in the precision of the training, may still have them.

    `load` takes a number of tokens and gives a model that accepts that many; it is called only if the values are not
    cached. `identity` identifies the model and tokenizer by hashes.
    """

    def __init__(self, config: Config, folder: Path, identity: str, load: Any, padding: int) -> None:
        self._config = config
        self._folder = folder
        self._identity = identity
        self._load = load
        self._padding = padding

    def __call__(self, sequences: Sequence[MarkedTokens]) -> list[tuple[float, ...]]:
        """The values of each sequence: those stored from play, else the model's.

        Raises Refused as `load` does and for non-finite values, and Failed if the disk is full.
        """
        stored = [stored_log_probs(each) for each in sequences]
        computed = iter(self._of_model([each for each, known in zip(sequences, stored, strict=True) if known is None]))
        return [next(computed) if known is None else known for known in stored]

    def _of_model(self, sequences: Sequence[MarkedTokens]) -> list[tuple[float, ...]]:
        if not sequences:
            return []
        counts = [len(learnt_spans(each)) for each in sequences]
        path = self._folder / f"{self._hash_of_sequences(sequences)}.safetensors"
        found = _load_values(path, sum(counts))
        if any_process(found is None, own_device(self._config)) or found is None:
            found = self._computed(sequences)
            if not found.isfinite().all():
                raise TrainingRefused(
                    "reference: expected log-probabilities that are numbers, got NaN or infinity; look at its weights,"
                    " or set precision to float32"
                )
            if process_number() == 0:
                _store_values(path, found)
        return [tuple(each.tolist()) for each in found.split(counts)]

    def _hash_of_sequences(self, sequences: Sequence[MarkedTokens]) -> str:
        found = hashlib.sha256(f"{self._identity} {self._config.precision}".encode())
        for each in sequences:
            spans = [(span.begin, span.end) for span in learnt_spans(each)]
            found.update(repr((each.ids, spans, sorted(each.left_out))).encode())
        return found.hexdigest()

    def _computed(self, sequences: Sequence[MarkedTokens]) -> Tensor:
        """The computed values, in batches of sequences of similar length, shared among the processes. Shape (S,),
        float32.
        """
        model = self._load(max(len(each.ids) for each in sequences))
        device = own_device(self._config)
        model.to(device).eval()
        use_onednn(model)
        collator = SpanCollator(self._padding, self._config.packing and enable_packing(model))
        positions = takes_positions(model)
        order = sorted(range(len(sequences)), key=lambda at: len(sequences[at].ids))
        found = [torch.zeros(len(learnt_spans(each))) for each in sequences]
        batches = [order[begin : begin + self._config.batch] for begin in range(0, len(order), self._config.batch)]
        with torch.inference_mode(), autocast(self._config, device):
            for chosen in batches[process_number() :: processes()]:
                batch = collator([(at, SpanItem((sequences[at],), ())) for at in chosen])
                values = span_log_probs(model, on_device(batch, device), positions)
                counts = [len(learnt_spans(sequences[at])) for at in chosen]
                for at, each in zip(chosen, values.float().cpu().split(counts), strict=True):
                    found[at] = each
        return summed(torch.cat(found), device)


def _load_values(path: Path, count: int) -> Tensor | None:
    """The values in a file; None if there is no file or it does not hold all of them as finite numbers."""
    try:
        found: Tensor = load_file(path)[_NAME]
    except (OSError, SafetensorError, KeyError):
        return None
    return found if found.shape == (count,) and bool(found.isfinite().all()) else None


def _store_values(path: Path, values: Tensor) -> None:
    """Write the file under its final name only once complete: other processes may want the same one."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file({_NAME: values}, part)
        part.rename(path)
    except (OSError, SafetensorError) as error:
        with suppress(OSError):
            part.unlink()
        if is_disk_full(error):
            raise TrainingFailed(f"{path}: the disk is full ({one_line(error)}); make room and start again") from None
        raise TrainingRefused(
            f"reference_cache: expected a folder that can be written, got {path.parent}: {one_line(error)}"
        ) from None
