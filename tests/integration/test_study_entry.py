"""Who comes into a wave, once, and who is told why not, on both databases."""

import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, select

from app.core.csv_tables import guarded
from app.core.errors import FieldError, NotAllowed
from app.core.extensions import db, reading, transact_with_retry, writing
from app.models import Participant, RecruitmentIdentity, StudyEvent, Submission, Wave
from app.studies.assignment import assign
from app.studies.enrolment import mark_of_link, person_hash
from app.studies.places import places_taken
from app.studies.previews import Preview, enter_preview, preview_token, read_preview
from app.studies.progress import end
from app.studies.submissions import VisitStatus, take_statuses
from app.studies.wave_file import most_with_fee
from app.studies.waves import close, find_wave, freeze, pause, reopen
from tests.waves import SECRET, changed, join, loaded_study, new_wave, store_study, wave_file


@pytest.fixture
def wave_id(app: Flask) -> int:
    with writing() as session:
        return new_wave(session).id


def wave_of(session: Any, number: int) -> Wave:
    return session.get_one(Wave, number)


def test_who_comes_back_is_the_same_person(app: Flask, wave_id: int) -> None:
    with writing() as session:
        first = join(session, wave_of(session, wave_id), "ann").enrolment
        token, number = str(first.token), first.id
    with writing() as session:
        browser = {"marks": frozenset([mark_of_link(token)])}
        again = join(session, wave_of(session, wave_id), "ann", device="phone", submission_id="second visit", **browser)
        assert (again.enrolment.id, again.enrolment.token, again.enrolment.device) == (number, token, "desktop")
        assert join(session, wave_of(session, wave_id), "ben").enrolment.id != number
    with reading() as session:
        visits = session.execute(select(Submission.enrolment_id, Submission.external_id).order_by(Submission.id)).all()
        assert visits == [(number, "visit of ann"), (number, "second visit"), (number + 1, "visit of ben")]
        assert session.query(Participant).count() == session.query(RecruitmentIdentity).count() == 2


