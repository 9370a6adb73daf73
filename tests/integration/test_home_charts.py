"""Small charts of the overview: matches by day, and curves of the latest jobs."""

import re
from contextvars import Context
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import gevent
import pytest
from flask import Flask
from sqlalchemy import Engine, event, select

from app.core.config import Settings
from app.core.extensions import reading, writing
from app.jobs import states
from app.models import MatchRow, RoundRow
from app.web.admin import home_charts
from app.web.admin.home_charts import small_charts
from tests.experimenter import signed_in
from tests.integration.test_overview import part
from tests.rounds import make_round, play


def test_matches_of_rounds_stand_at_the_day_on_which_they_ended(app: Flask, engine: Engine) -> None:
    assert "Nothing to draw yet." in part(signed_in(app), "results")
    old, new = (make_round(engine, "scripted", matches=count) for count in (4, 3))
    with writing(engine) as session:
        for number, finished, days in ((old, 4, 2), (new, 3, 0)):
            row = session.get_one(RoundRow, number)
            row.status, row.finished, row.ended_at = "done", finished, datetime.now(UTC) - timedelta(days=days)
    assert rounds_by_day(app, engine) == [*[0] * 11, 4, 0, 3]


def test_matches_of_a_round_that_went_on_over_midnight_stand_at_their_own_days(
    app: Flask, engine: Engine, settings: Settings
) -> None:
    number = make_round(engine, "scripted", matches=5, seed=1)
    play(engine, settings, number)
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    ended = [today - timedelta(days=1, seconds=1), *[today - timedelta(seconds=1)] * 2, *[today] * 2]
    with writing(engine) as session:
        row = session.get_one(RoundRow, number)
        row.started_at, row.ended_at = today - timedelta(days=2), today
        for match, at in zip(session.scalars(select(MatchRow).where(MatchRow.round_id == number)), ended, strict=True):
            match.ended_at = at
    assert rounds_by_day(app, engine) == [*[0] * 11, 1, 2, 2]


def test_days_are_those_of_the_experimenters_time_zone(app: Flask, engine: Engine) -> None:
    client = signed_in(app)
    number = make_round(engine, "scripted", matches=7)
    here = timezone(timedelta(hours=14))
    today = datetime.now(here).replace(hour=0, minute=0, second=0, microsecond=0)
    assert (
        client.post("/account/time-zone", data={"time_zone": "Pacific/Kiritimati"}).status_code == 303
    )  # UTC+14, without summer time
    for began, drawn in ((today, ["0", "7"]), (today - timedelta(seconds=1), ["7", "0"])):
        with writing(engine) as session:
            row = session.get_one(RoundRow, number)
            row.status, row.finished, row.started_at, row.ended_at = "done", 7, began, began
        page = Context().run(client.get, "/admin/").text  # as a request of its own: the test's context keeps a zone
        assert re.findall(r"<title>[^<]*: 0 \+ (\d+)</title>", page)[-2:] == drawn


def rounds_by_day(app: Flask, engine: Engine) -> list[int]:
    with reading(engine) as session, app.test_request_context():
        today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        return [each.rounds for each in small_charts(session, today).days]


def test_the_latest_round_is_drawn_by_its_mean_score(app: Flask, engine: Engine, settings: Settings) -> None:
    play(engine, settings, make_round(engine, "scripted", matches=4, seed=1))
    over = select(MatchRow.utility_0 + MatchRow.utility_1).order_by(MatchRow.ended_at, MatchRow.index)
    with reading(engine) as session, app.test_request_context():
        scores = [both / 2 for both in session.scalars(over)]
        [curve] = small_charts(session, datetime.now(UTC)).curves
    assert (curve.start, curve.end, curve.at) == (scores[0], pytest.approx(sum(scores) / 4), 4)
    assert curve.path.count("L") == 3
    assert f"Mean score so far: {curve.end:.4g}" in part(signed_in(app), "results")


def test_matches_of_a_round_that_goes_over_midnight_are_counted_once_a_day_in_each_time_zone(
    app: Flask, engine: Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home_charts, "_EVERY", -1.0)
    number = make_round(engine, "scripted", matches=5, seed=1)
    play(engine, settings, number)
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    ended = [today + timedelta(hours=hours) for hours in (-480, -2, -1, 0.25, 0.75)]
    with writing(engine) as session:
        row = session.get_one(RoundRow, number)
        row.status, row.started_at, row.ended_at = states.RUNNING, today - timedelta(days=20), None
        for match, at in zip(session.scalars(select(MatchRow).where(MatchRow.round_id == number)), ended, strict=True):
            match.ended_at = at
    west = timezone(timedelta(minutes=-30))  # whose day begins half an hour later
    counted: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if "count(" in statement and "match.round_id" in statement.replace('"', ""):
            counted.append(statement)

    def drawn(midnight: datetime) -> list[int]:
        with reading(engine) as session, app.app_context(), app.test_request_context():
            return [each.rounds for each in small_charts(session, midnight).days[-2:]]

    event.listen(Engine, "before_cursor_execute", note)
    try:
        together = [gevent.spawn(drawn, midnight) for midnight in (today, today)]
        gevent.joinall(together, raise_error=True)
        assert [each.value for each in together] == [[2, 2]] * 2
        there = today.replace(tzinfo=west)
        assert [drawn(there), drawn(today), drawn(there)] == [[3, 1], [2, 2], [3, 1]]
        with writing(engine) as session:
            session.get_one(RoundRow, number).finished += 1
        assert [drawn(today), drawn(there)] == [[2, 3], [3, 2]]
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert len(counted) == 2
