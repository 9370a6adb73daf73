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


def run_campaign(home: Path, name: str, *options: str, may_stop: str | None = None) -> tuple[dict[str, Any], bool]:
    """The output of `flask campaign run --json` for the named campaign, and whether it had been started before.

    One that stopped with an error that contains `may_stop` is over, too. Raises SystemExit for any other that fails.
    """
    begun = _campaigns_named(home, name)
    if begun:
        command = ["show" if begun[0]["status"] == "done" else "resume", str(begun[0]["campaign_id"])]
    else:
        command = ["run", "--name", name, *options]
    try:
        found = flask(home, "campaign", *command, "--json")
    except SystemExit:
        stopped = _campaigns_named(home, name)
        if may_stop is None or not stopped or may_stop not in (stopped[0]["error"] or ""):
            raise
        found = flask(home, "campaign", "show", str(stopped[0]["campaign_id"]), "--json")
    return dict(json.loads(found)), bool(begun)


def _campaigns_named(home: Path, name: str) -> list[dict[str, Any]]:
    return [each for each in json.loads(flask(home, "campaign", "list", "--json")) if each["name"] == name]
