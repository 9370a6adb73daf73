"""The training part, which is torch, transformers and what else trains models and plays with local ones: is it there?

`make run` installs what pages, scripted partners and API models need, and the supervisor installs the rest
(`workers/training_part.py`). A file in the environment says meanwhile how far that is; it is gone when all is there, so
that half an installation is never taken for a whole one. An environment without such a file is as somebody made it.
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
    """Why the training part is not there, and how far its installation is."""

    step: str = ""  # what pip is at
    percent: int | None = None  # of that step
    error: str = ""  # why the last try failed; the next comes by itself
    is_off: bool = False  # it is not to be installed, or cannot be, for the reason in `error`
    pid: int = 0  # of the process that installs it

    @property
    def is_under_way(self) -> bool:
        """Whether somebody installs it just now."""
        try:
            os.kill(self.pid, 0)
        except PermissionError:  # another user's, so it is there
            pass
        except OSError:
            return False
        return self.pid > 0 and not self.error

    @property
    def has_failed(self) -> bool:
        """Whether whoever needs it need not wait: it is not to come, or its installation has failed for now."""
        return self.is_off or bool(self.error)

    def reason(self) -> Phrase:
        """Why local models and trainings have to wait, and what to do."""
        return Phrase(
            "the training part (torch, transformers) is %(state)s; %(remedy)s",
            state=self.describe(),
            remedy=self.remedy(),
        )

    def describe(self) -> Phrase:
        """Why it is not there, and how far it is, in a few words."""
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
            return Phrase("mend that and start Parlor again")
        if self.is_off:
            return Phrase("set it to auto and start Parlor again")
        if self.error:
            return Phrase("Parlor tries again every ten minutes and at each start")
        return Phrase("wait until it is done") if self.is_under_way else Phrase("start Parlor again, which goes on")


def is_installed() -> bool:
    """Whether its packages are found; none of them is loaded."""
    importlib.invalidate_caches()  # they may have come since this process began
    return all(find_spec(name) is not None for name in MODULES)


def lacking() -> Lacking | None:
    """Why it is not there, where it is still to come or is not wanted; None where it is there, or nobody knows."""
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
    """Raises Conflict where the training part is not there yet."""
    if (found := lacking()) is not None:
        raise Conflict(
            None,
            expected=Phrase("the training part (torch, transformers)"),
            got=found.describe(),
            remedy=found.remedy(),
        )


def note(found: Lacking | None) -> None:
    """Say in the environment what is lacking; None: nothing is. Raises OSError."""
    if found is None:
        STATE.unlink(missing_ok=True)
        return
    values = {name: getattr(found, name) for name in Lacking.__slots__}
    replace_file(STATE, [json.dumps(values).encode()])
