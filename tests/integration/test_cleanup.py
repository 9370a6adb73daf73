"""Cleaning up the disk: all of a thing goes or nothing, what something needs stays, and undoing gives the same back."""

import hashlib
import json
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, event, func, select, update

from app.backup.archive import ArchiveReader, ArchiveWriter
from app.backup.tables import rows_of, snapshot, tables_of
from app.benchmarks.files import folder_of
from app.benchmarks.lifecycle import create as create_benchmark
from app.benchmarks.spec import BenchmarkSpec
from app.cleanup import remove as removing
from app.cleanup import restore as restoring
from app.cleanup.remove import finish, preview, remove, together
from app.cleanup.restore import delete_archive, free_due, restore
from app.cli.local_model import folder_at
from app.core.config import Settings
from app.core.errors import AppError, Conflict, Invalid
from app.core.extensions import reading, writing
from app.datasets.withdrawn import delete_files, mark_unusable
from app.jobs import states
from app.matches.counts import count_over, recount
from app.matches.filter import MatchFilter
from app.models import (
    Campaign,
    Dataset,
    DatasetRow,
    EventRow,
    GenerationRow,
    LanguageModel,
    MatchRow,
    RecipeRun,
    Removal,
    RoundRow,
    SeatRow,
    TrainingJob,
)
from app.publication.release import release_of_dataset
from app.registry import add_local_model, get_model
from app.registry.changes import is_in_use
from app.spend.figures import ALL, Spend, SpendSums, read_spend
from app.spend.storage import read_storage
from tests.campaigns import add_local, campaign_of, campaign_that_awaits
from tests.datasets import cut
from tests.jobs import make_dataset, make_job, run
from tests.recipes import make_run
from tests.rounds import add_models, haggler, make_round, play
from tests.shell import Shell
from tests.societies import add_chat_models, make_society, opinion
from tests.societies import run as run_society
from tests.stack import PATIENCE
from tests.stub_openai import Reply, StubServer
from training.hashes import file_hash

BY = "ann"


@pytest.fixture(scope="module")
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        server.script("haggler", Reply(haggler))
        server.script("chatter", Reply(opinion))
        yield server


@pytest.fixture
def settings(app: Flask, engine: Engine, stub: StubServer) -> Settings:
    add_models(engine, stub.url, "haggler", price_in=100.0, price_out=400.0)
    found: Settings = app.config["SETTINGS"]
    return found


@pytest.fixture
def round_id(engine: Engine, settings: Settings) -> int:
    number = make_round(engine, "haggler", "scripted", matches=4)
    play(engine, settings, number)
    return number


