"""A web host and a GPU host, each in a network namespace of its own, and the cable between them is pulled.

They share the database, by the network, and the folder with datasets and checkpoints. docs/gpu-host.md has the
commands that are run here.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine

from app.core.config import ROOT
from tests.rounds import check, make_round, row_of
from tests.services import PostgresServer, has_postgres
from tests.stack import PATIENCE, free_port, new_home, wait_until

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("ip") is None or not has_postgres(),
        reason="needs root, ip and PostgreSQL's programs, to make two hosts of this machine",
    ),
]
AWAY = 60.0  # seconds
MATCHES = 300


@dataclass
class Host:
    """A network namespace with one end of a cable."""

    name: str
    address: str
    end: str
    env: dict[str, str] = field(default_factory=dict)

    def command(self, *line: str) -> list[str]:
        return ["ip", "netns", "exec", self.name, *line]

    def python(self, *line: str) -> subprocess.CompletedProcess[str]:
        """Run a module to its end."""
        done = subprocess.run(
            self.command(sys.executable, "-m", *line), cwd=ROOT, env=self.env, capture_output=True, encoding="utf-8",
            timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done

    def flask(self, *line: str) -> str:
        return self.python("flask", "--app", "wsgi", *line).stdout

    def plug(self, state: str) -> None:
        """Pull the cable out ("down"), or put it in again ("up")."""
        _ip("-n", self.name, "link", "set", self.end, state)


@dataclass
class Hosts:
    web: Host
    gpu: Host
    engine: Engine
    stack: ExitStack

    def begin(self, host: Host, *line: str) -> "subprocess.Popen[bytes]":
        """Start a module on a host; it is ended with the hosts."""
        process = subprocess.Popen(host.command(sys.executable, "-m", *line), cwd=ROOT, env=host.env)
        self.stack.callback(_end, process)
        return process


def _ip(*line: str) -> None:
    subprocess.run(["ip", *line], check=True)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _connect(stack: ExitStack, ends: Sequence[Host]) -> None:
    """Make both namespaces and the cable between them."""
    for host in ends:
        _ip("netns", "add", host.name)
        stack.callback(_ip, "netns", "delete", host.name)
    one, other = ends
    _ip("link", "add", one.end, "netns", one.name, "type", "veth", "peer", "name", other.end, "netns", other.name)
    for host in ends:
        _ip("-n", host.name, "address", "add", f"{host.address}/24", "dev", host.end)
        _ip("-n", host.name, "link", "set", host.end, "up")
        _ip("-n", host.name, "link", "set", "lo", "up")


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    """Web, upkeep and PostgreSQL on one host; nothing yet on the other."""
    mark = f"{os.getpid() % 10_000}"
    web = Host(f"parlor-web-{mark}", "10.203.77.1", f"pw{mark}")
    gpu = Host(f"parlor-gpu-{mark}", "10.203.77.2", f"pg{mark}")
    with ExitStack() as stack:
        _connect(stack, (web, gpu))
        home, folder = new_home(), Path(str(new_home()))
        for each in (home, folder):
            stack.callback(shutil.rmtree, each, ignore_errors=True)
        server = PostgresServer(folder, web.address, web.command())
        stack.callback(server.stop)
        common = {
            "DATABASE_URL": server.url, "PARLOR_HOME": str(home), "WORK_NICENESS": "0", "SECRET_KEY": "k" * 32,
            "ROUND_LEASE": "5", "TRAIN_LEASE": "5", "UPKEEP_EVERY": "0.5",
        }  # fmt: skip
        port = {"PORT": str(free_port()), "HOST": web.address, "WORKER_QUEUES": "none", "PARLOR_TRAINING": "off"}
        web.env = {**os.environ, "REDIS_URL": "", **common, **port}
        gpu.env = {**os.environ, "REDIS_URL": "none", **common}
        engine = create_engine(server.by_socket)
        stack.callback(engine.dispose)
        found = Hosts(web, gpu, engine, stack)
        found.begin(web, "workers.supervisor")
        wait_until(lambda: _is_well(web), "the web host")
        yield found


def _is_well(web: Host) -> bool:
    line = f"import urllib.request as r; r.urlopen('http://{web.address}:{web.env['PORT']}/healthz', timeout=5)"
    return subprocess.run(web.command(sys.executable, "-c", line), capture_output=True, check=False).returncode == 0


def test_a_round_on_the_gpu_host_outlives_a_minute_without_the_network(hosts: Hosts) -> None:
    round_id = make_round(hosts.engine, "tiny", matches=MATCHES, queued=True)
    hosts.begin(hosts.gpu, "workers.polling", "batch", "2")
    wait_until(lambda: row_of(hosts.engine, round_id).finished >= 20, "some matches that are over")
    hosts.gpu.plug("down")
    try:
        cut = time.monotonic()
        while time.monotonic() - cut < AWAY:
            assert _is_well(hosts.web)
            time.sleep(5)
        assert row_of(hosts.engine, round_id).finished < MATCHES
    finally:
        hosts.gpu.plug("up")
    wait_until(lambda: row_of(hosts.engine, round_id).finished == MATCHES, "the end of the round", 4 * PATIENCE)
    wait_until(lambda: row_of(hosts.engine, round_id).status == "done", "a round that is done")
    check(hosts.engine, round_id, MATCHES)


def test_what_a_cluster_trains_can_be_played_with(hosts: Hosts) -> None:
    built = json.loads(hosts.web.flask("dataset", "build", "--round", "1", "--style", "compact", "--json"))
    config = ("--config", "max_steps=2", "width=32", "layers=1")
    line = ("train", "tiny", "--dataset", str(built["dataset_id"]), "--name", "small", *config, "--queue")
    hosts.web.flask(*line)
    hosts.gpu.python("workers.polling", "train", "1", "--until-idle", "3")
    [job] = json.loads(hosts.web.flask("training", "list", "--json"))
    assert job["status"] == "done"
    assert "small" in hosts.web.flask("model", "list")
    round_id = make_round(hosts.engine, "small", matches=4, queued=True)
    hosts.gpu.python("workers.polling", "batch", "2", "--until-idle", "3")
    check(hosts.engine, round_id, 4)
