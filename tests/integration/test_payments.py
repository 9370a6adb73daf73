"""What is owed is written once, and paid once by files that recruiters take, on both databases."""

import csv
import io
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import Engine, delete, select
from sqlalchemy.orm import Session

from app.core.errors import Conflict, Invalid, NotFound
from app.core.extensions import reading, writing
from app.matches import live
from app.models import Payment, PaymentBatch, RecruitmentIdentity, StudyVersion, Submission, Wave
from app.studies import batches, payments, places
from app.studies.amounts import LONGEST_BREAK
from app.studies.due import due
from app.studies.pay_doubts import decide, held_back
from app.studies.progress import StudyProgress, log_event
from tests.enrolments import DEAL, KnownWave, begin, break_off, enrol, finish, load_example, open_wave, person, play


def completed(session: Session, known: KnownWave, code: str) -> StudyProgress:
    """Who plays the first match, under self or coop, and completes the study."""
    progress = person(session, known, code)
    play(session, progress, 0)
    return finish(session, progress)


def amounts(session: Session, progress: StudyProgress) -> dict[str, Decimal]:
    return {row.key: row.amount for row in payments.payments_of(session, progress.enrolment.id)}


def test_matches_that_count_are_paid_and_practice_is_not(engine: Engine, known: KnownWave) -> None:
    with writing(engine) as session:
        progress = person(session, known, "P1")
        play(session, progress, None)
        assert payments.earned(session, progress) == 0
        condition = progress.enrolment.plan["matches"][0]["condition"]  # type: ignore[index]
        rate = {"self": Decimal("0.70"), "coop": Decimal("0.75")}[condition["objective"]]  # 7 points, or 15 together
        play(session, progress, 0)
        assert payments.earned(session, progress) == rate
        break_off(session, progress, 1)
        play(session, progress, 1)
        assert payments.earned(session, progress) == 2 * rate + Decimal("0.25")
        assert payments.record_owed(session, progress) == []  # still under way
        finish(session, progress)
        payments.record_owed(session, progress)
        assert amounts(session, progress) == {"base": Decimal("5.00"), "bonus": 2 * rate + Decimal("0.25")}


def test_what_is_owed_is_written_once_and_only_when_no_match_is_under_way(engine: Engine, known: KnownWave) -> None:
    with writing(engine) as session:
        progress = person(session, known, "P1")
        play(session, progress, 0)
        open_match = begin(session, progress, 1)
        finish(session, progress, "withdrawn", minutes=5)
        assert payments.record_owed(session, progress) == []
        assert amounts(session, progress) == {}
    with writing(engine) as session:
        progress = payments.find_progress_by_code(session, session.get_one(Wave, known.wave), "P1")
        live.submit(session, live.MoveSubmission(open_match.id, 0, None), instant=False)
        first = [row.id for row in payments.record_owed(session, progress)]
        assert [row.id for row in payments.record_owed(session, progress)] == first
        assert len(first) == 2


def test_what_stopping_now_would_pay_is_known_before(engine: Engine, known: KnownWave) -> None:
    with writing(engine) as session:
        progress = person(session, known, "P1")
        progress.enrolment.enrolled_at = datetime.now(UTC) - timedelta(minutes=5)
        base, bonus = payments.owed_now(session, progress, "withdrawn")
        assert Decimal("1.00") <= base <= Decimal("1.10")  # 5 of 25 minutes, of 5.00
        assert bonus == 0


def test_who_reports_a_problem_loses_no_pay_for_the_match(engine: Engine, known: KnownWave) -> None:
    with writing(engine) as session:
        progress = person(session, known, "P1")
        left = begin(session, progress, 0)
        live.submit(session, live.MoveSubmission(left.id, 0, None), instant=False)
        assert payments.earned(session, progress) == 0
        log_event(session, progress, "report", {"match": left.id, "text": "it was rude"})
        assert payments.earned(session, progress) == Decimal("0.25")
        lost = play(session, progress, 1, (DEAL[0], "[message] hello", "[propose] (0 books, 0 hats, 0 balls)", DEAL[3]))
        before = payments.earned(session, progress)
        log_event(session, progress, "report", {"match": lost, "text": "it was slow"})
        assert payments.earned(session, progress) == before  # nothing was lost by a report of a match that went on


