"""A trainer whose losses are means over target spans, or over queries, of a whole optimizer step."""

from typing import Any

import torch
from torch import Tensor

from training.log_probs import span_log_probs
from training.losses.base import find_span_loss, step_mean
from training.packing import takes_positions
from training.span_data import KINDS, SpanCollator, SpanRows, span_batch
from training.trainer import TokenTrainer, is_counted


class SpanTrainer(TokenTrainer):
    """Trains on items of target spans; the loss gets its method's config.

    The loss's extra metrics, such as `kl`, are logged with it as their means since the last log.
    """

    _find_loss = staticmethod(find_span_loss)
    _collator = SpanCollator
    _evaluates_packed = True

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.args.logging_first_step = True  # the figures of the first step show whether the reference is the right one
        self._positions = takes_positions(self.model)
        self._figures: dict[str, Tensor] = {}

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Tensor:
        """The micro-batch's contribution to the means over the step. `num_items_in_batch` (KINDS,) has the step's
        totals.
        """
        found = self._loss(span_batch(inputs, span_log_probs(model, inputs, self._positions)), self._config)
        for name, figure in found.figures.items():
            pair = torch.stack([figure[0], figure[1].double()]) * self.counts  # all processes log the same names
            self._figures[name] = self._figures[name] + pair if name in self._figures else pair
        # Devices' gradients are averaged, and the totals are those of all devices.
        return (
            step_mean(found.values, inputs["kinds"], num_items_in_batch) * self.accelerator.num_processes * self.counts
        )

    def _get_num_items_in_batch(self, batch_samples: list[Any], device: torch.device) -> Any:
        """The number of values of each kind in an optimizer step, on all devices. Shape (KINDS,)."""
        if not batch_samples:
            return None
        kinds = torch.cat([batch["kinds"][: None if is_counted(batch) else 0] for batch in batch_samples])
        totals = torch.bincount(kinds, minlength=KINDS).to(device)
        return self.accelerator.reduce(totals) if self.args.world_size > 1 else totals

    def log(self, logs: dict[str, float], *given: Any, **named: Any) -> None:
        """Log the loss with the extra metrics of the steps since the last log."""
        if "loss" in logs:
            for name, pair in self._figures.items():
                total, count = (self.accelerator.reduce(pair) if self.args.world_size > 1 else pair).tolist()
                logs = {**logs, **({name: total / count} if count else {})}
            self._figures = {}
        super().log(logs, *given, **named)

    def _held_out_loss(self) -> tuple[float, int]:
        """The loss of the held-out rows, computed as for one step with all of them, and how many tokens they learn."""
        rows = self.eval_dataset
        assert isinstance(rows, SpanRows)  # noqa: S101 - the method's own rows
        totals = rows.totals.to(self.args.device)
        loss = torch.zeros((), dtype=torch.float64)
        for batch in self.get_eval_dataloader():
            log_probs = span_log_probs(self.model_wrapped, batch, self._positions)
            values = self._loss(span_batch(batch, log_probs), self._config).values
            each = torch.zeros(len(batch["rows"]), dtype=values.dtype, device=values.device)
            each = each.index_add(0, batch["origins"], values / totals[batch["kinds"]])
            loss += self.accelerator.gather_for_metrics(each).double().sum().cpu()
        return float(loss), rows.targets
