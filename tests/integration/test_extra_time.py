"""Extra time for one person: by their code, on their page, or by a personal link before they come."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from flask import Flask
from sqlalchemy import select

from app.core.errors import FieldError
from app.core.extensions import reading, writing
from app.models import Enrolment, Participant, StudyEvent
from app.studies import extra_time, matches
from app.studies.assignment import assign
from app.studies.extra_time import EXTRA_TIME, factor_of
from app.studies.idle import end_silent
from app.studies.progress import end, find_progress
from app.studies.waves import close, find_wave, freeze
from tests.experimenter import signed_in
from tests.integration.test_cli_dataset import flask
from tests.integration.test_study_export import export
from tests.study_matches import go_to
from tests.study_pages import door_of, prolific_id, text_of
from tests.waves import changed, join, loaded_study, new_wave, store_study

LIMITS = {"same_for_all": {"limits": {"turn": "90 s", "match": "10 min"}}}


@pytest.fixture
def ann(app: Flask) -> int:
    """The enrolment of somebody in a wave, with an arm."""
    with writing() as session:
        store_study(session, changed(loaded_study(), **LIMITS))
        progress = join(session, new_wave(session), "ann")
        assign(session, progress)
        return progress.enrolment.id


def given() -> list[dict[str, str]]:
    with reading() as session:
        return list(
            session.scalars(select(StudyEvent.body).where(StudyEvent.kind == EXTRA_TIME).order_by(StudyEvent.id))
        )


def test_clocks_are_longer_from_the_next_match_on(app: Flask, ann: int, tmp_path: Path) -> None:
    with writing() as session:
        progress = find_progress(session, ann)
        code = session.get_one(Participant, progress.enrolment.participant_id).code
        before = matches.start(session, progress, go_to(progress, "match 1")).match.clocks
    told = flask(app, "study", "extra-time", "two-models:main", "1.5", code)
    assert (told.exit_code, told.stdout) == (0, f"{code} has 1.5 times as long from the next match on.\n")
    with writing() as session:
        progress = find_progress(session, ann)
        after = matches.start(session, progress, go_to(progress, "match 2")).match.clocks
        assert matches.start(session, progress, go_to(progress, "match 1")).match.clocks == before
        assert ((before.turn, before.match), (after.turn, after.match)) == ((90, 600), (135, 900))
    flask(app, "study", "extra-time", "two-models:main", "1.5", code)  # the same once more is no news
    assert given() == [{"factor": "1.5", "by": "command line"}]
    with reading() as session:
        (row,) = export(session.get_bind(), tmp_path, public=True).rows("enrolments")  # type: ignore[arg-type]
        assert row["extra_time"] == "1.5"


def test_who_has_extra_time_may_be_away_for_longer(app: Flask, ann: int) -> None:
    with writing() as session:
        progress = find_progress(session, ann)
        extra_time.give(session, progress, extra_time.read_factor("2"))
        longest = timedelta(minutes=3 * progress.design.minutes)
        now = datetime.now(UTC) + longest + timedelta(minutes=30)
        assert end_silent(session, ann, now) is None
        extra_time.give(session, progress, extra_time.read_factor("1"))
        assert factor_of(session, ann) == 1
        assert end_silent(session, ann, now + timedelta(minutes=1)) == []
        assert progress.enrolment.ending == "inactive"


def test_a_personal_link_gives_the_time_to_whom_it_is_for(app: Flask) -> None:
    with writing() as session:
        new_wave(session)
    told = flask(app, "study", "extra-time", "two-models:main", "2", "--id", prolific_id("ann"), "--json")
    link = urlsplit(json.loads(told.stdout)["link"])
    door = f"{link.path}?{link.query}"
    assert f"PROLIFIC_PID={prolific_id('ann')}&STUDY_ID=66f0c1&extra_time=" in door
    client = app.test_client()
    for wrong in (f"{door}x", door.replace(prolific_id("ann"), prolific_id("ben"))):
        for refused in (client.get(wrong), client.post(wrong)):
            assert refused.status_code == 404
            assert "This link does not lead to a study." in text_of(refused)
    with reading() as session:
        assert session.query(Enrolment).count() == 0
    assert client.post(door).status_code == 303
    assert client.post(door).status_code == 303
    assert given() == [{"factor": "2"}]
    assert app.test_client().post(door_of("ben")).status_code == 303
    with reading() as session:
        assert [factor_of(session, row.id) for row in session.query(Enrolment).order_by(Enrolment.id)] == [2, 1]


def test_time_is_given_on_the_page_of_a_person(app: Flask, ann: int) -> None:
    client = signed_in(app)
    with reading() as session:
        page = f"/admin/studies/waves/{find_wave(session, 'two-models:main').id}/people/{ann}"
    assert client.post(page, data={"action": "extra time", "factor": "1.25"}).status_code == 303
    shown = text_of(client.get(page))
    assert "1.25 times as long as others" in shown
    assert "was given 1.25 times as long" in shown
    refused = client.post(page, data={"action": "extra time", "factor": "9"})
    assert refused.status_code == 400
    assert "expected a number from 1 to 5 with two decimals at most, such as 1.5, got '9'" in text_of(refused)
    assert 'value="9"' in refused.text
    assert len(given()) == 1


@pytest.mark.parametrize("factor", ["0.5", "5.01", "1.005", "NaN", "fast", ""])
def test_a_factor_that_is_none_is_refused(app: Flask, ann: int, factor: str) -> None:
    refused = flask(app, "study", "extra-time", "two-models:main", factor, "--id", "ann")
    assert refused.exit_code == 2
    assert refused.stderr.startswith("Error: factor: expected a number from 1 to 5")
    assert refused.stderr.count("\n") == 1


def test_nobody_is_given_time_who_has_ended_or_has_no_id(app: Flask, ann: int) -> None:
    assert "--id: expected the recruiter's id of the person" in (
        flask(app, "study", "extra-time", "two-models:main", "2").stderr
    )
    with writing() as session:
        progress, wave = find_progress(session, ann), find_wave(session, "two-models:main")
        end(session, progress, "completed")
        with pytest.raises(FieldError, match="expected one who is under way"):
            extra_time.give(session, progress, extra_time.read_factor("2"))
        close(session, wave)
        freeze(session, wave)
    assert "expected a wave that is not frozen" in (
        flask(app, "study", "extra-time", "two-models:main", "2", "--id", "ben").stderr
    )
