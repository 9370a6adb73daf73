"""Consent and what follows from it: what is trained on, and what goes when somebody takes it back."""

import json
import signal
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from app.core.config import Settings
from app.core.errors import Conflict, Invalid, NotAllowed
from app.core.extensions import reading, transact, writing
from app.datasets import register
from app.finetuning import lifecycle
from app.lineage import models_of
from app.matches import live
from app.matches.stored import StoredSeat, load
from app.matches.turns import play_turn
from app.models import (
    Consent,
    Dataset,
    Enrolment,
    EventRow,
    GenerationRow,
    LanguageModel,
    MatchRow,
    Participant,
    Payment,
    RecruitmentIdentity,
    SeatRow,
    StudyEvent,
    Submission,
    TrainingJob,
    Wave,
)
from app.registry import PERSON, add_api_model
from app.registry.changes import clone_model
from app.studies import consents, retention, withdrawal
from app.studies.batches import CONFIRMED, UPLOADED, batch_file, draft, mark
from app.studies.forget import delete_unusable_files, forget_match, forget_person, forget_person_for_good
from app.studies.payments import adjust
from app.studies.progress import StudyProgress, answer, end, find_progress, log_event
from app.studies.submissions import VisitStatus, take_statuses
from app.studies.waves import close
from tests.datasets import cut, rows_of, seat_of
from tests.experimenter import signed_in
from tests.integration.test_cli_dataset import flask
from tests.jobs import make_job, run
from tests.shell import Shell
from tests.stub_openai import StubServer
from tests.waves import changed, join, loaded_study, new_wave, store_study
from workers.upkeep import look_after

DEAL = {"counts": [2, 1, 3], "values": [[1, 5, 1], [3, 1, 1]], "first": 0}
OWN = ("[message] I am Ann from Quux and want the hat.", "[propose] (0 books, 1 hats, 1 balls)")
REFUSED = "[propose] all of Quux"
MODELS = ("[message] The hat is yours then.", "[propose] (2 books, 0 hats, 2 balls)")
TEXT = "Models may be trained on what you write."
DeskMaker = Callable[..., Any]


@pytest.fixture
def settings(app: Flask) -> Settings:
    return app.config["SETTINGS"]  # type: ignore[no-any-return]


@pytest.fixture
def wave(app: Flask) -> int:
    """A wave of a study whose material may be trained on, and which pays nobody who was removed."""
    endings = {"removed": {"base": "none"}}
    with writing() as session:
        store_study(session, changed(loaded_study(), material={"held_out": False}, endings=endings))
        return new_wave(session).id


def ended(session: Session, enrolment: int) -> StudyProgress:
    """The way of somebody who has come to its end."""
    progress = find_progress(session, enrolment)
    end(session, progress, "completed")
    return progress


class People:
    """People of a wave, and matches of theirs against a model of the stub."""

    def __init__(self, engine: Engine, wave: int, desk: DeskMaker, stub: StubServer) -> None:
        self.engine, self.wave, self.desk, self.stub = engine, wave, desk, stub
        with writing(engine) as session:
            spec = {"base_url": stub.url, "model": "dealer", "key_env": "", "retries": 0, "timeout": 5}
            self.model = add_api_model(session, "dealer", None, ["negotiation"], spec).id

    def come(self, name: str, training: bool | None = None) -> int:
        """Somebody who takes part; the number of the enrolment."""
        with writing(self.engine) as session:
            progress = join(session, session.get_one(Wave, self.wave), name)
            consents.give(session, progress, participation=True, training=training, text=TEXT)
            return progress.enrolment.id

    def play(self, enrolment: int, *, whole: bool = True) -> str:
        """A match of somebody's, to its deal."""
        self.stub.script("dealer", *MODELS)
        with writing(self.engine) as session:
            row = session.get_one(LanguageModel, self.model)
            seats = StoredSeat(PERSON), StoredSeat.of(row)
            record = live.create(session, "negotiation", DEAL, seats, seed=3, source="live", instant=True)
            person = session.get_one(Enrolment, enrolment).participant_id
            seat = session.get_one(SeatRow, (record.id, 0))
            seat.enrolment_id, seat.participant_id = enrolment, person
            seat.training_consent = consents.training_consent(session, person)
        for text in (OWN[0], REFUSED, OWN[1]) if whole else OWN[:1]:
            live.commit(self.engine, live.MoveSubmission(record.id, 0, text, move_id=text), instant=True)
            if text in OWN:
                assert play_turn(self.desk(), record.id)
        with writing(self.engine) as session:
            for event in session.scalars(select(EventRow).where(EventRow.match_id == record.id, EventRow.seat == 0)):
                event.timing = {"typing": 1200}
            return record.id

    def person(self, enrolment: int) -> int:
        with reading(self.engine) as session:
            return session.get_one(Enrolment, enrolment).participant_id


