"""The errors of a training. Each message is one line: what was expected, what was found, what to do."""

import errno

_FULL = (
    "no space left",
    "os error 28",
    "file too large",
    "os error 27",
    "disk quota",
    "pytorchstreamwriter",
    "file write",
)


class TrainingRefused(Exception):
    """The config, data or base model cannot be trained with; nothing was started. Exit code 2."""


class TrainingFailed(Exception):
    """A training that had started cannot continue; its last good checkpoint stays. Exit code 1."""


class StepFailed(TrainingFailed):
    """A step after which no process of a training can continue: all of them raise this."""


class ProcessLost(TrainingFailed):
    """Another process of the training has ended, so this one cannot continue."""


# What all processes of a training raise alike, so that the main one reports it.
RAISED_BY_ALL = (TrainingRefused, StepFailed)


def message_of(error: BaseException) -> str:
    """The one-line message for an error. Re-raises an unexpected error."""
    if isinstance(error, (TrainingRefused, TrainingFailed)):
        return str(error)
    if is_disk_full(error):
        return f"the disk is full ({one_line(error)}); make room and start again"
    if isinstance(error, ImportError):
        return _not_loaded(error)
    if isinstance(error, MemoryError) or "memory" in str(error):
        return (
            f"out of memory ({one_line(error)}); lower batch and raise accumulation by as much, lower max_length, or"
            " set gradient_checkpointing or a lora_rank"
        )
    if isinstance(error, OSError):
        return one_line(error)
    raise error


def _not_loaded(error: ImportError) -> str:
    """Why a library could not be loaded: not enough memory, or not installed."""
    if "failed to map segment" in str(error):
        return f"out of memory ({one_line(error)}); there is not even room for the libraries: end other processes"
    return (
        f"expected the packages of a training to be installed, got {one_line(error)};"
        " pip install -c constraints.txt -e '.[training]'"
    )


def shown(value: object, most: int = 60) -> str:
    """The repr of a value for a message, short enough for one line."""
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def is_disk_full(error: BaseException) -> bool:
    """Whether an error means that the disk is full; each library that writes reports this differently."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return True
    return isinstance(error, Exception) and any(text in str(error).lower() for text in _FULL)


def one_line(error: BaseException, most: int = 160) -> str:
    """A library's error in one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= most else f"{text[: most - 1]}…"
