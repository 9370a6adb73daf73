"""Writes requirements/*.txt, which name every file that an image installs by its hash: `make hashes`.

pip says which files it would install for the pins of constraints.txt, with the settings that it has: index, proxy, and
so on. It takes the files of the platform and the Python that it runs on, so run this on Linux with Python 3.11, as in
the images; for another processor run it there. A file that lies on this machine's disk has a hash that nobody else can
check, so one is refused: a build of torch of one's own, for example.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.core.config import ROOT
from app.core.files import replace_file

# Each image: what is to be in it. setuptools builds the package itself, without asking an index.
IMAGES = {"web": ".", "models": ".[training]"}
HEAD = "# Made by `make hashes` from constraints.txt; not to be edited. For the image {image}, on {platform}.\n"


def report(wanted: str) -> list[dict[str, Any]]:
    """What pip would install, file by file. Exits with pip's own message where it finds none."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        command += ["--only-binary=:all:", "--report", str(path), "-c", "constraints.txt", wanted, "setuptools"]
        # Only what an index offers; a folder of wheels may hold what nobody else has.
        environment = {**os.environ, "PIP_FIND_LINKS": ""}
        result = subprocess.run(command, cwd=ROOT, env=environment, check=False)  # noqa: S603 - our own command
        if result.returncode:
            raise SystemExit(result.returncode)
        found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["install"]
    return found


def lines(found: Sequence[dict[str, Any]]) -> list[str]:
    """A requirement with its hash for each file but the package itself. Exits for a file that only this machine has."""
    made = []
    for each in found:
        name, version = each["metadata"]["name"], each["metadata"]["version"]
        if name == "parlor":
            continue
        url = each["download_info"]["url"]
        if not url.startswith("https://"):
            raise SystemExit(
                f"error: {name}: expected a file of a package index, got {url}, which nobody else can check;"
                " run pip without its find-links: PIP_CONFIG_FILE=/dev/null make hashes"
            )
        digest = each["download_info"]["archive_info"]["hashes"]["sha256"]
        made.append(f"{name.lower().replace('_', '-')}=={version} --hash=sha256:{digest}\n")
    return sorted(made)


def main() -> None:
    """Write one file an image."""
    platform = f"{sys.platform} {os.uname().machine}, Python {sys.version_info.major}.{sys.version_info.minor}"
    (ROOT / "requirements").mkdir(exist_ok=True)
    for image, wanted in IMAGES.items():
        text = [HEAD.format(image=image, platform=platform), *lines(report(wanted))]
        replace_file(ROOT / "requirements" / f"{image}.txt", [line.encode() for line in text])
        print(f"requirements/{image}.txt: {len(text) - 1} files")


if __name__ == "__main__":
    main()
