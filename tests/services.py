"""Databases on real services, for tests: each new and empty, and gone afterwards."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from redis import Redis


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


@contextmanager
def emptied_redis(url: str) -> Iterator[str]:
    """The URL of a Redis database, emptied before and after."""
    with Redis.from_url(url) as client:
        client.flushdb()
        yield url
        client.flushdb()
