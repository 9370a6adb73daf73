"""transformers' Trainer as Parlor uses it: exact accumulation, exact resume, and a stop at non-finite numbers.

How it departs from the library's defaults:
- the loss is a sum over the tokens to be learnt, divided by their weights in the whole optimizer step,
  so the same rows give the same gradients however they are accumulated; the evaluation loss is a mean
  over tokens as well;
- the order of rows is a function of seed and epoch (`data.EpochOrder`);
- several processes take exactly the steps of one: a process with no rows left in a step computes a row
  that does not count;
- a checkpoint gets its name only when complete, so a kill leaves nothing that looks like one;
- every loss, and the norm of every gradient before clipping, is checked before it changes the weights,
  and weights are checked before they are saved.
"""

import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainerState, TrainingArguments
from transformers.trainer import TRAINER_STATE_NAME

from training.checkpoints import read_provenance, renderer_of, unfinished, write_provenance, written
from training.data import Collator, EpochOrder, Rows
from training.devices import any_process, gathered, uses_gpu
from training.errors import StepFailed, TrainingRefused
from training.losses.base import IGNORED, find_loss, token_losses
from training.marks import RENDERER
from training.methods.base import Config
from training.onednn import use_onednn
from training.packing import enable_packing

PREFIX = "checkpoint-"
MOST_LOGGED = 300  # steps reported if log_every is auto


def checkpoints_in(run: Path) -> list[Path]:
    """The complete checkpoints of a run, oldest first."""
    return sorted(run.glob(f"{PREFIX}*"), key=lambda path: int(path.name.removeprefix(PREFIX)))


def renderer_version(config: Config) -> int:
    """The renderer version of the training to resume, or the current one for a new training."""
    begun = checkpoints_in(config.run_folder) if config.resume else []
    return renderer_of(read_provenance(begun[-1])) if begun else RENDERER


def is_over(checkpoint: Path) -> bool:
    """Whether a training has nothing left to do after this checkpoint: at its last step, or where it stopped early."""
    state = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
    stopped: bool = state.stateful_callbacks["TrainerControl"]["args"]["should_training_stop"]
    return stopped or state.global_step >= state.max_steps


def is_counted(batch: Mapping[str, Any]) -> bool:
    """Whether a batch's rows count: rows with negative numbers only give a process something to compute."""
    return bool(batch["rows"][0] >= 0)


class _CountedRows:
    """A collator that drops rows that do not count; if there are no others, it keeps one of them."""

    def __init__(self, collate: Callable[[Sequence[Any]], dict[str, Tensor]]) -> None:
        self._collate = collate

    def __call__(self, rows: Sequence[tuple[int, Any]]) -> dict[str, Tensor]:
        return self._collate([each for each in rows if each[0] >= 0] or rows[:1])


