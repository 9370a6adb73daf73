"""What is to be looked at before a wave is paid: paid twice, or by nobody, on both databases."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import Engine, delete

from app.core.extensions import writing
from app.models import Submission
from app.studies import batches, payments
from app.studies.endings import EndingName
from app.studies.pay_doubts import decide, pay_doubts
from app.studies.submissions import VisitStatus, take_statuses
from app.studies.waves import find_wave
from tests.enrolments import enrol, finish, load_example, open_wave
from tests.experimenter import signed_in
from tests.integration.test_cli_dataset import flask
from tests.study_pages import text_of


@pytest.fixture
def people(app: Flask, engine: Engine, tmp_path: Path) -> None:
    """A wave at Prolific in which three completed it, one withdrew, and one failed the quiz, which pays an amount."""
    endings: dict[str, EndingName] = {
        "FINE": "completed", "NONE": "completed", "BACK": "completed", "LEFT": "withdrawn", "QUIZ": "quiz_failed",
    }  # fmt: skip
    with writing(engine) as session:
        version = load_example(session, tmp_path)
        wave = open_wave(session, version)
        wave.settings = {**wave.settings, "of": "two-models", "provider": {"prolific": {"study_id": "66f0c1"}},
                         "codes": {"completed": "C"}}  # fmt: skip
        for code, ending in endings.items():
            progress = enrol(session, wave, code, version)
            payments.record_owed(session, finish(session, progress, ending))
        session.execute(delete(Submission).where(Submission.external_id == "visitnone"))


def doubts(engine: Engine) -> dict[str, str]:
    with writing(engine) as session:
        return {each.code: each.kind for each in pay_doubts(session, find_wave(session, "two-models:main"))}


def taken(engine: Engine, **statuses: str) -> None:
    with writing(engine) as session:
        visits = [VisitStatus(f"visit{code.lower()}", status) for code, status in statuses.items()]
        take_statuses(session, find_wave(session, "two-models:main"), visits)


def test_what_approval_cannot_pay_is_told(app: Flask, engine: Engine, people: None) -> None:
    taken(engine, FINE="approved")
    assert doubts(engine) == {"NONE": "no submission"}
    told = flask(app, "study", "pay", "two-models:main").stdout
    assert "Look at NONE: the recruiter has named no submission, so that approving may not pay the base, 5.00." in told
    with writing(engine) as session:
        number = find_wave(session, "two-models:main").id
    page = text_of(signed_in(app).get(f"/admin/studies/waves/{number}/pay"))
    assert "Needs review" in page
    assert "NONE The recruiter has named no submission, so that approving may not pay the base." in page


def test_the_recruiters_table_names_a_submission_that_the_link_did_not(engine: Engine, people: None) -> None:
    with writing(engine) as session:
        wave = find_wave(session, "two-models:main")
        visits = [VisitStatus("late", "approved", "noneid"), VisitStatus("another", "approved", "fineid")]
        assert take_statuses(session, wave, visits).unknown == 1
    assert doubts(engine) == {}


def test_a_visit_that_is_another_persons_by_the_table_is_told_and_paid_when_somebody_decides_so(
    app: Flask, engine: Engine, people: None
) -> None:
    def take(person: str) -> Sequence[str]:
        with writing(engine) as session:
            wave = find_wave(session, "two-models:main")
            return take_statuses(session, wave, [VisitStatus("visitleft", "active", person)]).other_people

    assert take("leftid") == take("LEFTID") == take("") == []
    assert doubts(engine) == {"NONE": "no submission"}
    assert take("fineid") == take("") == ["LEFT"]  # a table without people says nothing else
    assert doubts(engine) == {"NONE": "no submission", "LEFT": "another person"}
    told = flask(app, "study", "pay", "two-models:main").stdout
    assert "Look at LEFT: the recruiter's table assigns their visit to another person" in told
    with writing(engine) as session:
        wave = find_wave(session, "two-models:main")
        batches.draft(session, wave)
        number = wave.id
    assert "LEFT" in doubts(engine)
    page = text_of(signed_in(app).get(f"/admin/studies/waves/{number}/pay"))
    assert "LEFT The recruiter's table assigns their visit to another person." in page
    with writing(engine) as session:
        wave = find_wave(session, "two-models:main")
        decide(session, payments.find_progress_by_code(session, wave, "LEFT"), keep=True, reason="Both wrote to us")
        batches.draft(session, wave)
    assert take("leftid") == []
    assert "LEFT" not in doubts(engine)


def test_a_base_that_was_paid_by_file_and_is_approved_later_is_told(engine: Engine, people: None) -> None:
    taken(engine, BACK="returned", NONE="returned")
    assert doubts(engine) == {"NONE": "no submission", "BACK": "returned"}
    with writing(engine) as session:
        wave = find_wave(session, "two-models:main")
        decide(session, payments.find_progress_by_code(session, wave, "BACK"), keep=True, reason="returned by mistake")
        batches.draft(session, wave)
    assert doubts(engine) == {"NONE": "no submission", "BACK": "returned"}
    taken(engine, BACK="approved", LEFT="approved", QUIZ="screened_out", FINE="partial")
    assert doubts(engine) == {
        "FINE": "paid in part", "NONE": "no submission",
        "BACK": "paid twice", "LEFT": "paid twice", "QUIZ": "paid twice",
    }  # fmt: skip


def test_a_base_that_the_next_batch_would_pay_again_is_told(engine: Engine, people: None) -> None:
    taken(engine, QUIZ="screened_out", LEFT="rejected", FINE="approved")
    assert doubts(engine) == {"NONE": "no submission", "QUIZ": "would pay twice", "LEFT": "rejected"}
