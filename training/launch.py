"""`python -m training.launch [--launcher NAME] [--devices 0,1] METHOD --config FILE`: trains in several processes.

Equivalent to `accelerate launch -m training`, except that launchers have names (the files in
`training/configs/accelerate`), a killed process is reported in one line, and no process outlives this one. Exit codes
are those of `python -m training`.
"""

import argparse
import contextlib
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from subprocess import CalledProcessError
from types import FrameType
from typing import Any

import psutil
import yaml

from training.errors import TrainingRefused, one_line
from training.processes import INTERRUPTED, LAUNCHED_WITH, stop_without

LAUNCHERS = Path(__file__).parent / "configs" / "accelerate"
_MOST_SECONDS = "600"  # that the processes have to save after a signal
_GO_ON = "the same command resumes from the last checkpoint"


def main(arguments: list[str] | None = None) -> int:
    """Start the processes, wait for all of them and return the exit code of the training."""
    options, training = _launch_argument_parser().parse_known_args(arguments)
    try:
        file = find_launcher(options.launcher)
        count = _processes(file, options.devices)
    except TrainingRefused as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.devices:
        os.environ["CUDA_VISIBLE_DEVICES"] = options.devices
    on = f" on devices {options.devices}" if options.devices else ""
    os.environ[LAUNCHED_WITH] = f"{options.launcher}{on}"
    os.environ.setdefault("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", _MOST_SECONDS)
    if options.parent is not None:
        threading.Thread(target=stop_without, args=(options.parent,), daemon=True).start()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _pass_on)
    threads = max(1, (os.cpu_count() or 1) // count)
    how = {
        "config_file": file,
        "num_processes": count,
        "num_cpu_threads_per_process": threads,
        "main_process_port": _port(),
    }
    named = [word for name, value in how.items() for word in (f"--{name}", str(value))]
    return _launch([*named, "-m", "training", *training, "--launcher", str(os.getpid())], count)


def find_launcher(name: str) -> Path:
    """The accelerate config of that name or path. Raises Refused."""
    for path in (LAUNCHERS / f"{name}.yaml", Path(name)):
        if path.is_file():
            return path
    known = ", ".join(sorted(path.stem for path in LAUNCHERS.glob("*.yaml")))
    raise TrainingRefused(f"--launcher: expected a file of `accelerate config`, or one of {known}, got {name}")


def _processes(file: Path, devices: str) -> int:
    """The number of processes: one for each named device, else what the file says. Raises Refused."""
    try:
        given = int(yaml.safe_load(file.read_text(encoding="utf-8")).get("num_processes") or 0)
    except (AttributeError, OSError, TypeError, ValueError, yaml.YAMLError) as error:
        raise TrainingRefused(f"{file}: expected a file of `accelerate config`, got {one_line(error)}") from None
    if not devices:
        return given or max(1, import_module("torch").cuda.device_count())
    named = devices.split(",")
    if not all(each.isdecimal() for each in named):
        raise TrainingRefused(f"--devices: expected numbers with commas between, such as 0,1, got {devices}")
    if given == 1 and len(named) > 1:
        raise TrainingRefused(
            f"--devices: expected one number, as {file.stem} starts one process, got {devices}; name another launcher"
        )
    return len(named)


def _launch(arguments: list[str], count: int) -> int:
    launch = import_module("accelerate.commands.launch")
    errors = import_module("torch.distributed.elastic.multiprocessing.errors")
    signals = import_module("torch.distributed.elastic.multiprocessing.api")
    for name in ("torch.distributed.elastic", "torch.distributed.run", "accelerate.commands.launch"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # a training reports errors itself, in one line
    try:
        launch.launch_command(launch.launch_command_parser().parse_args(arguments))
        return 0
    except signals.SignalException:
        return INTERRUPTED
    except errors.ChildFailedError as error:
        number = find_cause(error.failures)
        return _exit_code(error.failures[number].exitcode, number, count)
    except CalledProcessError as error:
        return _exit_code(error.returncode, 0, count)
    except (ImportError, ValueError) as error:
        print(f"error: --launcher: {one_line(error)}", file=sys.stderr)
        return 2


def find_cause(failures: Mapping[int, Any]) -> int:
    """The number of the process whose failure ended the others.

    It is the first that failed, or one that a signal ended within a second of it: a process that loses its connection
    to the killed one may be noticed earlier. The launcher ended later ones, and those that SIGTERM ended.
    """
    first = min(failures, key=lambda number: failures[number].timestamp)
    latest = failures[first].timestamp + 1
    killed = (
        number
        for number, failure in failures.items()
        if failure.timestamp <= latest and failure.exitcode < 0 and failure.exitcode != -signal.SIGTERM
    )
    return next(killed, first)


def _exit_code(code: int, number: int, count: int) -> int:
    """The training's exit code, given a process's; prints a line for a killed process, which could not do so itself."""
    if code >= 0:
        return code
    name = signal.Signals(-code).name
    why = ", perhaps because memory ran out" if -code == signal.SIGKILL else ""
    print(f"error: process {number} of {count} was ended by {name}{why}; {_GO_ON}", file=sys.stderr)
    return 1


def _pass_on(number: int, _: FrameType | None) -> None:
    """Forward a signal to the process, which saves and ends; accelerate does this itself for several processes.

    Ctrl-C has already reached the process, and a second request would end it at once. Raises SystemExit if none runs.
    """
    started = psutil.Process().children()
    if not started:
        raise SystemExit(INTERRUPTED)
    for child in started if number == signal.SIGTERM else ():
        with contextlib.suppress(psutil.NoSuchProcess):
            child.send_signal(number)


def _port() -> int:
    """A free port, so that several trainings can share a machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _launch_argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m training.launch", description="Train in several processes.", allow_abbrev=False
    )
    parser.add_argument("--launcher", default="ddp", metavar="NAME", help="a file of `accelerate config`, or its name")
    parser.add_argument("--devices", default="", metavar="0,1", help="numbers of the GPUs; all of them if left out")
    parser.add_argument("--parent", type=int, metavar="PID", help="stop, as by SIGTERM, when that process is gone")
    return parser


if __name__ == "__main__":
    sys.exit(main())
