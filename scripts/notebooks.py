"""Runs the notebooks of docs/notebooks anew and writes their outputs: `python -m scripts.notebooks [NAME …]`.

It starts a Parlor of its own in a temporary folder, on SQLite and a free port of this machine, with the small models
that ship. In the study that the last notebook reads the bots of `flask study bots` take part, whose data differ with
each run; all other figures follow from their seeds. What runs the notebooks is installed by
`pip install -c constraints.txt -e '.[notebooks]'`.
"""

import argparse
import base64
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from app.core.config import ROOT
from tests.shell import Shell
from tests.stack import Stack, running_parlor

FOLDER = ROOT / "docs" / "notebooks"
NAMES = ("compare-two-models", "self-play-training", "study-to-mixed-model")
STUDY_NOTEBOOK = "study-to-mixed-model"
PACKAGES = ("ipykernel", "matplotlib", "nbclient", "nbformat", "pandas", "statsmodels")
INSTALL = "pip install -c constraints.txt -e '.[notebooks]'"
STUDY = "sharing"
BOTS, BOTS_SEED = 29, 1
CELL_SECONDS = 1200  # for which a cell may run
# What makes the example a study that bots go through in minutes: no pauses, short clocks, and who is asked.
_CHANGES = {
    "study: two-models": f"study: {STUDY}",
    "reply_after: {seconds_per_word: 0.3, least: 2, most: 15}": "reply_after: {seconds_per_word: 0, least: 0, most: 0}",
    "limits: {turn: 2 min, match: 10 min, moves: 30}": "limits: {turn: 20 s, match: 10 min, moves: 30}",
    "feedback: own points": "feedback: own points\n  idle: {end: 10 s}",
    "Write your name here": "Ada Byron",
    "you@example.edu": "ada.byron@parlor.test",
    "Write your university here": "University of Example",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.notebooks", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these, of {', '.join(NAMES)}")
    names = parser.parse_args().names or NAMES
    if unknown := [name for name in names if name not in NAMES]:
        parser.error(f"expected names of {', '.join(NAMES)}, got {', '.join(unknown)}")
    if lacking := missing_packages():
        raise SystemExit(f"expected {', '.join(PACKAGES)} to be installed, got all but {', '.join(lacking)}; {INSTALL}")
    with running_lab(with_study=STUDY_NOTEBOOK in names) as env:
        for name in names:
            path = FOLDER / f"{name}.ipynb"
            notebook = executed(path, env)
            path.write_text(text_of(notebook), encoding="utf-8")
            path.with_suffix(".png").write_bytes(last_picture(notebook))
            print(f"wrote {path.relative_to(ROOT)}", file=sys.stderr)
    return 0


def missing_packages() -> list[str]:
    """What runs notebooks and is not installed."""
    return [name for name in PACKAGES if find_spec(name) is None]


@contextmanager
def running_lab(*, with_study: bool) -> Iterator[dict[str, str]]:
    """A Parlor with its workers until the end of the block; what programs need of it, as environment variables.

    with_study: whether bots take part in a study first, which takes minutes.
    """
    with running_parlor(SMALL_MODELS="true", WORK_NICENESS="0") as parlor:
        shell = Shell()
        if with_study:
            _run_study(parlor, shell)
        scopes = [part for scope in ("read", "run", "people") for part in ("--scope", scope)]
        made = _flask(shell, parlor, "token", "create", "notebooks", *scopes, "--json")
        yield {"PARLOR_URL": parlor.url, "PARLOR_TOKEN": json.loads(made)["token"]}


def executed(path: Path, env: dict[str, str]) -> Any:
    """A notebook with the outputs of its cells, run anew with these variables; raises CellExecutionError."""
    import nbformat  # which a Parlor lacks whose notebooks nobody runs
    from nbclient import NotebookClient
    from traitlets.config import Config

    notebook = nbformat.read(path, as_version=4)
    sources = ROOT / "client" / "src"
    with tempfile.TemporaryDirectory(prefix="parlor-") as folder:
        kernel_env = {
            **os.environ,
            **env,
            "PYTHONPATH": str(sources),
            "TQDM_DISABLE": "1",  # bars would be other ones with each run
            "IPYTHONDIR": folder,
            "MPLCONFIGDIR": folder,
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        # By sockets in the folder, which no other user of the machine can reach.
        kernel = {"transport": "ipc", "ip": f"{folder}/kernel", "connection_file": f"{folder}/kernel.json"}
        client = NotebookClient(
            notebook,
            config=Config({"AsyncKernelManager": kernel}),
            kernel_name="python3",
            timeout=CELL_SECONDS,
            record_timing=False,
            resources={"metadata": {"path": folder}},
        )
        client.execute(env=kernel_env)
    return notebook


def text_of(notebook: Any) -> str:
    """A notebook as its file has it: nothing that says on which machine, or when, it was run."""
    import nbformat

    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for number, cell in enumerate(notebook.cells, 1):
        cell.id, cell.metadata = f"cell-{number}", {}
    return nbformat.writes(notebook).rstrip("\n") + "\n"


def last_picture(notebook: Any) -> bytes:
    """The last figure of a notebook, as a PNG. Raises ValueError if there is none."""
    outputs = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", ())]
    pictures = [data["image/png"] for data in outputs if "image/png" in data]
    if not pictures:
        raise ValueError("expected a notebook with a figure, got none")
    return base64.b64decode(pictures[-1])


def _run_study(parlor: Stack, shell: Shell) -> None:
    """Load the study, and let bots take part in it, against the models that it names."""
    folder = parlor.home / STUDY
    shutil.copytree(ROOT / "data" / "studies" / "two-models", folder)
    text = (folder / "two-models.yaml").read_text(encoding="utf-8")
    for old, new in _CHANGES.items():
        if old not in text:
            raise ValueError(f"expected {old} in the example, got none")
        text = text.replace(old, new)
    path = folder / f"{STUDY}.yaml"
    path.write_text(text, encoding="utf-8")
    _flask(shell, parlor, "study", "load", path)
    _flask(shell, parlor, "study", "bots", STUDY, "--n", BOTS, "--seed", BOTS_SEED, "--live", "--at-once", 5)


def _flask(shell: Shell, parlor: Stack, *line: object) -> str:
    """What a command prints. Raises ValueError with it if the command fails."""
    done = shell.flask(line, env=parlor.env)
    if done.exit_code:
        raise ValueError(f"expected flask {' '.join(map(str, line))} to succeed, got {done.output}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