@pytest.fixture
def people(engine: Engine, wave: int, desk: DeskMaker, stub: StubServer) -> People:
    return People(engine, wave, desk, stub)


def cut_all(engine: Engine, home: Path, name: str = "talks") -> Dataset:
    return cut(engine, home, name, game="negotiation", filter="all", style="compact")


def text_in(engine: Engine, match: str) -> str:
    """All that the log of a match and the calls of models in it hold, as text."""
    with reading(engine) as session:
        events = session.execute(select(EventRow.body, EventRow.timing).where(EventRow.match_id == match)).all()
        calls = session.execute(
            select(GenerationRow.prompt, GenerationRow.text).where(GenerationRow.match_id == match)
        ).all()
        return json.dumps([[list(each) for each in rows] for rows in (events, calls)])


def file_of(home: Path, row: Dataset) -> Path:
    return home / "datasets" / f"{row.sha256}.jsonl"


# ---- The circle ------------------------------------------------------------------


def test_only_what_people_agreed_to_is_trained_on_and_taking_it_back_marks_dataset_and_model(
    engine: Engine, settings: Settings, people: People, app: Flask
) -> None:
    ann, ben, eve = people.come("ann", training=True), people.come("ben", training=False), people.come("eve")
    agreed = {people.play(ann), people.play(ann)}
    others = {people.play(ben), people.play(eve)}
    dataset = cut_all(engine, settings.home)
    rows = rows_of(settings.home, dataset)
    assert {seat_of(row)[0] for row in rows} == agreed
    assert len(rows) == 4  # the partner's rows as well, whose prompts hold what the person wrote
    assert not any(match in json.dumps(row) for row in rows for match in others)
    job = make_job(engine, dataset, "learner", epochs=1, length=2048)
    assert run(engine, settings, job)
    with reading(engine) as session:
        assert session.get_one(TrainingJob, job).error is None
    with writing(engine) as session:
        clone_model(session, "learner", "twin", None, options={"temperature": 0.5}, prompt_style=None,
                    hosts=settings.api_hosts, key_variables=settings.key_variables)  # fmt: skip
    waiting = make_job(engine, dataset, "later")

    with writing(engine) as session:
        person = session.get_one(Participant, people.person(ann))
        found = consents.withdraw_training(session, person.id)
        assert [row.id for row in found.datasets] == [dataset.id]
        assert [row.name for row in found.models] == ["learner", "twin"]
        assert not consents.training_consent(session, person.id)
    with reading(engine) as session:
        assert session.get_one(TrainingJob, waiting).status == "cancelled"
        names = select(LanguageModel.name).where(LanguageModel.id.in_(models_of(session)))
        assert sorted(session.scalars(names)) == ["learner", "twin"]
    with pytest.raises(Conflict, match=f"^dataset {dataset.id}: expected one that may be trained on, got .*rebuild"):
        make_job(engine, dataset, "more")
    with writing(engine) as session:
        wish = lifecycle.TrainingSpec(method="sft", dataset="talks", name="more", base="learner")
        with pytest.raises(Conflict, match="may be trained on"):
            lifecycle.create(session, wish, queued=False, home=settings.home)
    assert OWN[0] in text_in(engine, min(agreed))  # no more training is not deleting
    assert delete_unusable_files(engine, settings.home) == [file_of(settings.home, dataset).name]

    refused = flask(app, "train", "sft", "--data", "talks", "--base", "learner", "--name", "more")
    assert refused.exit_code == 2
    assert refused.stderr.count("\n") == 1
    assert "learned from" in flask(app, "model", "show", "twin").stdout
    told = json.loads(flask(app, "model", "lineage", "learner", "--json").stdout)
    assert [row["dataset_id"] for row in told["learned_withdrawn"]] == [dataset.id]
    # What the pages say is in tests/browser/test_circle.py.
    assert signed_in(app).get(f"/admin/datasets/{dataset.id}.jsonl").status_code == 409


