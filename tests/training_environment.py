"""An environment without the training part, and wheels that stand for those of an index."""

import base64
import hashlib
import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Mapping
from pathlib import Path

from app.training_part import MODULES
from tests.stack import PATIENCE, ROOT, Stack

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

    def make_index(self) -> str:
        """The address of an index that hands out the wheels, as pip's own may be."""
        for name in MODULES:
            folder = self.folder / "index" / name
            folder.mkdir(parents=True)
            make_wheel(folder, name)
            links = "".join(f'<a href="{path.name}">{path.name}</a>' for path in folder.glob("*.whl"))
            (folder / "index.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")
        return (self.folder / "index").as_uri()

    def start(self, home: Path, **env: str) -> Stack:
        return Stack(home, {"SMALL_MODELS": "true", **self._variables(env)}, python=str(self.python))

    def install(self, home: Path, **env: str) -> tuple[int, str]:
        """Run what a Parlor starts to install the training part, without one; the exit code and what it printed."""
        line = [str(self.python), "-m", "workers.training_part"]
        own = {**os.environ, "PARLOR_HOME": str(home), **self._variables(env)}
        done = subprocess.run(line, cwd=ROOT, env=own, capture_output=True, text=True, timeout=PATIENCE)
        return done.returncode, done.stdout

    def _variables(self, env: Mapping[str, str]) -> dict[str, str]:
        pip = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels), "PIP_CONFIG_FILE": os.devnull}
        return {"PYTHONPATH": "", **pip, **env}

    def doctor(self, parlor: Stack) -> dict[str, str]:
        line = [str(self.python), "-m", "flask", "doctor", "--json"]
        done = subprocess.run(line, cwd=ROOT, env=parlor.env, capture_output=True, timeout=PATIENCE)
        return {each["check"]: each["detail"] for each in json.loads(done.stdout)["checks"]}