def test_time_away_is_not_paid(engine: Engine, known: KnownWave) -> None:
    with writing(engine) as session:
        progress = finish(session, person(session, known, "P1"), "withdrawn", minutes=24 * 60)
        base, bonus = payments.record_owed(session, progress)
        assert timedelta(minutes=10) == LONGEST_BREAK
        assert [base.amount, bonus.amount] == [Decimal("2.00"), Decimal(0)]  # 10 of 25 minutes, of 5.00


def test_a_preview_is_never_paid(engine: Engine, known: KnownWave) -> None:
    with writing(engine) as session:
        progress = enrol(session, None, "preview", session.get_one(StudyVersion, known.version))
        play(session, progress, 0)
        assert payments.record_owed(session, finish(session, progress)) == []
        assert session.scalars(select(Payment)).all() == []


def test_an_ending_without_bonus_pays_none(engine: Engine, app: Flask, tmp_path: Path) -> None:
    with writing(engine) as session:
        version = load_example(
            session, tmp_path, **{"quiz_failed: {base: 1.00}": "withdrawn: {base: none, least: 0.50, bonus: none}"}
        )
        progress = enrol(session, open_wave(session, version), "P1", version)
        play(session, progress, 0)
        payments.record_owed(session, finish(session, progress, "withdrawn"))
        assert amounts(session, progress) == {"base": Decimal("0.50"), "bonus": 0}


def test_own_points_are_paid_where_the_design_says_so(engine: Engine, app: Flask, tmp_path: Path) -> None:
    with writing(engine) as session:
        version = load_example(session, tmp_path, **{"of: utility": "of: own points"})
        progress = enrol(session, open_wave(session, version), "P1", version)
        objectives = [match["condition"]["objective"] for match in progress.enrolment.plan["matches"]]  # type: ignore[index]
        for position in range(4):
            play(session, progress, position)
        each = {"self": Decimal("0.70"), "coop": Decimal("0.35")}
        assert payments.earned(session, progress) == sum(each[objective] for objective in objectives)


def test_people_of_the_other_example_are_paid_by_the_outcome_of_a_word_game(
    engine: Engine, app: Flask, tmp_path: Path
) -> None:
    with writing(engine) as session:
        version = load_example(session, tmp_path, "taboo-roles")
        progress = enrol(session, open_wave(session, version), "P1", version)
        play(session, progress, 0, ["[message] it grows", "I know the word! It is tree."], word="tree")
        assert payments.earned(session, progress) in (Decimal("0.00"), Decimal("0.50"), Decimal("1.00"))
        finish(session, progress, "partner_left")
        payments.record_owed(session, progress)
        assert amounts(session, progress)["base"] == Decimal("4.00")


def test_an_adjustment_has_a_reason_and_takes_away_what_is_left_at_most(engine: Engine, known: KnownWave) -> None:
    with writing(engine) as session:
        progress = completed(session, known, "P1")
        bonus = payments.record_owed(session, progress)[1].amount
        payments.adjust(session, progress, Decimal("1.50"), "  The page\ndid not load ", "ada")
        payments.adjust(session, progress, -bonus, "paid by hand")
        rows = payments.payments_of(session, progress.enrolment.id)
        assert [(row.key, row.amount, row.reason) for row in rows[2:]] == [
            ("adjustment 1", Decimal("1.50"), "The page did not load"),
            ("adjustment 2", -bonus, "paid by hand"),
        ]
        with pytest.raises(Invalid, match=r"at most 1\.50 deducted"):  # the base is paid by approval
            payments.adjust(session, progress, Decimal("-1.51"), "too much")
        for amount in ("0", "0.001", "NaN", "Infinity", "99999999"):
            with pytest.raises(Invalid):
                payments.adjust(session, progress, Decimal(amount), "no amount")
        with pytest.raises(Invalid, match="say why"):
            payments.adjust(session, progress, Decimal(1), "  ")
        with pytest.raises(Conflict, match="one who has ended"):
            payments.adjust(session, person(session, known, "P2"), Decimal(1), "early")
        with pytest.raises(NotFound):
            payments.find_progress_by_code(session, session.get_one(Wave, known.wave), "P9")


