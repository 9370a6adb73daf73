"""Databases on real services, for tests: each new and empty, and gone afterwards."""

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from alembic.script import ScriptDirectory
from redis import Redis

from app.core.config import ROOT
from app.models import Lease
from tests.stack import free_port

COLUMNS = sum(len(table.columns) for table in Lease.metadata.tables.values()) + 1  # Alembic has one of its own
_COLUMNS_OF_TABLES = """
    SELECT relname, count(*) FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped
    GROUP BY relname
"""
_BEGIN_WITH_1 = """
    SELECT setval(format('%I.%I', schemaname, sequencename)::regclass, 1, false)
    FROM pg_sequences WHERE schemaname = 'public' AND last_value IS NOT NULL
"""
HEAD = ScriptDirectory(str(ROOT / "migrations")).get_current_head()


@contextmanager
def new_database(url: str, template: str = "") -> Iterator[str]:
    """The URL of a new PostgreSQL database beside the one that `url` names; it is dropped afterwards.

    Empty, or a copy of the database that `template` names, which nobody may be using.
    """
    url = url.replace("postgresql+psycopg://", "postgresql://")
    name = f"parlor_{secrets.token_hex(6)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"' + (f' TEMPLATE "{template}"' if template else ""))
        try:
            yield url.rpartition("/")[0] + f"/{name}"
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def empty(url: str) -> None:
    """Delete all rows of a database, as far as it has tables, and let numbers begin with 1 again.

    Making a database anew takes a second, most of it in waiting for the disk. Only where a test has changed the tables
    themselves, on purpose, they are taken away, too. Most tests have one of these calls, so it makes few statements.
    """
    with psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://"), autocommit=True) as connection:
        connection.execute("SET lock_timeout = '5s'")
        columns: dict[str, int] = dict(connection.execute(_COLUMNS_OF_TABLES).fetchall())
        if not columns:
            return
        version = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        if version != (HEAD,) or sum(columns.values()) != COLUMNS:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
            return
        deletes = [f'DELETE FROM "{name}"' for name in columns if name != "alembic_version"]  # noqa: S608 - known names
        with connection.transaction():
            connection.execute("SET LOCAL session_replication_role = replica")  # in any order
            connection.execute("; ".join(deletes))
            connection.execute(_BEGIN_WITH_1)  # ALTER SEQUENCE would make a file anew for each


def _program(name: str) -> str:
    """One of PostgreSQL's programs, which Debian keeps from PATH; empty where there is none."""
    newest = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: float(path.parts[4]))
    return shutil.which(name) or (str(newest[-1]) if newest else "")


def has_postgres() -> bool:
    """Whether a PostgreSQL server can be started here."""
    return bool(_program("pg_ctl") and _program("initdb"))


class PostgresServer:
    """A PostgreSQL server of one's own, on a free port of an address, with its files in `folder`.

    `within` is what its programs are started by, as in a network namespace. Who is near has `by_socket`.
    """

    def __init__(self, folder: Path, address: str = "127.0.0.1", within: Sequence[str] = ()) -> None:
        # Root may not run it; the system's user for it may.
        self._user = "postgres" if os.geteuid() == 0 else None
        if self._user is not None:
            owner = pwd.getpwnam(self._user)
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        self._folder = folder
        self._within = within
        port = free_port()
        self.url = f"postgresql://postgres@{address}:{port}/postgres"
        self.by_socket = f"postgresql+psycopg://postgres@/postgres?host={folder}&port={port}"
        self._run(_program("initdb"), "-A", "trust", "-U", "postgres", "-D", str(folder / "data"))
        with (folder / "data" / "pg_hba.conf").open("a", encoding="utf-8") as file:
            file.write(f"host all all {address}/24 trust\n")
        self._options = f"-p {port} -k {folder} -c listen_addresses={address}"
        self.start()

    def start(self) -> None:
        self._control("start", "-o", self._options, "-l", str(self._folder / "log"))

    def restart(self) -> None:
        """Stop it as a crash would, without a word to anybody who is connected, and start it again."""
        self.stop()
        self.start()

    def stop(self) -> None:
        self._control("stop", "-m", "immediate")

    def _control(self, *line: str) -> None:
        self._run(_program("pg_ctl"), "-w", "-D", str(self._folder / "data"), *line)

    def _run(self, *line: str) -> None:
        user = self._user
        if self._within and user is not None:  # only root may go there
            line, user = (*self._within, "setpriv", "--reuid", user, "--clear-groups", *line), None
        subprocess.run(line, check=True, user=user, cwd="/", stdout=subprocess.DEVNULL)


@contextmanager
def own_postgres() -> Iterator[PostgresServer]:
    """A server with an empty database. Raises CalledProcessError where it does not start."""
    folder = Path(tempfile.mkdtemp(prefix="parlor-postgres-", dir="/tmp"))
    try:
        server = PostgresServer(folder)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def redis_of(url: str, worker: int) -> str:
    """The URL of the Redis database that is `worker` places after the one that `url` names."""
    parts = urlsplit(url)
    return url if worker == 0 else urlunsplit(parts._replace(path=f"/{int(parts.path.strip('/') or 0) + worker}"))


@contextmanager
def emptied_redis(url: str) -> Iterator[str]:
    """The URL of a Redis database, emptied before and after."""
    with Redis.from_url(url) as client:
        client.flushdb()
        yield url
        client.flushdb()
