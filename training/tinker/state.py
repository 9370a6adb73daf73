"""What a training at Tinker keeps here to go on after a kill: its runs there, the last state, and the tokens sent."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from training.errors import TrainingRefused
from training.tinker.service import SavedState

_NAME = "tinker.json"


@dataclass(slots=True)
class RunState:
    """`runs` are the training runs at Tinker, one a life; `steps` is how many the training has in all.

    `path` is the last state that is known here to be saved, after `step` steps. `tokens` counts those of all requests
    that are paid for.
    """

    folder: Path
    runs: list[str] = field(default_factory=list)
    steps: int = 0
    step: int = 0
    path: str | None = None
    tokens: int = 0

    @property
    def last(self) -> SavedState | None:
        """The last state that is known here to be saved."""
        return None if self.path is None else SavedState(self.step, self.path)

    def write(self) -> None:
        """Write it down; a kill leaves the old one or the new one."""
        values = {name: value for name, value in asdict(self).items() if name != "folder"}
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self.folder / _NAME, json.dumps(values))

    def count(self, tokens: int) -> None:
        """Count the tokens of a request, before it is sent."""
        self.tokens += tokens
        self.write()


def write_whole(path: Path, text: str) -> None:
    """Write a file, of which a kill leaves the old one or the new one."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def read_state(folder: Path) -> RunState:
    """The state in a folder; a new one where there is none. Raises TrainingRefused for one that cannot be read."""
    try:
        return RunState(folder, **json.loads((folder / _NAME).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return RunState(folder)
    except (OSError, ValueError, TypeError) as error:
        raise TrainingRefused(f"{folder / _NAME}: expected the state of a training, got {error}") from None
