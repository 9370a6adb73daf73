"""What may be said of a training job: its method, and the fields of `python -m training` that it may give. Pure.

docs/training.md says what each field means. Names and numbers are checked here, where nothing that trains is loaded;
what only the data or the base can tell is said by the training itself.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from app.errors import Invalid, shown
from app.games.base import JSON, real_number, whole_number

SFT, TINY = "sft", "tiny"
METHODS = (SFT, TINY)
LOCAL = "local"
BACKENDS = (LOCAL,)
AUTO = "auto"
_MOST = 10**9
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")

Read = Callable[[Any, str], Any]


def _whole(least: int, most: int = _MOST) -> Read:
    return lambda raw, name: whole_number(raw, name, least, most)


def _real(least: float, most: float) -> Read:
    return lambda raw, name: real_number(raw, name, least, most)


def _word(*known: str) -> Read:
    def read(raw: Any, name: str) -> str:
        if raw not in known:
            raise Invalid(f"{name}: expected {' or '.join(known)}, got {shown(raw)}")
        return str(raw)

    return read


def _above_0(raw: Any, name: str) -> float:
    try:
        return real_number(raw, name, 5e-324, 1e300)
    except Invalid:
        raise Invalid(f"{name}: expected a number above 0, got {shown(raw)}") from None


def _below_1(raw: Any, name: str) -> float:
    number = real_number(raw, name, 0, 1)
    if number == 1:
        raise Invalid(f"{name}: expected a number from 0 to below 1, got {shown(raw)}")
    return number


def _every(raw: Any, name: str) -> int | str:
    return AUTO if raw == AUTO else whole_number(raw, name, 1, _MOST)


# Files and folders are the job's own: its data, its base, its run folder and its output.
COMMON: Mapping[str, Read] = {
    "max_length": _whole(8),
    "seed": _whole(0, 2**32 - 1),
    "epochs": _above_0,
    "max_steps": _whole(1),
    "batch": _whole(1),
    "accumulation": _whole(1),
    "learning_rate": _above_0,
    "schedule": _word("cosine", "linear", "constant"),
    "warmup": _below_1,
    "weight_decay": _real(0, 1e300),
    "max_grad_norm": _real(0, 1e300),
    "eval_share": _below_1,
    "eval_every": _whole(1),
    "patience": _whole(0),
    "save_every": _whole(1),
    "keep": _whole(1),
    "log_every": _every,
    "device": _word("auto", "cpu"),
    "precision": _word("float32", "bfloat16"),
    "threads": _whole(1),
}
OF_TINY: Mapping[str, Read] = {
    "width": _whole(8),
    "layers": _whole(1),
    "heads": _whole(1),
    "length": _whole(8),
    "min_count": _whole(1),
    "max_words": _whole(1),
}


RENAMED = {"clip": "max_grad_norm"}  # as in jobs that were written down before 0.2


def read_method(method: str) -> str:
    """A known method. Raises Invalid."""
    if method not in METHODS:
        raise Invalid(f"method: expected {' or '.join(METHODS)}, got {shown(method)}")
    return method


def fields_of(method: str) -> Mapping[str, Read]:
    """The fields that a job of this method may give, each with what reads it."""
    return {**COMMON, **OF_TINY} if read_method(method) == TINY else COMMON


def read_config(method: str, raw: Mapping[str, Any]) -> JSON:
    """The given fields, checked; numbers may have come as text, and null stands for the default. Raises Invalid."""
    fields = fields_of(method)
    for old, new in RENAMED.items():
        if old in raw and new in raw:
            raise Invalid(f"{old}: expected {new} alone, which is its new name, got both; leave {old} out")
    raw = {RENAMED.get(name, name): value for name, value in raw.items()}
    if unknown := sorted(set(raw) - set(fields)):
        raise Invalid(f"{unknown[0]}: expected a field of {method} ({', '.join(fields)}), got something else")
    found = {name: fields[name](value, name) for name, value in raw.items() if value is not None}
    for name in ("patience", "eval_every"):
        if found.get(name) and not found.get("eval_share"):
            raise Invalid(f"{name}: expected eval_share beside it, got none")
    return found


def check_model_name(name: str) -> None:
    """Raises Invalid for a name that cannot be that of a model and of the folder with its checkpoint."""
    if not _NAME.fullmatch(name):
        raise Invalid(
            "name: expected 1 to 80 letters, digits, dots, dashes and underscores, with a letter or digit first,"
            f" got {shown(name)}"
        )