def test_no_code_of_a_person_is_taken_for_a_number(app: Flask, wave_id: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, drawn in (("ann", "1234567890"), ("ben", "12345678e9")):
        monkeypatch.setattr("secrets.token_hex", lambda _, drawn=drawn: drawn)
        with writing() as session:
            join(session, wave_of(session, wave_id), name)
    with reading() as session:
        codes = session.scalars(select(Participant.code)).all()
    assert codes == [guarded(code) for code in codes] == ["p1234567890", "p12345678e9"]


def test_a_visit_that_is_another_persons_stays_theirs(app: Flask, wave_id: int) -> None:
    with writing() as session:
        wave = wave_of(session, wave_id)
        ann = join(session, wave, "ann").enrolment.id
        join(session, wave, "ben", submission_id="visit of ann")
    with reading() as session:
        assert session.scalars(select(Submission.enrolment_id)).all() == [ann]


def test_a_person_is_known_by_a_hash_that_needs_the_key() -> None:
    one = person_hash(SECRET, "prolific", "ann")
    assert one == person_hash(SECRET, "prolific", "ann")
    assert len({one, person_hash(SECRET, "mturk", "ann"), person_hash("another", "prolific", "ann")}) == 3


def test_of_ten_who_arrive_for_the_last_place_one_gets_it(app: Flask, engine: Engine) -> None:
    with writing() as session:
        number = new_wave(session, places=3).id
        for name in ("ann", "ben"):
            join(session, wave_of(session, number), name)
    ready, endings = threading.Barrier(10), []

    def come(name: str) -> None:
        ready.wait()
        endings.append(
            transact_with_retry(
                engine, lambda session: join(session, wave_of(session, number), name).enrolment.ending, 60
            )
        )

    threads = [threading.Thread(target=come, args=(f"late {each}",)) for each in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(endings) == {None: 1, "full": 9}


def test_two_tabs_at_once_are_one_person(app: Flask, engine: Engine, wave_id: int) -> None:
    ready, found = threading.Barrier(6), []

    def come() -> None:
        ready.wait()
        found.append(
            transact_with_retry(
                engine, lambda session: join(session, wave_of(session, wave_id), "ann").enrolment.id, 60
            )
        )

    threads = [threading.Thread(target=come) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(found), len(set(found))) == (6, 1)


def test_a_place_is_free_again_when_an_ending_frees_it(app: Flask) -> None:
    with writing() as session:
        wave = new_wave(session, places=1)
        assert join(session, wave, "ann").enrolment.ending is None
        ben = join(session, wave, "ben")
        assert (ben.enrolment.ending, ben.enrolment.stage, ben.enrolment.holds_place) == ("full", "done", False)
        end(session, join(session, wave, "ann"), "withdrawn")
        assert join(session, wave, "cem").enrolment.ending is None
        assert join(session, wave, "ben").enrolment.ending == "full"
        end(session, join(session, wave, "cem"), "completed")
        assert join(session, wave, "dua").enrolment.ending == "full"
        assert places_taken(session, wave) == 1


@pytest.mark.parametrize(("status", "ending"), [("returned", "withdrawn"), ("timed_out", "inactive")])
def test_a_visit_that_is_returned_gives_its_place_to_another_person(app: Flask, status: str, ending: str) -> None:
    with writing() as session:
        wave = new_wave(session, places=1)
        ann = join(session, wave, "ann")
        visits = [VisitStatus("visit of ann", status), VisitStatus("visit of nobody", status)]
        assert take_statuses(session, wave, visits) == ({status: 1}, 1, 1, [], [])
        assert take_statuses(session, wave, visits) == ({status: 1}, 0, 1, [], [])
        assert ann.enrolment.ending == ending
        ben = join(session, wave, "ben")
        end(session, ben, "completed")
        assert places_taken(session, wave) == 1
        take_statuses(session, wave, [VisitStatus("visit of ben", status)])
        assert (ben.enrolment.ending, places_taken(session, wave)) == ("completed", 0)


def test_who_came_again_goes_by_the_latest_visit(app: Flask) -> None:
    with writing() as session:
        wave = new_wave(session)
        marks = frozenset([mark_of_link(str(join(session, wave, "ann").enrolment.token))])
        progress = join(session, wave, "ann", submission_id="second visit", marks=marks)
        take_statuses(session, wave, [VisitStatus("visit of ann", "returned"), VisitStatus("second visit", "approved")])
        assert progress.enrolment.ending is None
        assert {row.status for row in session.query(Submission)} == {"returned", "approved"}


def test_a_frozen_wave_takes_nothing_in(app: Flask) -> None:
    with writing() as session:
        wave = new_wave(session)
        ann = join(session, wave, "ann")
        end(session, ann, "completed")
        close(session, wave)
        freeze(session, wave)
        assert join(session, wave, "ann").enrolment.id == ann.enrolment.id
        with pytest.raises(NotAllowed, match="This study is over"):
            join(session, wave, "ben")
        with pytest.raises(FieldError, match="expected a wave that is not frozen"):
            take_statuses(session, wave, [VisitStatus("visit of ann", "returned")])
        assert session.query(Submission).count() == session.query(Participant).count() == 1


def test_nobody_comes_in_whose_pay_does_not_fit_under_the_cap(app: Flask) -> None:
    most = most_with_fee(loaded_study().design, wave_file())
    assert most == 15  # 5.00 base, 5.00 bonus at most, and half as much again for the recruiter
    with writing() as session:
        wave = new_wave(session, most_spent=float(2 * most))
        assert [join(session, wave, name).enrolment.ending for name in ("ann", "ben", "cem")] == [None, None, "full"]
        end(session, join(session, wave, "ann"), "declined")
        assert join(session, wave, "dua").enrolment.ending is None


def test_a_wave_pauses_once_after_the_first_few(app: Flask) -> None:
    with writing() as session:
        wave = new_wave(session, start={"first": 2, "then": "pause"})
        assert [join(session, wave, name).enrolment.ending for name in ("ann", "ben")] == [None, None]
        with pytest.raises(NotAllowed, match="This study is paused"):
            join(session, wave, "cem")
        assert (wave.status, session.query(Participant).count(), session.query(Submission).count()) == ("paused", 2, 2)
        reopen(session, wave)
        assert [join(session, wave, name).enrolment.ending for name in ("cem", "dua", "eve")] == [None] * 3
        assert wave.status == "open"


def test_a_closed_wave_records_only_those_whose_recruiter_waits_for_a_code(app: Flask) -> None:
    with writing() as session:
        wave = new_wave(session)
        close(session, wave)
        with pytest.raises(NotAllowed, match="This study is over"):
            join(session, wave, "ann", submission_id=None)
        assert session.query(Participant).count() == 0
        assert join(session, wave, "ben").enrolment.ending == "closed"
        assert session.query(Submission).one().external_id == "visit of ben"


def test_a_wave_that_is_closed_lets_those_finish_who_are_in_it(app: Flask) -> None:
    with writing() as session:
        wave = new_wave(session)
        progress = join(session, wave, "ann")
        pause(session, wave)
        close(session, wave, by="eva")
        assert join(session, wave, "ben").enrolment.ending == "closed"
        with pytest.raises(
            FieldError, match="main: expected a wave in which nobody is under way, got one with 1 people"
        ):
            freeze(session, wave)
        assert join(session, wave, "ann").enrolment.ending is None
        end(session, progress, "completed")
        freeze(session, wave)
        for act in (pause, reopen, close, freeze):
            with pytest.raises(FieldError, match="expected a wave that is not frozen, got one that is"):
                act(session, wave)
        log = select(StudyEvent.kind, StudyEvent.body).where(StudyEvent.enrolment_id.is_(None)).order_by(StudyEvent.id)
        assert [tuple(row) for row in session.execute(log)] == [
            ("opened", {}), ("paused", {}), ("closed", {"by": "eva"}), ("frozen", {}),
        ]  # fmt: skip


def test_ids_go_so_many_days_after_the_wave_closed(app: Flask) -> None:
    with writing() as session:
        wave = new_wave(session)
        join(session, wave, "ann")
        identity = session.query(RecruitmentIdentity).one()
        assert identity.remove_on is None
        other = new_wave(session, wave="second")
        join(session, other, "ann")
        close(session, wave)
        assert identity.remove_on is None
        close(session, other)
        assert identity.remove_on == (datetime.now(UTC) + timedelta(days=90)).date()


def test_who_took_part_before_is_not_asked_again(app: Flask) -> None:
    with writing() as session:
        pilot = new_wave(session, wave="pilot", places=3)
        end(session, join(session, pilot, "ann"), "withdrawn")
        end(session, join(session, pilot, "ben"), "declined")
        join(session, pilot, "cem")
        wave = new_wave(session, not_if_took_part_in=["two-models:pilot"])
        endings = {name: join(session, wave, name).enrolment.ending for name in ("ann", "ben", "cem", "dua")}
        assert endings == {"ann": "ineligible", "ben": None, "cem": "ineligible", "dua": None}
        store_study(session, changed(loaded_study(), study="another"))
        later = new_wave(session, of="another", not_if_took_part_in=["two-models"])
        assert [join(session, later, name).enrolment.ending for name in ("dua", "eve")] == ["ineligible", None]
        people = session.scalars(select(Participant.study_id).where(Participant.person_hash.is_not(None))).all()
        assert len(people) == 6  # four in the one study, two in the other


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ({"of": "three-models"}, "of: expected the name of a study that was loaded, got 'three-models'"),
        ({"of": "two-models@7"}, "of: expected two-models or two-models@NUMBER"),
        ({"not_if_took_part_in": ["pilot"]}, "not_if_took_part_in: expected existing studies and waves"),
        ({"not_if_took_part_in": ["two-models:pilot"]}, "not_if_took_part_in: expected existing studies and waves"),
        ({"most_spent": 1}, r"most_spent: expected at least [\d.]+, what one person may cost, got 1.00"),
        (
            {"most_spent": 9, "provider": {"prolific": {"study_id": "66f0c1"}}},
            "most_spent: expected at least 10.00, what one person may cost, got 9.00",
        ),
        ({"wave": "first"}, "wave: expected a name that no wave of the study has, got 'first'"),
    ],
)
def test_a_wave_that_cannot_be_is_refused(app: Flask, keys: dict[str, Any], line: str) -> None:
    with writing() as session:
        new_wave(session, wave="first")
        with pytest.raises(FieldError, match=line):
            new_wave(session, **keys)


