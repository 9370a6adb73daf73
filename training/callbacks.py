"""Callbacks of a training: they report progress, save evaluations, and handle a request to stop."""

import resource
import time
from typing import Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from training.devices import any_process
from training.processes import processes
from training.progress import Progress, StopRequest
from training.trainer import PREFIX, TokenTrainer

FIGURES = ("reward", "kl", "clip_fraction", "penalty")  # extra training metrics of losses


def peak_memory(device: torch.device) -> int:
    """The most memory in MB that this training has held so far: of its GPU, or, on the CPU, of its process."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device)) >> 20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


class ProgressCallback(TrainerCallback):
    """Reports steps, evaluations and checkpoints to `progress`, and ends the training when `stop` was requested."""

    def __init__(self, progress: Progress, stop: StopRequest) -> None:
        self._progress = progress
        self._stop = stop
        self.trainer: TokenTrainer | None = None
        self._since = time.perf_counter()
        self._tokens = 0

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """From now on, a request to stop waits for the end of a step."""
        self._since = time.perf_counter()
        self._stop.gentle = True

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Handle a request to stop, with a checkpoint to resume from."""
        if self.agree(args):
            control.should_save = True

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **_: Any,
    ) -> None:
        """One line for the steps since the last, and one for an evaluation."""
        facts = {"step": state.global_step, "steps": state.max_steps, "epoch": state.epoch}
        if logs and "loss" in logs and state.is_world_process_zero:
            figures = {"loss": logs["loss"], "lr": logs["learning_rate"], "gradient_norm": logs.get("grad_norm")}
            of_loss = {name: logs[name] for name in FIGURES if name in logs}
            speed, memory = self._speed(), peak_memory(args.device)
            self._progress.tell("step", **facts, **figures, **of_loss, tokens_per_second=speed, memory_mb=memory)
        if logs and "eval_loss" in logs and state.is_world_process_zero:
            self._progress.tell("eval", **facts, loss=logs["eval_loss"])

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Save what was evaluated, so that the best can be restored. The time it took counts for no step."""
        control.should_save = True
        self._since = time.perf_counter()

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Report a complete checkpoint. Its content does not record that a stop was requested."""
        if self.agree(args):
            control.should_training_stop = True
        if state.is_world_process_zero:
            self._progress.tell("saved", step=state.global_step, checkpoint=f"{PREFIX}{state.global_step}")

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """There is no step left to wait for."""
        self._stop.gentle = False

    def agree(self, args: TrainingArguments) -> bool:
        """Whether the training is to stop: as soon as one of its processes was asked to, all of them do."""
        return any_process(self._stop.asked, args.device)

    def _speed(self) -> float:
        """Tokens trained on per second by all processes, prompts included, since the last call.

        The processes share the rows evenly, so that counting the tokens of one is enough.
        """
        now, tokens = time.perf_counter(), self.trainer.tokens_seen * processes() if self.trainer else 0
        speed = (tokens - self._tokens) / max(now - self._since, 1e-9)
        self._since, self._tokens = now, tokens
        return round(speed, 1)
