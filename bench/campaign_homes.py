"""Commands of Parlor in a folder of their own, and campaigns there that go on from their last step."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from app.core.config import ROOT
from scripts.make_tiny import SOME_BROKEN_OFF


def flask(home: Path, *arguments: str) -> str:
    """The output of a command that uses only `home`, which is created if needed. Raises SystemExit where it fails."""
    home.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PARLOR_HOME": str(home), "DATABASE_URL": "", "REDIS_URL": ""}
    command = (sys.executable, "-m", "flask", *arguments)
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, encoding="utf-8", check=False)
    if done.returncode not in (0, SOME_BROKEN_OFF):
        raise SystemExit(done.returncode)
    return done.stdout


def campaigns_of(home: Path) -> list[dict[str, Any]]:
    """The output of `flask campaign list --json`."""
    return list(json.loads(flask(home, "campaign", "list", "--json")))


def run_campaign(home: Path, name: str, *options: str) -> tuple[dict[str, Any], bool]:
    """The output of `flask campaign run --json` for the named campaign, and whether it had been started before."""
    begun = [each for each in campaigns_of(home) if each["name"] == name]
    if begun:
        command = ["show" if begun[0]["status"] == "done" else "resume", str(begun[0]["campaign_id"])]
    else:
        command = ["run", "--name", name, *options]
    return dict(json.loads(flask(home, "campaign", *command, "--json"))), bool(begun)
