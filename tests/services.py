"""Databases on real services, for tests: each new and empty, and gone afterwards."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg
from alembic.script import ScriptDirectory
from redis import Redis

from app.config import ROOT
from app.models import Lease

COLUMNS = sum(len(table.columns) for table in Lease.metadata.tables.values()) + 1  # Alembic has one of its own
HEAD = ScriptDirectory(str(ROOT / "migrations")).get_current_head()


@contextmanager
def new_database(url: str) -> Iterator[str]:
    """The URL of a new, empty PostgreSQL database beside the one that `url` names; it is dropped afterwards."""
    url = url.replace("postgresql+psycopg://", "postgresql://")
    name = f"parlor_{secrets.token_hex(6)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        try:
            yield url.rpartition("/")[0] + f"/{name}"
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def empty(url: str) -> None:
    """Delete all rows of a database, as far as it has tables, and let numbers begin with 1 again.

    Making a database anew takes a second, most of it in waiting for the disk. Only where a test has changed the tables
    themselves, on purpose, they are taken away, too.
    """
    with psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://"), autocommit=True) as connection:
        connection.execute("SET lock_timeout = '5s'")
        there = connection.execute(
            "SELECT count(*) FROM information_schema.columns WHERE table_schema = 'public'"
        ).fetchone()[0]
        if there == 0:
            return
        version = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        if version != (HEAD,) or there != COLUMNS:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
            return
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version'"
        ).fetchall()
        numbers = connection.execute("SELECT sequencename FROM pg_sequences WHERE schemaname = 'public'").fetchall()
        with connection.transaction():
            connection.execute("SET LOCAL session_replication_role = replica")  # in any order
            for (name,) in tables:
                connection.execute(f'DELETE FROM "{name}"')  # noqa: S608 - names that the database gave
            for (name,) in numbers:
                connection.execute(f'ALTER SEQUENCE "{name}" RESTART')


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