def test_a_dataset_is_built_again_without_who_took_it_back(
    engine: Engine, settings: Settings, people: People, app: Flask
) -> None:
    ann, ben = people.come("ann", training=True), people.come("ben", training=True)
    people.play(ann)
    left = people.play(ben)
    dataset = cut_all(engine, settings.home)
    with writing(engine) as session:
        consents.withdraw_training(session, people.person(ann))
    again = json.loads(flask(app, "dataset", "rebuild", str(dataset.id), "--json").stdout)
    assert (again["name"], again["version"], again["rows"], again["was"]) == ("talks", 2, 2, 4)
    with reading(engine) as session:
        new = session.get_one(Dataset, again["dataset_id"])
        assert new.unusable_at is None
        assert {seat_of(row)[0] for row in rows_of(settings.home, new)} == {left}
    client = signed_in(app)
    answer = client.post(f"/admin/datasets/{dataset.id}/rebuild")
    assert answer.headers["Location"].endswith(f"/admin/datasets/{again['dataset_id'] + 1}")
    with writing(engine) as session:
        consents.withdraw_training(session, people.person(ben))
    refused = client.post(f"/admin/datasets/{dataset.id}/rebuild")
    assert refused.status_code == 400
    assert "to keep at least one transcript" in refused.text


def test_the_latest_answer_counts_also_for_what_was_played_before(engine: Engine, home: Path, people: People) -> None:
    ann = people.come("ann")
    match = people.play(ann)
    for training, keeps in ((True, True), (False, False), (True, True)):
        with writing(engine) as session:
            consents.give(session, find_progress(session, ann), participation=True, training=training, text="debrief")
        if keeps:
            assert {seat_of(row)[0] for row in rows_of(home, cut_all(engine, home))} == {match}
        else:
            with pytest.raises(Invalid, match="training consent of the people in the match"):
                cut_all(engine, home)
    with writing(engine) as session:
        consents.give(session, find_progress(session, ann), participation=True, training=True, text="debrief")
        answers = select(Consent.given).where(Consent.kind == consents.TRAINING).order_by(Consent.id)
        assert session.scalars(answers).all() == [True, False, True]  # the same once more is no answer


def test_who_takes_back_training_or_all_data_takes_back_publication(engine: Engine, people: People) -> None:
    ann, ben = people.come("ann"), people.come("ben")
    with writing(engine) as session:
        for number in (ann, ben):
            found = find_progress(session, number)
            consents.give(session, found, participation=True, training=True, publication=True, text="consent")
            assert consents.publication_consent(session, found.enrolment.participant_id)
        consents.withdraw_training(session, people.person(ann))
        forget_person(session, people.person(ben))
        assert not any(consents.publication_consent(session, people.person(each)) for each in (ann, ben))


def test_a_dataset_that_was_being_cut_meanwhile_is_unusable(engine: Engine, home: Path, people: People) -> None:
    ann = people.come("ann", training=True)
    people.play(ann)
    draft = cut_all(engine, home)
    with writing(engine) as session:
        session.get_one(Dataset, draft.id).complete = False
        consents.withdraw_training(session, people.person(ann))
        session.get_one(Dataset, draft.id).unusable_at = None  # as if its rows had been written after that
    transact(engine)(lambda session: register.publish(session, draft.id))
    with reading(engine) as session:
        assert session.get_one(Dataset, draft.id).unusable_at is not None


# ---- Deleting --------------------------------------------------------------------


