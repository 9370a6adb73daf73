"""`python -m training METHOD --config FILE`: trains a model. docs/training.md describes the config.

`python -m training check FOLDER` loads a checkpoint and describes it in one JSON object; `merge FOLDER --output FOLDER`
writes adapters and their base as one checkpoint.

Exit codes: 0 done, 1 a training that failed, 2 a config, data or a folder that cannot be used, 130 interrupted.
"""

import argparse
import atexit
import contextlib
import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

from training.config import read_config
from training.errors import (
    RAISED_BY_ALL,
    ProcessLost,
    TrainingFailed,
    TrainingRefused,
    is_disk_full,
    message_of,
    one_line,
    shown,
)
from training.methods import methods_here
from training.methods.base import Method
from training.processes import INTERRUPTED, process_number, stop_without
from training.progress import Progress, StopRequest

CHECK, MERGE = "check", "merge"
# No server is ever contacted, and the libraries print no warnings: stdout is for progress.
_QUIET = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "true",
    "TQDM_DISABLE": "1",
}
# How often a waiting thread checks on the others before it sleeps. By default, it spins so long that two trainings on
# the same cores take nine times as long as one; with this, three times.
_PATIENCE = "10000"


def train_here(method: Method, config: Path, progress: Progress, stop: StopRequest) -> None:
    """Trains on this machine. Raises as `training.recipe.train`."""
    read = read_config(method.config, config)
    prepare_libraries()
    # torch takes seconds to load: a config that cannot be used is refused before.
    import_module("training.recipe").run(method, read, progress, stop)


def main(
    arguments: list[str] | None = None,
    train: Callable[[Method, Path, Progress, StopRequest], None] = train_here,
) -> int:
    """Runs a method and returns the exit code; an error is reported as one line on stderr and a `failed` event."""
    # Objects made while torch and transformers load stay; searching them for garbage, then and again at the end, takes
    # a third of the time.
    gc.set_threshold(50_000, 20, 20)
    atexit.register(gc.freeze)
    arguments = sys.argv[1:] if arguments is None else arguments
    known = (*methods_here(), CHECK, MERGE)
    if arguments and not arguments[0].startswith("-") and arguments[0] not in known:
        print(f"error: method: expected {' or '.join(known)}, got {shown(arguments[0])}", file=sys.stderr)
        return 2
    options = _training_argument_parser().parse_args(arguments)
    if options.method == CHECK:
        return _print_checkpoint_facts(lambda: import_module("training.check").facts(options.folder, options.merged))
    if options.method == MERGE:
        return _print_checkpoint_facts(
            lambda: {"sha256": import_module("training.merging").merge(options.folder, options.output)}
        )
    stop = StopRequest()
    threading.excepthook = _leave_to_the_main_thread
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop.ask)
    if options.parent is not None:
        threading.Thread(target=stop_without, args=(options.parent,), daemon=True).start()
    if options.launcher is not None:
        threading.Thread(target=stop_without, args=(options.launcher, signal.SIGKILL), daemon=True).start()
    try:
        events = options.progress if process_number() == 0 else Path(os.devnull)
        with event_stream(events) as stream:
            return _run_training(partial(train, methods_here()[options.method], options.config), Progress(stream), stop)
    except TrainingRefused as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _print_checkpoint_facts(ask: Callable[[], dict[str, Any]]) -> int:
    """Print the facts about a checkpoint as JSON, or in one line why there are none."""
    prepare_libraries()
    try:
        print(json.dumps(ask()))
        return 0
    except (TrainingRefused, TrainingFailed, ImportError, MemoryError, OSError, RuntimeError) as error:
        own = isinstance(error, TrainingRefused | TrainingFailed)
        print(f"error: {error if own else one_line(error)}", file=sys.stderr)
        return 2


def prepare_libraries() -> None:
    """Set what the libraries read on import."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    if "WORLD_SIZE" not in os.environ:  # one process trains on one GPU, however many there are
        os.environ["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]
    if "OMP_WAIT_POLICY" not in os.environ:  # overridden by GOMP_SPINCOUNT
        os.environ.setdefault("GOMP_SPINCOUNT", _PATIENCE)


def _run_training(train: Callable[[Progress, StopRequest], None], progress: Progress, stop: StopRequest) -> int:
    try:
        train(progress, stop)
        return 0
    except KeyboardInterrupt:
        if process_number() == 0:
            print("interrupted; the same command resumes from the last checkpoint", file=sys.stderr)
        _tell_if_possible(progress, "interrupted")
        return INTERRUPTED
    except (TrainingRefused, TrainingFailed, ImportError, MemoryError, OSError, RuntimeError) as error:
        message = message_of(error)
        if not _is_reported_by_main(error):
            print(f"error: {message}", file=sys.stderr)
        _tell_if_possible(progress, "failed", message=message)
        return 2 if isinstance(error, TrainingRefused) else 1


def _tell_if_possible(progress: Progress, event: str, **facts: str) -> None:
    """Report the last event; if the disk of the events is full, stderr has already said so."""
    with contextlib.suppress(OSError):
        progress.tell(event, **facts)


def _is_reported_by_main(error: BaseException) -> bool:
    """Whether the failure is reported by the main process of several, which this is not."""
    return process_number() > 0 and isinstance(error, (*RAISED_BY_ALL, ProcessLost))


def _leave_to_the_main_thread(failure: threading.ExceptHookArgs) -> None:
    """TensorBoard writes in a thread, and raises its errors again in the main thread."""
    if failure.exc_value is None or not is_disk_full(failure.exc_value):
        threading.__excepthook__(failure)


@contextlib.contextmanager
def event_stream(path: Path | None) -> Iterator[TextIO]:
    """The file to which events are appended; stdout without one. Raises TrainingRefused if it cannot be written."""
    if path is None:
        yield sys.stdout
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a", encoding="utf-8")
    except OSError as error:
        raise TrainingRefused(f"--progress: expected a file to write to, got {path}: {error.strerror}") from None
    try:
        yield file
    finally:
        with contextlib.suppress(OSError):  # a failed write was already reported
            file.close()


def _training_argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training", description="Train a model on what was played.")
    commands = parser.add_subparsers(dest="method", required=True, metavar="METHOD")
    for name, each in methods_here().items():
        method = commands.add_parser(name, help=each.title, description=f"{each.title}. {each.summary}")
        method.add_argument("--config", type=Path, required=True, metavar="FILE", help="YAML or JSON; docs/training.md")
        method.add_argument("--parent", type=int, metavar="PID", help="stop, as by SIGTERM, when that process is gone")
        method.add_argument("--launcher", type=int, metavar="PID", help="end at once when that process is gone")
        method.add_argument("--progress", type=Path, metavar="FILE", help="events as JSON lines; stdout if left out")
    look = "say what a checkpoint folder holds"
    check = commands.add_parser(CHECK, help=look, description=look)
    check.add_argument("folder", type=Path, metavar="FOLDER")
    check.add_argument("--merged", type=Path, metavar="FOLDER", help="also write adapters and their base there")
    write = "write adapters and their base as one checkpoint"
    merge = commands.add_parser(MERGE, help=write, description=write)
    merge.add_argument("folder", type=Path, metavar="FOLDER")
    merge.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="replaced unless it is that")
    return parser


if __name__ == "__main__":
    sys.exit(main())