def test_a_batch_pays_bonuses_and_what_approval_cannot_pay(engine: Engine, known: KnownWave) -> None:
    with writing(engine) as session:
        wave = session.get_one(Wave, known.wave)
        done = completed(session, known, "P1")
        finish(session, person(session, known, "P2"), "quiz_failed")
        finish(session, person(session, known, "P3"), "declined")
        finish(session, person(session, known, "P4"))  # no bonus: nothing beside the base
        returned = finish(session, person(session, known, "P5"))
        person(session, known, "P6")  # under way
        visit = session.scalars(select(Submission).where(Submission.enrolment_id == returned.enrolment.id)).one()
        visit.status = "returned"
        (batch,) = batches.draft(session, wave, "ada")
        bonus = amounts(session, done)["bonus"]
        file = batches.batch_file(session, batch)
        assert file.name == "two-models-main-bonus-1.txt"
        assert file.content.decode() == f"p1id,{bonus}\np2id,1.00\n"
        (listed,) = batches.batches_of(session, wave)
        assert (listed.people, listed.amount, batch.status) == (2, bonus + 1, "drafted")
        assert [each.code for each in due(session, wave)] == ["P5"]
        with pytest.raises(Conflict, match=r"in no doubt, got doubt about P5 \(asked to return\)"):
            batches.draft(session, wave)
        decide(session, returned, keep=True, reason="returned it by mistake")
        (later,) = batches.draft(session, wave)
        assert batches.batch_file(session, later).content.decode() == "p5id,5.00\n"


def test_a_batch_goes_forward_only_and_its_file_stays_the_same(engine: Engine, known: KnownWave) -> None:
    with writing(engine) as session:
        wave = session.get_one(Wave, known.wave)
        progress = completed(session, known, "P1")
        (batch,) = batches.draft(session, wave)
        number, before = batch.number, batches.batch_file(session, batch)
        batches.discard(session, batch)
        (again,) = batches.draft(session, wave)
        assert again.number == number + 1  # so that no two files share a name
        assert batches.batch_file(session, again).content == before.content
        batches.mark(session, again, "uploaded")
        payments.adjust(session, progress, Decimal("0.40"), "late")
        completed(session, known, "P2")
        (third,) = batches.draft(session, wave)
        assert batches.batch_file(session, again).content == before.content
        assert batches.batch_file(session, third).content.decode().startswith("p1id,0.40\np2id,")
        for batch, status in ((again, "uploaded"), (third, "confirmed"), (third, "drafted")):
            with pytest.raises(Conflict):
                batches.mark(session, batch, status)
        with pytest.raises(Conflict, match="stays as it is"):
            batches.discard(session, again)
        batches.mark(session, again, "confirmed")
        assert (again.status, again.confirmed_at is None) == ("confirmed", False)
        assert [each.batch.number for each in batches.batches_of(session, wave)] == [2, 3]
        assert batches.find_batch(session, wave, 3).id == third.id
        with pytest.raises(NotFound):
            batches.find_batch(session, wave, 1)


def test_what_a_wave_has_cost_is_the_same_after_its_files_as_before(engine: Engine, known: KnownWave) -> None:
    with writing(engine) as session:
        wave = session.get_one(Wave, known.wave)
        for code in ("P1", "P2", "P3"):
            payments.record_owed(session, completed(session, known, code))
            before = places.committed_before_fee(session, wave)
            batches.draft(session, wave)
            assert places.committed_before_fee(session, wave) == before
        owed = session.scalars(select(Payment.amount)).all()
        assert places.committed_before_fee(session, wave) == sum(owed) > 0


def test_prolific_takes_two_hundred_people_in_a_file(engine: Engine, known: KnownWave) -> None:
    with writing(engine) as session:
        wave = session.get_one(Wave, known.wave)
        for number in range(201):
            finish(session, person(session, known, f"P{number}"), "quiz_failed")
        drafted = batches.draft(session, wave)
        lines = [batches.batch_file(session, batch).content.decode().splitlines() for batch in drafted]
        assert [len(each) for each in lines] == [200, 1]
        assert len({line for each in lines for line in each}) == 201


