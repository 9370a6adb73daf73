"""`python -m training.benchmarks run --config FILE`: scores a checkpoint. docs/benchmarks.md describes the config.

`tasks NAME…` describes tasks of lm-evaluation-harness in one JSON object and says whether their data is here; `fetch
NAME…` has it fetched.

Exit codes: 0 done, 1 failed, 2 something that cannot be run, 3 chats must be answered first, 130 interrupted.
"""

import argparse
import contextlib
import json
import os
import sys
import threading
from importlib import import_module
from pathlib import Path

from training.__main__ import event_stream, prepare_libraries
from training.benchmarks.chats import AnswersMissing, write_requests
from training.benchmarks.config import BenchmarkConfig, read_config
from training.benchmarks.tasks import INSTALL, describe_tasks, is_installed, load_harness
from training.errors import TrainingFailed, TrainingRefused, is_disk_full, message_of, one_line
from training.processes import INTERRUPTED, stop_without
from training.progress import Progress

CHATS_FIRST = 3  # the exit code of a run that needs answers


def main(arguments: list[str] | None = None) -> int:
    """Runs a command and returns the exit code; an error is reported as one line on stderr and a `failed` event."""
    options = _benchmark_argument_parser().parse_args(arguments)
    try:
        if options.command == "run":
            return _run_benchmark(options.config, options.progress, options.parent)
        if options.command == "fetch":
            return _fetch(options.tasks)
        prepare_libraries()
        print(json.dumps(describe_tasks(options.tasks, answers=options.answers)._asdict()))
    except TrainingRefused as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _fetch(names: list[str]) -> int:
    if not is_installed():
        raise TrainingRefused(f"tasks: expected lm-evaluation-harness, got none here; {INSTALL}")
    os.environ["HF_HUB_OFFLINE"] = "0"
    prepare_libraries()
    load_harness().fetch(names)
    print(f"The data of {', '.join(names)} is in {load_harness().data_folder()}.")
    return 0


def _run_benchmark(path: Path, events: Path | None, parent: int | None) -> int:
    if parent is not None:
        threading.Thread(target=stop_without, args=(parent,), daemon=True).start()
    with event_stream(events) as stream:
        progress = Progress(stream)
        config = read_config(path)
        prepare_libraries()
        try:
            # The libraries read on loading whether they may contact a server.
            import_module("training.benchmarks.run").run(config, progress)
            return 0
        except AnswersMissing as missing:
            return _write_requests(config, missing)
        except KeyboardInterrupt:
            return INTERRUPTED
        except (TrainingRefused, TrainingFailed, ImportError, MemoryError, OSError, RuntimeError) as error:
            message = _message(error)
            print(f"error: {message}", file=sys.stderr)
            with contextlib.suppress(OSError):
                progress.tell("failed", message=message)
            return 2 if isinstance(error, TrainingRefused) else 1


def _write_requests(config: BenchmarkConfig, missing: AnswersMissing) -> int:
    if config.requests is None:
        print(f"error: requests: expected a file for {missing}, got none", file=sys.stderr)
        return 2
    write_requests(config.requests, missing.requests)
    return CHATS_FIRST


def _message(error: BaseException) -> str:
    """One line for an error. Raises an unexpected error again."""
    known = isinstance(error, TrainingRefused | TrainingFailed | ImportError) or is_disk_full(error)
    if not known and (isinstance(error, MemoryError) or "memory" in str(error)):
        return f"out of memory ({one_line(error)}); lower batch"
    return message_of(error)


def _benchmark_argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training.benchmarks", description="Score a checkpoint.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    running = commands.add_parser("run", help="score the tasks of a config")
    running.add_argument("--config", type=Path, required=True, metavar="FILE", help="JSON; docs/benchmarks.md")
    running.add_argument("--parent", type=int, metavar="PID", help="stop, as by SIGTERM, when that process is gone")
    running.add_argument("--progress", type=Path, metavar="FILE", help="events as JSON lines; stdout if left out")
    looking = commands.add_parser("tasks", help="say whether tasks of lm-evaluation-harness can be run here")
    looking.add_argument("--answers", action="store_true", help="by a model behind an API, which only answers")
    fetching = commands.add_parser("fetch", help="fetch the data of tasks of lm-evaluation-harness")
    for each in (looking, fetching):
        each.add_argument("tasks", nargs="+", metavar="TASK")
    return parser


if __name__ == "__main__":
    sys.exit(main())