def test_deleting_leaves_nothing_that_the_person_wrote_and_all_that_is_needed(
    engine: Engine, settings: Settings, people: People
) -> None:
    ann, ben = people.come("ann", training=True), people.come("ben", training=True)
    match, under_way, other = people.play(ann), people.play(ann, whole=False), people.play(ben)
    dataset = cut_all(engine, settings.home)
    with writing(engine) as session:
        progress = find_progress(session, ann)
        answer(progress, "survey start", {"age": "I am Quux"})
        end(session, progress, "removed")  # which is owed nothing
        log_event(session, progress, "report", {"text": "Quux said so", "match": match})
        row = session.get_one(MatchRow, match)
        before = (row.reason, row.utility_0, row.utility_1, row.words, row.violations)
    for _ in range(2):
        report = forget_person_for_good(engine, settings.home, people.person(ann))
        assert (report.matches, report.datasets) == (sorted([match, under_way]), [dataset.id])
        for each in (match, under_way):
            left = text_in(engine, each)
            assert "Quux" not in left
            assert "typing" not in left
            assert MODELS[0] in left
    assert (report.events, report.prompts, report.answers) == (0, 0, 0)
    assert not file_of(settings.home, dataset).exists()
    assert OWN[0] in text_in(engine, other)
    with reading(engine) as session:
        row = session.get_one(MatchRow, match)
        assert row.erased_at is not None
        assert (row.reason, row.utility_0, row.utility_1, row.words, row.violations) == before
        assert load(session, match).match.over  # its log is still the match
        assert session.get_one(MatchRow, under_way).reason == "resigned"
        enrolment = session.get_one(Enrolment, ann)
        assert (enrolment.answers, enrolment.ending) == ({}, "removed")
        assert session.scalars(select(RecruitmentIdentity.external_id)).all() == ["ben"]
        visits = session.execute(select(Submission.enrolment_id, Submission.external_id).order_by(Submission.id)).all()
        assert visits == [(ann, None), (ben, "visit of ben")]
        assert session.get_one(Participant, enrolment.participant_id).person_hash
        log = session.scalars(select(StudyEvent.body).where(StudyEvent.kind == "report").order_by(StudyEvent.id)).all()
        assert log == [{"match": match}]
        kept = session.get_one(Dataset, dataset.id)
        assert (kept.sha256, kept.unusable_at is None) == (dataset.sha256, False)
    with pytest.raises(Invalid):
        cut(engine, settings.home, game="negotiation", filter="all", match=match)


def test_people_delete_their_data_until_the_day_that_the_design_names(
    engine: Engine, people: People, settings: Settings
) -> None:
    ann = people.come("ann")
    match = people.play(ann)
    with writing(engine) as session:
        end(session, find_progress(session, ann), "completed")
        session.get_one(Enrolment, ann).ended_at = datetime.now(UTC) - timedelta(days=31)
        day = withdrawal.last_day(session, people.person(ann))
    with writing(engine) as session, pytest.raises(NotAllowed, match=f"could be deleted until {day}"):
        withdrawal.delete_data(session, find_progress(session, ann))
    assert "Quux" in text_in(engine, match)
    with writing(engine) as session:
        session.get_one(Enrolment, ann).ended_at = datetime.now(UTC) - timedelta(days=29)
        assert withdrawal.delete_data(session, find_progress(session, ann)).matches == [match]
    with writing(engine) as session:
        session.get_one(Enrolment, ann).ended_at = datetime.now(UTC) - timedelta(days=31)
        assert withdrawal.delete_data(session, find_progress(session, ann)).events == 0  # it was done in time
    assert "Quux" not in text_in(engine, match)


def test_stopping_ends_the_match_and_keeps_what_was_written(engine: Engine, people: People) -> None:
    ann = people.come("ann")
    match = people.play(ann, whole=False)
    with writing(engine) as session:
        assert withdrawal.stop(session, find_progress(session, ann)) == [match]
    with writing(engine) as session:
        assert withdrawal.stop(session, find_progress(session, ann)) == []
        assert session.get_one(Enrolment, ann).ending == "withdrawn"
        assert session.get_one(MatchRow, match).reason == "resigned"
    assert OWN[0] in text_in(engine, match)


def test_an_id_stays_until_what_was_earned_is_paid_by_it(engine: Engine, people: People, wave: int) -> None:
    ann, ben = people.come("ann"), people.come("ben")
    with writing(engine) as session:
        session.get_one(Enrolment, ann).enrolled_at = datetime.now(UTC) - timedelta(minutes=20)
        adjust(session, ended(session, ann), Decimal("1.20"), "waited long")
        report = forget_person(session, people.person(ann))
        assert (report.unpaid > 0, report.identities) == (True, 0)
        assert "Recruiter's ids stay until payments are confirmed" in "\n".join(report.lines())
        end(session, find_progress(session, ben), "removed")
        assert forget_person(session, people.person(ben)).identities == 1  # who is owed nothing
        assert retention.remove_what_is_due(session) == 0
    with writing(engine) as session:
        found = session.get_one(Wave, wave)
        take_statuses(session, found, [VisitStatus("visit of ann", "submitted")], whole=True)
        (batch,) = draft(session, found)
        assert "ann" in batch_file(session, batch).content.decode()
        for status in (UPLOADED, CONFIRMED):
            mark(session, batch, status)
        paid = session.scalars(select(Payment.amount).order_by(Payment.id)).all()
    with writing(engine) as session:
        assert retention.remove_what_is_due(session) == 1
        assert session.query(RecruitmentIdentity).count() == 0
        assert session.scalars(select(Submission.external_id)).all() == [None, None]
        assert session.scalars(select(Payment.amount).order_by(Payment.id)).all() == paid


