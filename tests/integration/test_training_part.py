"""A first start without the training part: pages at once, the rest by itself, again after it was cut off."""

import base64
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.training_part import MODULES
from tests.stack import PATIENCE, ROOT, Stack, new_home, wait_until

PINS = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text("utf-8").split())


def make_wheel(folder: Path, name: str) -> None:
    """An empty package under the name and the version of a pin, as an index would hand it out."""
    version, about = PINS[name], f"{name}-{PINS[name]}.dist-info"
    files = {
        f"{name}/__init__.py": "",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = [
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip('=')},{len(text)}"
        for path, text in files.items()
    ]
    files[f"{about}/RECORD"] = "\n".join([*lines, f"{about}/RECORD,,"]) + "\n"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)


class Environment:
    """An environment with everything but the training part, whose pip finds wheels in a folder alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=PATIENCE)
        self.python = folder / "bin" / "python"
        self.packages = next((folder / "lib").glob("python*")) / "site-packages"
        self.wheels = folder / "wheels"
        self.wheels.mkdir()
        for path in Path(sysconfig.get_paths()["purelib"]).iterdir():
            if path.name.split("-")[0].lower() not in (*MODULES, "lm_eval"):
                (self.packages / path.name).symlink_to(path)
        self.state = folder / "parlor-training.json"

    def fill(self) -> None:
        for name in MODULES:
            make_wheel(self.wheels, name)

    def start(self, home: Path, **env: str) -> Stack:
        own = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels), "PIP_CONFIG_FILE": os.devnull, **env}
        return Stack(home, {"SMALL_MODELS": "true", "PYTHONPATH": "", **own}, python=str(self.python))

    def doctor(self, parlor: Stack) -> dict[str, str]:
        line = [str(self.python), "-m", "flask", "doctor", "--json"]
        done = subprocess.run(line, cwd=ROOT, env=parlor.env, capture_output=True, timeout=PATIENCE)
        return {each["check"]: each["detail"] for each in json.loads(done.stdout)["checks"]}


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
    parlor = environment.start(empty_home)
    try:
        wait_until(
            lambda: (empty_home / "run" / "training-part.pid").exists() or "installed, " in parlor.output(), "pip"
        )
        if "installed, " not in parlor.output():
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
    parlor = environment.start(empty_home, PARLOR_TRAINING="off")
    try:
        parlor.wait_until_ready()
        assert parlor.healthy()
        wait_until(
            lambda: "PARLOR_TRAINING is off" in environment.doctor(parlor).get("training part", ""), "the doctor"
        )
        assert not (environment.packages / "torch").exists()
    finally:
        parlor.close()
