"""The engines that can serve a local model: whether one is installed, how to start it, and its errors."""

import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from app import training_part
from app.core.errors import Conflict, Invalid, Phrase, Verbatim
from app.players.local.options import LocalOptions
from app.players.local.serving import LLAMA_CPP, TRANSFORMERS, Engine

_PARTS = ("fastapi", "uvicorn", "openai")  # the packages of transformers[serving]
_MEMORY = re.compile(r"out of memory|OutOfMemory|MemoryError|can(?:no|')t allocate memory|bad_alloc", re.IGNORECASE)
_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)  # of adapters; from LoRAConfig of vLLM
MOST_RANK = _RANKS[-1]
_AT_ONCE = 2  # adapters in a batch: those of a match's two players
ADAPTERS_AT_RUN_TIME = {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True"}  # for the environment of vLLM
MERGED = "merged"
_CPU_NUMBERS = 4  # bytes of a float32 weight


def check_startable(engine: Engine) -> None:
    """Raises Invalid for an engine that cannot be started here."""
    if engine == LLAMA_CPP:
        raise Invalid(
            "--address",
            expected="the address of llama.cpp's server, which is started by hand",
            got=Verbatim("none"),
            remedy="llama-server -m FILE.gguf, then --address http://127.0.0.1:8080/v1",
        )
    if engine == TRANSFORMERS:
        training_part.require()
        lacking = [name for name in _PARTS if importlib.util.find_spec(name) is None]
        if lacking:
            raise Invalid(
                "--engine",
                expected="transformers with its serving extra",
                got=Verbatim(f"none of {', '.join(lacking)}"),
                remedy="pip install -c constraints.txt 'transformers[serving]'",
            )
    elif _program("vllm") is None:
        raise Invalid(
            "--engine",
            expected="vLLM",
            got=Verbatim("no program vllm here"),
            remedy="pip install vllm, in an environment of its own on the PATH; it needs a GPU",
        )


def _program(name: str) -> str | None:
    """A program of this environment, or else of the PATH."""
    return shutil.which(name, path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))


def model_name(engine: Engine, name: str, folder: Path) -> str:
    """The model name for requests to an engine started here: transformers serve accepts only the path."""
    return str(folder) if engine == TRANSFORMERS else name


def command(
    engine: Engine,
    folder: Path,
    name: str,
    address: tuple[str, int],
    device: str,
    dtype: str,
    extra: Sequence[str],
    lora_rank: int | None = None,
) -> list[str]:
    """The command that starts an engine with one checkpoint, the only one it serves unless it takes adapters up to a
    rank.

    `extra` are arguments of its own.
    """
    listens = ["--host", address[0], "--port", str(address[1])]
    program = str(_program("transformers" if engine == TRANSFORMERS else "vllm"))
    own = ["--device", device] if engine == TRANSFORMERS else ["--served-model-name", name]
    if lora_rank is not None:
        own += ["--enable-lora", "--max-lora-rank", str(rank_of_vllm(lora_rank)), "--max-loras", str(_AT_ONCE)]
    return [program, "serve", str(folder), *own, *listens, "--dtype", dtype, *extra]


def rank_of_vllm(rank: int) -> int:
    """The smallest rank vLLM can be started with that suffices for adapters of `rank`, which is at most MOST_RANK."""
    return next(each for each in _RANKS if each >= rank)


def numbers(options: LocalOptions, gpu: bool) -> str:
    """The dtype of a checkpoint: the one that the worker's own engine would use."""
    if options.dtype != "auto":
        return options.dtype
    return "bfloat16" if gpu and options.device != "cpu" else "float32"


def merged_folder(home: Path, number: int, sha256: str) -> Path:
    """The folder with adapters and their base as one checkpoint while an engine serves the model of that number."""
    return home / MERGED / f"{number}-{sha256[:12]}"


def check_memory(folder: Path, parameters: int | None) -> None:
    """Raises Conflict where the weights do not fit into this machine's free memory, as far as that is known."""
    free = _free_memory()
    if free is None or parameters is None or parameters * _CPU_NUMBERS < free:
        return
    raise Conflict(
        "path",
        expected=Phrase("%(size)s GB of free memory for its weights", size=_gigabytes(parameters * _CPU_NUMBERS)),
        got=Phrase("%(size)s GB", size=_gigabytes(free)),
        remedy=Phrase("stop other processes, or serve it on a larger machine and name its --address"),
        subject=Verbatim(str(folder)),
    )


def _free_memory() -> int | None:
    """Bytes available to a new process; None if the system does not say."""
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return None
    found = re.search(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f}"


def memory_complaint(lines: Sequence[str]) -> str | None:
    """The line of an engine's log that reports a lack of memory, if any."""
    return next((line.strip() for line in reversed(lines) if _MEMORY.search(line)), None)
