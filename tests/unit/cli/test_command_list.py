"""What `flask --help` lists is what the commands say of themselves, and no more is loaded for it than has to be."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from app.cli.commands import LIST
from app.core.config import ROOT
from scripts.command_list import command_list
from tests.shell import Shell

PAGES = {"app.factory", "app.web", "flask_socketio", "flask_babel"}
SLOW = {*PAGES, "sqlalchemy", "celery", "alembic", "openai", "numpy"}


def loaded(*words: str, home: Path) -> set[str]:
    """The modules and packages that a command loads in a process of its own."""
    program = (
        "import atexit, json, sys\n"
        "atexit.register(lambda: print(json.dumps(list(sys.modules)), file=sys.stderr))\n"
        f"sys.argv = ['flask', *{list(words)!r}]\n"
        "from flask.cli import main\n"
        "main()"
    )
    env = {**os.environ, "PARLOR_HOME": str(home), "SMALL_MODELS": "false"}
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    assert run.stdout
    return set(json.loads(run.stderr.splitlines()[-1]))


def test_the_list_is_what_the_commands_say() -> None:
    assert json.loads(LIST.read_text(encoding="utf-8")) == command_list(), "run python -m scripts.command_list"


def test_flask_finds_every_command_of_the_list() -> None:
    named = {each.name for each in entry_points(group="flask.commands") if each.value.startswith("app.cli.commands:")}
    assert named == set(json.loads(LIST.read_text(encoding="utf-8")))


@pytest.mark.parametrize("words", [("--help",), ("round", "--help"), ("db", "--help")])
def test_help_loads_neither_the_database_nor_a_page(words: tuple[str, ...], tmp_path: Path) -> None:
    assert loaded(*words, home=tmp_path / "home") & SLOW == set()
    assert not (tmp_path / "home").exists()


def test_a_list_loads_no_page_and_no_broker(tmp_path: Path) -> None:
    assert loaded("model", "list", home=tmp_path / "home") & (SLOW - {"sqlalchemy", "alembic"}) == set()


@pytest.mark.parametrize("program", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("words", "offered"), [(("flask", "rou"), "round"), (("flask", "round", "run", "--swap"), "--swap-seats")]
)
def test_shells_complete_commands_and_options(
    shell: Shell, program: str, words: tuple[str, ...], offered: str, tmp_path: Path
) -> None:
    line = {"COMP_WORDS": " ".join(words), "COMP_CWORD": words[-1] if program == "fish" else str(len(words) - 1)}
    env = {"PARLOR_HOME": str(tmp_path / "home"), "_FLASK_COMPLETE": f"{program}_complete", **line}
    assert offered in re.split(r"[\s,]", shell.flask([], env=env).stdout)


def test_the_web_process_loads_no_command(tmp_path: Path) -> None:
    program = "import sys, wsgi; print(*(name for name in sys.modules if name.startswith('app.cli')))"
    env = {**os.environ, "PARLOR_HOME": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""
