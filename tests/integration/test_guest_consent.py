"""Guests are asked once whether models may learn from them, can change the answer, and can have all of it deleted."""

import re
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, select

from app.core.config import Settings
from app.core.extensions import reading
from app.matches import live
from app.models import Consent, Dataset, EventRow, MatchRow, Participant, SeatRow
from tests.datasets import cut
from tests.integration.test_cli_dataset import flask

QUESTION = "Language models may be trained on what I write"
ASKED = {"training_asked": "1"}
AGREED = {**ASKED, "training_consent": "yes"}
WORDS = "I am Quux, hello."


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


def start(client: FlaskClient, **form: str) -> str:
    """A match from the home page's form, in which the guest says something; its id."""
    answer = client.post("/start/negotiation", data=form)
    assert answer.status_code == 303, answer.text
    return str(answer.location).rpartition("/")[2]


def say(engine: Engine, match: str) -> None:
    with reading(engine) as session:
        seat = session.scalar(select(SeatRow.seat).where(SeatRow.match_id == match, SeatRow.kind == "person"))
    for text in (f"[message] {WORDS}", None):
        live.commit(engine, live.MoveSubmission(match, seat or 0, text), instant=True)


def answers(engine: Engine) -> dict[str, bool | None]:
    """What the guests' seats say, by match."""
    with reading(engine) as session:
        seats = select(SeatRow.match_id, SeatRow.training_consent).where(SeatRow.kind == "person")
        return {row.match_id: row.training_consent for row in session.execute(seats)}


def test_the_question_stands_unticked_on_the_home_page_until_the_first_match(
    client: FlaskClient, engine: Engine
) -> None:
    page = client.get("/").text
    assert QUESTION in page
    assert re.search(r'name="training_consent"[^>]*checked', page) is None
    first = start(client, **ASKED)
    assert QUESTION not in client.get("/").text
    again = start(client)  # as the form of the result's page is, which does not ask
    assert answers(engine) == {first: False, again: False}
    with reading(engine) as session:
        (row,) = session.scalars(select(Consent))
        assert (row.kind, row.given, len(row.text_version)) == ("training", False, 64)
        assert session.query(Participant).count() == 1


def test_another_answer_on_the_privacy_page_counts_for_what_was_played_before(
    client: FlaskClient, engine: Engine, app: Flask
) -> None:
    settings: Settings = app.config["SETTINGS"]
    match = start(client, **AGREED)
    say(engine, match)
    assert answers(engine) == {match: True}
    dataset = cut(engine, settings.home, game="negotiation", filter="all")
    file = settings.home / "datasets" / f"{dataset.sha256}.jsonl"
    assert WORDS in file.read_text()
    assert "checked" in client.get("/privacy").text
    answer = client.post("/privacy", data={"action": "training"})
    assert "Your answer is saved." in client.get(str(answer.location)).text
    assert answers(engine) == {match: False}
    assert not file.exists()
    with reading(engine) as session:
        assert session.get_one(Dataset, dataset.id).unusable_at is not None
    client.post("/privacy", data={"action": "training", "training_consent": "yes"})
    assert answers(engine) == {match: True}


def test_an_answer_before_the_first_match_is_remembered(client: FlaskClient, engine: Engine) -> None:
    client.post("/privacy", data={"action": "training", "training_consent": "yes"})
    assert QUESTION not in client.get("/").text
    match = start(client)
    assert answers(engine) == {match: True}


def test_a_guest_has_all_of_it_deleted(client: FlaskClient, engine: Engine) -> None:
    assert "Nothing that you wrote in this browser is kept here." in client.get("/privacy").text
    match, under_way = start(client, **AGREED), start(client)
    say(engine, match)
    other = start(client.application.test_client(), **AGREED)
    assert "Delete what I wrote" in client.get("/privacy").text
    answer = client.post("/privacy", data={"action": "forget"})
    assert "was deleted" in client.get(str(answer.location)).text
    with reading(engine) as session:
        assert not any(WORDS in str(body) for body in session.scalars(select(EventRow.body)))
        states = {row.id: (row.status, row.erased_at is not None) for row in session.scalars(select(MatchRow))}
    assert states == {match: ("over", True), under_way: ("over", True), other: ("playing", False)}
    assert client.get(f"/play/{match}/result").status_code == 200
    assert QUESTION in client.get("/").text
    start(client, **ASKED)
    with reading(engine) as session:
        assert session.query(Participant).count() == 3  # the next match is another guest's


def test_the_experimenter_deletes_it_by_the_code_on_the_privacy_page(
    client: FlaskClient, engine: Engine, app: Flask
) -> None:
    match = start(client, **AGREED)
    say(engine, match)
    found = re.search(r"guest-[0-9a-f]{16}", client.get("/privacy").text)
    assert found
    assert match in flask(app, "study", "forget", found[0]).stdout


@pytest.mark.parametrize("agreed", [True, False, None])
def test_who_starts_matches_by_the_json_door_says_what_the_guest_answered(
    client: FlaskClient, engine: Engine, agreed: bool | None
) -> None:
    bodies: list[dict[str, Any]] = [{"training_consent": agreed}, {}]
    matches = [(client.post("/api/matches", json={"game": "taboo", **body}).json or {})["match"] for body in bodies]
    assert answers(engine) == dict(zip(matches, (agreed, None), strict=True))
