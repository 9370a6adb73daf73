"""Small charts of the overview: matches by day, and curves of the latest jobs."""

from datetime import UTC, datetime, timedelta

import pytest
from flask import Flask
from sqlalchemy import Engine, select

from app.core.config import Settings
from app.core.extensions import reading, writing
from app.models import MatchRow, RoundRow
from app.web.admin.home_charts import small_charts
from tests.experimenter import signed_in
from tests.integration.test_overview import part
from tests.rounds import make_round, play


def test_matches_of_rounds_stand_at_the_day_on_which_the_round_ended(app: Flask, engine: Engine) -> None:
    assert "Nothing to draw yet." in part(signed_in(app), "results")
    old, new = (make_round(engine, "scripted", matches=count) for count in (4, 3))
    with writing(engine) as session:
        for number, finished, days in ((old, 4, 2), (new, 3, 0)):
            row = session.get_one(RoundRow, number)
            row.status, row.finished, row.ended_at = "done", finished, datetime.now(UTC) - timedelta(days=days)
    with reading(engine) as session, app.test_request_context():
        charts = small_charts(session, datetime.now(UTC))
    assert [each.rounds for each in charts.days] == [*[0] * 11, 4, 0, 3]
    assert (charts.most, charts.curves) == (4, [])


def test_the_latest_round_is_drawn_by_its_mean_score(app: Flask, engine: Engine, settings: Settings) -> None:
    play(engine, settings, make_round(engine, "scripted", matches=4, seed=1))
    over = select(MatchRow.utility_0 + MatchRow.utility_1).order_by(MatchRow.ended_at, MatchRow.index)
    with reading(engine) as session, app.test_request_context():
        scores = [both / 2 for both in session.scalars(over)]
        [curve] = small_charts(session, datetime.now(UTC)).curves
    assert (curve.start, curve.end, curve.at) == (scores[0], pytest.approx(sum(scores) / 4), 4)
    assert curve.path.count("L") == 3
    assert f"Mean score so far: {curve.end:.4g}" in part(signed_in(app), "results")
