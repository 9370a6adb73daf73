"""People get a file of all that is kept about them, read what applies to it, and are unlinked on a stated day."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, delete, select, update

from app.config import Settings
from app.extensions import reading, writing
from app.matches.turns import WorkerContext
from app.models import Enrolment, Lease, Participant, Wave
from app.studies.answers import draw_arm
from app.studies.progress import find_way_by_token
from app.studies.retention import unlinked_people
from app.studies.waves import close, find_wave
from tests.study_pages import AT_ONCE, MATCH, Walker, door_of, play_out, text_of
from tests.waves import changed, loaded_study, new_wave, store_study
from workers.upkeep import look_after


@pytest.fixture
def opened(app: Flask) -> None:
    with writing() as session:
        store_study(session, changed(loaded_study("two-models"), same_for_all=AT_ONCE))
        new_wave(session)


def come(app: Flask, name: str) -> Walker:
    return Walker(app.test_client(), door_of(name))


def play_one(walker: Walker, engine: Engine, desk: Callable[..., WorkerContext]) -> str:
    """Agree, come as far as the first game that counts, and play it; its id."""
    walker.send(part="yes", training="yes")
    with writing() as session:
        way = find_way_by_token(session, walker.address.rpartition("/")[2], lock=True)
        way.enrolment.step = next(at for at, step in enumerate(way.steps) if step.key == "match 1")
        draw_arm(session, way)
    walker.look()
    match = MATCH.search(walker.send().location or "")
    assert match is not None
    play_out(engine, desk, match[1])
    return match[1]


def data_of(walker: Walker) -> dict[str, Any]:
    answer = walker.client.get(f"{walker.address}/data.json")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="my-data.json"'
    assert "no-store" in answer.headers["Cache-Control"]
    found: dict[str, Any] = json.loads(answer.text)
    return found


def test_a_person_gets_all_that_is_kept_about_them_and_nothing_of_others(
    app: Flask, engine: Engine, opened: None, desk: Callable[..., WorkerContext]
) -> None:
    ann, ben = come(app, "ann"), come(app, "ben")
    played, other = play_one(ann, engine, desk), play_one(ben, engine, desk)
    page = ann.client.get(f"{ann.address}/leave")
    assert f'href="{ann.address.removeprefix("http://localhost")}/data.json"' in page.text
    found = data_of(ann)
    with reading() as session:
        person = session.scalars(select(Participant).order_by(Participant.id)).first()
        assert person is not None
        assert found["person"]["code"] == person.code
    assert [each["recruiter"] for each in found["person"]["recruiter_ids"]] == ["prolific"]
    assert {(each["kind"], each["given"]) for each in found["consents"]} == {
        ("participation", True),
        ("training", True),
    }
    (way,) = found["ways"]
    assert (way["wave"], way["ending"], way["arm"]) == ("main", None, None)  # the arm would tell what is compared
    assert "assignment" not in [each["kind"] for each in way["log"]]
    assert way["visits"][0]["status"] == "active"
    (match,) = found["matches"]
    assert match["match"] == played
    assert {entry["by"] for entry in match["transcript"]} == {"you", "partner"}
    assert all(entry["text"] for entry in match["transcript"] if entry["by"] == "you")
    assert set(match["secret"]) == {"values"}  # the person's own; the partner's are nowhere
    assert other not in json.dumps(found)

    ann.client.post(f"{ann.address}/leave", data={"act": "stop"})
    (way,) = data_of(ann)["ways"]
    assert way["ending"] == "withdrawn"
    assert set(way["arm"]["conditions"][0]) >= {"model", "objective"}
    assert way["payments"]
    assert "assignment" in [each["kind"] for each in way["log"]]

    ann.client.post(f"{ann.address}/leave", data={"act": "delete", "sure": "yes"})
    rest = data_of(ann)
    assert rest["person"]["deleted"]
    assert not any(entry["text"] for each in rest["matches"] for entry in each["transcript"] if entry["by"] == "you")


def test_the_hash_stays_while_the_wave_is_open_so_that_nobody_takes_part_twice(app: Flask) -> None:
    with writing() as session:
        design = loaded_study("two-models")
        privacy = {**design.written["privacy"], "link_deleted": "30 days after taking part"}
        store_study(session, changed(design, privacy=privacy))
        new_wave(session)
    words = text_of(come(app, "ann").page)
    assert "is deleted 30 days after you took part, but not before the study closes" in words
    come(app, "ann").send(part="yes")
    with writing() as session:
        (person,) = session.scalars(select(Participant.id))
        session.execute(update(Enrolment).values(ended_at=datetime.now(UTC) - timedelta(days=90), ending="completed"))
        assert unlinked_people(session) == []
        close(session, find_wave(session, "two-models:main"))
        today = datetime.now(UTC).date()
        assert unlinked_people(session, today) == []
        assert unlinked_people(session, today + timedelta(days=1)) == [person]


def test_a_link_that_is_nobodys_gets_no_data(app: Flask, opened: None) -> None:
    assert app.test_client().get(f"/s/me/{'x' * 43}/data.json").status_code == 404
    assert app.test_client().get("/privacy/my-data.json").status_code == 404


def test_a_guest_gets_the_games_that_were_begun_in_this_browser(app: Flask) -> None:
    guest, other = app.test_client(), app.test_client()
    for client in (guest, other):
        assert client.post("/start/taboo", data={}).status_code == 303
    page = guest.get("/privacy")
    assert 'href="/privacy/my-data.json"' in page.text
    found = json.loads(guest.get("/privacy/my-data.json").text)
    assert found["person"]["study"] is None
    assert found["ways"] == []
    (match,) = found["matches"]
    assert match["game"] == "taboo"


def test_consent_says_that_games_are_watched_and_when_the_link_to_other_studies_ends(app: Flask, opened: None) -> None:
    words = text_of(come(app, "ann").page)
    assert "The researchers can read along while you play." in words
    assert "whether you took part in another study of theirs, is deleted 730 days after the study closes" in words
    assert "The people who run this server can read along while you play." in text_of(app.test_client().get("/privacy"))


def test_the_hash_that_links_studies_goes_on_its_day_and_not_before(
    app: Flask, engine: Engine, settings: Settings, opened: None
) -> None:
    come(app, "ann").send(part="yes")

    def linked() -> bool:
        with writing() as session:  # upkeep does this once an hour
            session.execute(delete(Lease))
        look_after(engine, settings, "owner", lambda *_: None)
        with reading() as session:
            return session.scalars(select(Participant.person_hash)).one() is not None

    def close_before(days: int) -> None:
        with writing() as session:
            closed = datetime.now(UTC) - timedelta(days=days)
            session.execute(update(Wave).values(closed_at=closed))

    with writing() as session:
        session.execute(update(Enrolment).values(ended_at=datetime.now(UTC) - timedelta(days=900), ending="completed"))
    assert linked()  # the wave is open
    with writing() as session:
        close(session, find_wave(session, "two-models:main"))
    close_before(730)
    assert linked()
    close_before(731)
    assert not linked()