def everything(engine: Engine, home: Path) -> dict[str, Any]:
    """All rows but those of removals, and the hash and mode of every file that a thing may have."""
    with snapshot(engine) as connection:
        rows: dict[str, Any] = {
            # The numbers of texts for the search are nobody's.
            table.name: sorted(rows_of(connection, table, ["match_id", "words"]), key=repr)
            if table.name == "match_text"
            else [*rows_of(connection, table, table.columns.keys())]
            for table in tables_of(connection)
            if table.name not in ("removal", "lease", "match_count")  # that has rows for what was taken back
        }
    for name in ("datasets", "checkpoints", "training"):
        for path in sorted((home / name).rglob("*")):
            if path.is_file():
                rows[str(path.relative_to(home))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return rows


def state_of(engine: Engine, home: Path) -> dict[str, Any]:
    """The same with what belongs to removals."""
    left = sorted(path.name for folder in ("archives", "removed") for path in (home / folder).glob("[!.]*"))
    with reading(engine) as session:
        removals = session.execute(select(Removal.kind, Removal.number).where(Removal.in_force.is_(True))).all()
    return {**everything(engine, home), "left": left, "removals": [tuple(each) for each in removals]}


def spent_in(engine: Engine) -> Spend:
    """What was spent, to nine digits: the order in which the database adds it up may change."""
    with reading(engine) as session:
        found = read_spend(session, ALL)

    def rounded(sums: SpendSums) -> SpendSums:
        return sums._replace(usd=round(sums.usd, 9))

    by_day_and_model = {key: rounded(sums) for key, sums in found.by_day_and_model.items()}
    by_purpose = [(purpose, rounded(sums)) for purpose, sums in found.by_purpose]
    return replace(found, by_day_and_model=by_day_and_model, by_purpose=by_purpose)


def test_a_round_goes_with_all_that_was_played_and_comes_back_the_same(
    engine: Engine, settings: Settings, round_id: int
) -> None:
    other = make_round(engine, "haggler", "scripted", matches=2, seed=9)
    play(engine, settings, other)
    dataset = cut(engine, settings.home, rounds=[round_id, other], filter="all")
    before = everything(engine, settings.home)
    spent = spent_in(engine)
    with reading(engine) as session:
        found = preview(session, settings.home, "round", round_id)
        of_round = session.scalar(
            select(func.count()).select_from(DatasetRow).join(MatchRow).where(MatchRow.round_id == round_id)
        )
    assert [(each.what.kind, each.what.key, str(each.why), each.keeps) for each in found.dependents] == [
        ("dataset", dataset.id, f"{of_round} of its rows are of this round", True)
    ]
    with pytest.raises(Conflict, match="kept because of mine@1"):
        remove(settings, engine, "round", round_id, BY)
    with reading(engine) as session:
        both = together(
            preview(session, settings.home, *each) for each in (("round", round_id), ("dataset", dataset.id))
        )
    assert [(each.kind, each.keepers) for each in both] == [("dataset", []), ("round", [])]
    without = remove(settings, engine, "dataset", dataset.id, BY)
    removal = remove(settings, engine, "round", round_id, BY)
    with reading(engine) as session:
        assert [*session.scalars(select(MatchRow.round_id).distinct())] == [other]
        assert session.scalar(select(func.count()).select_from(SeatRow)) == 4
        assert {*session.scalars(select(EventRow.match_id))} == {*session.scalars(select(MatchRow.id))}
        gone = session.scalars(select(GenerationRow).where(GenerationRow.match_id.is_(None))).all()
        assert gone
        assert not any(call.prompt or call.text for call in gone)
    after = spent_in(engine)
    # What was spent is spent: by model, day and round.
    assert (after.by_model()[0][1], after.by_run(), after.by_day()) == (
        spent.by_model()[0][1],
        spent.by_run(),
        spent.by_day(),
    )
    assert removal.dataset_rows == {str(dataset.id): of_round}
    assert recount(engine).differences == ()
    with pytest.raises(Conflict, match=r"one that ann removed at"):
        remove(settings, engine, "round", round_id, BY)
    with reading(engine) as session:
        refusals = release_of_dataset(session, session.get_one(Dataset, dataset.id)).refusals
    named = f"haggler and scripted (round {round_id})"
    assert [str(each) for each in refusals] == [f"dataset mine@1: {named}, which it has rows of, was removed"]
    restore(settings, engine, without.id, "bob")
    restore(settings, engine, removal.id, "bob")
    assert everything(engine, settings.home) == before
    assert recount(engine).differences == ()
    assert not [*(settings.home / "removed").glob("*")]
    with pytest.raises(Conflict, match="one that bob has put back"):
        restore(settings, engine, removal.id, "bob")
    without = remove(settings, engine, "dataset", dataset.id, BY)
    again = remove(settings, engine, "round", round_id, BY, archive_files=False)
    restore(settings, engine, again.id, "bob")
    restore(settings, engine, without.id, "bob")
    assert everything(engine, settings.home) == before


def test_files_and_rows_of_a_training_its_model_and_its_dataset_come_back_the_same(
    engine: Engine, settings: Settings
) -> None:
    dataset = make_dataset(engine, settings)
    job = make_job(engine, dataset, epochs=1)
    assert run(engine, settings, job)
    with reading(engine) as session:
        model = session.scalars(select(LanguageModel).where(LanguageModel.name == "small")).one()
    before = everything(engine, settings.home)
    things = [("model", model.id), ("training", job), ("dataset", dataset.id)]
    with reading(engine) as session:
        found = {kind: preview(session, settings.home, kind, number) for kind, number in things}
    assert all(each.size and not each.keepers for each in found.values())
    assert ("model", model.id) in [each.what[:2] for each in found["dataset"].dependents]
    removals = [remove(settings, engine, *each, BY) for each in things]
    for kind, number in things:
        for name in found[kind].files:
            assert not (settings.home / name).exists(), (kind, number, name)
    with reading(engine) as session:
        row = session.get_one(LanguageModel, model.id)
        assert row.archived_at is not None
    # After undoing has ended, the archive alone has the bytes.
    day = datetime.now(UTC) + timedelta(hours=25)
    assert free_due(settings.home, engine, day - timedelta(hours=2)) == 0
    assert free_due(settings.home, engine, day) == 3
    assert not [*(settings.home / "removed").glob("*")]
    for removal in reversed(removals):
        restore(settings, engine, removal.id, BY)
    assert everything(engine, settings.home) == before


def test_without_an_archive_of_its_files_a_thing_can_be_put_back_for_a_day(engine: Engine, settings: Settings) -> None:
    dataset = make_dataset(engine, settings)
    before = everything(engine, settings.home)
    removal = remove(settings, engine, "dataset", dataset.id, BY, archive_files=False)
    restore(settings, engine, removal.id, BY)
    assert everything(engine, settings.home) == before
    removal = remove(settings, engine, "dataset", dataset.id, BY, archive_files=False)
    assert free_due(settings.home, engine, datetime.now(UTC) + timedelta(hours=25)) == 1
    assert not [*(settings.home / "archives").glob("*.zip")]
    with pytest.raises(Conflict, match="one whose archive is there, got one without"):
        restore(settings, engine, removal.id, BY)


def test_a_file_that_cannot_be_moved_stops_no_other_clean_up(engine: Engine, settings: Settings) -> None:
    first, second = make_dataset(engine, settings, "first"), make_dataset(engine, settings, "second")
    before = everything(engine, settings.home)
    paths = [settings.home / "datasets" / f"{each.sha256}.jsonl" for each in (first, second)]
    blocked = settings.home / "removed"
    blocked.write_text("no folder", encoding="utf-8")
    one = remove(settings, engine, "dataset", first.id, BY)
    two = remove(settings, engine, "dataset", second.id, BY)
    assert all(each.is_file() for each in paths)
    blocked.unlink()
    finish(settings.home, engine)
    assert not any(each.exists() for each in paths)
    for each in (two, one):
        restore(settings, engine, each.id, BY)
    assert everything(engine, settings.home) == before


def test_a_round_whose_messages_another_one_is_to_read_stays_until_that_is_over(
    engine: Engine, settings: Settings, round_id: int
) -> None:
    reader = make_round(engine, "haggler", "scripted", matches=4, queued=True, talk_of=str(round_id))
    with pytest.raises(Conflict, match=rf"kept because of haggler and scripted \(round {reader}\) "):
        remove(settings, engine, "round", round_id, BY)
    with writing(engine) as session:
        session.get_one(RoundRow, reader).status = states.CANCELLED
    with reading(engine) as session:
        [found] = preview(session, settings.home, "round", round_id).dependents
    assert (found.what.key, str(found.why)) == (reader, "it could not be resumed without this")
    with writing(engine) as session:
        session.get_one(RoundRow, reader).status = states.DONE
    with reading(engine) as session:
        assert preview(session, settings.home, "round", round_id).dependents == []


@pytest.mark.parametrize("step", [
    "{{name: play, do: round, with: {{game: negotiation, models: [scripted], matches: 4, talk_of: '{number}'}}}}",
    "{{name: rows, do: keep, with: {{rounds: ['{number}'], filter: all}}}}",
])  # fmt: skip
def test_a_round_that_a_later_step_of_a_recipe_names_cannot_go(
    engine: Engine, settings: Settings, round_id: int, step: str
) -> None:
    text = f"recipe: later\nversion: 1\nabout: Of a round.\nsteps:\n  - {step.format(number=round_id)}\n"
    make_run(engine, text)
    with pytest.raises(Conflict, match=r"kept because of later-1 \(recipe run 1\) "):
        remove(settings, engine, "round", round_id, BY)


@pytest.mark.parametrize(("inputs", "fields", "keeps"), [
    ("rounds: {number}", "matches: '${rounds}'", False),
    ("read: '{number}'", "matches: 4, talk_of: '${read}'", True),
])  # fmt: skip
def test_the_inputs_of_a_recipe_keep_a_round_where_a_step_takes_them_for_one(
    engine: Engine, settings: Settings, round_id: int, inputs: str, fields: str, keeps: bool
) -> None:
    inputs = inputs.format(number=round_id)
    step = f"{{name: play, do: round, with: {{game: negotiation, models: [scripted], {fields}}}}}"
    make_run(engine, f"recipe: later\nversion: 1\nabout: Of a round.\ninputs: {{{inputs}}}\nsteps: [{step}]\n")
    with reading(engine) as session:
        found = preview(session, settings.home, "round", round_id).keepers
    assert [each.what.kind for each in found] == ["recipe"] * keeps


@pytest.mark.parametrize("named", ["number", "reference"])
def test_a_dataset_that_a_later_step_of_a_recipe_names_cannot_go(
    engine: Engine, settings: Settings, named: str
) -> None:
    dataset = make_dataset(engine, settings)
    called = str(dataset.id) if named == "number" else dataset.reference
    text = (
        "recipe: later\nversion: 1\nabout: A training.\nsteps:\n"
        f'  - {{name: train, do: training, with: {{method: tiny, dataset: "{called}"}}}}\n'
    )
    make_run(engine, text)
    with pytest.raises(Conflict, match="one that can be removed"):
        remove(settings, engine, "dataset", dataset.id, BY)


RATED = "{{name: rows, do: comparisons, with: {{society: {number}}}}}"
KEPT_ROWS = "{{name: rows, do: keep, with: {{{fields}, filter: all}}}}"


def make_later(engine: Engine, step: str) -> None:
    """A run of a recipe that waits with one step."""
    make_run(engine, f"recipe: later\nversion: 1\nabout: Of what is there.\nsteps:\n  - {step}\n")


@pytest.mark.parametrize("number", ["'{0}'", "{0}", "'0{0}'"])
def test_a_society_that_a_later_step_of_a_recipe_names_cannot_go(
    engine: Engine, settings: Settings, stub: StubServer, number: str
) -> None:
    add_chat_models(engine, stub.url, "chatter")
    society, other = make_society(engine, "chatter"), make_society(engine, "chatter")
    run_society(engine, settings, society)
    run_society(engine, settings, other)
    make_later(engine, RATED.format(number=number.format(society)))
    with pytest.raises(Conflict, match=r"kept because of later-1 \(recipe run 1\) "):
        remove(settings, engine, "society", society, BY)
    remove(settings, engine, "society", other, BY)


def test_what_a_stopped_recipe_names_can_go_and_is_said_to_be_needed(
    engine: Engine, settings: Settings, round_id: int
) -> None:
    make_later(engine, KEPT_ROWS.format(fields=f"rounds: ['{round_id}']"))
    with writing(engine) as session:
        session.get_one(RecipeRun, 1).status = states.FAILED
    with reading(engine) as session:
        [found] = preview(session, settings.home, "round", round_id).dependents
    assert (found.what.kind, str(found.why), found.keeps) == (
        "recipe", "it could not be resumed without this", False
    )  # fmt: skip


def test_the_number_of_a_round_keeps_no_dataset_of_that_number(engine: Engine, settings: Settings) -> None:
    dataset = make_dataset(engine, settings)
    make_later(engine, KEPT_ROWS.format(fields=f"rounds: ['{dataset.id}']"))
    with reading(engine) as session:
        assert preview(session, settings.home, "dataset", dataset.id).keepers == []


@pytest.mark.parametrize("field", ["start_data", "sft_data"])
def test_a_dataset_that_a_later_step_of_a_campaign_learns_from_cannot_go(
    engine: Engine, settings: Settings, field: str
) -> None:
    dataset = make_dataset(engine, settings)
    add_local(engine, "base")
    campaign_of(engine, "base", queued=True, **{field: dataset.id})
    with pytest.raises(Conflict, match=r"kept because of loop \(campaign 1\) "):
        remove(settings, engine, "dataset", dataset.id, BY)


def test_a_round_of_a_campaign_whose_matches_a_later_step_of_a_recipe_cuts_cannot_go(
    engine: Engine, settings: Settings, round_id: int
) -> None:
    campaign = campaign_that_awaits(engine, round_id)
    with writing(engine) as session:
        session.get_one(Campaign, campaign).status = states.DONE
    make_later(engine, KEPT_ROWS.format(fields=f"matches: {{campaign: {campaign}}}"))
    with pytest.raises(Conflict, match=r"kept because of later-1 \(recipe run 1\) "):
        remove(settings, engine, "round", round_id, BY)


def test_two_datasets_with_the_same_bytes_share_their_file_until_both_are_gone(
    engine: Engine, settings: Settings
) -> None:
    first = make_dataset(engine, settings, "first")
    second = cut(engine, settings.home, "second", rounds=first.spec["rounds"], filter="all", style="compact")
    path = settings.home / "datasets" / f"{first.sha256}.jsonl"
    assert first.sha256 == second.sha256
    before = everything(engine, settings.home)
    one = remove(settings, engine, "dataset", first.id, BY)
    assert (path.is_file(), one.size) == (True, 0)
    other = remove(settings, engine, "dataset", second.id, BY)
    assert not path.exists()
    restore(settings, engine, one.id, BY)
    assert path.is_file()
    restore(settings, engine, other.id, BY)
    assert everything(engine, settings.home) == before


def test_a_dataset_comes_back_though_only_another_removal_keeps_its_bytes(engine: Engine, settings: Settings) -> None:
    first = make_dataset(engine, settings, "first")
    second = cut(engine, settings.home, "second", rounds=first.spec["rounds"], filter="all", style="compact")
    before = everything(engine, settings.home)
    one, other = (remove(settings, engine, "dataset", each.id, BY, archive_files=False) for each in (first, second))
    restore(settings, engine, one.id, BY)
    restore(settings, engine, other.id, BY)
    assert everything(engine, settings.home) == before


@pytest.mark.parametrize("freed", [False, True])
def test_deleting_an_archive_leaves_what_undoing_another_removal_needs(
    engine: Engine, settings: Settings, freed: bool
) -> None:
    first = make_dataset(engine, settings, "first")
    second = cut(engine, settings.home, "second", rounds=first.spec["rounds"], filter="all", style="compact")
    path = settings.home / "datasets" / f"{first.sha256}.jsonl"
    content = path.read_bytes()
    one = remove(settings, engine, "dataset", first.id, BY, archive_files=False)
    other = remove(settings, engine, "dataset", second.id, BY, archive_files=freed)
    if freed:  # so that its archive alone has the bytes
        with writing(engine) as session:
            session.get_one(Removal, other.id).undo_until = datetime.now(UTC)
        assert free_due(settings.home, engine) == 1
    delete_archive(settings, engine, other.id)
    restore(settings, engine, one.id, BY)
    assert path.read_bytes() == content
    assert not [path for folder in ("archives", "removed") for path in (settings.home / folder).glob("[!.]*")]


def add_checkpoint(engine: Engine, home: Path, name: str, path: str, base: str | None = None) -> int:
    """Register a folder with one file, or adapters that say that they lie over `base`, which is not looked for."""
    folder = home / path
    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.iterdir()):
        (folder / "model.safetensors").write_text(name)
    if base is not None:
        over = {"path": os.path.relpath(home / base, folder), "sha256": "a" * 64}
        (folder / "parlor.json").write_text(json.dumps({"adapter_of": over}))
    with writing(engine) as session:
        return add_local_model(session, name, None, [], {"path": path, "sha256": "0" * 64}).id