def test_an_id_goes_when_what_was_earned_is_taken_away_because_it_was_paid_by_hand(
    engine: Engine, people: People
) -> None:
    ann = people.come("ann")
    with writing(engine) as session:
        adjust(session, ended(session, ann), Decimal("1.20"), "waited long")
        adjust(session, find_progress(session, ann), Decimal("-1.20"), "in cash")
        assert forget_person(session, people.person(ann)).identities == 1


def test_what_people_wrote_in_one_match_is_deleted_from_the_command_line(
    app: Flask, engine: Engine, people: People, settings: Settings
) -> None:
    ann = people.come("ann", training=True)
    match, other = people.play(ann), people.play(ann)
    dataset = cut_all(engine, settings.home)
    told = json.loads(flask(app, "match", "erase", match, "--json").stdout)
    assert (told["matches"], told["datasets"], told["events"]) == ([match], [dataset.id], 3)
    assert told["files"] == [file_of(settings.home, dataset).name]
    assert "Quux" not in text_in(engine, match)
    assert "Quux" in text_in(engine, other)
    with writing(engine) as session:  # a later yes does not bring it back
        consents.give(session, find_progress(session, ann), participation=True, training=True, text="debrief")
        rows = cut_all
    assert {seat_of(row)[0] for row in rows_of(settings.home, rows(engine, settings.home, "again"))} == {other}
    page = signed_in(app).get(f"/admin/matches/{match}", follow_redirects=True).text  # of a wave that is not frozen
    assert "What a person wrote in this match was deleted." in page
    refused = flask(app, "match", "erase", "no-such-match")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)


def test_a_person_is_forgotten_from_the_command_line(app: Flask, engine: Engine, people: People) -> None:
    ann = people.come("ann")
    people.play(ann)
    with reading(engine) as session:
        code = session.get_one(Participant, people.person(ann)).code
    for reference in (code, f"two-models:{code}"):
        lines = flask(app, "study", "forget", reference).stdout.splitlines()
        assert lines[0].startswith("Matches that were emptied of what people wrote: ")
    assert "Moves: 0, prompts of models: 0, answers: 0" in lines
    with reading(engine) as session:
        assert session.get_one(Enrolment, ann).ending == "withdrawn"
    refused = flask(app, "study", "forget", "nobody")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    with writing(engine) as session:
        person = session.get_one(Participant, people.person(ann))
        session.add(Participant(code=person.code, created_at=datetime.now(UTC)))
    assert "STUDY:CODE" in flask(app, "study", "forget", code).stderr


_KILLED = """
import os, signal, sys
from pathlib import Path
from sqlalchemy import create_engine
import app.models
from app.studies import forget

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

setattr(forget, sys.argv[1], die)
forget.forget_person_for_good(create_engine(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
"""


@pytest.mark.parametrize(("where", "emptied"), [("withdraw_matches", False), ("delete_unusable_files", True)])
def test_killed_in_the_middle_it_is_the_old_state_or_one_that_a_second_run_completes(
    shell: Shell, engine: Engine, settings: Settings, people: People, where: str, emptied: bool
) -> None:
    ann = people.come("ann", training=True)
    match = people.play(ann)
    dataset = cut_all(engine, settings.home)
    person = people.person(ann)
    arguments = [where, settings.database_url, str(settings.home), str(person)]
    assert shell.python(_KILLED, *arguments).exit_code == -signal.SIGKILL
    assert ("Quux" not in text_in(engine, match)) == emptied
    with reading(engine) as session:
        assert (session.get_one(Participant, person).erased_at is not None) == emptied
        assert (session.get_one(Dataset, dataset.id).unusable_at is not None) == emptied
    assert file_of(settings.home, dataset).exists()
    report = forget_person_for_good(engine, settings.home, person)
    assert report.files == [file_of(settings.home, dataset).name]
    assert "Quux" not in text_in(engine, match)


# ---- Upkeep ----------------------------------------------------------------------


