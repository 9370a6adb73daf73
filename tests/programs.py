"""Programs that use the API, for tests: each with a token of its own."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from flask import Flask
from sqlalchemy import func, select
from werkzeug.test import TestResponse

from app import accounts
from app.accounts import tokens
from app.core.extensions import writing
from app.models import ApiToken, User
from tests.stack import PATIENCE

PARTS = {"code", "message", "field", "expected", "got", "remedy"}


class Program:
    """A program with a token of its own."""

    def __init__(self, app: Flask, *scopes: str, user: str = "ann") -> None:
        self._app = app
        with app.app_context(), writing() as session:
            row = session.scalar(select(User).where(User.name == user))
            row = row or accounts.create_user(session, user, None, datetime.now(UTC))
            name = f"program {session.scalar(select(func.count()).select_from(ApiToken))}"
            made, self.secret = tokens.create(session, row, name, scopes, 1, datetime.now(UTC))
            self.token_id = made.id

    def ask(
        self, method: str, path: str, *, key: str | None = None, last: str | None = None, **more: Any
    ) -> TestResponse:
        further = {"Idempotency-Key": key, "Last-Event-ID": last}
        headers = {name: value for name, value in further.items() if value is not None}
        headers["Authorization"] = f"Bearer {self.secret}"
        return self._app.test_client().open(f"/api/v1{path}", method=method, headers=headers, **more)

    def get(self, path: str) -> Any:
        answer = self.ask("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json

    def post(self, path: str, body: Any = None, **more: Any) -> TestResponse:
        return self.ask("POST", path, **({} if body is None else {"json": body}), **more)

    def pages(self, path: str, limit: int) -> Iterator[list[Any]]:
        """The items of each page of a list."""
        mark = "&" if "?" in path else "?"
        found = self.get(f"{path}{mark}limit={limit}")
        yield found["items"]
        while found["next"] is not None:
            found = self.get(f"{path}{mark}limit={limit}&cursor={found['next']}")
            yield found["items"]


def refusal(answer: TestResponse) -> dict[str, Any]:
    """What an answer refuses, in the shape that all refusals have."""
    assert answer.mimetype == "application/json"
    assert set(answer.json or {}) == {"error"}
    found: dict[str, Any] = (answer.json or {})["error"]
    assert set(found) == PARTS
    return found


def read_on(program: Program, cursor: str | None, query: str = "limit=200") -> Iterator[tuple[list[str], str | None]]:
    """The ids on each page from a cursor on, and the cursor behind it, as long as there are more."""
    more = True
    while more:
        page = program.get(f"/matches?{query}" + (f"&cursor={cursor}" if cursor else ""))
        cursor, more = page["next"], page["more"]
        yield [each["match_id"] for each in page["items"]], cursor


def until(program: Program, cursor: str | None, wanted: int) -> tuple[list[str], str | None]:
    """What is read from a cursor on, until there are so many: another transaction may hold up the latest ones."""
    found: list[str] = []
    deadline = time.monotonic() + PATIENCE
    while len(found) < wanted and time.monotonic() < deadline:
        for ids, behind in read_on(program, cursor):
            found += ids
            cursor = behind
    return found, cursor