def files_in(home: Path, path: str) -> set[str]:
    return {found.relative_to(home).as_posix() for found in (home / path).rglob("*") if found.is_file()}


@pytest.mark.parametrize(("path", "base"), [
    ("checkpoints/big/part", None),
    ("checkpoints/link/part", None),
    ("{home}/checkpoints/big/part", None),
    ("checkpoints/adapter", "checkpoints/big/part"),
    ("checkpoints/adapter", "checkpoints/link/part"),
])  # fmt: skip
def test_files_of_another_model_stay_whichever_way_its_path_leads_there(
    engine: Engine, settings: Settings, path: str, base: str | None
) -> None:
    home = settings.home
    (home / "checkpoints").mkdir()
    (home / "checkpoints" / "link").symlink_to(home / "checkpoints" / "big")
    big = add_checkpoint(engine, home, "big", "checkpoints/big")
    (home / "checkpoints" / "big" / "part").mkdir()
    (home / "checkpoints" / "big" / "part" / "model.safetensors").write_text("part")
    other = add_checkpoint(engine, home, "other", path.format(home=home), base)
    every = files_in(home, "checkpoints")
    removal = remove(settings, engine, "model", big, BY)
    assert every - files_in(home, "checkpoints") == {"checkpoints/big/model.safetensors"}
    restore(settings, engine, removal.id, BY)
    assert files_in(home, "checkpoints") == every
    removal = remove(settings, engine, "model", other, BY)
    assert files_in(home, "checkpoints/big") == {name for name in every if "/big/" in name}
    restore(settings, engine, removal.id, BY)
    assert files_in(home, "checkpoints") == every


