"""The make targets, in a folder of their own with stand-ins for the programs that they call."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.stack import PATIENCE, ROOT

PROGRAMS = ("python", "ruff", "mypy", "lint-imports", "node", "npm", "pytest")


class Project:
    """A copy of what make reads, and an environment whose programs write down how they were called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("Makefile", "pyproject.toml", "constraints.txt", "package-lock.json"):
            shutil.copy(ROOT / name, folder)
        for name in PROGRAMS:
            self.put(f".venv/bin/{name}", f'echo "{name} $* [$PIP_TARGET$PYTHONPATH]" >> calls; echo "{name} ran"')
        self.put("path/chromium", "")
        self.put("path/chromium-headless-shell", "")
        self.put("path/Rscript", "")
        (folder / "node_modules").mkdir()

    def put(self, name: str, script: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def make(self, *words: str, **env: str) -> "subprocess.CompletedProcess[str]":
        (self.folder / "calls").unlink(missing_ok=True)
        path = f"{self.folder / 'path'}:{os.environ['PATH']}"
        command = ["make", "--no-print-directory", *words]
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        return subprocess.run(
            command, cwd=self.folder, env=clean | {"PATH": path} | env, capture_output=True, text=True, timeout=PATIENCE
        )

    def calls(self) -> str:
        path = self.folder / "calls"
        return path.read_text() if path.exists() else ""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_help_lists_every_target_for_people(project: Project) -> None:
    listed = project.make("help").stdout
    targets = ("help", "install", "run", "test", "lint", "coverage", "chaos", "bench", "screenshots", "translations")
    assert all(f"make {target} " in listed for target in targets)


def test_install_uses_the_pins_once_and_again_only_when_they_change(project: Project) -> None:
    project.make("install")
    assert "pip install" in project.calls()
    assert "-c constraints.txt -e .[dev]" in project.calls()
    project.make("install")
    assert project.calls() == ""
    with (project.folder / "constraints.txt").open("a") as pins:
        pins.write("example==1\n")
    project.make("install")
    assert "pip install" in project.calls()


def test_what_the_shell_has_exported_does_not_reach_pip_or_python(project: Project) -> None:
    project.make("run", PIP_TARGET="/nowhere", PYTHONPATH="/nowhere", PIP_USER="1", VIRTUAL_ENV="/nowhere")
    assert "python -m workers.supervisor []" in project.calls()
    assert "/nowhere" not in project.calls()


def test_a_python_that_is_too_old_is_one_line_that_says_the_remedy(project: Project) -> None:
    shutil.rmtree(project.folder / ".venv")
    for version in ("", ".11", ".12", ".13", ".14"):
        project.put(f"path/python3{version}", '[ "$1" = --version ] && echo Python 3.9.2; [ "$1" = --version ]')
    done = project.make("run")
    assert done.returncode == 2
    assert done.stdout == ""
    first, *rest = done.stderr.splitlines()
    assert first.startswith("error: expected Python 3.11 or newer with its venv module, got Python 3.9.2; install it")
    assert all(line.startswith("make: ") for line in rest)


def test_all_gates_run_one_after_the_other_beside_the_tests_which_have_the_last_word(project: Project) -> None:
    project.put(".venv/bin/mypy", "until [ -e tested ]; do sleep 0.1; done; echo mypy ran >> calls; echo mypy ran")
    project.put(".venv/bin/pytest", "touch tested; echo pytest $* >> calls; echo pytest ran")
    done = project.make("test")
    assert done.returncode == 0
    calls = [line.split(" [")[0] for line in project.calls().splitlines()]
    assert calls.count("pytest -n 6") == 1
    assert [call for call in calls if not call.startswith("pytest")][-8:] == [
        "ruff check",
        "ruff format --check",
        "mypy ran",
        "lint-imports ",
        "npm ci --no-progress",
        "node node_modules/typescript/bin/tsc",
        "node node_modules/@biomejs/biome/bin/biome lint --error-on-warnings",
        "node --test --test-reporter=dot tests/js/*.test.js",
    ]
    gates = [line for line in done.stdout.splitlines() if line.startswith("-- ")]
    assert [line.split(":")[0] for line in gates][-2:] == ["-- scripts", "-- pytest"]
    assert done.stdout.splitlines()[-1] == "pytest ran"


def test_tests_that_fail_are_named_beside_other_gates(project: Project) -> None:
    project.put(".venv/bin/ruff", "exit 1")
    project.put(".venv/bin/pytest", "exit 1")
    done = project.make("test")
    assert done.returncode != 0
    assert "Failed: ruff format pytest\n" in done.stderr


def test_a_gate_that_fails_is_named_and_keeps_no_other_from_running(project: Project) -> None:
    project.put(".venv/bin/mypy", "exit 1")
    done = project.make("test")
    assert done.returncode != 0
    assert "pytest ran" in done.stdout
    assert "Failed: mypy\n" in done.stderr


def test_tools_for_scripts_are_installed_once_and_again_only_when_the_lock_file_changes(project: Project) -> None:
    project.make("lint")
    assert "npm ci" in project.calls()
    project.make("lint")
    assert "npm ci" not in project.calls()
    with (project.folder / "package-lock.json").open("a") as lock:
        lock.write("\n")
    project.make("lint")
    assert "npm ci" in project.calls()


def test_without_the_registry_of_npm_the_checks_of_scripts_are_skipped_in_one_line(project: Project) -> None:
    project.put(".venv/bin/npm", "echo no network >&2; exit 1")
    done = project.make("test", REQUIRE_SERVICES="")
    assert done.returncode == 0
    (line,) = [line for line in done.stdout.splitlines() if "Skipping" in line]
    assert line.startswith("Skipping the type check and the lint of static/js: npm could not install TypeScript")
    assert line.endswith("'.venv/bin/npm ci' says why.")
    assert "tsc" not in project.calls()
    assert "node --test" in project.calls()


def test_where_services_are_required_the_checks_of_scripts_are_too(project: Project) -> None:
    project.put(".venv/bin/npm", "echo no network >&2; exit 1")
    done = project.make("lint", REQUIRE_SERVICES="1")
    assert done.returncode != 0
    assert "no network" in done.stdout
    assert "Failed: npm\n" in done.stderr
