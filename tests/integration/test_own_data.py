"""People get a file of all that is kept about them, read what applies to it, and are unlinked on a stated day."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, delete, select, update

from app.core.config import Settings
from app.core.extensions import reading, writing
from app.matches.turns import WorkerContext
from app.models import Consent, Enrolment, Lease, Participant, RecruitmentIdentity, Submission, Wave
from app.studies.answers import draw_arm
from app.studies.progress import find_progress_by_token
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
        progress = find_progress_by_token(session, walker.address.rpartition("/")[2], lock=True)
        progress.enrolment.step = next(at for at, step in enumerate(progress.steps) if step.key == "match 1")
        draw_arm(session, progress)
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
    (progress,) = found["enrolments"]
    assert (progress["wave"], progress["ending"], progress["arm"]) == (
        "main",
        None,
        None,
    )  # the arm would tell what is compared
    assert "assignment" not in [each["kind"] for each in progress["log"]]
    assert progress["visits"][0]["status"] == "active"
    (match,) = found["matches"]
    assert match["match"] == played
    assert {entry["by"] for entry in match["transcript"]} == {"you", "partner"}
    assert all(entry["text"] for entry in match["transcript"] if entry["by"] == "you")
    assert set(match["secret"]) == {"values"}  # the person's own; the partner's are nowhere
    assert other not in json.dumps(found)

    ann.client.post(f"{ann.address}/leave", data={"act": "stop"})
    (progress,) = data_of(ann)["enrolments"]
    assert progress["ending"] == "withdrawn"
    assert set(progress["arm"]["conditions"][0]) >= {"model", "objective"}
    assert progress["payments"]
    assert "assignment" in [each["kind"] for each in progress["log"]]

    ann.client.post(f"{ann.address}/leave", data={"act": "delete", "sure": "yes"})
    rest = data_of(ann)
    assert rest["person"]["deleted"]
    assert not any(entry["text"] for each in rest["matches"] for entry in each["transcript"] if entry["by"] == "you")


# What the file calls each column of what is kept about a person.
IN_FILE: dict[str, dict[str, str]] = {
    "participant": {
        "code": "person.code", "study_id": "person.study", "created_at": "person.came", "erased_at": "person.deleted",
        "person_hash": "person.linked_to_other_studies",
    },
    "recruitment_identity": {
        name: f"person.recruiter_ids.0.{called}"
        for name, called in (("recruiter", "recruiter"), ("external_id", "id"), ("remove_on", "deleted_on"))
    },
    "consent": {
        "kind": "consents.0.kind", "text_version": "consents.0.sha256_of_text", "given": "consents.0.given",
        "at": "consents.0.at", "withdrawn_at": "consents.0.withdrawn_at",
    },
    "enrolment": {
        "study_version_id": "enrolments.0.version", "wave_id": "enrolments.0.wave", "device": "enrolments.0.device",
        "stratum": "enrolments.0.stratum", "arm_id": "enrolments.0.arm.name", "assigned_at": "enrolments.0.arm_drawn",
        "holds_place": "enrolments.0.holds_place", "agreed_at": "enrolments.0.agreed", "plan": "enrolments.0.arm.plan",
        "step": "enrolments.0.at_step", "stage": "enrolments.0.on_page", "ending": "enrolments.0.ending",
        "answers": "enrolments.0.answers",
        "enrolled_at": "enrolments.0.came", "seen_at": "enrolments.0.last_seen", "ended_at": "enrolments.0.ended",
    },
    "submission": {
        "recruiter": "enrolments.0.visits.0.recruiter", "external_id": "enrolments.0.visits.0.id",
        "status": "enrolments.0.visits.0.status", "created_at": "enrolments.0.visits.0.began",
        "changed_at": "enrolments.0.visits.0.changed", "listed_at": "enrolments.0.visits.0.listed",
        "handed_in": "enrolments.0.visits.0.handed_in", "other_person": "enrolments.0.visits.0.is_another_persons",
    },
}  # fmt: skip
LEFT_OUT = {
    "id": "a number of the database, which says nothing about anybody",
    "participant_id": "the file is of one person",
    "enrolment_id": "visits stand under their way",
    "submission.wave_id": "the wave stands on the way",
    "enrolment.token": "it opens the person's pages, who came by it; a file is passed on more easily than a link",
}


def at_path(found: Any, path: str) -> Any:
    for name in path.split("."):
        found = found[int(name)] if isinstance(found, list) else found[name]
    return found


def test_each_column_about_a_person_is_in_the_file_or_left_out_for_a_reason(
    app: Flask, engine: Engine, opened: None, desk: Callable[..., WorkerContext]
) -> None:
    ann = come(app, "ann")
    play_one(ann, engine, desk)
    listed = datetime(2026, 5, 1, tzinfo=UTC)
    with writing() as session:
        session.execute(update(Enrolment).values(stratum="phone"))
        session.execute(update(Submission).values(handed_in="other code", listed_at=listed))
    before = data_of(ann)
    assert (before["enrolments"][0]["stratum"], before["person"]["link_deleted_after"]) == (None, None)
    ann.client.post(f"{ann.address}/leave", data={"act": "stop"})
    with writing() as session:
        close(session, find_wave(session, "two-models:main"))
    found = data_of(ann)
    for table in (Participant, RecruitmentIdentity, Consent, Enrolment, Submission):
        of_table = table.__tablename__
        for column in table.__table__.columns:
            name = column.name
            if name in LEFT_OUT or f"{of_table}.{name}" in LEFT_OUT:
                continue
            assert name in IN_FILE[of_table], f"{of_table}.{name} is neither in the file nor left out for a reason"
            at_path(found, IN_FILE[of_table][name])
    (progress,) = found["enrolments"]
    assert progress["stratum"] == "phone"
    assert progress["agreed"] >= progress["came"]
    assert (progress["visits"][0]["handed_in"], progress["visits"][0]["listed"]) == ("other code", listed.isoformat())
    assert found["person"]["link_deleted_after"] == (datetime.now(UTC).date() + timedelta(days=730)).isoformat()


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
    assert found["enrolments"] == []
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