@pytest.mark.parametrize("linked", [True, False])
def test_adapters_come_back_only_after_the_checkpoint_that_they_lie_over(
    engine: Engine, settings: Settings, linked: bool
) -> None:
    home = settings.home
    big = add_checkpoint(engine, home, "big", "checkpoints/big")
    over = add_checkpoint(engine, home, "over", "checkpoints/over", None if linked else "checkpoints/big")
    if linked:
        with writing(engine) as session:
            session.get_one(LanguageModel, over).adapter_base_id = big
    before = everything(engine, home)
    adapters, base = (remove(settings, engine, "model", number, BY) for number in (over, big))
    without = state_of(engine, home)
    said = f"got some over big, which was removed; put back removal {base.id} first"
    with pytest.raises(Conflict, match=said):
        restore(settings, engine, adapters.id, BY)
    assert state_of(engine, home) == without
    for removal in (base, adapters):
        restore(settings, engine, removal.id, BY)
    assert everything(engine, home) == before


def test_a_checkpoint_among_the_files_of_a_training_stays_when_that_goes(engine: Engine, settings: Settings) -> None:
    job = make_job(engine, make_dataset(engine, settings))
    with writing(engine) as session:
        session.get_one(TrainingJob, job).status = states.CANCELLED
    add_checkpoint(engine, settings.home, "early", f"training/{job}/run/checkpoint-5")
    (settings.home / "training" / str(job) / "log.txt").write_text("a log")
    remove(settings, engine, "training", job, BY)
    assert files_in(settings.home, "training") == {f"training/{job}/run/checkpoint-5/model.safetensors"}


