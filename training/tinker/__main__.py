"""`python -m training.tinker METHOD --config FILE`: trains a model at Tinker, as `python -m training` does here."""

import os
import sys
from importlib import import_module
from pathlib import Path

from training.__main__ import main as run_program
from training.__main__ import prepare_libraries
from training.methods.base import Method
from training.progress import Progress, StopRequest
from training.tinker.config import read_job


def train_there(method: Method, config: Path, progress: Progress, stop: StopRequest) -> None:
    """Train at Tinker. Raises as `training.tinker.recipe.train`."""
    read, place = read_job(method, config)
    os.environ.setdefault("HF_HUB_OFFLINE", "0")  # the base's tokenizer may have to be fetched
    os.environ["TINKER_TELEMETRY"] = "0"  # telemetry sends error texts
    prepare_libraries()
    import_module("training.tinker.recipe").train(method, read, place, progress, stop)


def main(arguments: list[str] | None = None) -> int:
    """See `training.__main__.main`."""
    return run_program(arguments, train_there)


if __name__ == "__main__":
    sys.exit(main())
