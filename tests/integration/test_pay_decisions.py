"""Whose pay is in doubt is in no batch before somebody decides it, and a draft in doubt goes nowhere."""

from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import Engine, select, update

from app.core.errors import Conflict, Invalid
from app.core.extensions import reading, writing
from app.models import PaymentBatch, StudyEvent, StudyVersion, Submission, Wave
from app.studies import batches, payments
from app.studies.endings import EndingName
from app.studies.pay_doubts import decide, pay_doubts
from app.studies.submissions import VisitStatus, take_statuses
from app.studies.waves import find_wave
from tests.enrolments import enrol, finish, load_example, open_wave
from tests.experimenter import signed_in
from tests.integration.test_adjustments import form_of
from tests.integration.test_cli_dataset import flask
from tests.study_pages import text_of

WAVE = "two-models:main"


@pytest.fixture
def wave(app: Flask, engine: Engine, tmp_path: Path) -> int:
    """A wave at Prolific in which each of four is owed an amount that a file pays; one is under way."""
    endings: dict[str, EndingName] = {"FINE": "quiz_failed", "BACK": "quiz_failed", "NOT": "quiz_failed"}
    with writing(engine) as session:
        version = load_example(session, tmp_path)
        found = open_wave(session, version)
        found.settings = {**found.settings, "of": "two-models", "provider": {"prolific": {"study_id": "66f0c1"}},
                          "codes": {"completed": "C7RX94LM", "quiz_failed": "CQ2M81TT"}}  # fmt: skip
        for code, ending in endings.items():
            payments.record_owed(session, finish(session, enrol(session, found, code, version), ending))
        gone = finish(session, enrol(session, found, "GONE", version), "quiz_failed")
        session.query(Submission).filter_by(enrolment_id=gone.enrolment.id).delete()
        payments.record_owed(session, gone)
        enrol(session, found, "HERE", version)
        return found.id


def taken(engine: Engine, **statuses: str) -> None:
    with writing(engine) as session:
        visits = [VisitStatus(f"visit{code.lower()}", status) for code, status in statuses.items()]
        take_statuses(session, find_wave(session, WAVE), visits)


def lines(engine: Engine, number: int) -> list[str]:
    with writing(engine) as session:
        batch = batches.find_batch(session, find_wave(session, WAVE), number)
        return batches.batch_file(session, batch).content.decode().splitlines()


def test_who_returned_what_the_last_page_asked_to_return_is_called_so(app: Flask, engine: Engine, wave: int) -> None:
    taken(engine, FINE="submitted", BACK="returned", NOT="submitted")
    with writing(engine) as session:
        row = session.get_one(Wave, wave)
        row.settings = {**row.settings, "codes": {"completed": "C7RX94LM"}}
    told = flask(app, "study", "pay", WAVE).stdout
    assert (
        "Look at BACK: the recruiter lists the submission as returned, as the last page asks where an ending has no"
        " code, 1.00; left out until it is decided (keep)." in told
    )
    page = text_of(signed_in(app).get(f"/admin/studies/waves/{wave}/pay"))
    assert "returned, as the last page asks where an ending has no code." in page
    assert (
        flask(app, "study", "pay", WAVE, "keep", "BACK", "--reason", "Asked to").stdout
        == "BACK is paid all the same (asked to return).\n"
    )


def test_who_is_returned_rejected_or_unknown_is_left_out_until_it_is_decided(
    app: Flask, engine: Engine, wave: int
) -> None:
    taken(engine, FINE="approved", BACK="returned", NOT="rejected")
    told = flask(app, "study", "pay", WAVE).stdout
    assert (
        "Look at BACK: the recruiter lists the submission as returned, 1.00; left out until it is decided (keep)."
        in told
    )
    refused = flask(app, "study", "pay", WAVE, "draft").stderr
    assert "FINE (would pay twice), BACK (returned), NOT (rejected), GONE (unknown)" in refused
    taken(engine, FINE="submitted")
    assert (
        "Look at GONE: no table of the recruiter names this person" in flask(app, "study", "pay", WAVE, "draft").stdout
    )
    assert lines(engine, 1) == ["fineid,1.00"]
    client = signed_in(app)
    here = f"/admin/studies/waves/{wave}/pay"
    assert "Nobody else is owed anything that is in no batch." in text_of(client.get(here))
    kept = flask(app, "study", "pay", WAVE, "keep", "BACK", "--reason", "Returned it by mistake")
    assert kept.stdout == "BACK is paid all the same (returned).\n"
    page = client.get(here)
    assert "The recruiter lists the submission as rejected." in text_of(page)
    form = {**form_of(page.text, "keep"), "person": "GONE", "reason": "Came by a link of ours"}
    assert client.post(here, data=form).status_code == 303
    flask(app, "study", "pay", WAVE, "draft")
    assert lines(engine, 2) == ["backid,1.00", "goneid,1.00"]
    with reading(engine) as session:
        rows = session.scalars(
            select(StudyEvent.body).where(StudyEvent.kind == "pay decision").order_by(StudyEvent.id)
        ).all()
    assert [(row["doubt"], row["keep"], row["reason"]) for row in rows] == [
        ("returned", True, "Returned it by mistake"), ("unknown", True, "Came by a link of ours"),
    ]  # fmt: skip


