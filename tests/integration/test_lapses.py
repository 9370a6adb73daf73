"""Whoever lets a turn run out is asked whether they are still there, before it costs them the study."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, select, update

from app.core.extensions import reading, writing
from app.matches import live, outages
from app.models import Enrolment, Lease, MatchRow, Outage, Payment, StudyEvent, StudyVersion
from app.studies import matches, store
from app.studies.endings import PROLIFIC
from app.studies.extra_time import give
from app.studies.progress import find_progress
from tests.enrolments import KnownWave, load_example, open_wave, person, play
from tests.study_matches import go_to, move_back
from tests.study_pages import text_of
from workers.upkeep import look_after

LONG_AGO = timedelta(minutes=3)  # longer than a turn of two-models
GRACE = timedelta(minutes=5)
LINK = "/s/me/P1"


@pytest.fixture
def ann(known: KnownWave, engine: Engine) -> int:
    """A person who has made a deal, and is at the third match, before the last."""
    with writing(engine) as session:
        progress = person(session, known, "P1", at=datetime.now(UTC) - timedelta(minutes=10))
        play(session, progress, 0)
        go_to(progress, "match 3")
        return progress.enrolment.id


def miss_turn(engine: Engine, enrolment: int, key: str | None = None) -> str:
    """Have the clock of the turn run out in the match of the step that is due, and upkeep notice it."""
    with writing(engine) as session:
        progress = find_progress(session, enrolment)
        record = matches.start(session, progress, progress.step if key is None else go_to(progress, key))
        move_back(session, record.id, LONG_AGO)
    assert live.end_overdue(engine, record.id)
    with writing(engine) as session:
        matches.end_after_silence(session, record.id)
    return record.id


def ending(engine: Engine, app: Flask, enrolment: int) -> str | None:
    """How somebody has ended after a round of upkeep."""
    look_after(engine, app.config["SETTINGS"], "upkeep", lambda *_: None)
    with reading(engine) as session:
        return session.get_one(Enrolment, enrolment).ending


def say_here(client: FlaskClient, **more: str) -> int:
    step = re.search(r'name="step" value="([^"]+)"', client.get(LINK).text)
    assert step is not None
    return client.post(LINK, data={"step": step[1], "here": "yes", **more}).status_code


def step_of(engine: Engine, enrolment: int) -> str:
    with reading(engine) as session:
        return find_progress(session, enrolment).step.key


def test_after_one_missed_turn_a_person_goes_on_with_a_press(engine: Engine, app: Flask, ann: int) -> None:
    match = miss_turn(engine, ann)
    client = app.test_client()
    page = text_of(client.get(LINK))
    assert "Are you still there?" in page
    assert "Game 3 is over, because no message came from you in time." in page
    assert "If you do not press the button in that time, the study ends for you. You then get $2" in page
    assert "Are you still there?" in text_of(app.test_client().get(LINK))  # on another device, too
    assert ending(engine, app, ann) is None
    assert (say_here(client), step_of(engine, ann)) == (303, "survey after match 3")
    with writing(engine) as session:
        go_to(find_progress(session, ann), "match 4")
    after = text_of(client.get(LINK))
    assert "Game 4 of 4" in after
    assert "You have missed your turn once. If the time runs out again, the study ends for you." in after
    with reading(engine) as session:
        assert session.get_one(MatchRow, match).reason == "timeout"
        assert session.scalars(select(MatchRow.id).where(MatchRow.position == 2)).all() == [match]  # not played again
        kept = session.scalars(
            select(StudyEvent.body).where(StudyEvent.kind == "still there").order_by(StudyEvent.id)
        ).all()
        assert kept == [{"match": match}]


def test_a_form_of_another_page_does_not_say_that_somebody_is_there(engine: Engine, app: Flask, ann: int) -> None:
    miss_turn(engine, ann)
    client = app.test_client()
    assert client.post(LINK, data={"step": "match 3"}).status_code == 303  # the button that began the match, once more
    assert step_of(engine, ann) == "match 3"
    assert "Are you still there?" in text_of(client.get(LINK))


def test_pressing_it_twice_goes_on_once(engine: Engine, app: Flask, ann: int) -> None:
    miss_turn(engine, ann)
    client = app.test_client()
    client.post(LINK, data={"step": "match 3", "here": "yes"})
    client.post(LINK, data={"step": "match 3", "here": "yes"})
    assert step_of(engine, ann) == "survey after match 3"


@pytest.mark.parametrize("by_page", [True, False], ids=["by the page", "by upkeep"])
def test_when_the_grace_is_over_the_study_ends_and_pays_the_time_and_what_was_earned(
    engine: Engine, app: Flask, ann: int, by_page: bool
) -> None:
    match = miss_turn(engine, ann)
    with writing(engine) as session:
        move_back(session, match, GRACE - timedelta(seconds=30))
    assert ending(engine, app, ann) is None
    with writing(engine) as session:
        move_back(session, match, timedelta(seconds=40))
    client = app.test_client()
    if by_page:
        assert client.post(LINK, data={"step": "match 3", "here": "yes"}).status_code == 303  # too late
    assert ending(engine, app, ann) == "inactive"
    with reading(engine) as session:
        rows = {row.key: row.amount for row in session.scalars(select(Payment))}
    # Of 5.00 for 25 minutes those of ten, which passed until the last step; neither the turn nor the grace.
    assert Decimal("2.00") <= rows["base"] < Decimal("2.30")
    assert rows["bonus"] > 0
    page = text_of(client.get(LINK))
    assert "The study has ended. We did not hear from you in time." in page
    assert "About the study" in page


def test_the_second_missed_turn_ends_the_study_at_once(engine: Engine, app: Flask, ann: int) -> None:
    miss_turn(engine, ann)
    say_here(app.test_client())
    miss_turn(engine, ann, "match 4")
    assert ending(engine, app, ann) == "inactive"
    with reading(engine) as session:
        assert sorted(session.scalars(select(Payment.key))) == ["base", "bonus"]


def test_a_missed_practice_asks_without_a_clock_and_counts_for_nothing(
    engine: Engine, app: Flask, known: KnownWave
) -> None:
    with writing(engine) as session:
        progress = person(session, known, "P1", at=datetime.now(UTC) - timedelta(minutes=10))
        progress.enrolment.plan = {**(progress.enrolment.plan or {}), "practice": [{"piece": 7, "seat": 0}]}
        number = progress.enrolment.id
    match = miss_turn(engine, number, "practice 1")
    with writing(engine) as session:
        move_back(session, match, GRACE * 2)
    assert ending(engine, app, number) is None
    page = app.test_client().get(LINK).text
    assert "Are you still there?" in page
    assert "data-left" not in page
    say_here(app.test_client())
    miss_turn(engine, number, "match 1")
    assert ending(engine, app, number) is None


def test_extra_time_makes_the_grace_longer(engine: Engine, app: Flask, ann: int) -> None:
    with writing(engine) as session:
        give(session, find_progress(session, ann), Decimal(2))
    with writing(engine) as session:
        progress = find_progress(session, ann)
        record = matches.start(session, progress, progress.step)
        move_back(session, record.id, LONG_AGO * 2)
    assert live.end_overdue(engine, record.id)
    with writing(engine) as session:
        move_back(session, record.id, GRACE + timedelta(minutes=4))
    assert ending(engine, app, ann) is None
    with writing(engine) as session:
        move_back(session, record.id, timedelta(minutes=2))
    assert ending(engine, app, ann) == "inactive"


def test_the_grace_does_not_run_while_the_server_is_away(engine: Engine, app: Flask, ann: int) -> None:
    match, now = miss_turn(engine, ann), datetime.now(UTC)
    with writing(engine) as session:
        move_back(session, match, GRACE * 2)
        session.add(Outage(began=now - timedelta(minutes=9), ended=now - timedelta(minutes=3)))
        session.add(Lease(name=f"{outages.WEB}one", owner="web", until=now + timedelta(minutes=1)))
    assert ending(engine, app, ann) is None
    with writing(engine) as session:
        session.execute(update(Outage).values(began=now - timedelta(minutes=5)))
    assert ending(engine, app, ann) == "inactive"


def test_the_address_of_the_missed_match_leads_to_the_question(engine: Engine, app: Flask, ann: int) -> None:
    client = app.test_client()
    with writing(engine) as session:
        progress = find_progress(session, ann)
        record = matches.start(session, progress, progress.step)
    assert client.get(LINK).location == f"/play/{record.id}"  # which seats this browser
    with writing(engine) as session:
        move_back(session, record.id, LONG_AGO)
    assert live.end_overdue(engine, record.id)
    for address in (f"/play/{record.id}", f"/play/{record.id}/result"):
        assert client.get(address).location == LINK
    say_here(client)
    assert client.get(f"/play/{record.id}/result").status_code == 200


def test_after_the_second_missed_turn_the_match_leads_to_how_the_study_ended(
    engine: Engine, app: Flask, ann: int
) -> None:
    client = app.test_client()
    miss_turn(engine, ann)
    say_here(client)
    with writing(engine) as session:
        progress = find_progress(session, ann)
        record = matches.start(session, progress, go_to(progress, "match 4"))
    assert client.get(LINK).location == f"/play/{record.id}"  # which seats this browser
    with writing(engine) as session:
        move_back(session, record.id, LONG_AGO)
    assert live.end_overdue(engine, record.id)
    with writing(engine) as session:
        matches.end_after_silence(session, record.id)
    assert ending(engine, app, ann) == "inactive"
    for address in (f"/play/{record.id}", f"/play/{record.id}/result"):
        assert client.get(address).location == LINK


def test_a_version_of_before_pays_what_it_paid_when_it_was_written(engine: Engine, known: KnownWave) -> None:
    with writing(engine) as session:
        version = session.get_one(StudyVersion, known.version)
        assert store.design_of(version).ending("inactive", PROLIFIC).base == "by time"
        old = StudyVersion(
            study_id=version.study_id, number=99, design={**version.design, "format": 1}, sha256=version.sha256,
            created_at=version.created_at,
        )  # fmt: skip
        session.add(old)
        session.flush()
        kept = store.design_of(old).ending("inactive", PROLIFIC)
    assert (kept.base, kept.bonus) == ("none", "earned")


def test_the_grace_is_the_designs(engine: Engine, app: Flask, tmp_path: Path) -> None:
    with writing(engine) as session:
        version = load_example(
            session, tmp_path, **{"limits: {turn: 2 min": "idle: {end: 20 min}\n  limits: {turn: 2 min"}
        )
        known = KnownWave(open_wave(session, version).id, version.id)
        progress = person(session, known, "P1", at=datetime.now(UTC))
        number = progress.enrolment.id
    match = miss_turn(engine, number, "match 1")
    with writing(engine) as session:
        move_back(session, match, timedelta(minutes=19))
    assert ending(engine, app, number) is None
    with writing(engine) as session:
        move_back(session, match, timedelta(minutes=2))
    assert ending(engine, app, number) == "inactive"


def test_a_page_that_was_left_open_says_when_the_study_ends_and_takes_a_press(
    engine: Engine, app: Flask, known: KnownWave
) -> None:
    silent = timedelta(minutes=65)  # of the 75 that a study of 25 minutes allows
    with writing(engine) as session:
        progress = person(session, known, "P1", at=datetime.now(UTC) - silent)
        go_to(progress, "instructions 1")
        number = progress.enrolment.id
    client = app.test_client()
    page = client.get(LINK).text
    left = re.search(r'data-silent-in="([\d.]+)"', page)
    assert left is not None
    assert 500 < float(left[1]) <= 600
    assert "We have not heard from you for a long time." in page
    assert client.post(f"{LINK}/here").location == LINK
    assert 4400 < float(re.findall(r'data-silent-in="([\d.]+)"', client.get(LINK).text)[0]) <= 4500
    assert step_of(engine, number) == "instructions 1"