def test_without_a_recruiter_all_is_paid_by_a_plain_file(engine: Engine, app: Flask, tmp_path: Path) -> None:
    with writing(engine) as session:
        version = load_example(session, tmp_path)
        wave = open_wave(session, version, "link")
        finish(session, enrol(session, wave, "P1", version))
        finish(session, enrol(session, wave, "P2", version))
        session.execute(delete(RecruitmentIdentity).where(RecruitmentIdentity.external_id == "p2id"))
        (batch,) = batches.draft(session, wave)
        assert batches.batch_file(session, batch).content.decode() == (
            "participant,external_id,amount,currency\nP1,p1id,5.00,USD\nP2,,5.00,USD\n"
        )


def test_any_id_of_a_link_of_ones_own_may_stand_in_a_plain_file(engine: Engine, app: Flask, tmp_path: Path) -> None:
    with writing(engine) as session:
        version = load_example(session, tmp_path)
        wave = open_wave(session, version, "link")
        ids = ["Zoë Ü, room 3", "=1+1", "-Vq of a browser"]
        for number in range(len(ids)):
            finish(session, enrol(session, wave, f"P{number}", version))
        identities = session.scalars(select(RecruitmentIdentity).order_by(RecruitmentIdentity.id)).all()
        for identity, own in zip(identities, ids, strict=True):
            identity.external_id = own
        session.flush()
        (batch,) = batches.draft(session, wave)
        file = batches.batch_file(session, batch).content.decode()
    rows = list(csv.DictReader(io.StringIO(file)))
    assert [row["external_id"] for row in rows] == [ids[0], f"'{ids[1]}", f"'{ids[2]}"]  # no spreadsheet runs them


@pytest.mark.parametrize(("found", "why"), [(None, "no id"), ("x,99\ny", "bad id")])
def test_who_cannot_be_paid_is_left_out_and_named_and_the_others_are_paid(
    engine: Engine, known: KnownWave, found: str | None, why: str
) -> None:
    with writing(engine) as session:
        completed(session, known, "P1")
        identity = session.scalars(select(RecruitmentIdentity)).one()
        if found is None:
            session.delete(identity)
        else:
            identity.external_id = found
    with pytest.raises(Conflict, match=rf"P1 \({why}\)"), writing(engine) as session:
        batches.draft(session, session.get_one(Wave, known.wave))
    with writing(engine) as session:
        wave = session.get_one(Wave, known.wave)
        assert session.scalars(select(PaymentBatch)).all() == []
        finish(session, person(session, known, "P2"), "quiz_failed")
        (batch,) = batches.draft(session, wave)
        assert batches.batch_file(session, batch).content.decode() == "p2id,1.00\n"
        assert [(each.code, each.kind) for each in held_back(session, wave, due(session, wave)).values()] == [
            ("P1", why)
        ]
        progress = payments.find_progress_by_code(session, session.get_one(Wave, known.wave), "P1")
        payments.record_owed(session, progress)
        payments.adjust(session, progress, -amounts(session, progress)["bonus"], "paid by hand")
        assert due(session, session.get_one(Wave, known.wave)) == []


def test_two_who_draft_at_once_pay_once(engine: Engine, known: KnownWave) -> None:
    with writing(engine) as session:
        for number in range(3):
            finish(session, person(session, known, f"P{number}"), "quiz_failed")

    together = threading.Barrier(2)

    def draft(_number: int) -> str:
        together.wait()
        try:
            with writing(engine) as session:
                return str(len(batches.draft(session, session.get_one(Wave, known.wave))))
        except Conflict as refused:
            return refused.code

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(draft, range(2))) == ["1", "conflict"]
    with reading(engine) as session:
        assert {row.batch_id is None for row in session.scalars(select(Payment)) if row.amount} == {False}
        assert len(session.scalars(select(PaymentBatch)).all()) == 1


def rows_of(session: Session, batch: PaymentBatch) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(batches.batch_file(session, batch).content.decode())))