def test_a_preview_takes_no_place_and_has_the_arm_of_its_link(app: Flask) -> None:
    with writing() as session:
        wave = new_wave(session, places=1)
        version = wave.study_version_id
        arms = session.execute(db.text("SELECT id FROM arm ORDER BY id")).scalars().all()
        token = preview_token(SECRET, version, arms[2])
        assert read_preview(SECRET, token) == Preview(version, arms[2])
        for _ in range(2):
            progress = enter_preview(session, read_preview(SECRET, token), "desktop")
            assign(session, progress)
            assert (progress.enrolment.arm_id, progress.enrolment.wave_id, len(progress.enrolment.plan["matches"])) == (
                arms[2],
                None,
                4,
            )
        free = enter_preview(session, Preview(version, None), "desktop")
        assign(session, free)
        assert free.enrolment.arm_id in arms
        end(session, free, "withdrawn")
        assert join(session, wave, "ann").enrolment.ending is None
        codes = session.scalars(select(Participant.code).where(Participant.person_hash.is_(None))).all()
        assert len({code for code in codes if code.startswith("preview-")}) == 3
        with pytest.raises(FieldError, match="link: expected one that Parlor gave out"):
            read_preview("another key", token)


def test_a_wave_is_found_by_its_name(app: Flask, wave_id: int) -> None:
    with reading() as session:
        assert find_wave(session, "two-models:main").id == wave_id
        for name in ("two-models", "two-models:pilot", "nothing:main"):
            with pytest.raises(FieldError, match="expected STUDY:WAVE, with a wave that was opened"):
                find_wave(session, name)
