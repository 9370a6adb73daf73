"""Removals at the same moment as others who begin to use what is removed."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

from app.cleanup.remove import remove
from app.cleanup.restore import restore
from app.core.config import Settings
from app.core.errors import Conflict, Invalid, NotFound
from app.core.extensions import reading, transact, writing
from app.datasets import build, register, store
from app.datasets.spec import read_spec
from app.jobs.holding import hold
from app.matches.lobby import GuestMatchRequest, start_guest_match
from app.model_calls import request_lifecycle
from app.model_calls.test_call import request_test
from app.models import Dataset, DatasetRow, LanguageModel, Removal, RoundRow
from app.registry import add_local_model, get_model_by_number
from app.registry.changes import remove_model
from app.rounds import lifecycle
from app.rounds.spec import RoundSpec
from tests.datasets import cut
from tests.rounds import CONTEXTS, add_models, haggler, make_round, play
from tests.stub_openai import Reply, StubServer

BY = "ann"


@pytest.fixture(scope="module")
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        server.script("haggler", Reply(haggler))
        yield server


@pytest.fixture
def settings(app: Flask) -> Settings:
    found: Settings = app.config["SETTINGS"]
    return found


@pytest.fixture
def model(engine: Engine, settings: Settings) -> int:
    folder = settings.home / "checkpoints" / "small"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_text("weights")
    with writing(engine) as session:
        options = {"path": "checkpoints/small", "sha256": "0" * 64}
        return add_local_model(session, "small", None, ["negotiation"], options).id


def test_a_model_that_a_round_is_just_created_with_stays(engine: Engine, settings: Settings, model: int) -> None:
    spec = RoundSpec.read({"game": "negotiation", "models": ["small"], "matches": 2, "seed": 1})
    with ThreadPoolExecutor() as threads:
        with writing(engine) as session:
            lifecycle.create(session, spec, CONTEXTS, queued=True)
            removing = threads.submit(remove, settings, engine, "model", model, BY)
            with pytest.raises(TimeoutError):
                removing.result(1)  # it waits for this transaction
        with pytest.raises(Conflict, match=r"kept because of small and small \(round 1\)"):
            removing.result(20)
    assert (settings.home / "checkpoints" / "small" / "model.safetensors").is_file()
    with reading(engine) as session:
        assert session.scalar(select(func.count()).select_from(Removal)) == 0


def test_a_model_that_is_just_being_asked_stays_until_it_has_answered(
    engine: Engine, settings: Settings, model: int
) -> None:
    with ThreadPoolExecutor() as threads:
        with writing(engine) as session:
            number = request_test(session, get_model_by_number(session, model)).id
            removing = threads.submit(remove, settings, engine, "model", model, BY)
            with pytest.raises(TimeoutError):
                removing.result(1)  # it waits for this transaction
        with pytest.raises(Conflict, match=r"because of small \(a call of it outside of matches is not answered yet"):
            removing.result(20)
    with writing(engine) as session:
        assert request_lifecycle.take(session, number, "worker", 60) is not None
    with pytest.raises(Conflict, match="is not answered yet"):
        remove(settings, engine, "model", model, BY)
    with pytest.raises(Conflict, match="expected one that is not being called, got 'small', which is just"):
        remove_named(engine)
    with writing(engine) as session:
        assert request_lifecycle.finish(session, number, "worker", {"ok": False, "error": "no"}, ())
    remove(settings, engine, "model", model, BY)


def remove_named(engine: Engine) -> None:
    with writing(engine) as session:
        remove_model(session, "small")


@pytest.mark.postgresql_alone  # nobody else writes in a transaction of SQLite
def test_a_model_that_a_worker_just_begins_to_call_stays(engine: Engine, settings: Settings, model: int) -> None:
    with writing(engine) as session:
        number = request_test(session, get_model_by_number(session, model)).id
    with ThreadPoolExecutor() as threads:
        with writing(engine) as session:
            assert request_lifecycle.take(session, number, "worker", 60) is not None
            removing = threads.submit(remove_named, engine)
            with pytest.raises(TimeoutError):
                removing.result(1)  # it waits for this transaction
        with pytest.raises(Conflict, match="expected one that is not being called, got 'small', which is just"):
            removing.result(20)
    with writing(engine) as session:
        assert request_lifecycle.finish(session, number, "worker", {"ok": False, "error": "no"}, ())


@pytest.mark.postgresql_alone  # nobody else writes in a transaction of SQLite
def test_who_asks_a_model_while_its_row_is_deleted_gets_one_clear_line(
    engine: Engine, settings: Settings, model: int
) -> None:
    with writing(engine) as session:
        row = get_model_by_number(session, model)
        remove_named(engine)
        with pytest.raises(Conflict, match=r"^model: expected one that is still there, got one that was just removed$"):
            request_test(session, row)


@pytest.mark.postgresql_alone  # nobody else writes in a transaction of SQLite
def test_who_has_looked_at_a_model_before_it_was_removed_cannot_use_it(
    engine: Engine, settings: Settings, model: int
) -> None:
    with ThreadPoolExecutor() as threads, writing(engine) as session:
        row = get_model_by_number(session, model)
        threads.submit(remove, settings, engine, "model", model, BY).result(20)
        with pytest.raises(Conflict, match=f"model {model}: expected one that is still there"):
            hold(session, [row])


@pytest.mark.postgresql_alone  # nobody else writes in a transaction of SQLite
def test_a_guest_gets_no_match_with_a_model_that_is_just_removed_and_learns_no_more_than_its_label(
    engine: Engine, settings: Settings, model: int
) -> None:
    with writing(engine) as session:
        row = get_model_by_number(session, model)
        row.label, row.offered_to_people = "Small one", True

    def start() -> None:
        with writing(engine) as session:
            start_guest_match(session, settings, GuestMatchRequest("negotiation", {}, "Small one"))

    with ThreadPoolExecutor() as threads:
        with writing(engine) as session:
            row = session.get_one(LanguageModel, model, with_for_update=True)
            row.offered_to_people, row.removed_at = False, datetime.now(UTC)
            session.flush()
            starting = threads.submit(start)
            with pytest.raises(TimeoutError):
                starting.result(1)  # it waits for this transaction
        with pytest.raises(NotFound, match=r"^opponent: expected one who plays negotiation .*, got 'Small one'$"):
            starting.result(20)


@pytest.fixture
def round_id(engine: Engine, settings: Settings, stub: StubServer) -> int:
    add_models(engine, stub.url, "haggler")
    number = make_round(engine, "haggler", "scripted", matches=4)
    play(engine, settings, number)
    return number


def drafted(engine: Engine, settings: Settings, round_id: int) -> store.UnregisteredDataset:
    """The file of all rows of a round, not yet registered."""
    with reading(engine) as session:
        found = build.prepare(session, read_spec({"rounds": [round_id], "filter": "all"}))
        return store.write(settings.home, found, build.training_rows(session, found))


def test_no_dataset_is_cut_from_a_round_that_was_removed_meanwhile(
    engine: Engine, settings: Settings, round_id: int
) -> None:
    draft = drafted(engine, settings, round_id)
    removal = remove(settings, engine, "round", round_id, BY)
    with pytest.raises(Conflict, match="expected matches that stay while rows are cut from them, got 4 that were rem"):
        register.save(transact(engine), draft, "mine")
    assert_nothing_is_left(engine, draft)
    restore(settings, engine, removal.id, BY)
    draft = drafted(engine, settings, round_id)
    register.save(transact(engine), draft, "mine")
    with reading(engine) as session:
        assert session.scalar(select(func.count()).where(DatasetRow.match_id.is_not(None))) == draft.rows


def test_rows_of_a_round_that_is_marked_and_not_yet_taken_are_refused(
    engine: Engine, settings: Settings, round_id: int
) -> None:
    draft = drafted(engine, settings, round_id)
    with writing(engine) as session:
        row = session.get_one(RoundRow, round_id)
        row.removed_at = row.created_at
    with pytest.raises(Conflict, match=f"round {round_id}: expected one that is still there"):
        register.save(transact(engine), draft, "mine")
    assert_nothing_is_left(engine, draft)


def test_a_draft_that_is_refused_leaves_the_file_to_a_dataset_with_the_same_bytes(
    engine: Engine, settings: Settings, round_id: int
) -> None:
    cut(engine, settings.home, rounds=[round_id], filter="all")
    draft = drafted(engine, settings, round_id)
    with pytest.raises(Invalid, match="name"):
        register.save(transact(engine), draft, "")
    assert draft.path.is_file()


def test_a_draft_with_a_name_that_cannot_be_one_leaves_no_file(
    engine: Engine, settings: Settings, round_id: int
) -> None:
    draft = drafted(engine, settings, round_id)
    with pytest.raises(Invalid, match="name"):
        register.save(transact(engine), draft, "")
    assert_nothing_is_left(engine, draft)


def test_a_registration_that_takes_long_is_not_taken_for_an_abandoned_one(
    engine: Engine, settings: Settings, round_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(register, "_ROWS_AT_ONCE", 3)

    def slow(work: Callable[[Session], Any]) -> Any:
        with writing(engine) as session:
            begun = session.scalars(select(Dataset).where(~Dataset.complete)).all()
            for row in begun:
                row.created_at -= timedelta(minutes=40)
        if begun:
            register.save(transact(engine), drafted(engine, settings, round_id), "fast")
        return transact(engine)(work)

    draft = drafted(engine, settings, round_id)
    number = register.save(slow, draft, "slow")
    with reading(engine) as session:
        assert session.get_one(Dataset, number).reference == "slow@1"
        own = select(func.count()).where(DatasetRow.dataset_id == number)
        assert session.scalar(own) == draft.rows


def assert_nothing_is_left(engine: Engine, draft: store.UnregisteredDataset) -> None:
    assert not draft.path.exists()
    with reading(engine) as session:
        assert [session.scalar(select(func.count()).select_from(each)) for each in (Dataset, DatasetRow)] == [0, 0]


def test_a_dataset_whose_bytes_were_removed_while_it_was_cut_is_refused(
    engine: Engine, settings: Settings, round_id: int
) -> None:
    first = cut(engine, settings.home, rounds=[round_id], filter="all")
    draft = drafted(engine, settings, round_id)
    remove(settings, engine, "dataset", first.id, BY)
    with pytest.raises(Conflict, match="got none, as another dataset with the same bytes was just removed; try again"):
        register.save(transact(engine), draft, "again")
    with reading(engine) as session:
        assert session.scalar(select(func.count()).select_from(Dataset)) == 1