@pytest.mark.parametrize("path", ["{home}", "/", "{home}/..", "checkpoints", "datasets", "datasets/deep", "removed/7"])
def test_a_folder_of_parlors_own_is_no_checkpoint_and_never_goes(engine: Engine, settings: Settings, path: str) -> None:
    home = settings.home
    dataset = make_dataset(engine, settings)
    (home / "checkpoints").mkdir(exist_ok=True)
    (home / "removed" / "7").mkdir(parents=True)
    (home / "datasets" / "deep").mkdir()
    (home / "datasets" / "deep" / "own").write_text("own")
    path = path.format(home=home)
    with pytest.raises(Invalid, match=r"path: expected a folder of one checkpoint, got .*, where Parlor keeps files"):
        folder_at(home, path)
    with writing(engine) as session:
        number = add_local_model(session, "all", None, [], {"path": path, "sha256": "0" * 64}).id
    with reading(engine) as session:
        assert preview(session, home, "model", number).files == []
    remove(settings, engine, "model", number, BY)
    assert (home / "datasets" / f"{dataset.sha256}.jsonl").is_file()


def test_undoing_never_writes_over_what_lies_there_now(engine: Engine, settings: Settings) -> None:
    home = settings.home
    old = add_checkpoint(engine, home, "old", "checkpoints/one")
    removal = remove(settings, engine, "model", old, BY)
    add_checkpoint(engine, home, "new", "checkpoints/one")
    before = state_of(engine, home)
    with pytest.raises(Conflict, match="expected no other files in their place, got another checkpoints/one/model"):
        restore(settings, engine, removal.id, BY)
    assert state_of(engine, home) == before


def test_the_files_of_a_benchmark_go_and_come_back(engine: Engine, settings: Settings) -> None:
    with writing(engine) as session:
        row = create_benchmark(
            session, BenchmarkSpec(model="haggler", tasks="everyday-reasoning-letters"), queued=False
        )
        row.status = states.DONE
        session.flush()
        folder, number = folder_of(settings.home, row), row.id
    folder.mkdir(parents=True)
    (folder / "progress.jsonl").write_text("{}")
    removal = remove(settings, engine, "benchmark", number, BY)
    assert (removal.size, (folder / "progress.jsonl").exists()) == (2, False)
    restore(settings, engine, removal.id, BY)
    assert (folder / "progress.jsonl").read_text() == "{}"


def test_a_society_comes_back_the_same(engine: Engine, settings: Settings, stub: StubServer) -> None:
    add_chat_models(engine, stub.url, "chatter", price_in=100.0, price_out=400.0)
    society = make_society(engine, "chatter", observers=["scripted-observer"])
    run_society(engine, settings, society)
    before = everything(engine, settings.home)
    assert before["society_agent"]
    spent = spent_in(engine).by_run()
    removal = remove(settings, engine, "society", society, BY)
    assert not any("question" in repr(row) for row in everything(engine, settings.home)["society_interaction"])
    assert everything(engine, settings.home)["society_agent"] == []
    assert spent_in(engine).by_run() == spent
    with writing(engine) as session:
        assert is_in_use(session, get_model(session, "chatter"))
    restore(settings, engine, removal.id, BY)
    assert everything(engine, settings.home) == before


def test_what_people_wrote_and_what_is_in_use_cannot_go(engine: Engine, settings: Settings, round_id: int) -> None:
    waiting = make_round(engine, "haggler", "scripted", matches=2, queued=True)
    with reading(engine) as session:
        shipped, haggling = (
            session.scalars(select(LanguageModel).where(LanguageModel.name == name)).one()
            for name in ("scripted", "haggler")
        )
    refused = {
        ("round", waiting): "it is not over; cancel it first",
        ("model", shipped.id): "it came with Parlor",
        ("model", haggling.id): "it is not over and needs this",
    }
    for (kind, number), why in refused.items():
        with reading(engine) as session:
            keepers = [str(each.why) for each in preview(session, settings.home, kind, number).keepers]
        assert why in keepers
        with pytest.raises(Conflict, match="one that can be removed"):
            remove(settings, engine, kind, number, BY)
    with writing(engine) as session:
        session.execute(update(SeatRow).where(SeatRow.seat == 0).values(kind="person"))
    before = state_of(engine, settings.home)
    with pytest.raises(Conflict, match="people wrote in its matches, which is never deleted this way"):
        remove(settings, engine, "round", round_id, BY)
    assert state_of(engine, settings.home) == before


