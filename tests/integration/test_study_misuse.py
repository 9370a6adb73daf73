"""What goes wrong around recruiters and money: each ends in one line or page, nothing is lost, and nobody is unpaid."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import Engine, select

from app.core.extensions import reading, writing
from app.matches.turns import WorkerContext
from app.models import Enrolment, Payment
from app.studies import payments
from app.studies.answers import finish
from app.studies.progress import find_progress, find_progress_by_token
from app.studies.submissions import VisitStatus, take_statuses
from app.studies.wave_file import most_with_fee
from app.studies.waves import close, find_wave
from tests.integration.test_cli_dataset import flask
from tests.study_matches import go_to
from tests.study_pages import AT_ONCE, MATCH, Walker, door_of, play_out
from tests.waves import changed, join, loaded_study, new_wave, store_study, wave_file

CODES = {"completed": "CDONE", "quiz_failed": "CQUIZ", "withdrawn": "CLEFT"}


def paid() -> dict[str, Decimal]:
    """What the first person is owed."""
    with reading() as session:
        first = session.scalars(select(Enrolment.id).order_by(Enrolment.id)).first()
        return {row.key: row.amount for row in session.scalars(select(Payment).where(Payment.enrolment_id == first))}


@pytest.mark.parametrize("closed", [False, True])
def test_a_cap_or_a_close_in_the_middle_of_a_match_costs_nobody_anything(
    app: Flask, engine: Engine, desk: Callable[..., WorkerContext], closed: bool
) -> None:
    with writing() as session:
        store_study(session, changed(loaded_study(), same_for_all=AT_ONCE))
        new_wave(session, most_spent=float(most_with_fee(loaded_study().design, wave_file())))
    ann = Walker(app.test_client(), door_of("ann"))
    ann.send(part="yes")
    with writing() as session:
        progress = find_progress_by_token(session, ann.address.rpartition("/")[2], lock=True)
        go_to(progress, "instructions 1")
        number = progress.enrolment.id
    ann.look()
    ann.send()  # the arm is drawn with the instructions
    with writing() as session:
        go_to(find_progress(session, number), "match 1")
    ann.look()
    match = MATCH.search(ann.send().location or "")
    assert match is not None
    ben = Walker(app.test_client(), door_of("ben"))
    assert ben.heading == "All places are taken."
    if closed:
        with writing() as session:
            close(session, find_wave(session, "two-models:main"))
    play_out(engine, desk, match[1])
    assert ann.look().startswith("Game 1 is over")
    with writing() as session:
        progress = find_progress(session, number, lock=True)
        earned = payments.earned(session, progress)
        finish(session, progress, "completed")
    assert paid() == {"base": Decimal("5.00"), "bonus": earned}


def test_a_code_that_was_passed_on_is_told_by_the_recruiters_table(app: Flask, tmp_path: Path) -> None:
    with writing() as session:
        wave = new_wave(session, codes=CODES)
        ann, ben = (join(session, wave, name) for name in ("ann", "ben"))
        finish(session, ann, "completed")
        finish(session, ben, "withdrawn")
        visits = [VisitStatus(f"visit of {name}", "submitted", name, "CDONE") for name in ("ann", "ben", "cem")]
        found = take_statuses(session, wave, visits)
        assert (found.unknown, len(found.other_codes)) == (1, 1)
    table = tmp_path / "export.csv"
    table.write_text(
        "Submission id,Participant id,Status,Completion code\n"
        "visit of ann,ann,AWAITING REVIEW,CDONE\n"
        "visit of ben,ben,AWAITING REVIEW,CDONE\n"
        "visit of cem,cem,RETURNED,NOCODE\n"
    )
    told = flask(app, "study", "submissions", "two-models:main", str(table)).stdout.splitlines()
    assert told[0] == "two-models:main: 2 submitted; 0 changed, 1 not of this wave."
    assert told[1] == f"Handed in with the code of another ending: {found.other_codes[0]}."


def test_one_person_in_two_browsers_writes_one_set_of_answers(app: Flask) -> None:
    with writing() as session:
        new_wave(session)
    one, two = (Walker(app.test_client(), door_of("ann")) for _ in range(2))
    one.send(part="yes")
    two.send("consent", answer="no")  # the page that was open there is not due any more
    assert (two.step, two.address) == ("instructions 1", one.address)
    with reading() as session:
        assert [row.ending for row in session.query(Enrolment)] == [None]
