"""Loaded by every Python process that `bench.write_locks` starts: notes how long each transaction held SQLite's lock.

One line of JSON a transaction in the folder WRITE_LOCKS: the place in the code that began it, the statement that took
longest in it, and in milliseconds how long it waited for the lock, held it, and was at that statement.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine.default import DefaultDialect

_FOLDER = os.environ.get("WRITE_LOCKS", "")
_open: dict[int, dict[str, Any]] = {}  # transactions, by the connection of the driver
_asked: dict[int, float] = {}
_PLUMBING = ("app/core/extensions.py", "app/core/write_priority.py")


def _place() -> str:
    """The nearest Parlor function on the stack that is not plumbing."""
    frame = sys._getframe(2)
    while frame is not None:
        path = frame.f_code.co_filename
        if "/app/" in path or "/workers/" in path:
            name = path[path.rfind("/app/") + 1 :] if "/app/" in path else path[path.rfind("/workers/") + 1 :]
            if name not in _PLUMBING:
                return f"{name}:{frame.f_code.co_name}"
        frame = frame.f_back  # type: ignore[assignment]
    return "elsewhere"


def _key(connection: Connection) -> int:
    return id(connection.connection.dbapi_connection)


@event.listens_for(Engine, "before_cursor_execute")
def _before(connection: Connection, _cursor: Any, _statement: str, *_rest: Any) -> None:
    _asked[_key(connection)] = time.monotonic()


@event.listens_for(Engine, "after_cursor_execute")
def _after(connection: Connection, _cursor: Any, statement: str, *_rest: Any) -> None:
    now, key = time.monotonic(), _key(connection)
    took = now - _asked.get(key, now)
    if statement == "BEGIN IMMEDIATE":
        _open[key] = {"since": now, "waited": took, "place": _place(), "longest": 0.0, "statement": ""}
    elif (transaction := _open.get(key)) and took > transaction["longest"]:
        transaction["longest"], transaction["statement"] = took, " ".join(statement.split())[:60]


def _end(transaction: dict[str, Any]) -> None:
    held = time.monotonic() - transaction["since"]
    line = {
        "place": transaction["place"],
        "statement": transaction["statement"],
        "waited": 1000 * transaction["waited"],
        "held": 1000 * held,
        "longest": 1000 * transaction["longest"],
    }
    with (Path(_FOLDER) / f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def _ending(name: str) -> None:
    original = getattr(DefaultDialect, name)

    def ended(self: Any, connection: Any) -> None:
        try:
            original(self, connection)
        finally:
            driver = getattr(connection, "dbapi_connection", connection)
            if (transaction := _open.pop(id(driver), None)) is not None:
                _end(transaction)

    setattr(DefaultDialect, name, ended)


if _FOLDER:
    _ending("do_commit")
    _ending("do_rollback")
