"""`make chaos`: a long storm on SQLite and the embedded broker, or on the services that the environment names.

DATABASE_URL and REDIS_URL as for the tests: the storm makes a database of its own there, and empties that Redis.
"""

import argparse
import contextlib
import os
import secrets
import shutil
import sys
from collections.abc import Mapping

from tests.chaos.storm import PLAYERS, storm
from tests.services import emptied_redis, new_database
from tests.stack import Stack, new_home


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120, help="how long processes are killed")
    parser.add_argument("--seed", default=secrets.token_hex(4), help="which are killed when, and who says what")
    parser.add_argument("--players", type=int, default=PLAYERS)
    options = parser.parse_args()
    print(f"A storm of {options.seconds:.0f} s, seed {options.seed}.", flush=True)
    home = new_home()
    with contextlib.ExitStack() as stack:
        services = {}
        if url := os.environ.get("DATABASE_URL"):
            services["DATABASE_URL"] = stack.enter_context(new_database(url))
        if url := os.environ.get("REDIS_URL"):
            services["REDIS_URL"] = stack.enter_context(emptied_redis(url))

        def start(env: Mapping[str, str]) -> Stack:
            parlor = Stack(home, {**env, **services})
            stack.callback(parlor.stop)
            parlor.wait_until_ready()
            return parlor

        report = storm(start, options.seconds, options.seed, players=options.players)
    print(report.summary)
    for problem in report.problems:
        print(f"- {problem}")
    if report.problems:
        print(f"{len(report.problems)} problems. The logs are in {home}.")
        return 1
    shutil.rmtree(home, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
