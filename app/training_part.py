"""Whether the training part is available: torch, transformers and the rest for training models and playing local ones.

`make run` installs what pages, scripted partners and API models need, and the supervisor installs the rest
(`workers/training_part.py`). Meanwhile a file in the environment states the progress; it is removed at the end, so that
a partial installation is never mistaken for a complete one. An environment without such a file was set up by hand.
"""

import importlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from app.core.errors import Conflict, Phrase, Verbatim
from app.core.files import replace_file

STATE = Path(sys.prefix) / "parlor-training.json"
MODULES = ("torch", "transformers", "accelerate", "peft", "psutil", "safetensors", "tokenizers", "tensorboard")
BY_HAND = "pip install -c constraints.txt -e '.[training]'"


@dataclass(frozen=True, slots=True)
class Lacking:
    """The reason why the training part is missing, and the progress of its installation."""

    step: str = ""  # what pip is doing
    percent: int | None = None  # of that step
    error: str = ""  # why the last try failed; the next starts on its own
    is_off: bool = False  # it should not be installed, or cannot be, for the reason in `error`
    pid: int = 0  # of the installing process

    @property
    def is_under_way(self) -> bool:
        """Whether a process is installing it now."""
        try:
            os.kill(self.pid, 0)
        except PermissionError:  # another user's, so it is running
            pass
        except OSError:
            return False
        return self.pid > 0 and not self.error

    @property
    def has_failed(self) -> bool:
        """Whether waiting for it is useless: it will not be installed, or its installation has failed for now."""
        return self.is_off or bool(self.error)

    def reason(self) -> Phrase:
        """Why local models and trainings have to wait, and what to do."""
        return Phrase(
            "the training part (torch, transformers) is %(state)s; %(remedy)s",
            state=self.describe(),
            remedy=self.remedy(),
        )

    def describe(self) -> Phrase:
        """The reason why it is missing, and its progress, in a few words."""
        if self.is_off and not self.error:
            return Phrase("not installed, because PARLOR_TRAINING is off")
        if self.error:
            return Phrase("not installed, because its installation failed (%(error)s)", error=Verbatim(self.error))
        if not self.is_under_way:
            return Phrase("not installed, because its installation was cut off")
        if self.percent is None:
            return Phrase("being installed (%(step)s)", step=Verbatim(self.step))
        return Phrase("being installed (%(step)s, %(percent)s %%)", step=Verbatim(self.step), percent=self.percent)

    def remedy(self) -> Phrase:
        """What to do."""
        if self.is_off and self.error:
            return Phrase("fix that and restart Parlor")
        if self.is_off:
            return Phrase("set it to auto and restart Parlor")
        if self.error:
            return Phrase("Parlor tries again every ten minutes and at each start")
        return Phrase("wait until it is done") if self.is_under_way else Phrase("restart Parlor to continue")


def is_installed() -> bool:
    """Whether its packages can be found; none of them is imported."""
    importlib.invalidate_caches()  # they may have been installed since this process began
    return all(find_spec(name) is not None for name in MODULES)


def lacking() -> Lacking | None:
    """What is missing, if it is still to be installed or is not wanted; None if it is there, or if that is unknown."""
    try:
        raw: Mapping[str, Any] = json.loads(STATE.read_text(encoding="utf-8"))
        return Lacking(**raw)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError):  # a file of another version
        return Lacking()


def is_coming() -> bool:
    """Whether it is not there yet, and will be: what needs it waits."""
    found = lacking()
    return found is not None and not found.is_off


def require() -> None:
    """Raises Conflict if the training part is not available."""
    if (found := lacking()) is not None:
        raise Conflict(
            None,
            expected=Phrase("the training part (torch, transformers)"),
            got=found.describe(),
            remedy=found.remedy(),
        )


def record_missing(found: Lacking | None) -> None:
    """Record in the environment what is missing; None: nothing. Raises OSError."""
    if found is None:
        STATE.unlink(missing_ok=True)
        return
    values = {name: getattr(found, name) for name in Lacking.__slots__}
    replace_file(STATE, [json.dumps(values).encode()])
