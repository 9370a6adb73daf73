"""`make chaos`: pages beside people who send bodies without end, and then a long storm.

Both are on SQLite and the embedded broker, the storm on PostgreSQL and the Redis that is named where one is.

With DATABASE_URL it starts a PostgreSQL server of its own, if that is installed, which it can restart; else it makes a
database of its own where DATABASE_URL says. With REDIS_URL it uses that Redis, and empties it. Who may mount a disk of
tmpfs has PARLOR_HOME on one, which can be full.
"""

import argparse
import contextlib
import os
import secrets
import shutil
import sys
from collections.abc import Mapping

from tests.chaos import bodies
from tests.chaos.harms import AWAY, FULL, HARMS, RESTARTED, filled, locked_for_long, restarted, stopped
from tests.chaos.storm import ENV, PLAYERS, storm
from tests.services import emptied_redis, has_postgres, new_database, own_postgres
from tests.stack import TURNS_ALONE, Stack, new_home, running_parlor
from tests.volume import small_volume

MEGABYTES = 256  # of the disk that is filled
BESIDE, BESIDE_SECONDS = 8, 4.0  # connections of each kind, and how long they send


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120, help="how long processes are killed")
    parser.add_argument("--seed", default=secrets.token_hex(4), help="which are killed when, and who says what")
    parser.add_argument("--players", type=int, default=PLAYERS)
    options = parser.parse_args()
    pages = pages_beside_senders(options.players)
    print(f"A storm of {options.seconds:.0f} s, seed {options.seed}.", flush=True)
    home = new_home()
    with contextlib.ExitStack() as stack:
        services, harms = {}, {**HARMS, **bodies.harms(), AWAY: locked_for_long}
        if os.geteuid() == 0:
            harms[FULL] = filled(stack.enter_context(small_volume(home, MEGABYTES)))
        if url := os.environ.get("DATABASE_URL"):
            if has_postgres():
                server = stack.enter_context(own_postgres())
                services["DATABASE_URL"] = server.url
                harms |= {RESTARTED: restarted(server), AWAY: stopped(server)}
            else:
                services["DATABASE_URL"] = stack.enter_context(new_database(url))
                del harms[AWAY]  # of somebody else's server
        if url := os.environ.get("REDIS_URL"):
            services["REDIS_URL"] = stack.enter_context(emptied_redis(url))

        def start(env: Mapping[str, str]) -> Stack:
            parlor = Stack(home, {**env, **services})
            stack.callback(parlor.stop)
            parlor.wait_until_ready()
            return parlor

        report = storm(start, options.seconds, options.seed, players=options.players, harms=harms)
        if report.problems:
            shutil.copytree(home / "logs", logs := new_home(), dirs_exist_ok=True)
    print(report.summary)
    print(report.table)
    print(report.aborted)
    for problem in report.problems:
        print(f"- {problem}")
    shutil.rmtree(home, ignore_errors=True)
    if report.problems:
        print(f"{len(report.problems)} problems. The logs are in {logs}.")
    return 1 if report.problems or pages else 0


def pages_beside_senders(players: int) -> list[str]:
    """Print how long pages take beside people who send bodies and heads without end; returns what should not be."""
    print("Pages beside people who send bodies and heads without end.", flush=True)
    with running_parlor(**TURNS_ALONE, **ENV) as parlor:
        found = bodies.measure(parlor, BESIDE_SECONDS, [BESIDE], players)
    print(bodies.table(found))
    wrong = bodies.problems(found)
    for each in wrong:
        print(f"- {each}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