def test_a_draft_that_came_into_doubt_is_neither_written_nor_uploaded(app: Flask, engine: Engine, wave: int) -> None:
    with writing(engine) as session:
        batches.draft(session, find_wave(session, WAVE))
    taken(engine, BACK="rejected")
    for arguments in (("uploaded", "1"), ("confirmed", "1"), ("file", "1", "--out", "/dev/null")):
        done = flask(app, "study", "pay", WAVE, *arguments)
        assert done.exit_code == 2, arguments
    client = signed_in(app)
    here = f"/admin/studies/waves/{wave}/pay"
    refused = client.post(here, data={"action": "uploaded", "batch": "1"})
    assert refused.status_code == 409
    assert "BACK (rejected)" in text_of(refused)
    assert client.get(f"{here}/1").status_code == 409
    with writing(engine) as session:
        found = find_wave(session, WAVE)
        assert session.scalars(select(PaymentBatch.status)).one() == "drafted"
        progress = payments.find_progress_by_code(session, found, "BACK")
        decide(session, progress, keep=True, reason="the review was wrong")
        batches.mark(session, batches.find_batch(session, found, 1), "uploaded")
    taken(engine, FINE="returned")  # after that the file stays what it was
    assert "fineid,1.00" in lines(engine, 1)


def test_a_draft_in_doubt_can_be_drafted_anew_without_that_person(engine: Engine, wave: int) -> None:
    with writing(engine) as session:
        batches.draft(session, find_wave(session, WAVE))
    taken(engine, BACK="returned")
    with writing(engine) as session:
        found = find_wave(session, WAVE)
        batches.discard(session, batches.find_batch(session, found, 1))
        batches.draft(session, found)
    assert lines(engine, 2) == ["fineid,1.00", "notid,1.00"]


def test_another_doubt_is_decided_anew_and_a_decision_can_be_taken_back(engine: Engine, wave: int) -> None:
    taken(engine, BACK="returned")
    with writing(engine) as session:
        found = find_wave(session, WAVE)
        progress = payments.find_progress_by_code(session, found, "BACK")
        with pytest.raises(Invalid, match="say why"):
            decide(session, progress, keep=True, reason=" ")
        decide(session, progress, keep=True, reason="a mistake")
        with pytest.raises(Conflict):
            decide(session, progress, keep=True, reason="once more")
        decide(session, progress, keep=False, reason="paid by hand")
        decide(session, progress, keep=True, reason="it was not")
    taken(engine, BACK="rejected")
    with reading(engine) as session:
        own = [each for each in pay_doubts(session, session.get_one(Wave, wave)) if each.code == "BACK"]
    assert [(each.kind, each.holds) for each in own] == [("rejected", True)]


def test_who_is_in_no_table_of_the_recruiters_is_unknown(app: Flask, engine: Engine, wave: int, tmp_path: Path) -> None:
    with writing(engine) as session:
        session.execute(update(Submission).values(listed_at=None))
    refused = flask(app, "study", "pay", WAVE, "draft").stderr
    assert "NOT (unknown)" in refused
    assert "import the recruiter's table first" in refused
    assert "No table from the recruiter has been imported" in flask(app, "study", "pay", WAVE).stdout
    client = signed_in(app)
    here = f"/admin/studies/waves/{wave}/pay"
    assert "No table from the recruiter has been imported yet." in text_of(client.get(here))
    table = tmp_path / "export.csv"
    table.write_text("Submission id;Participant id;Status\nvisitfine;fineid;AWAITING REVIEW\n;;\n", "utf-16")
    assert flask(app, "study", "submissions", WAVE, str(table)).exit_code == 0
    assert "The recruiter’s last table was imported on" in text_of(client.get(here))
    with writing(engine) as session:
        late = enrol(
            session,
            find_wave(session, WAVE),
            "LATE",
            session.get_one(StudyVersion, session.get_one(Wave, wave).study_version_id),
            listed=False,
        )
        payments.record_owed(session, finish(session, late, "quiz_failed"))
    with writing(engine) as session:
        batches.draft(session, find_wave(session, WAVE))
    assert lines(engine, 1) == ["fineid,1.00"]


def test_who_is_done_at_the_recruiter_and_under_way_here_is_named_everywhere(
    app: Flask, engine: Engine, wave: int, tmp_path: Path
) -> None:
    table = tmp_path / "export.csv"
    for given, said in (
        ("NOCODE", "without a code"),
        (" c7rx94lm ", "with the code of completed"),
        ("Ｃ7RX94LM", "with the code of completed"),
        ("whatever", "with an unknown code"),
    ):
        table.write_text(
            "Submission id,Participant id,Status,Completion code\n"
            f"visithere,hereid,AWAITING REVIEW,{given}\n", "utf-8"
        )  # fmt: skip
        told = flask(app, "study", "submissions", WAVE, str(table)).stdout
        assert f"Look at HERE: under way here, and submitted at the recruiter {said}." in told
    client = signed_in(app)
    page = text_of(client.get(f"/admin/studies/waves/{wave}"))
    assert "Under way here, done at the recruiter HERE submitted, with an unknown code" in page
    assert "and they are under way here" in text_of(client.get(f"/admin/studies/waves/{wave}/pay"))
    assert (
        "Look at HERE: the recruiter lists the submission as submitted or approved"
        in flask(app, "study", "pay", WAVE).stdout
    )
    with writing(engine) as session:  # who opens the link again with another visit is not hidden by it
        here = session.execute(select(Submission).where(Submission.external_id == "visithere")).scalar_one()
        now = here.created_at
        session.add(
            Submission(
                wave_id=wave, enrolment_id=here.enrolment_id, recruiter="prolific", external_id="invented",
                status="active", created_at=now, changed_at=now,
            )
        )  # fmt: skip
    assert "Under way here, done at the recruiter HERE" in text_of(client.get(f"/admin/studies/waves/{wave}"))
