"""The device and precision that a training uses: one GPU, the CPU, or a share of several processes."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, TypeVar

import torch
from accelerate import PartialState
from torch import Tensor, distributed

from training.errors import RAISED_BY_ALL, ProcessLost, TrainingFailed, TrainingRefused, message_of
from training.methods.base import Config
from training.processes import process_number, processes

_AUTOCAST = {"bfloat16": torch.bfloat16, "float16": torch.float16}
_OF_GPUS = ("float16", "tf32")
_FAILED = ".failed-"  # a note of why a process failed; the port of the main process follows

T = TypeVar("T")


def uses_gpu(config: Config) -> bool:
    """Whether a training with this config computes on a GPU."""
    return config.device != "cpu" and torch.cuda.is_available()


def check_devices(config: Config) -> None:
    """Raises Refused for a device or a precision that this machine does not have."""
    if config.device == "cuda" and not torch.cuda.is_available():
        raise TrainingRefused(
            "device: expected auto or cpu on a machine without a usable GPU, got cuda; lower the demand to auto, or"
            " look with nvidia-smi whether the driver is there"
        )
    if config.precision in _OF_GPUS and not uses_gpu(config):
        raise TrainingRefused(
            f"precision: expected float32 or bfloat16 where no GPU is used, got {config.precision}; train with one of"
            " these, or on a GPU"
        )
    if config.precision in ("bfloat16", "tf32") and uses_gpu(config) and torch.cuda.get_device_capability() < (8, 0):
        raise TrainingRefused(
            f"precision: expected float32 or float16 on {torch.cuda.get_device_name()}, which is older than Ampere, got"
            f" {config.precision}; train with one of these"
        )


def join_processes(config: Config) -> PartialState:
    """Join this process to the others that a launcher started; a single process needs no others."""
    return PartialState(cpu=not uses_gpu(config))


def own_device(config: Config) -> torch.device:
    """The device of this process."""
    if processes() > 1:
        return torch.device(join_processes(config).device)
    return torch.device("cuda" if uses_gpu(config) else "cpu")


def autocast(config: Config, device: torch.device) -> AbstractContextManager[Any]:
    """The precision in which the trained model computes."""
    dtype = _AUTOCAST.get(config.precision)
    return torch.autocast(device.type, dtype) if dtype is not None else nullcontext()


def any_process(flag: bool, device: torch.device) -> bool:
    """Whether the flag is set in any process. Every process must call this."""
    if processes() == 1:
        return flag
    found = torch.tensor(int(flag), device=device)
    distributed.all_reduce(found, distributed.ReduceOp.MAX)
    return bool(found)


def summed(values: Tensor, device: torch.device) -> Tensor:
    """The sum of the values of all processes, on the CPU. Every process must call this."""
    if processes() == 1:
        return values
    found = values.to(device)
    distributed.all_reduce(found)
    return found.cpu()


def gathered(value: T) -> list[T]:
    """The value of each process, in process order. Every process must call this."""
    if processes() == 1:
        return [value]
    found: list[Any] = [None] * processes()
    distributed.all_gather_object(found, value)
    return found


def wait_for_all() -> None:
    """Block until every process has called this."""
    if processes() > 1:
        distributed.barrier()


def remove_notes(folder: Path) -> None:
    """Remove earlier processes' failure notes from a run folder, before other processes join."""
    for note in folder.glob(f"{_FAILED}*"):
        note.unlink(missing_ok=True)


@contextmanager
def failing_together(folder: Path) -> Iterator[None]:
    """Let the main process report why another process failed alone, through a note in the run folder.

    Raises ProcessLost where the connection to another process is gone, and whatever is raised within.
    """
    note = folder / f"{_FAILED}{os.environ.get('MASTER_PORT')}"
    try:
        yield
    except (TrainingRefused, TrainingFailed, MemoryError, OSError, RuntimeError) as error:
        if processes() > 1 and _is_lost_connection(error):
            raise ProcessLost(_failure_of_other(note)) from None
        if process_number() > 0 and not isinstance(error, RAISED_BY_ALL):
            with suppress(OSError):
                note.write_text(f"process {process_number()} of {processes()}: {message_of(error)}", encoding="utf-8")
        raise


def _failure_of_other(note: Path) -> str:
    """Why another process failed, from its note; only the main process, which reports it, reads the note."""
    if process_number() == 0:
        with suppress(OSError):
            text = note.read_text(encoding="utf-8")
            note.unlink()
            return text
    return (
        "expected all processes of the training to go on, got one that has ended, perhaps because memory ran out; the"
        " same command goes on from the last checkpoint"
    )


def _is_lost_connection(error: BaseException) -> bool:
    texts = ("closed by peer", "reset by peer", "broken pipe", "gloo", "nccl")
    return isinstance(error, distributed.DistError) or any(text in str(error).lower() for text in texts)
