"""Reports of people: asked in one click, paid as always, and in an inbox before anybody is paid, on both databases."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, select

from app.core.extensions import reading, writing
from app.models import Enrolment, Participant, Payment, PaymentBatch, StudyEvent, Wave
from app.studies.monitor.inbox import MOST, how_many, inbox, unread
from app.studies.reports import HANDLED, MARKS, NEW, READ, keep_report, mark_report
from tests.enrolments import KnownWave, load_example, open_wave, person, play
from tests.experimenter import signed_in
from tests.integration.test_cli_dataset import flask
from tests.study_matches import go_to
from tests.study_pages import text_of

LINK = "/s/me/P1"


def playing(engine: Engine, known: KnownWave, code: str = "P1") -> int:
    """Somebody who has made a deal, and is in the second match."""
    with writing(engine) as session:
        progress = person(session, known, code, at=datetime.now(UTC) - timedelta(minutes=1))
        play(session, progress, 0)
        go_to(progress, "match 2")
        return progress.enrolment.id


def report(client: FlaskClient, code: str = "P1", **form: str) -> int:
    return client.post(f"/s/me/{code}/report", data={"reason": "stuck", "then": "leave", **form}).status_code


def test_leaving_with_a_report_pays_the_whole_base_and_stands_in_the_inbox(
    engine: Engine, app: Flask, known: KnownWave
) -> None:
    number = playing(engine, known)
    client = app.test_client()
    page = text_of(client.get(f"{LINK}/report"))
    assert "What went wrong?" in page
    assert "If you leave with this report, you are paid about $5." in page
    assert report(client) == 303
    with reading(engine) as session:
        assert session.get_one(Enrolment, number).ending == "technical"
        rows = {row.key: row.amount for row in session.scalars(select(Payment))}
        assert rows["base"] == 5
        (found,) = inbox(session)
        assert (found.reason, found.text, found.state, found.number, found.ending) == (
            "stuck", "", "new", 1, "technical",
        )  # fmt: skip


def test_a_report_without_a_reason_is_asked_for_one_and_ends_nothing(
    engine: Engine, app: Flask, known: KnownWave
) -> None:
    number = playing(engine, known)
    client = app.test_client()
    for reason in ("", "money"):
        answer = client.post(f"{LINK}/report", data={"reason": reason, "then": "leave", "text": "It was rude."})
        assert answer.status_code == 400
        assert "Please choose one of the answers." in text_of(answer)
        assert "It was rude." in text_of(answer)
    with reading(engine) as session:
        assert session.get_one(Enrolment, number).ending is None
        assert inbox(session) == []


def test_the_same_report_sent_twice_is_kept_once(engine: Engine, app: Flask, known: KnownWave) -> None:
    playing(engine, known)
    client = app.test_client()
    assert (report(client), report(client)) == (303, 303)
    with reading(engine) as session:
        assert len(inbox(session)) == 1


def test_repeats_of_a_person_are_flagged_in_every_study_and_paid_all_the_same(
    engine: Engine, app: Flask, known: KnownWave, tmp_path: Path
) -> None:
    playing(engine, known)
    with writing(engine) as session:
        version = load_example(session, tmp_path / "other", **{"study: two-models": "study: another"})
        other = KnownWave(open_wave(session, version, name="later").id, version.id)
    playing(engine, other, "P2")
    with writing(engine) as session:
        for each in session.scalars(select(Participant)):
            each.person_hash = "the same person"
    client = app.test_client()
    report(client)
    report(client, "P2", reason="other")
    with reading(engine) as session:
        assert [(each.study, each.number, each.elsewhere) for each in inbox(session)] == [
            ("another", 2, 1), ("two-models", 1, 1),
        ]  # fmt: skip
        assert session.scalars(select(Payment.amount).where(Payment.key == "base")).all() == [5, 5]
    page = text_of(signed_in(app).get("/admin/studies/reports"))
    assert "Report 2 of this person in other waves: 1" in page


def test_the_inbox_lists_links_filters_and_marks(engine: Engine, app: Flask, known: KnownWave) -> None:
    number = playing(engine, known)
    report(app.test_client(), text="It =hung= <b>there</b>.", then="stay")
    admin = signed_in(app)
    assert "1 unread report" in text_of(admin.get("/admin/models"))
    assert "1 report of a participant has not been read." in text_of(admin.get("/admin/"))
    page = admin.get("/admin/studies/reports").text
    assert "game or partner does not go on" in page
    assert "It =hung= &lt;b&gt;there&lt;/b&gt;." in page
    assert f"/admin/studies/waves/{known.wave}/people/{number}" in page
    assert "two-models:main</a>" in page
    with reading(engine) as session:
        (found,) = inbox(session)
    seen = session_seen(engine, number)
    for action, state in (("read", "read"), ("handled", "handled"), ("new", "new"), ("read", "read")):
        answer = admin.post("/admin/studies/reports", data={"report": found.event.id, "action": action})
        assert answer.status_code == 303
        with reading(engine) as session:
            (marked,) = inbox(session)
            assert marked.state == state
    assert session_seen(engine, number) == seen  # what an experimenter does is no sign of life
    assert "unread report" not in text_of(admin.get("/admin/models"))
    assert "None is like that." in text_of(admin.get(f"/admin/studies/reports?state=new&wave={known.wave}"))
    for wrong in ({"report": "999", "action": "read"}, {"report": str(found.event.id), "action": "dock"}, {}):
        assert admin.post("/admin/studies/reports", data=wrong).status_code in (400, 404)
    assert admin.get("/admin/studies/reports?wave=x").status_code == 400


def test_many_reports_of_one_person_hide_nobodys_unread_one(engine: Engine, app: Flask, known: KnownWave) -> None:
    provided(engine, known)
    with writing(engine) as session:
        keep_report(session, person(session, known, "P1"), "other", "The unread one.")
        loud = person(session, known, "P2")
        for number in range(MOST + 1):
            keep_report(session, loud, "other", f"Noise {number}.")
    with writing(engine) as session:
        noise = inbox(session, most=None)[:-1]
        for each in noise[1:]:
            session.add(StudyEvent(wave_id=known.wave, enrolment_id=None, kind=MARKS[READ],
                                   body={"report": each.event.id, "by": "ann"}, at=each.event.at))  # fmt: skip
        mark_report(session, noise[0].event.id, HANDLED, "ann")
        mark_report(session, noise[0].event.id, NEW, "ann")
    with reading(engine) as session:
        assert [each.text for each in inbox(session, state=NEW)] == [f"Noise {MOST}.", "The unread one."]
        assert [each.state for each in inbox(session)[:3]] == [NEW, NEW, READ]
        assert (len(inbox(session)), how_many(session), unread(session)) == (MOST, MOST + 2, 2)
        assert len(inbox(session, state=READ)) == MOST
        assert inbox(session, state="nonsense") == []
    page = text_of(signed_in(app).get("/admin/studies/reports"))
    assert "The unread one." in page
    assert f"not listed here: {MOST + 2 - 5} more of this person" in page.lower()
    assert f"{MOST + 2} reports" in text_of(signed_in(app).get(f"/admin/studies/waves/{known.wave}"))
    assert len(flask(app, "study", "reports", "--limit", "1000").stdout.splitlines()) == 1 + MOST + 2
    assert len(flask(app, "study", "reports", "--json").stdout.splitlines()) == MOST + 2


def session_seen(engine: Engine, number: int) -> list[datetime]:
    """When the log of a person has something."""
    with reading(engine) as session:
        return list(session.scalars(select(StudyEvent.at).where(StudyEvent.enrolment_id == number)))


def test_no_batch_is_drafted_before_reports_are_read_without_a_reason(
    engine: Engine, app: Flask, known: KnownWave
) -> None:
    provided(engine, known)
    playing(engine, known)
    report(app.test_client(), text="The page hung.")
    admin, here = signed_in(app), f"/admin/studies/waves/{known.wave}/pay"
    page = text_of(admin.get(here))
    assert "Pay before 1 report is read?" in page
    assert "The page hung." in page
    assert "Report that is not read yet: " in flask(app, "study", "pay", "two-models:main").stdout
    refused = flask(app, "study", "pay", "two-models:main", "draft")
    assert (refused.exit_code, len(refused.stderr.splitlines())) == (2, 1)
    assert "expected a wave whose reports are read, got 1 that nobody has read" in refused.stderr
    for form in ({}, {"set_aside": "  "}):
        answer = admin.post(here, data={"action": "draft", **form})
        assert answer.status_code == 409
        assert "whose reports are read" in text_of(answer)
    assert batches(engine) == []
    reason = "It is about the last page alone"
    drafted = flask(app, "study", "pay", "two-models:main", "draft", "--reason", reason)
    assert drafted.exit_code == 0
    assert drafted.stdout.startswith("Batch 1 ")
    with reading(engine) as session:
        (kept,) = session.scalars(select(StudyEvent).where(StudyEvent.kind == "unread reports"))
        (found,) = inbox(session)
        assert kept.body == {"reports": [found.event.id], "reason": reason, "by": "command line"}
        assert found.state == NEW  # that it was not waited for makes it no read one


def test_a_page_drafts_with_a_reason_and_when_all_reports_are_read_without_one(
    engine: Engine, app: Flask, known: KnownWave
) -> None:
    provided(engine, known)
    for code in ("P1", "P2"):
        playing(engine, known, code)
        report(app.test_client(), code)
    admin, here = signed_in(app), f"/admin/studies/waves/{known.wave}/pay"
    assert admin.post(here, data={"action": "draft", "set_aside": "Both were about the sound"}).status_code == 303
    assert admin.post(here, data={"action": "discard", "batch": "1"}).status_code == 303
    assert batches(engine) == []
    assert admin.post(here, data={"action": "draft"}).status_code == 409
    with reading(engine) as session:
        first, second = inbox(session)
    for each, action in ((first, "handled"), (second, "read")):
        admin.post("/admin/studies/reports", data={"report": each.event.id, "action": action})
    assert "Pay before" not in text_of(admin.get(here))
    assert admin.post(here, data={"action": "draft"}).status_code == 303
    assert len(batches(engine)) == 1


def test_a_page_lists_three_reports_of_a_person_and_reads_all_of_them_at_once(
    engine: Engine, app: Flask, known: KnownWave
) -> None:
    provided(engine, known)
    with writing(engine) as session:
        keep_report(session, person(session, known, "P1"), "other", "The quiet one.")
        loud = person(session, known, "P2")
        for number in range(MOST + 1):
            keep_report(session, loud, "other", f"Noise {number}.")
    admin = signed_in(app)
    for address in ("/admin/studies/reports", f"/admin/studies/waves/{known.wave}/pay"):
        page = text_of(admin.get(address))
        assert "The quiet one." in page
        assert f"Noise {MOST}." in page
        assert f"Noise {MOST - 3}." not in page
        assert f"not listed here: {MOST - 2} more of this person" in page.lower()
    with reading(engine) as session:
        latest = inbox(session, state=NEW)[0]
    answer = admin.post("/admin/studies/reports", data={"report": latest.event.id, "action": "all read"})
    assert answer.status_code == 303
    with reading(engine) as session:
        assert [each.text for each in inbox(session, state=NEW)] == ["The quiet one."]
    assert admin.post("/admin/studies/reports", data={"report": "999999", "action": "all read"}).status_code == 404


def provided(engine: Engine, known: KnownWave) -> None:
    """A wave whose recruiter takes codes, as of a file."""
    with writing(engine) as session:
        wave = session.get_one(Wave, known.wave)
        provider, codes = {"prolific": {"study_id": "66f0c1"}}, {"completed": "C1"}
        wave.settings = {**wave.settings, "provider": provider, "codes": codes}


def batches(engine: Engine) -> list[int]:
    with reading(engine) as session:
        return list(session.scalars(select(PaymentBatch.number)))


def test_reports_are_listed_and_marked_by_a_command(engine: Engine, app: Flask, known: KnownWave) -> None:
    assert flask(app, "study", "reports").stdout == "No reports.\n"
    playing(engine, known)
    report(app.test_client(), text="The page hung.")
    line = flask(app, "study", "reports", "two-models:main").stdout
    assert "new " in line
    assert re.search(r"\nP1 +\d+  new +two-models:main  stuck", line)
    found = json.loads(flask(app, "study", "reports", "--json").stdout)
    assert (found["reason"], found["text"], found["state"]) == ("stuck", "The page hung.", "new")
    assert "handled" in flask(app, "study", "reports", "--handled", str(found["report"])).stdout
    assert flask(app, "study", "reports", "--new").stdout == "No new reports.\n"
    wrong = flask(app, "study", "reports", "--read", "999")
    assert (wrong.exit_code, len(wrong.stderr.splitlines())) == (2, 1)


def test_a_mark_on_a_frozen_wave_changes_no_archive(engine: Engine, known: KnownWave) -> None:
    with writing(engine) as session:
        progress = person(session, known, "P1")
        keep_report(session, progress, "other", "Once.")
        session.get_one(Wave, known.wave).frozen_at = datetime.now(UTC)
    with writing(engine) as session:
        (found,) = inbox(session)
        mark_report(session, found.event.id, READ, "ann")
        assert unread(session, known.wave) == 0