def test_upkeep_removes_ids_whose_day_has_passed_and_files_that_were_left(
    engine: Engine, settings: Settings, people: People, wave: int
) -> None:
    ann, ben = people.come("ann", training=True), people.come("ben")
    people.play(ann)
    dataset = cut_all(engine, settings.home)
    with writing(engine) as session:
        consents.withdraw_training(session, people.person(ann))
    for number in range(2):
        look_after(engine, settings, "owner", lambda *_: None)
        assert not file_of(settings.home, dataset).exists()
        with writing(engine) as session:
            assert session.query(RecruitmentIdentity).count() == 2
            if number == 0:
                close(session, session.get_one(Wave, wave))
    with writing(engine) as session:
        identity = session.scalars(
            select(RecruitmentIdentity).where(RecruitmentIdentity.participant_id == people.person(ben))
        ).one()
        assert identity.remove_on == (datetime.now(UTC) + timedelta(days=90)).date()
        identity.remove_on = date(2020, 1, 1)
        assert retention.remove_what_is_due(session) == 1
        assert session.scalars(select(RecruitmentIdentity.external_id)).all() == ["ann"]
        assert session.get_one(Participant, people.person(ben)).person_hash


def test_a_prompt_that_is_written_down_late_is_emptied_by_upkeep(engine: Engine, people: People) -> None:
    match = people.play(people.come("ann"))
    with reading(engine) as session:
        call = session.scalars(select(GenerationRow).where(GenerationRow.match_id == match)).first()
        assert call is not None
        late = {
            column.key: getattr(call, column.key) for column in GenerationRow.__table__.columns if column.key != "id"
        }
    with writing(engine) as session:
        forget_match(session, match)
        session.add(GenerationRow(**late))
    assert "Quux" in text_in(engine, match)
    with writing(engine) as session:
        assert retention.empty_late_prompts(session) == 1
    assert "Quux" not in text_in(engine, match)


# ---- To whom rows go ---------------------------------------------------------------


def test_rows_of_people_go_to_a_vendor_only_where_their_consent_named_it(
    engine: Engine, settings: Settings, app: Flask, desk: DeskMaker, stub: StubServer
) -> None:
    with writing(engine) as session:
        options = {"model": "gpt-4o-mini", "base_url": "https://api.openai.com/v1", "key_env": "OPENAI_API_KEY"}
        add_api_model(session, "mini", None, ["negotiation"], options)
        options |= {"base_url": "http://127.0.0.1:9/v1", "key_env": "OTHER_KEY"}
        add_api_model(session, "elsewhere", None, ["negotiation"], options)
        options |= {"base_url": "https://api.together.ai/v1", "key_env": "TOGETHER_API_KEY"}
        add_api_model(session, "open", None, ["negotiation"], options)
        waves = []
        for recipients in (("openai", "Tinker"), ()):
            consent = {"training_recipients": recipients}
            store_study(session, changed(loaded_study(), material={"held_out": False}, consent=consent))
            waves.append(new_wave(session, wave=f"wave-{len(waves)}").id)

    def train(dataset: Dataset, base: str | None, backend: str = "openai") -> None:
        method = "tiny" if base is None else "sft"
        spec = lifecycle.TrainingSpec(method=method, dataset=str(dataset.id), name="m", base=base, backend=backend)
        with writing(engine) as session:
            lifecycle.create(session, spec, queued=True)
            session.rollback()

    def refusal(name: str, dataset: str, without: str) -> str:
        return (
            f"dataset: expected games of people whose consent names {name} as a recipient for training, got"
            f" {dataset}@1, with {without} games with people whose consent does not name it;"
            " train a local model, or name it"
        )

    people = People(engine, waves[0], desk, stub)
    ann = people.come("ann", training=True)
    people.play(ann)
    people.play(ann)
    named = cut_all(engine, settings.home, "named")
    train(named, "mini")
    with pytest.raises(Invalid, match=refusal("127.0.0.1", "named", "2 of 2")):
        train(named, "elsewhere")
    with pytest.raises(Invalid, match=refusal("Together", "named", "2 of 2")):
        train(named, "open", "together")
    people.wave = waves[1]
    people.play(people.come("ben", training=True))
    guest = people.play(ann)
    with writing(engine) as session:
        session.get_one(SeatRow, (guest, 0)).enrolment_id = None  # as where somebody plays outside of a study
    mixed = cut_all(engine, settings.home, "mixed")
    with pytest.raises(Invalid, match=refusal("OpenAI", "mixed", "2 of 4")):
        train(mixed, "mini")
    train(mixed, None, "local")
