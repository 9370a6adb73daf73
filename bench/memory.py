"""How much memory all of Parlor takes while a campaign runs in it, beside the same Parlor with nothing to do.

    python -m bench.memory                             three rounds of 256 matches, some ten minutes on two cores
    python -m bench.memory --matches 500 --epochs 12   as much as `flask campaign run` does by default

Starts what `make run` starts, in a folder of its own, hands a campaign to its workers, and adds up the proportional set
sizes (PSS) of all processes once a second: memory that several share is counted once. docs/results.md has the figures.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from bench.processes import ROOT, BenchError, Server, free_port

PAUSE = 1.0  # seconds between two measurements
IDLE_LOOKS = 10
LOOKS_A_QUESTION = 20  # looks between two queries for the campaign's progress, which take memory and time themselves
READY = "Ctrl-C stops everything."
# Parts of the command lines of Parlor's processes, in search order.
NAMES = {
    "redis-server": "broker",
    "gunicorn": "web",
    "turns@": "turns",
    "batch@": "batch",
    "train@": "train",
    "workers.upkeep": "upkeep",
    "workers.supervisor": "supervisor",
    "training": "trainings",
}


def main() -> None:
    """Measure once, and print what each process used when the total was highest."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="iterations of the campaign [3]")
    parser.add_argument("--matches", type=int, default=256, help="of each round [256]")
    parser.add_argument("--evaluation", type=int, default=128, help="matches of each evaluation [128]")
    parser.add_argument("--epochs", type=int, default=2, help="of each training [2]")
    asked = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="parlor-memory-", dir="/tmp"))
    env = {"PARLOR_HOME": str(home), "PORT": str(free_port()), "DATABASE_URL": "", "REDIS_URL": ""}
    try:
        with Server("Parlor", "workers.supervisor", [], env, home / "supervisor.log") as parlor:
            parlor.wait_until(lambda: READY in parlor.output())
            print(_table(*_measured(asked, parlor.process.pid, env)))
    except BenchError as error:
        sys.exit(f"error: {error}")
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _measured(asked: argparse.Namespace, supervisor: int, env: dict[str, str]) -> tuple[Counter[str], Counter[str]]:
    """MiB by process: when idle, and at the highest total. Raises BenchError if the campaign fails."""
    idle = max((_look(supervisor) for _ in range(IDLE_LOOKS)), key=Counter.total)
    line = ["run", "--game", "negotiation", "--base", "tiny-base", "--rounds", str(asked.rounds), "--queue"]
    line += ["--matches", str(asked.matches), "--evaluation", str(asked.evaluation), "--seed", "1"]
    number = str(_campaign(env, *line, "--train", f"epochs={asked.epochs}")["campaign_id"])
    peak = idle
    while True:
        peak = max(peak, *(_look(supervisor) for _ in range(LOOKS_A_QUESTION)), key=Counter.total)
        found = _campaign(env, "show", number)
        if found["status"] == "done":
            return idle, peak
        if found["status"] not in ("waiting", "running"):
            raise BenchError(f"expected a campaign that ends well, got {found['status']}: {found.get('error')}")


def _campaign(env: dict[str, str], *line: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "flask", "campaign", *line, "--json"]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **env}, capture_output=True, encoding="utf-8")
    if done.returncode != 0:
        raise BenchError(f"`flask campaign {line[0]}` ended with exit code {done.returncode}: {done.stderr.strip()}")
    return dict(json.loads(done.stdout))


def _look(supervisor: int) -> Counter[str]:
    """MiB of PSS of the supervisor and everything it has started, by process."""
    time.sleep(PAUSE)
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text(encoding="utf-8").rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
    family = [supervisor]
    for pid in family:
        family += [child for child, parent in parents.items() if parent == pid]
    found: Counter[str] = Counter()
    for pid in family:
        try:
            command = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
            sizes = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
        except (FileNotFoundError, ProcessLookupError):
            continue
        name = next((name for sign, name in NAMES.items() if sign in command), "others")
        found[name] += next(int(row.split()[1]) // 1024 for row in sizes.splitlines() if row.startswith("Pss:"))
    return found


def _table(idle: Counter[str], peak: Counter[str]) -> str:
    rows = ["| MiB (PSS) | nothing to do | at the peak |", "| --- | --- | --- |"]
    rows += [f"| {name} | {idle[name]:,} | {peak[name]:,} |" for name, _ in peak.most_common()]
    total = f"| **all** | {idle.total():,} | {peak.total():,} ({peak.total() / idle.total():.1f} ×) |"
    return "\n".join([*rows, total])


if __name__ == "__main__":
    main()
