"""What may be published: nothing with people's games in which somebody has not agreed to publication."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, update
from sqlalchemy.orm import Session

from app.cleanup.remove import remove
from app.cleanup.restore import restore
from app.core.errors import Conflict, Invalid
from app.core.extensions import reading, transact, writing
from app.datasets import register
from app.datasets.best_responses import best_responses
from app.finetuning.job import TRAINING
from app.models import Dataset, DatasetRow, Enrolment, LanguageModel, MatchRow, SeatRow
from app.publication import licences, permissions
from app.publication.release import Release, check_allowed, release_of_dataset, release_of_model
from app.registry import add_local_model, ensure_baselines, get_model
from app.registry.changes import remove_model
from app.studies import consents
from app.studies.progress import find_progress
from tests.datasets import import_rows
from tests.integration.test_cli_dataset import flask
from tests.integration.test_consent import DeskMaker, People, cut_all
from tests.stub_openai import StubServer
from tests.waves import changed, loaded_study, new_wave, store_study

ROW = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello", "weight": 1}]}


@pytest.fixture
def people(engine: Engine, app: Flask, desk: DeskMaker, stub: StubServer) -> People:
    with writing() as session:
        store_study(session, changed(loaded_study(), material={"held_out": False}, consent={"publication": "ask"}))
        wave = new_wave(session).id
    return People(engine, wave, desk, stub)


def come(people: People, name: str, *, publication: bool | None) -> int:
    """Somebody who agrees to training, and answers about publication."""
    enrolment = people.come(name, training=True)
    with writing(people.engine) as session:
        agree(session, enrolment, publication)
    return enrolment


def agree(session: Session, enrolment: int, publication: bool | None = True) -> None:
    found = find_progress(session, enrolment)
    consents.give(session, found, participation=True, training=True, publication=publication, text="consent")


def of_dataset(engine: Engine, number: int) -> Release:
    with reading(engine) as session:
        return release_of_dataset(session, session.get_one(Dataset, number))


def of_model(engine: Engine, name: str) -> Release:
    with reading(engine) as session:
        return release_of_model(session, get_model(session, name))


def lines(found: Release) -> list[str]:
    return [str(each) for each in found.refusals]


def trained(session: Session, name: str, dataset: int, base: str | None = None, **config: Any) -> LanguageModel:
    """A model as a training on a dataset has left it."""
    model = add_local_model(session, name, None, ["negotiation"], {"path": f"checkpoints/{name}", "sha256": "0" * 64})
    job = TRAINING.new_row(
        queued=False, name=name, method="sft", backend="local", dataset_id=dataset, config=config, model_id=model.id,
        base_id=None if base is None else get_model(session, base).id, lease_count=0,
    )  # fmt: skip
    session.add(job)
    session.flush()
    return model


def imported(engine: Engine, home: Path, *rows: dict[str, Any], name: str = "chats") -> int:
    return import_rows(engine, home, "parlor", *rows, name=name)


def test_a_dataset_may_leave_once_everybody_in_its_games_agrees_and_no_longer_once_one_withdraws(
    engine: Engine, home: Path, people: People
) -> None:
    ann, ben = come(people, "ann", publication=True), come(people, "ben", publication=False)
    people.play(ann)
    people.play(ben)
    dataset = cut_all(engine, home).id
    found = of_dataset(engine, dataset)
    assert lines(found) == [
        "1 of 2 games of study two-models in which somebody has not agreed to publication or has withdrawn it"
    ]
    with pytest.raises(Conflict, match=r"^talks@1: expected one that may be published, got 1 of 2 games "):
        check_allowed(found, "talks@1")
    with writing(engine) as session:
        consents.give(
            session, find_progress(session, ben), participation=True, training=True, publication=True, text=""
        )
    found = of_dataset(engine, dataset)
    assert found.is_allowed
    assert found.participants == {people.person(ann), people.person(ben)}
    assert [tuple(each) for each in found.people] == [("two-models", 2, 2)]
    assert found.sources == {"live": 2}
    with writing(engine) as session:
        consents.withdraw_publication(session, people.person(ann))
    assert not of_dataset(engine, dataset).is_allowed
    with writing(engine) as session:  # which is another question
        assert consents.training_consent(session, people.person(ann))


def test_what_was_withdrawn_while_a_dataset_was_removed_stays_so_when_that_is_undone(
    engine: Engine, app: Flask, home: Path, people: People
) -> None:
    enrolment = come(people, "ann", publication=True)
    people.play(enrolment)
    number = cut_all(engine, home).id
    assert of_dataset(engine, number).is_allowed
    removal = remove(app.config["SETTINGS"], engine, "dataset", number, "bob")
    with writing(engine) as session:
        consents.withdraw_publication(session, people.person(enrolment))
    restore(app.config["SETTINGS"], engine, removal.id, "bob")
    assert not of_dataset(engine, number).is_allowed


def test_who_was_never_asked_and_guests_let_nothing_leave(engine: Engine, home: Path, people: People) -> None:
    ann = come(people, "ann", publication=True)
    match = people.play(ann)
    dataset = cut_all(engine, home).id
    with writing(engine) as session:
        guest = consents.find_or_add_guest(session, None)
        consents.answer_of_guest(session, guest, True, "training")
        session.execute(
            update(SeatRow).where(SeatRow.match_id == match, SeatRow.seat == 0)
            .values(participant_id=guest.id, enrolment_id=None)
        )  # fmt: skip
    assert lines(of_dataset(engine, dataset)) == ["games of guests, who are never asked about publication: 1"]
    with writing(engine) as session:  # somebody whose seat is known by the enrolment alone
        session.execute(
            update(SeatRow).where(SeatRow.match_id == match, SeatRow.seat == 0)
            .values(participant_id=None, enrolment_id=ann)
        )  # fmt: skip
    assert of_dataset(engine, dataset).is_allowed
    with writing(engine) as session:
        eve = session.get_one(Enrolment, people.come("eve", training=True))
        session.execute(update(SeatRow).where(SeatRow.match_id == match, SeatRow.seat == 0).values(enrolment_id=eve.id))
    assert not of_dataset(engine, dataset).is_allowed


def test_weights_that_learned_from_people_stay_however_many_steps_are_between(
    engine: Engine, home: Path, people: People
) -> None:
    ann = come(people, "ann", publication=False)
    match = people.play(ann)
    own = cut_all(engine, home).id
    other = imported(engine, home, ROW)
    with writing(engine) as session:
        permissions.declare(session, session.get_one(Dataset, other), licence="mit", reason="Ours.", by="ada")
        trained(session, "learner", own)
        trained(session, "further", other, base="learner")
        trained(session, "beside", other, base="tiny", sft_data=own)
        trained(session, "measured", other, base="tiny", reference="learner")
        trained(session, "clean", other, base="tiny")
        adapters = trained(session, "adapters", other, base="tiny")
        adapters.adapter_base_id = get_model(session, "learner").id
        clone = add_local_model(session, "twin", None, [], {"path": "checkpoints/learner", "sha256": "0" * 64})
        clone.cloned_from_id = get_model(session, "further").id
        # A match of the learner with itself, from which somebody else learns: its words are what it has learned.
        round_match = MatchRow(
            id="selfplayed0000000000aa", game="negotiation", source="selfplay", status="over", seed=1, config={},
            started_at=datetime.now(UTC), moved_at=datetime.now(UTC), lease_count=0,
        )  # fmt: skip
        session.add(round_match)
        session.flush()
        learner = get_model(session, "learner").id
        session.add_all(
            SeatRow(match_id=round_match.id, seat=seat, role="a", kind="model", language_model_id=learner)
            for seat in (0, 1)
        )
        distilled = imported_row(session, other, "played")
        session.add(DatasetRow(dataset_id=distilled.id, place=0, match_id=round_match.id, seat=0))
        trained(session, "pupil", distilled.id, base="tiny")
    assert of_model(engine, "clean").is_allowed
    refused = "1 of 1 games of study two-models in which somebody has not agreed to publication or has withdrawn it"
    for name in ("learner", "further", "beside", "measured", "adapters", "twin", "pupil"):
        assert lines(of_model(engine, name)) == [refused], name
    assert match not in str(lines(of_model(engine, "learner")))
    with writing(engine) as session:
        consents.give(
            session, find_progress(session, ann), participation=True, training=True, publication=True, text=""
        )
    for name in ("learner", "pupil", "twin"):
        found = of_model(engine, name)
        assert found.is_allowed
        assert found.participants == {people.person(ann)}
    with writing(engine) as session:  # who takes back more than publication
        consents.withdraw_training(session, people.person(ann))
    assert any("holds what a person withdrew on" in line for line in lines(of_model(engine, "pupil")))


def imported_row(session: Session, like: int, name: str) -> Dataset:
    """A dataset that was cut from matches, with the figures of another one."""
    row = session.get_one(Dataset, like)
    new = Dataset(
        name=name, version=1, kind=row.kind, spec={"rounds": []}, sha256="ab" * 32, size=1, rows=1, words=1,
        own_words=1, figures=row.figures, created_at=datetime.now(UTC), complete=True,
    )  # fmt: skip
    session.add(new)
    session.flush()
    return new


def test_what_came_from_elsewhere_needs_a_declared_licence_which_excuses_no_people_here(
    engine: Engine, home: Path, people: People, app: Flask
) -> None:
    number = imported(engine, home, ROW)
    [line] = lines(of_dataset(engine, number))
    assert line == (
        f"dataset chats@1 was imported from chats.jsonl, under no declared licence (`flask dataset permit {number}`)"
    )
    bad = flask(app, "dataset", "permit", "chats", "--licence", "free", "--reason", "Ours")
    assert (bad.exit_code, bad.stderr.count("\n")) == (2, 1)
    assert "expected apache-2.0" in bad.stderr
    assert flask(app, "dataset", "permit", "chats", "--licence", "mit", "--reason", " ").exit_code == 2
    said = flask(app, "dataset", "permit", "chats", "--licence", "cc-by-nc-4.0", "--reason", "Published in 2020.")
    assert "chats@1 may be passed on under cc-by-nc-4.0" in said.stdout
    found = of_dataset(engine, number)
    assert found.is_allowed
    assert [tuple(each) for each in found.inherited] == [("chats@1", "cc-by-nc-4.0")]
    assert "is under cc-by-nc-4.0" in str(licences.warnings("mit", found.inherited)[0])
    assert licences.warnings("cc-by-nc-4.0", found.inherited) == []

    ann = come(people, "ann", publication=False)
    people.play(ann)
    dataset = cut_all(engine, home)
    rows = [json.loads(line) for line in (home / "datasets" / f"{dataset.sha256}.jsonl").read_text().splitlines()]
    again = imported(engine, home, *rows, name="copied")
    assert flask(app, "dataset", "permit", "copied", "--licence", "mit", "--reason", "Mine.").exit_code == 0
    assert [line for line in lines(of_dataset(engine, again)) if "study two-models" in line]


def test_a_model_that_was_added_by_hand_needs_a_declared_licence(engine: Engine, app: Flask) -> None:
    with writing(engine) as session:
        ensure_baselines(session)
        add_local_model(session, "llama", None, [], {"path": "checkpoints/llama", "sha256": "0" * 64})
    [line] = lines(of_model(engine, "llama"))
    assert line == "model llama was added by hand, under no declared licence (`flask model permit llama`)"
    done = flask(app, "model", "permit", "llama", "--licence", "llama3.1", "--reason", "From its makers.", "--json")
    assert json.loads(done.stdout) == {"name": "llama", "licence": "llama3.1", "reason": "From its makers."}
    assert of_model(engine, "llama").is_allowed
    assert of_model(engine, "tiny").is_allowed  # it came with Parlor
    assert "a model without weights here" in lines(of_model(engine, "scripted"))[0]
    with writing(engine) as session:
        remove_model(session, "llama")  # what was declared of it goes with it
        with pytest.raises(Invalid, match=r"^licence: expected apache-2\.0 or "):
            permissions.declare(session, get_model(session, "tiny"), licence="none", reason="why", by=None)


def test_the_best_answers_of_a_dataset_are_of_the_same_people(engine: Engine, home: Path) -> None:
    rated = {"query": "Why?", "responses": ["Because.", "So."], "scores": [1.0, 7.0]}
    number = imported(engine, home, rated, name="rated")
    with reading(engine) as session:
        draft = best_responses(home, session.get_one(Dataset, number))
    best = register.save(transact(engine), draft, "best")
    assert "dataset rated@1 was imported from rated.jsonl" in lines(of_dataset(engine, best))[0]
