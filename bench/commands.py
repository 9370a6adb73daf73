"""What commands cost in processor time, as multiples of loading click and Flask: `python -m bench.commands`.

Each is run several times in turn with the baseline, and the least of either counts: whatever else runs only adds to it.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from app.core.config import ROOT

BASELINE = (sys.executable, "-c", "import click, flask")
COMMANDS = (("--help",), ("round", "--help"), ("model", "list"), ("round", "list"), ("study", "list"))


def seconds(line: Sequence[str], env: dict[str, str]) -> float:
    """The processor time of a process, user and system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(line, cwd=ROOT, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.commands", description=__doc__)
    parser.add_argument("--times", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "PARLOR_HOME": home, "DATABASE_URL": "", "REDIS_URL": ""}
        lines = {"baseline": BASELINE, **{" ".join(each): (sys.executable, "-m", "flask", *each) for each in COMMANDS}}
        seconds(lines["model list"], env)  # this creates the database
        took = {name: [seconds(line, env)] for name, line in lines.items()}
        for _ in range(options.times - 1):
            for name, line in lines.items():
                took[name].append(seconds(line, env))
    least = {name: min(each) for name, each in took.items()}
    print("| command | s of processor time | times the baseline |")
    print("|---|---|---|")
    for name, value in least.items():
        shown = "`python -c 'import click, flask'`" if name == "baseline" else f"`flask {name}`"
        print(f"| {shown} | {value:.2f} | {value / least['baseline']:.1f} |")


if __name__ == "__main__":
    main()
