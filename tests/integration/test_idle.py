"""Who goes away without a word is ended by upkeep, and gives the place to another person, on both databases."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import Engine, select, update
from sqlalchemy.orm import Session

from app.core.extensions import reading, writing
from app.matches import live, outages
from app.models import Enrolment, EventRow, Lease, MatchRow, Outage, Payment, StudyEvent, StudyVersion, Wave
from app.studies.matches import start
from app.studies.places import places_taken
from app.studies.progress import StudyProgress, answer
from tests.enrolments import KnownWave, begin, enrol, load_example, open_wave, person, play
from tests.study_matches import go_to
from workers.upkeep import look_after

HOURS = timedelta(hours=3)  # of two-models, which states 25 minutes, that is long enough


def silent_person(session: Session, known: KnownWave, code: str, silent: timedelta = HOURS) -> StudyProgress:
    """Who came in and went no step further since."""
    return person(session, known, code, at=datetime.now(UTC) - silent)


def _long_ago(session: Session) -> None:
    """Put all that happened so far to when people came in."""
    for model in (EventRow, StudyEvent):
        session.execute(update(model).values(at=datetime.now(UTC) - HOURS))


def endings(engine: Engine, app: Flask) -> dict[str, str | None]:
    """How people have ended after a round of upkeep, by their codes."""
    look_after(engine, app.config["SETTINGS"], "upkeep", lambda *_: None)
    with reading(engine) as session:
        return {row.token: row.ending for row in session.execute(select(Enrolment.token, Enrolment.ending))}


def test_who_is_silent_for_long_ends_is_settled_and_frees_the_place(
    engine: Engine, app: Flask, known: KnownWave
) -> None:
    with writing(engine) as session:
        progress = silent_person(session, known, "P1")
        play(session, progress, 0)
        number = begin(session, progress, 1).id
        _long_ago(session)
    assert endings(engine, app) == {"P1": "inactive"}
    assert endings(engine, app) == {"P1": "inactive"}
    with reading(engine) as session:
        assert places_taken(session, session.get_one(Wave, known.wave)) == 0
        assert session.get_one(MatchRow, number).status == "over"
        base, bonus = session.scalars(select(Payment.amount).order_by(Payment.id))
        assert base < 1  # of 5: by the time that was taken, which is how long the test took
        assert bonus > 0


def test_who_was_silent_at_the_debrief_had_done_all_and_has_completed(
    engine: Engine, app: Flask, known: KnownWave
) -> None:
    with writing(engine) as session:
        progress = silent_person(session, known, "P1")
        play(session, progress, 0)
        go_to(progress, "debrief")
        _long_ago(session)
    assert endings(engine, app) == {"P1": "completed"}
    with reading(engine) as session:
        base, bonus = session.scalars(select(Payment.amount).order_by(Payment.id))
        assert base == 5
        assert bonus > 0


@pytest.mark.parametrize(("minutes", "ending"), [(55, None), (70, None), (80, "inactive")])
def test_it_takes_three_times_the_minutes_of_the_design(
    engine: Engine, app: Flask, known: KnownWave, minutes: int, ending: str | None
) -> None:
    with writing(engine) as session:
        silent_person(session, known, "P1", timedelta(minutes=minutes))
    assert endings(engine, app) == {"P1": ending}


@pytest.mark.parametrize(("minutes", "ending"), [(55, None), (65, "inactive")])
def test_in_a_short_study_it_takes_an_hour(
    engine: Engine, app: Flask, tmp_path: Path, minutes: int, ending: str | None
) -> None:
    with writing(engine) as session:
        version = load_example(session, tmp_path, **{"minutes: 25": "minutes: 5"})
        silent_person(session, KnownWave(open_wave(session, version).id, version.id), "P1", timedelta(minutes=minutes))
    assert endings(engine, app) == {"P1": ending}


def test_who_plays_on_or_answers_is_here(engine: Engine, app: Flask, known: KnownWave) -> None:
    with writing(engine) as session:
        playing, answering = silent_person(session, known, "P1"), silent_person(session, known, "P2")
        record = begin(session, playing, 0)
        _long_ago(session)
        live.submit(session, live.MoveSubmission(record.id, 0, "[message] still here"), instant=False)
        answer(answering, "quiz 1", {"attempts": []})
    assert endings(engine, app) == {"P1": None, "P2": None}


def test_previews_are_left_alone(engine: Engine, app: Flask, known: KnownWave) -> None:
    with writing(engine) as session:
        at = datetime.now(UTC) - HOURS
        enrol(session, None, "P1", session.get_one(StudyVersion, known.version), at=at)
    assert endings(engine, app) == {"P1": None}


def test_who_left_a_match_and_then_the_page_has_withdrawn(engine: Engine, app: Flask, known: KnownWave) -> None:
    with writing(engine) as session:
        progress = silent_person(session, known, "P1")
        record = start(session, progress, go_to(progress, "match 1"))
    with writing(engine) as session:
        live.submit(session, live.MoveSubmission(record.id, 0, None), instant=False)
        _long_ago(session)
    assert endings(engine, app) == {"P1": "withdrawn"}
    with reading(engine) as session:
        assert session.scalars(select(Payment.amount).order_by(Payment.id)).first() > 0  # type: ignore[operator]


def test_a_match_that_a_model_broke_off_is_not_begun_again_for_nobody(
    engine: Engine, app: Flask, known: KnownWave
) -> None:
    with writing(engine) as session:
        progress = silent_person(session, known, "P1")
        record = start(session, progress, go_to(progress, "match 1"))
        live.abort(session, record, "model", 1, "no answer")
        _long_ago(session)
    assert endings(engine, app) == {"P1": "inactive"}
    with reading(engine) as session:
        assert session.query(MatchRow).count() == 1
        assert [row.key for row in session.query(Payment).order_by(Payment.id)] == ["base", "bonus"]


def test_nobody_was_silent_while_the_server_was_away(engine: Engine, app: Flask, known: KnownWave) -> None:
    now = datetime.now(UTC)
    with writing(engine) as session:
        silent_person(session, known, "P1", timedelta(minutes=100))
        session.add(Outage(began=now - timedelta(minutes=90), ended=now - timedelta(minutes=60)))
        session.add(Lease(name=f"{outages.WEB}one", owner="web", until=now + timedelta(minutes=1)))
    assert endings(engine, app) == {"P1": None}
    with writing(engine) as session:
        session.execute(update(Outage).values(began=now - timedelta(minutes=80)))
    assert endings(engine, app) == {"P1": "inactive"}