class TokenTrainer(Trainer):
    """Trains on marked tokens with the named loss.

    `provenance` is what every checkpoint records besides its step and metrics. Raises TrainingFailed at a non-finite
    loss or gradient norm, before it changes the weights; at non-finite weights, before they are saved; and when the
    disk is full.
    """

    # The loss has divided by the weights of all micro-batches; the Trainer must not divide by their number again.
    loss_is_scaled_for_ga = True
    control: Any
    data_collator: Any
    _find_loss: Callable[[str], Any] = staticmethod(find_loss)
    _collator: type[Any] = Collator
    _evaluates_packed = False  # results of each row are gathered from all devices, where padded rows are separate

    def __init__(
        self,
        config: Config,
        model: Any,
        tokenizer: Any,
        rows: Rows,
        aside: Rows | None,
        *,
        loss: str,
        provenance: Mapping[str, Any],
        callbacks: Sequence[TrainerCallback] = (),
    ) -> None:
        self._config = config
        self._loss = self._find_loss(loss)
        self._weights: Tensor | None = None  # of the micro-batch in its forward pass
        self._rows = rows
        self._provenance = provenance
        self._part = config.run_folder
        self._known_at_save = -1
        self._gradient_norm: Any = None
        self.rows_of_step: list[Tensor] = []
        self.losses_of_step: list[Tensor] = []
        self.tokens_seen = 0
        self.counts = True  # whether the micro-batch in its forward pass counts
        use_onednn(model)
        packed, padding = config.packing and enable_packing(model), tokenizer.pad_token_id or 0
        self._collator_of_evaluation = self._collator(padding, packed and self._evaluates_packed)
        super().__init__(
            model=model,
            args=_arguments(config, model),
            data_collator=_CountedRows(self._collator(padding, packed)),
            train_dataset=rows,
            eval_dataset=aside,
            processing_class=tokenizer,
            compute_loss_func=self._loss_of_batch,
            callbacks=list(callbacks),
        )
        self.remove_callback(PrinterCallback)
        self.add_callback(_GradientCheck(self.check_step))

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """The schedule; its last step is never part of the warm-up, as a training of one step would then learn
        nothing.
        """
        self.args.warmup_steps = min(self.args.get_warmup_steps(num_training_steps), num_training_steps - 1)
        return super().create_scheduler(num_training_steps, optimizer)

    def _get_train_sampler(self, *_: Any) -> EpochOrder:
        at_once = self.args.train_batch_size * self.args.world_size
        step = at_once * self.args.gradient_accumulation_steps
        return EpochOrder(self._rows, step, self._config.seed, multiple=at_once if self.args.world_size > 1 else 1)

    def get_eval_dataloader(self, *given: Any) -> Any:
        """The batches of an evaluation."""
        of_training, self.data_collator = self.data_collator, self._collator_of_evaluation
        try:
            return super().get_eval_dataloader(*given)
        finally:
            self.data_collator = of_training

    def training_step(self, model: Any, inputs: dict[str, Any], num_items_in_batch: Any = None) -> Tensor:
        """Forward and backward pass of one micro-batch; records its rows for `check_step`."""
        self.counts = is_counted(inputs)
        self.rows_of_step.append(inputs.pop("rows"))
        self.tokens_seen += inputs["input_ids"].numel() * self.counts
        loss: Tensor = super().training_step(model, inputs, num_items_in_batch)
        self.losses_of_step.append(loss)
        return loss

    def compute_loss(self, model: Any, inputs: dict[str, Any], *given: Any, **named: Any) -> Any:
        """The loss of one micro-batch; its weights go to the loss only, not to the model."""
        self._weights = inputs.pop("weights")
        return super().compute_loss(model, inputs, *given, **named) * self.counts

    def _loss_of_batch(self, outputs: Any, labels: Tensor, num_items_in_batch: Tensor | None = None) -> Tensor:
        assert self._weights is not None  # noqa: S101 - compute_loss has set them
        return self._loss(outputs["logits"], labels, self._weights, num_items_in_batch)

    def _get_num_items_in_batch(self, batch_samples: list[Any], device: torch.device) -> Any:
        """The sum of the weights of all tokens of an optimizer step, on all devices."""
        if not batch_samples:
            return None
        weights = [batch["weights"][:, 1:].sum() * is_counted(batch) for batch in batch_samples]
        total = torch.stack(weights).sum().to(device)
        return self.accelerator.gather(total).sum() if self.args.world_size > 1 else total

    def _get_grad_norm(self, model: Any, grad_norm: Any = None) -> Any:
        """The norm of the gradients before clipping; kept for `check_step`."""
        self._gradient_norm = super()._get_grad_norm(model, grad_norm)
        return self._gradient_norm

    def check_step(self) -> None:
        """Check losses and gradients before the optimizer uses them. Raises Failed, naming step and rows."""
        losses = torch.isfinite(torch.stack(self.losses_of_step)).tolist()
        groups, self.rows_of_step, self.losses_of_step = self._groups_without_finite_loss(losses), [], []
        finite = self._has_finite_gradient_norm()  # called in all processes, because it gathers from each
        if any_process(not (all(losses) and finite), self.args.device):
            everywhere = gathered((all(losses), groups))
            without = [those for good, those in everywhere if not good]
            what = "loss" if without else "gradient norm"
            groups = list(
                dict.fromkeys(each for those in without or [those for _, those in everywhere] for each in those)
            )
            raise StepFailed(
                f"step {self.state.global_step + 1}: expected a {what} that is a number, got NaN or infinity on"
                f" {', '.join(groups)}; {self._last_good()}; lower learning_rate or look at these rows"
            )

    def check_weights(self) -> None:
        """Check the weights before they are saved: the last step may have spoilt them. Raises Failed."""
        own = (each.to_local() if isinstance(each, DTensor) else each for each in self.model_wrapped.parameters())
        if any_process(not all(bool(torch.isfinite(each).all()) for each in own), self.args.device):
            raise StepFailed(
                f"step {self.state.global_step}: expected weights that are numbers, got NaN or infinity;"
                f" {self._last_good()}; lower learning_rate or weight_decay"
            )

    def _last_good(self) -> str:
        last = checkpoints_in(self._config.run_folder)
        return f"the last good checkpoint is {last[-1]}" if last else "no checkpoint was saved before it"

    def _has_finite_gradient_norm(self) -> bool:
        """Whether the optimizer can use the gradients.

        Finite gradients may have a non-finite norm: clipped to `max_grad_norm` they would be 0, and nothing would be
        learnt. With float16 the norm need not be finite: the scaler skips such a step.
        """
        norm = self._gradient_norm
        if norm is None or self._config.precision == "float16":
            return True
        return math.isfinite(norm.full_tensor() if isinstance(norm, DTensor) else norm)

    def _groups_without_finite_loss(self, finite: Sequence[bool]) -> list[str]:
        """The groups of the micro-batches whose loss is not finite, else of all micro-batches, each once."""
        bad = [rows for rows, good in zip(self.rows_of_step, finite, strict=True) if not good] or self.rows_of_step
        groups = list(dict.fromkeys(self._rows.groups[number] for each in bad for number in each.tolist()))
        return groups if len(groups) <= 8 else [*groups[:8], f"{len(groups) - 8} more"]

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """The loss over the held-out rows, as `eval_loss`. Raises StepFailed, in all processes, if not finite."""
        self.model_wrapped.eval()
        # An evaluation draws nothing from the generators that training draws from.
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            loss, tokens = self._held_out_loss()
        if not math.isfinite(loss):
            raise StepFailed(f"step {self.state.global_step}: expected an evaluation loss that is a number, got {loss}")
        metrics = {"eval_loss": loss, "eval_tokens": float(tokens)}
        self.log(dict(metrics))
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def _held_out_loss(self) -> tuple[float, int]:
        """The weighted mean loss per token over the held-out rows, and how many tokens they learn."""
        total = torch.zeros((), dtype=torch.float64)
        weight, tokens = 0.0, 0
        for batch in self.get_eval_dataloader():
            ids, labels, weights = batch["input_ids"], batch["labels"], batch["weights"]
            each = token_losses(self.model_wrapped(input_ids=ids, use_cache=False)["logits"], labels) * weights[:, 1:]
            sums = self.accelerator.gather_for_metrics(each.sum(dim=1))
            tokens += int(self.accelerator.gather_for_metrics(labels[:, 1:].ne(IGNORED).sum(dim=1)).sum())
            weight += float(self.accelerator.gather_for_metrics(weights[:, 1:].sum(dim=1)).double().sum())
            total += sums.double().sum().cpu()
        return float(total / weight), tokens

    @property
    def shards_weights(self) -> bool:
        """Whether each process holds only a part of the weights or of the optimizer state."""
        return bool(self.is_fsdp_enabled or self.is_deepspeed_enabled)

    @property
    def sharing(self) -> str:
        """How several processes share the work."""
        if self.is_deepspeed_enabled:
            return f"DeepSpeed ZeRO-{self.accelerator.state.deepspeed_plugin.zero_stage}"
        return "FSDP" if self.is_fsdp_enabled else "DDP"

    def _get_output_dir(self, trial: Any) -> str:
        return str(self._part)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Save a checkpoint with everything needed to resume, named once complete; then delete old ones."""
        self.check_weights()
        final = self._config.run_folder / f"{PREFIX}{self.state.global_step}"
        known = len(self.state.log_history)
        if not final.exists() or known != self._known_at_save:  # an evaluation may have come after it was saved
            self._write_checkpoint(model, trial, final)
            self._known_at_save = known
        self.accelerator.wait_for_everyone()
        best = self._config.run_folder / f"{PREFIX}{self.state.best_global_step}"
        for old in checkpoints_in(self._config.run_folder)[: -self._config.keep]:
            if self.args.should_save and old != best:
                shutil.rmtree(old)

    def _write_checkpoint(self, model: Any, trial: Any, final: Path) -> None:
        self._part = unfinished(final)
        if not self.args.should_save:
            self.accelerator.wait_for_everyone()
            super()._save_checkpoint(model, trial)
            self.accelerator.wait_for_everyone()
            return
        with written(final) as part:
            self.accelerator.wait_for_everyone()
            super()._save_checkpoint(model, trial)
            self.accelerator.wait_for_everyone()
            for path in list((part / final.name).iterdir()):
                path.rename(part / path.name)
            (part / final.name).rmdir()
            write_provenance(part, {**self._provenance, **self.standing()})
            if final.exists():
                shutil.rmtree(final)

    def take_up(self, checkpoint: Path) -> None:
        """Restore the state of a training that was finished at this checkpoint; the weights are not loaded."""
        self.state = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))

    def standing(self) -> dict[str, Any]:
        """Step, number of steps, epoch and latest metrics, for a checkpoint's provenance."""
        history = self.state.log_history
        latest = {name: each[name] for each in history for name in ("loss", "eval_loss") if name in each}
        where = {"step": self.state.global_step, "steps": self.state.max_steps, "epoch": self.state.epoch}
        return {**where, "metrics": latest}


