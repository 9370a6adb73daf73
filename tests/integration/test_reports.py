"""Reports of people: asked in one click, paid as always, and in an inbox before anybody is paid, on both databases."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, select

from app.accounts import create_user
from app.core.errors import Conflict
from app.core.extensions import reading, writing
from app.models import Enrolment, Participant, Payment, PaymentBatch, RecruitmentIdentity, StudyEvent, Wave
from app.studies.forget import forget_person
from app.studies.monitor.inbox import MOST, how_many, inbox, waiting_reports
from app.studies.reports import (
    ASSIGNED,
    CLOSED,
    MARKS,
    NEW,
    answer_report,
    assign_report,
    close_report,
    keep_report,
    reopen_report,
    standing_steps,
    steps_of,
    undo_step,
)
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
    assert "1 report waits for you" in text_of(admin.get("/admin/models"))
    assert "1 report of a participant is new." in text_of(admin.get("/admin/"))
    page = admin.get("/admin/studies/reports").text
    assert "game or partner is stuck" in page
    assert "It =hung= &lt;b&gt;there&lt;/b&gt;." in page
    assert f"/admin/studies/waves/{known.wave}/people/{number}" in page
    assert "two-models:main</a>" in page
    with reading(engine) as session:
        (found,) = inbox(session)
    seen = session_seen(engine, number)
    for action, state in (("take", ASSIGNED), ("close", CLOSED), ("undo", ASSIGNED), ("close", CLOSED)):
        answer = admin.post("/admin/studies/reports", data={"report": found.event.id, "action": action})
        assert answer.status_code == 303
        with reading(engine) as session:
            (marked,) = inbox(session)
            assert marked.state == state
    assert session_seen(engine, number) == seen  # what an experimenter does is no sign of life
    assert "waits for you" not in text_of(admin.get("/admin/models"))
    assert "Nothing found." in text_of(admin.get(f"/admin/studies/reports?state=new&wave={known.wave}"))
    for wrong in ({"report": "999", "action": "take"}, {"report": str(found.event.id), "action": "dock"}, {}):
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
            session.add(StudyEvent(wave_id=known.wave, enrolment_id=None, kind=MARKS[CLOSED],
                                   body={"report": each.event.id, "by": "ann"}, at=each.event.at))  # fmt: skip
        close_report(session, noise[0].event.id, "ann")
        reopen_report(session, noise[0].event.id, "ann")
    with reading(engine) as session:
        assert [each.text for each in inbox(session, state=NEW)] == [f"Noise {MOST}.", "The unread one."]
        assert [each.state for each in inbox(session)[:3]] == [NEW, NEW, CLOSED]
        assert (len(inbox(session)), how_many(session), waiting_reports(session, "ann").new) == (MOST, MOST + 2, 2)
        assert len(inbox(session, state=CLOSED)) == MOST
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


def test_no_batch_is_drafted_before_somebody_takes_care_of_reports_without_a_reason(
    engine: Engine, app: Flask, known: KnownWave
) -> None:
    provided(engine, known)
    playing(engine, known)
    report(app.test_client(), text="The page hung.")
    admin, here = signed_in(app), f"/admin/studies/waves/{known.wave}/pay"
    page = text_of(admin.get(here))
    assert "Pay with 1 new report?" in page
    assert "The page hung." in page
    assert "New report: " in flask(app, "study", "pay", "two-models:main").stdout
    refused = flask(app, "study", "pay", "two-models:main", "draft")
    assert (refused.exit_code, len(refused.stderr.splitlines())) == (2, 1)
    assert "expected a wave without new reports, got 1 new ones" in refused.stderr
    for form in ({}, {"set_aside": "  "}):
        answer = admin.post(here, data={"action": "draft", **form})
        assert answer.status_code == 409
        assert "without new reports" in text_of(answer)
    assert batches(engine) == []
    reason = "It is about the last page alone"
    drafted = flask(app, "study", "pay", "two-models:main", "draft", "--reason", reason)
    assert drafted.exit_code == 0
    assert drafted.stdout.startswith("Batch 1 ")
    with reading(engine) as session:
        (kept,) = session.scalars(select(StudyEvent).where(StudyEvent.kind == "unread reports"))
        (found,) = inbox(session)
        assert kept.body == {"reports": [found.event.id], "reason": reason, "by": "command line"}
        assert found.state == NEW  # that it was not waited for changes nothing about it


def test_a_page_drafts_with_a_reason_and_when_no_report_is_new_without_one(
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
    for each, action in ((first, "close"), (second, "take")):
        admin.post("/admin/studies/reports", data={"report": each.event.id, "action": action})
    assert "Pay with" not in text_of(admin.get(here))
    assert admin.post(here, data={"action": "draft"}).status_code == 303
    assert len(batches(engine)) == 1


def test_a_page_lists_three_reports_of_a_person_and_assigns_all_of_them_at_once(
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
    answer = admin.post("/admin/studies/reports", data={"report": latest.event.id, "action": "take all"})
    assert answer.status_code == 303
    with reading(engine) as session:
        assert [each.text for each in inbox(session, state=NEW)] == ["The quiet one."]
    assert admin.post("/admin/studies/reports", data={"report": "999999", "action": "take all"}).status_code == 404


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
    number = str(found["report"])
    nobody = flask(app, "study", "reports", "--assign", number, "nobody")
    assert (nobody.exit_code, "got 'nobody'" in nobody.stderr) == (2, True)
    signed_in(app)
    answered = flask(
        app, "study", "reports", "--assign", number, "admin", "--answer", number, "mail", "Sorry!", "--json"
    )
    found = json.loads(answered.stdout)
    assert (found["state"], found["assigned_to"]) == ("answered", "admin")
    assert found["answered"] == {"way": "mail", "text": "Sorry!"}
    assert flask(app, "study", "reports", "--state", "new").stdout == "No new reports.\n"
    flask(app, "study", "reports", "--note", number, "Look at the clocks.", "--undo", number)
    line, *done = flask(app, "study", "reports", "--history", number).stdout.splitlines()
    assert " assigned " in line
    assert [each.partition("  command line  ")[2] for each in done] == [
        "report assigned to admin", "report answered by mail: Sorry!", "report note: Look at the clocks.",
        "undone, so report assigned again to admin",
    ]  # fmt: skip
    wrong = flask(app, "study", "reports", "--close", "999")
    assert (wrong.exit_code, len(wrong.stderr.splitlines())) == (2, 1)


def test_a_mark_on_a_frozen_wave_changes_no_archive(engine: Engine, known: KnownWave) -> None:
    with writing(engine) as session:
        progress = person(session, known, "P1")
        keep_report(session, progress, "other", "Once.")
        session.get_one(Wave, known.wave).frozen_at = datetime.now(UTC)
    with writing(engine) as session:
        (found,) = inbox(session)
        close_report(session, found.event.id, "ann")
        assert how_many(session, known.wave, state=NEW) == 0


def test_a_report_is_assigned_answered_and_noted_on_its_page_which_says_who_did_what(
    engine: Engine, app: Flask, known: KnownWave
) -> None:
    provided(engine, known)
    number = playing(engine, known)
    report(app.test_client(), text="It hung.", then="stay")
    admin = signed_in(app)
    with writing(engine) as session:
        create_user(session, "ben", None, datetime.now(UTC))
        participant = session.get_one(Enrolment, number).participant_id
        session.add(RecruitmentIdentity(participant_id=participant, recruiter="prolific", external_id="5f0a01"))
        here = f"/admin/studies/reports/{inbox(session)[0].event.id}"
    page = admin.get(here).text
    assert "https://app.prolific.com/researcher/workspaces/studies/66f0c1/submissions" in page
    assert "5f0a01" not in page
    assert "5f0a01" in admin.post(here, data={"action": "show id"}).text  # and the log says who looked
    with reading(engine) as session:
        assert session.scalars(select(StudyEvent.body).where(StudyEvent.kind == "ids exported")).all() == [
            {"by": "admin"}
        ]
    assert admin.post(here, data={"action": "assign", "to": "ben"}).status_code == 303
    assert "1 report is assigned to you" not in text_of(admin.get("/admin/"))
    admin.post(here, data={"action": "assign", "to": "admin"})
    assert "1 report is assigned to you" in text_of(admin.get("/admin/"))
    refused = admin.post(here, data={"action": "answer", "way": "phone", "text": " "})
    assert (refused.status_code, "expected 1 to 2000 characters, got 0" in text_of(refused)) == (400, True)
    admin.post(here, data={"action": "answer", "way": "recruiter", "text": "Sorry, you are paid in full."})
    admin.post(here, data={"action": "note", "note": "The clock ran out."})
    page = text_of(admin.get(here))
    for said in (
        "admin assigned it to ben", "admin takes care of it", "The clock ran out.",
        "admin answered: message through the recruiter “Sorry, you are paid in full.”",
    ):  # fmt: skip
        assert said in page
    assert "5f0a01" not in page
    assert "It hung." in admin.get("/admin/studies/reports?state=answered&to=admin").text
    with writing(engine) as session:
        steps = [each.id for each in steps_of(session, inbox(session)[0].event)]
        forget_person(session, participant)
    late = admin.post(here, data={"action": "undo", "step": steps[0]})
    assert (late.status_code, "the last step of the report" in text_of(late)) == (409, True)
    page = text_of(admin.get(here))
    assert "admin answered: message through the recruiter" in page
    assert "paid in full" not in page
    assert "The clock" not in page  # what may repeat a person's words goes with them


def test_undoing_goes_back_step_by_step(engine: Engine, known: KnownWave) -> None:
    with writing(engine) as session:
        keep_report(session, person(session, known, "P1"), "other", "Once.")
        create_user(session, "ann", None, datetime.now(UTC))
    with writing(engine) as session:
        (found,) = inbox(session)
        number = found.event.id
        assign_report(session, number, "ann", "ann")
        answer_report(session, number, "mail", "Sorry!", "ben")
        close_report(session, number, "ben")
        states = []
        for _ in range(3):
            undo_step(session, number, "ann")
            (found,) = inbox(session)
            states.append((found.state, found.assigned_to))
        assert states == [("answered", "ann"), ("assigned", "ann"), ("new", None)]
        with pytest.raises(Conflict, match="without any steps"):
            undo_step(session, number, "ann")
        assert waiting_reports(session, "ann") == (1, 0)


def test_a_step_is_undone_once_and_no_number_is_too_large(engine: Engine, app: Flask, known: KnownWave) -> None:
    playing(engine, known)
    report(app.test_client(), then="stay")
    admin = signed_in(app)
    with reading(engine) as session:
        number = inbox(session)[0].event.id
    for action in ("take", "close"):
        admin.post("/admin/studies/reports", data={"report": number, "action": action})
    key = re.search(r'name="(\w+)" value="([^"]+)"><input type="hidden" name="report"',
                    admin.get("/admin/studies/reports").text)  # fmt: skip
    assert key is not None
    for _ in range(2):  # a button that is pressed twice
        admin.post("/admin/studies/reports", data={"report": number, "action": "undo", key[1]: key[2]})
    with reading(engine) as session:
        assert inbox(session)[0].state == ASSIGNED
    admin.post("/admin/studies/reports", data={"report": number, "action": "undo"})
    assert 'value="undo"' not in admin.get("/admin/studies/reports").text
    for far in (2**31, 2**70):
        assert admin.get(f"/admin/studies/reports/{far}").status_code == 404
        assert admin.post(f"/admin/studies/reports/{far}", data={"action": "close"}).status_code == 404
        refused = flask(app, "study", "reports", "--close", str(far))
        assert (refused.exit_code, len(refused.stderr.splitlines())) == (2, 1)


def test_a_step_that_two_have_undone_counts_as_undone_once(engine: Engine, known: KnownWave) -> None:
    with writing(engine) as session:
        keep_report(session, person(session, known, "P1"), "other", "Once.")
    with writing(engine) as session:
        (found,) = inbox(session)
        close_report(session, found.event.id, "ann")
        undo_step(session, found.event.id, "ann")
        session.flush()
        undone = steps_of(session, found.event)[-1]
        session.add(StudyEvent(wave_id=known.wave, kind=undone.kind, body=undone.body, at=undone.at))
        session.flush()
        assert standing_steps(steps_of(session, found.event)) == []


def test_a_report_that_a_colleague_has_taken_meanwhile_is_not_taken_without_a_word(
    engine: Engine, app: Flask, known: KnownWave
) -> None:
    admin = signed_in(app)
    with writing(engine) as session:
        create_user(session, "ann", None, datetime.now(UTC))
        keep_report(session, person(session, known, "P1"), "other", "Once.")
        keep_report(session, person(session, known, "P2"), "other", "Twice.")
    with writing(engine) as session:
        number, other = sorted(each.event.id for each in inbox(session))
        assign_report(session, number, "ann", "ann")
    for action in ("take", "take all", "close"):  # in a tab that shows the report as new
        refused = admin.post("/admin/studies/reports", data={"report": number, "action": action})
        assert refused.status_code == 409
        assert "one that ann takes care of now" in text_of(refused)
    here = f"/admin/studies/reports/{number}"
    stale = admin.post(here, data={"action": "assign", "to": "admin"})
    assert stale.status_code == 409
    with reading(engine) as session:
        assert {each.event.id: each.assigned_to for each in inbox(session)} == {number: "ann", other: None}
    seen = re.search(r'name="seen" value="(\d+)"', stale.text)
    assert seen is not None
    taken = {"action": "assign", "to": "admin", "seen": seen[1]}  # on the page that says that Ann has it
    assert admin.post(here, data=taken).status_code == 303
    assert admin.post(here, data=taken).status_code == 303  # in another tab of the same experimenter
    with reading(engine) as session:
        assert {each.event.id: each.assigned_to for each in inbox(session)} == {number: "admin", other: None}
    told = flask(app, "study", "reports", "--assign", str(number), "ann")
    assert told.stderr == f"Report {number} was assigned to admin before.\n"


def test_reports_of_a_removed_experimenter_are_new_again(engine: Engine, app: Flask, known: KnownWave) -> None:
    signed_in(app)
    with writing(engine) as session:
        create_user(session, "ann", None, datetime.now(UTC))
        for code in ("P1", "P2", "P3"):
            keep_report(session, person(session, known, code), "other", "Once.")
    with writing(engine) as session:
        for each, name in zip(inbox(session), ("ann", "admin"), strict=False):
            assign_report(session, each.event.id, name, "admin")
    assert flask(app, "user", "remove", "ann", "--yes").stdout == "Removed ann. Reports that are new again: 1.\n"
    with reading(engine) as session:
        assert waiting_reports(session, "admin") == (2, 1)
