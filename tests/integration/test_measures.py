"""What matches are measured by is kept as they end, shown with the figures of their round, and made anew on request."""

import json

from flask import Flask
from sqlalchemy import Engine, select, update

from app.core.config import Settings
from app.core.extensions import reading, writing
from app.models import MatchRow
from tests.rounds import make_round, play


def test_a_round_is_measured_as_it_is_played_and_again_on_request(
    app: Flask, engine: Engine, settings: Settings
) -> None:
    number = make_round(engine, "scripted", matches=4)
    play(engine, settings, number)
    columns = select(MatchRow.index, MatchRow.measures, MatchRow.unspoken).order_by(MatchRow.index)
    with reading(engine) as session:
        measured = session.execute(columns).all()
    # `scripted` proposes what it has agreed on.
    assert all(row.measures["grounded_0"] and row.measures["last_offer_agreed"] for row in measured)
    with writing(engine) as session:
        session.execute(update(MatchRow).values(measures=None, unspoken=None))
    runner = app.test_cli_runner()
    shown = f"--round {number} --json"
    before = json.loads(runner.invoke(args=["analyze", *shown.split()]).output)["rounds"][0]["columns"]
    assert before["last_offer_agreement_rate"]["value"] is None
    assert json.loads(runner.invoke(args=["match", "measure", *shown.split()]).output) == {"matches": 4}
    with reading(engine) as session:
        assert session.execute(columns).all() == measured
    after = json.loads(runner.invoke(args=["analyze", *shown.split()]).output)["rounds"][0]["columns"]
    assert (after["last_offer_agreement_rate"]["value"], after["random_score_mean"]["value"]) == (1, 5)
    assert after["last_offer_score_mean"]["value"] == after["score_mean"]["value"]
