"""What each of several processes runs: trainings by `python -m training METHOD --config FILE`, one after the other.

Arguments: `METHOD FILE EVENTS [fsdp] [killed|nan|broken]`, with `,` before the next training. From `fsdp` on, each
process has a part of the weights; with `killed`, all end after their fourth step; with `nan`, the loss of the second
process is no number; with `broken`, it cannot go on after its first step. accelerate itself offers FSDP on GPUs alone;
torch's works on the CPU, too.
"""

import os
import sys
from pathlib import Path
from typing import Any

import yaml
from accelerate.state import AcceleratorState
from accelerate.utils import DistributedType

from training.__main__ import main
from training.errors import StepFailed, TrainingFailed
from training.launch import find_launcher
from training.trainer import TokenTrainer


def share_weights() -> None:
    """Does what `accelerate launch` and accelerate do for the launcher `fsdp` on GPUs."""
    fields = yaml.safe_load(find_launcher("fsdp").read_text(encoding="utf-8"))["fsdp_config"]
    os.environ |= {name.upper(): str(value) for name, value in fields.items()} | {"ACCELERATE_USE_FSDP": "true"}
    begin = AcceleratorState.__init__

    def with_fsdp(state: Any, *given: Any, **named: Any) -> None:
        begin(state, *given, **named)
        state.distributed_type = DistributedType.FSDP
        if (plugin := named.get("fsdp_plugin")) is not None:
            state.fsdp_plugin = plugin

    AcceleratorState._reset_state()
    AcceleratorState.__init__ = with_fsdp


def lose_the_loss() -> None:
    """Makes the loss of the second process, and of no other, one that is no number."""
    check = TokenTrainer.check_step

    def losing(trainer: TokenTrainer) -> None:
        TokenTrainer.check_step = check  # type: ignore[method-assign]
        if os.environ["RANK"] == "1":
            trainer.losses_of_step[-1] = trainer.losses_of_step[-1] * float("nan")
        check(trainer)

    TokenTrainer.check_step = losing  # type: ignore[assignment, method-assign]


def end_after_four_steps() -> None:
    """Makes all processes fail, once."""
    check = TokenTrainer.check_step

    def ending(trainer: TokenTrainer) -> None:
        check(trainer)
        if trainer.state.global_step == 4:
            TokenTrainer.check_step = check  # type: ignore[method-assign]
            raise StepFailed("killed")

    TokenTrainer.check_step = ending  # type: ignore[assignment, method-assign]


def fail_after_a_step() -> None:
    """Makes the second process fail."""
    check = TokenTrainer.check_step

    def failing(trainer: TokenTrainer) -> None:
        check(trainer)
        if os.environ["RANK"] == "1" and trainer.state.global_step == 1:
            raise TrainingFailed("its disk cannot be read")

    TokenTrainer.check_step = failing  # type: ignore[assignment, method-assign]


def run(method: str, config: str, events: str, *how: str) -> int:
    """One training. Returns its exit code."""
    for each in how:
        ways = {
            "fsdp": share_weights,
            "killed": end_after_four_steps,
            "nan": lose_the_loss,
            "broken": fail_after_a_step,
        }
        ways[each]()
    return main([method, "--config", config, "--progress", str(Path(events))])


if __name__ == "__main__":
    trainings = " ".join(sys.argv[1:]).split(" , ")
    sys.exit([run(*each.split()) for each in trainings][-1])