def test_what_a_person_withdraws_goes_from_archives_as_well(engine: Engine, settings: Settings, round_id: int) -> None:
    dataset = cut(engine, settings.home, rounds=[round_id], filter="all")
    removal = remove(settings, engine, "dataset", dataset.id, BY)
    assert [*(settings.home / "archives").glob("*.zip")]
    assert (settings.home / "removed" / str(removal.id) / "datasets" / f"{dataset.sha256}.jsonl").is_file()
    with writing(engine) as session:
        mark_unusable(session, [str(session.scalars(select(DatasetRow.match_id)).first())])
    with reading(engine) as session:
        delete_files(session, settings.home)
    assert not [*(settings.home / "archives").glob("*.zip")]
    assert not [*(settings.home / "removed").rglob("*.jsonl")]
    with pytest.raises(AppError):
        restore(settings, engine, removal.id, BY)


def test_what_a_person_withdraws_while_it_is_put_back_stays_withdrawn(
    engine: Engine, settings: Settings, round_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = cut(engine, settings.home, rounds=[round_id], filter="all")
    removal = remove(settings, engine, "dataset", dataset.id, BY)
    load_rows = restoring._load_rows

    def withdraw_first(*args: Any) -> None:
        with writing(engine) as session:
            mark_unusable(session, [str(session.scalars(select(DatasetRow.match_id)).first())])
        load_rows(*args)

    monkeypatch.setattr(restoring, "_load_rows", withdraw_first)
    with pytest.raises(Conflict, match="got a dataset that holds what a person has withdrawn"):
        restore(settings, engine, removal.id, BY)
    with reading(engine) as session:
        delete_files(session, settings.home)
        assert session.get_one(Dataset, dataset.id).removed_at is not None
    assert free_due(settings.home, engine) == 1
    assert not [*(settings.home / "datasets").glob("*.jsonl"), *(settings.home / "archives").glob("*.zip")]
    assert not [*(settings.home / "removed").rglob("*.jsonl")]


def test_the_disk_keeps_an_archive_before_anything_of_it_is_deleted(
    engine: Engine, settings: Settings, round_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    deleted: list[list[str]] = []
    fsync = os.fsync

    def note(number: int) -> None:
        fsync(number)
        synced.append(str(Path(f"/proc/self/fd/{number}").readlink()))

    def look(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("DELETE"):
            deleted.append([*synced])

    monkeypatch.setattr(os, "fsync", note)
    event.listen(engine, "before_cursor_execute", look)
    remove(settings, engine, "round", round_id, BY)
    event.remove(engine, "before_cursor_execute", look)
    [path] = (settings.home / "archives").glob("*.zip")
    assert deleted
    assert {str(path), str(path.parent), str(settings.home)} <= {*deleted[0]}


@pytest.mark.parametrize("kind", ["round", "society"])
def test_a_removal_that_was_killed_is_finished_in_steps_between_which_upkeep_does_other_things(
    engine: Engine, settings: Settings, stub: StubServer, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_chat_models(engine, stub.url, "chatter")
    if kind == "round":
        number = make_round(engine, "haggler", "scripted", matches=4)
        play(engine, settings, number)
    else:
        number = make_society(engine, "chatter", observers=["scripted-observer"])
        run_society(engine, settings, number)
    before = everything(engine, settings.home)
    with monkeypatch.context() as patch:
        patch.setattr(removing, "finish", lambda *_: None)  # as if it was killed then
        removal = remove(settings, engine, kind, number, BY)
    monkeypatch.setattr(removing, "_AT_ONCE", 1)
    monkeypatch.setattr(removing, "_ROWS_AT_ONCE", 5)

    def left() -> int:
        with reading(engine) as session:
            return session.scalar(select(func.count()).where(GenerationRow.removal_id.is_(None))) or 0

    counts = [left()]
    for _ in range(200):
        free_due(settings.home, engine, seconds=0)
        counts.append(left())
        with reading(engine) as session:
            if session.get_one(Removal, removal.id).moved:
                break
    assert len({*counts}) > 3  # some with each step
    assert counts[-1] == 0
    restore(settings, engine, removal.id, BY)
    assert everything(engine, settings.home) == before


@pytest.fixture
def other_disk(settings: Settings) -> Iterator[None]:
    """What is kept for undoing lies on another disk than PARLOR_HOME."""
    shared = Path("/dev/shm")  # noqa: S108 - memory, which is no disk of PARLOR_HOME
    if not shared.is_dir() or shared.stat().st_dev == settings.home.stat().st_dev:
        pytest.skip("there is no other disk")
    with TemporaryDirectory(dir=shared) as folder:
        (settings.home / "removed").symlink_to(folder)
        yield


# Before a copy is whole, and when it is where it belongs while the file is still where it was.
@pytest.mark.parametrize(("owner", "name"), [("folder.shutil", "copystat"), ("folder", "_renamed")])
@pytest.mark.parametrize("undoing", [False, True])
@pytest.mark.usefixtures("other_disk")
def test_files_on_another_disk_are_whole_in_one_place_whenever_moving_is_killed(
    shell: Shell, engine: Engine, settings: Settings, owner: str, name: str, undoing: bool
) -> None:
    home = settings.home
    model = add_checkpoint(engine, home, "big", "checkpoints/big")
    (home / "checkpoints" / "big" / "config.json").write_text("{}")
    before = everything(engine, home)
    if undoing:
        removal = remove(settings, engine, "model", model, BY, archive_files=False)
        call = f"restoring.restore(settings, database, {removal.id}, 'ann')"
    else:
        call = f"removing.remove(settings, database, 'model', {model}, 'ann', archive_files=False)"
    killed(shell, settings.database_url, home, owner, name, after=owner == "folder", call=call)
    with reading(engine) as session:
        removal = session.scalars(select(Removal)).one()
        session.expunge(removal)
    kept = home / "removed" / str(removal.id) / "checkpoints" / "big"
    for file, content in (("config.json", "{}"), ("model.safetensors", "big")):
        assert content in [
            (folder / file).read_text() for folder in (kept, home / "checkpoints" / "big") if (folder / file).exists()
        ]
    free_due(home, engine)
    assert (files_in(home, "checkpoints"), len(files_in(kept, "."))) == (set(), 2)
    restore(settings, engine, removal.id, BY)
    assert everything(engine, home) == before
    assert not kept.exists()


def test_of_two_who_clean_up_at_once_one_wins(engine: Engine, settings: Settings, round_id: int) -> None:
    came: list[object] = []

    def act() -> None:
        try:
            came.append(remove(settings, engine, "round", round_id, BY).kind)
        except Conflict as error:
            came.append(error)

    threads = [threading.Thread(target=act) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert [each for each in came if not isinstance(each, Conflict)] == ["round"]
    assert len(came) == 4
    with reading(engine) as session:
        assert session.scalar(select(func.count()).select_from(Removal)) == 1


def test_an_archive_that_was_changed_is_refused_and_nothing_is_put_back(
    engine: Engine, settings: Settings, round_id: int
) -> None:
    removal = remove(settings, engine, "round", round_id, BY)
    [path] = (settings.home / "archives").glob("*.zip")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)
    before = state_of(engine, settings.home)
    with pytest.raises(Invalid):
        restore(settings, engine, removal.id, BY)
    assert state_of(engine, settings.home) == before
    with reading(engine) as session:
        assert session.scalar(select(func.count()).select_from(MatchRow)) == 0


def test_a_round_of_an_earlier_version_comes_back_with_the_figures_that_its_matches_have_now(
    engine: Engine, settings: Settings, round_id: int
) -> None:
    with writing(engine) as session:
        session.execute(update(MatchRow).where(MatchRow.index == 0).values(status="playing", moves=None, refused=None))
    before = everything(engine, settings.home)
    removal = remove(settings, engine, "round", round_id, BY)
    [path] = (settings.home / "archives").glob("*.zip")
    reader = ArchiveReader(path)
    manifest = replace(reader.manifest, tables={}, files={})
    writer = ArchiveWriter(path.with_name("older"), manifest)
    for name, entry in reader.manifest.tables.items():
        later = {"moves", "refused"} if name == "match" else set()
        kept = [place for place, column in enumerate(entry.columns) if column not in later]
        rows = ([row[place] for place in kept] for some in reader.table(name) for row in some)
        writer.add_table(name, tuple(entry.columns[place] for place in kept), rows)
    writer.close()
    path.with_name("older").replace(path)
    with writing(engine) as session:
        session.get_one(Removal, removal.id).sha256 = file_hash(path)
    restore(settings, engine, removal.id, BY)
    assert everything(engine, settings.home) == before


# ---- kill -9 -----------------------------------------------------------------------

KILLED = """
import os, signal, sys
from pathlib import Path
from app.cleanup import remove as removing, restore as restoring, folder
from app.core.config import load_settings
from app.core.extensions import open_engine
from app.datasets import register
from tests.datasets import cut

def die(*_args, **_kw):
    os.kill(os.getpid(), signal.SIGKILL)

def then_die(function):
    left = [None] * {times}
    def run(*args, **kw):
        found = function(*args, **kw)
        left.pop()
        if not left:
            die()
        return found
    return run

settings = load_settings()
database = open_engine(settings.database_url)
owner, name = {owner}, {name!r}
setattr(owner, name, then_die(getattr(owner, name)) if {after} else die)
{call}
"""
REMOVE_STEPS = [
    ("removing", "file_hash", False, False),  # the archive is written
    ("removing", "_refuse_changed", True, False),  # all is checked, nothing is marked
    ("removing", "_mark", True, True),  # the thing is marked and committed, its rows and files are there
    ("removing", "_take", True, True),  # its rows are gone, which is not committed
    ("removing", "_take_rows", True, True),  # its files are where they were
    ("folder", "move", True, True),  # its files are moved, and nobody has noted that
]
RESTORE_STEPS = [
    ("restoring", "_put_files_back", False, False),
    ("folder", "move", True, False),  # its files are back, its rows are not
    ("restoring", "_load_rows", True, False),  # its rows are back, the thing is marked
    ("restoring", "_unmark", True, False),  # all is back, the end is not committed
    ("restoring", "drop", False, True),
    ("removing.folder", "delete_folder", True, True),
]


def killed(
    shell: Shell, database_url: str, home: Path, owner: str, name: str, *, after: bool, call: str, times: int = 1
) -> None:
    code = KILLED.format(owner=owner, name=name, after=after, call=call, times=times)
    ended = shell.python(code, env={"PARLOR_HOME": str(home), "DATABASE_URL": database_url})
    assert ended.exit_code == -signal.SIGKILL, ended.stderr


@pytest.mark.parametrize(("owner", "name", "after", "done"), REMOVE_STEPS)
def test_a_removal_that_is_killed_is_whole_or_nothing(
    shell: Shell, engine: Engine, settings: Settings, owner: str, name: str, after: bool, done: bool
) -> None:
    dataset = make_dataset(engine, settings)
    job = make_job(engine, dataset, epochs=1)
    assert run(engine, settings, job)
    before = state_of(engine, settings.home)
    call = f"removing.remove(settings, database, 'training', {job}, 'ann')"
    killed(shell, settings.database_url, settings.home, owner, name, after=after, call=call)
    free_due(settings.home, engine)  # as upkeep does
    found = state_of(engine, settings.home)
    if not done:
        assert found == before
    else:
        assert found["removals"] == [("training", job)]
        assert found["training_event"] == []
        assert not (settings.home / "training" / str(job)).exists()
        with reading(engine) as session:
            number = session.scalars(select(Removal.id)).one()
        restore(settings, engine, number, BY)
        assert everything(engine, settings.home) == {k: v for k, v in before.items() if k not in ("left", "removals")}


@pytest.mark.parametrize(
    ("name", "after"), [("_insert_incomplete_dataset", False), ("_insert_incomplete_dataset", True)]
)
def test_a_dataset_whose_build_was_killed_before_it_had_a_row_leaves_no_file_for_longer_than_a_day(
    shell: Shell, engine: Engine, settings: Settings, name: str, after: bool
) -> None:
    kept = make_dataset(engine, settings)
    folder = settings.home / "datasets"
    before = sorted(folder.iterdir())
    for rows in ("own", "same"):  # bytes that no dataset has, and those of one that stays
        spec = {"rounds": kept.spec["rounds"], "filter": "all", "style": "full" if rows == "own" else "compact"}
        call = f"cut(database, settings.home, 'new', **{spec!r})"
        killed(shell, settings.database_url, settings.home, "register", name, after=after, call=call)
    (folder / ".0123456789abcdef.part").touch()  # of a build that was killed while it wrote
    others = [folder / "notes.jsonl", folder / ".mine.part", folder / f"{'0' * 64}.jsonl"]
    for path in others:
        path.touch()
    assert len([*folder.iterdir()]) > len(before) + len(others) + 1
    found = sorted(folder.iterdir())
    free_due(settings.home, engine)
    assert sorted(folder.iterdir()) == found  # somebody may still be building
    long_ago = (datetime.now(UTC) - timedelta(days=2)).timestamp()
    for path in found:
        os.utime(path, (long_ago, long_ago))
    free_due(settings.home, engine)
    assert sorted(folder.iterdir()) == sorted([*before, *others])


def test_what_a_stopped_pull_has_fetched_is_kept_for_a_week(engine: Engine, settings: Settings) -> None:
    fetched = settings.home / "pulled"
    for name, days in (("of-last-week", 8), ("of-this-week", 6)):
        path = fetched / name / "weights" / "model.safetensors"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"half of it")
        long_ago = (datetime.now(UTC) - timedelta(days=days)).timestamp()
        for each in (path, path.parent, fetched / name):
            os.utime(each, (long_ago, long_ago))
    with reading(engine) as session:
        (stored,) = (each for each in read_storage(session, settings).kinds if each.kind == "pulled")
    assert (stored.size, stored.files) == (20, 2)
    free_due(settings.home, engine)
    assert [each.name for each in fetched.iterdir()] == ["of-this-week"]


def test_a_stopped_pull_that_cannot_be_deleted_keeps_no_other_clean_up(
    engine: Engine, settings: Settings, round_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(home: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("app.cleanup.folder.delete_stopped_pulls", refused)
    assert remove(settings, engine, "round", round_id, "ann").moved


def test_a_round_of_which_some_matches_are_gone_is_removed_to_the_end_and_comes_back(
    shell: Shell, engine: Engine, settings: Settings, round_id: int
) -> None:
    before = everything(engine, settings.home)
    script = f"removing._AT_ONCE = 1; removing.remove(settings, database, 'round', {round_id}, 'ann')"
    killed(shell, settings.database_url, settings.home, "removing", "_take", after=True, call=script, times=3)
    with reading(engine) as session:
        assert session.scalar(select(func.count()).select_from(MatchRow)) == 2
        assert count_over(session, MatchFilter()) == 2  # each is counted until it is gone
    assert recount(engine).differences == ()
    free_due(settings.home, engine)
    with reading(engine) as session:
        assert session.scalar(select(func.count()).select_from(MatchRow)) == 0
        number = session.scalars(select(Removal.id)).one()
    script = f"restoring.restore(settings, database, {number}, 'ann')"
    killed(shell, settings.database_url, settings.home, "restoring", "_execute", after=True, call=script, times=3)
    with reading(engine) as session:  # matches and seats are back, and what happened is not
        assert session.scalar(select(func.count()).select_from(MatchRow)) == count_over(session, MatchFilter()) == 4
    assert recount(engine).differences == ()
    free_due(settings.home, engine)
    with reading(engine) as session:
        assert count_over(session, MatchFilter()) == 0
    restore(settings, engine, number, BY)
    assert everything(engine, settings.home) == before
    assert recount(engine).differences == ()


@pytest.mark.parametrize(("owner", "name", "after", "done"), RESTORE_STEPS)
def test_undoing_that_is_killed_is_whole_or_nothing(
    shell: Shell, engine: Engine, settings: Settings, owner: str, name: str, after: bool, done: bool
) -> None:
    dataset = make_dataset(engine, settings)
    job = make_job(engine, dataset, epochs=1)
    assert run(engine, settings, job)
    before = everything(engine, settings.home)
    removal = remove(settings, engine, "training", job, BY)
    without = state_of(engine, settings.home)
    call = f"restoring.restore(settings, database, {removal.id}, 'ann')"
    killed(shell, settings.database_url, settings.home, owner, name, after=after, call=call)
    free_due(settings.home, engine)
    found = state_of(engine, settings.home)
    if done:
        assert (found.pop("left"), found.pop("removals")) == ([], [])
        assert found == before
    else:
        assert found == without
        restore(settings, engine, removal.id, BY)
        assert everything(engine, settings.home) == before
