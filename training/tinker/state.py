"""The local state from which a training at Tinker resumes after a kill: its runs and states, and its results so far."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from training.errors import TrainingRefused
from training.tinker.service import SavedState

_NAME = "tinker.json"


@dataclass(slots=True)
class RunState:
    """`runs` are the training runs at Tinker, one for each start; `steps` is the training's total number of steps.

    `path` is the last state known here to be saved, after `step` steps, and `best` is the state of the best evaluation.
    `evaluations` are the evaluated steps, in order, each with its metrics, which include `eval_loss`. `tokens` is the
    number of tokens of all paid requests.
    """

    folder: Path
    runs: list[str] = field(default_factory=list)
    steps: int = 0
    step: int = 0
    path: str | None = None
    best: str | None = None
    evaluations: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    tokens: int = 0

    @property
    def last(self) -> SavedState | None:
        """The last state that is known here to be saved."""
        return None if self.path is None else SavedState(self.step, self.path)

    @property
    def best_evaluation(self) -> tuple[int, dict[str, float]] | None:
        """The first evaluation with the lowest loss: its step and metrics."""
        return min(self.evaluations, key=lambda each: each[1]["eval_loss"], default=None)

    def saved(self, state: SavedState) -> set[str]:
        """Record a state that was saved or found. Returns the paths of states that are no longer needed to resume."""
        before = {self.path, self.best}
        self.step, self.path = state
        best = self.best_evaluation
        if best is not None and best[0] == self.step:
            self.best = self.path
        self.write()
        return {each for each in before - {self.path, self.best} if each is not None}

    def write(self) -> None:
        """Write this state to its file; a kill leaves the old version or the new one."""
        values = {name: value for name, value in asdict(self).items() if name != "folder"}
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self.folder / _NAME, json.dumps(values))

    def count(self, tokens: int) -> None:
        """Count the tokens of a request, before it is sent."""
        self.tokens += tokens
        self.write()


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically: a kill leaves the old version or the new one."""
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