class _GradientCheck(TrainerCallback):
    """Calls `check_step` at the one moment when gradients are complete and the weights not yet changed."""

    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check

    def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
        self._check()


def _recomputed(config: Config, model: Any) -> dict[str, Any]:
    """The arguments for gradient checkpointing. Raises Refused for a model that cannot recompute its layers."""
    if config.gradient_checkpointing and not model.supports_gradient_checkpointing:
        raise TrainingRefused(
            "gradient_checkpointing: expected a model whose layers can be recomputed, got"
            f" {type(model).__name__}; leave it out and lower batch"
        )
    return {
        "activation_checkpointing": config.gradient_checkpointing,
        "activation_checkpointing_kwargs": {"use_reentrant": False},
    }


def _arguments(config: Config, model: Any) -> TrainingArguments:
    evaluating: dict[str, Any] = {"eval_strategy": "no"}
    if config.evaluates:
        evaluating = {
            "eval_strategy": "steps" if config.eval_every else "epoch",
            "eval_steps": config.eval_every,
            "metric_for_best_model": "eval_loss",
            "greater_is_better": False,
        }
    return TrainingArguments(
        output_dir=str(config.run_folder),
        num_train_epochs=config.epochs,
        max_steps=config.max_steps or -1,
        per_device_train_batch_size=config.batch,
        per_device_eval_batch_size=config.batch,
        gradient_accumulation_steps=config.accumulation,
        learning_rate=config.learning_rate,
        lr_scheduler_type="constant_with_warmup" if config.schedule == "constant" else config.schedule,
        warmup_steps=config.warmup,
        weight_decay=config.weight_decay,
        max_grad_norm=config.max_grad_norm,
        bf16=config.precision == "bfloat16",
        fp16=config.precision == "float16",
        tf32=True if config.precision == "tf32" else None,
        ddp_find_unused_parameters=False,
        use_cpu=not uses_gpu(config),
        seed=config.seed,
        data_seed=config.seed,
        save_strategy="steps" if config.save_every else "epoch",
        save_steps=config.save_every or 0,
        logging_steps=1 / MOST_LOGGED if config.log_every == "auto" else config.log_every,  # a share, or steps
        logging_nan_inf_filter=False,
        restore_callback_states_from_checkpoint=True,
        remove_unused_columns=False,
        label_names=["labels"],
        dataloader_pin_memory=False,
        disable_tqdm=True,
        report_to="none",
        **_recomputed(config, model),
        **evaluating,
    )
