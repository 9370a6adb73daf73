"""The config of a benchmark: one JSON file, checked before anything heavy is loaded."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from training.errors import TrainingRefused

Form = Literal["choices", "letters"]
CHOICES: Form = "choices"
LETTERS: Form = "letters"


class BenchmarkTask(BaseModel):
    """A task: the questions in a file, or one that lm-evaluation-harness knows by its name.

    `choices` scores the log-likelihood of each choice after its question; `letters` asks for the letter of one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    questions: Path | None = None
    form: Form = CHOICES


class BenchmarkedCheckpoint(BaseModel):
    """The checkpoint that is scored. `auto` is the GPU with bfloat16, else the CPU with float32."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path
    sha256: str
    device: Literal["auto", "cpu", "cuda"] = "auto"
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"


class BenchmarkConfig(BaseModel):
    """The config of a run. Without a checkpoint, the answers of a chat model are read from `answers` and scored.

    `limit` is the number of items used of each task, or of each part of one, None for all; `shots` the number of solved
    examples before each, None for as many as the task says; `batch` the number of sequences computed together.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tasks: list[BenchmarkTask] = Field(min_length=1)
    checkpoint: BenchmarkedCheckpoint | None = None
    answers: Path | None = None
    requests: Path | None = None  # where to write chats that lack an answer
    limit: int | None = Field(default=None, ge=1)
    shots: int | None = Field(default=None, ge=0)
    batch: int = Field(default=8, ge=1)


def read_config(path: Path) -> BenchmarkConfig:
    """The config in a file. Raises TrainingRefused."""
    try:
        return BenchmarkConfig.model_validate_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TrainingRefused(f"{path}: expected a config file, got none: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "config"
        raise TrainingRefused(f"{path}: {where}: {first['msg']}") from None
