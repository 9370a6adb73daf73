"""Pushing models and datasets to a hub and to a folder, and pulling them: what leaves is what comes back."""

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session
from werkzeug.test import TestResponse

from app.cleanup.folder import delete_stopped_pulls
from app.cli.publishing import push_dataset, push_model
from app.core.config import Settings
from app.core.extensions import reading, transact, writing
from app.models import (
    Dataset,
    EventRow,
    LanguageModel,
    MatchRow,
    Publication,
    PublishedPerson,
    ReleasePermission,
    Wave,
)
from app.publication import running_pull
from app.publication.bundle import DATASET, MANIFEST
from app.publication.card import model_card
from app.publication.pull import pull_model
from app.publication.running_pull import PullRequest, RunningPull
from app.publication.spec import DatasetPullSpec, ModelPullSpec, PublicationSpec
from app.registry import ensure_baselines, get_model
from app.registry.checkpoint_check import check_checkpoint
from app.studies import consents
from app.studies.progress import find_progress
from app.web.admin import pulls
from tests.experimenter import signed_in
from tests.hub_server import TOKEN, HubServer
from tests.integration.test_cli_dataset import flask
from tests.integration.test_consent import DeskMaker, People, cut_all, file_of
from tests.jobs import make_job, run
from tests.rounds import make_round, play
from tests.stack import PATIENCE
from tests.stub_openai import StubServer
from tests.waves import changed, loaded_study, new_wave, store_study
from training.hashes import checkpoint_hash

LICENCE = ("--licence", "cc-by-4.0", "--yes")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    monkeypatch.delenv("HF_HUB_DISABLE_XET", raising=False)  # hf_xet is installed, and must not be asked
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)  # which a training in this process has set
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with HubServer().running() as server:
        yield server


@pytest.fixture
def app(make_app: Callable[..., Flask], hub: HubServer) -> Iterator[Flask]:
    app = make_app(HF_ENDPOINT=hub.url, HF_TOKEN=TOKEN)
    with app.app_context():
        yield app


@pytest.fixture
def settings(app: Flask) -> Settings:
    return app.config["SETTINGS"]  # type: ignore[no-any-return]


@pytest.fixture
def people(app: Flask, engine: Engine, desk: DeskMaker, stub: StubServer) -> People:
    with writing() as session:
        store_study(session, changed(loaded_study(), material={"held_out": False}, consent={"publication": "ask"}))
        wave = new_wave(session).id
    return People(engine, wave, desk, stub)


def agreed(people: People, name: str, publication: bool = True) -> int:
    enrolment = people.come(name, training=True)
    with writing(people.engine) as session:
        found = find_progress(session, enrolment)
        consents.give(session, found, participation=True, training=True, publication=publication, text="consent")
    return enrolment


@pytest.fixture
def learner(engine: Engine, settings: Settings, people: People) -> Dataset:
    """A model that learned from games of somebody who agreed to publication; its dataset."""
    ann = agreed(people, "ann")
    people.play(ann)
    people.play(ann)
    dataset = cut_all(engine, settings.home)
    assert run(engine, settings, make_job(engine, dataset, "learner", epochs=1, length=2048))
    return dataset


def told(app: Flask, *arguments: str) -> dict[str, Any]:
    result = flask(app, *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def refusal(app: Flask, *arguments: str, code: int = 2) -> str:
    result = flask(app, *arguments)
    assert result.exit_code == code, result.output
    return result.stderr.strip().splitlines()[-1]


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def moves_of(engine: Engine, settings: Settings, model: str) -> list[Any]:
    """What a model says in a round against itself."""
    number = make_round(engine, model, matches=2)
    play(engine, settings, number)
    with reading(engine) as session:
        rows = select(EventRow.kind, EventRow.seat, EventRow.body).join(MatchRow, MatchRow.id == EventRow.match_id)
        found = session.execute(rows.where(MatchRow.round_id == number).order_by(MatchRow.index, EventRow.seq)).all()
        return [(kind, seat, body.get("text")) for kind, seat, body in found]


def test_a_model_goes_to_a_folder_and_comes_back_byte_for_byte_and_plays_the_same(
    app: Flask, engine: Engine, settings: Settings, learner: Dataset, tmp_path: Path
) -> None:
    folder = tmp_path / "out" / "learner"
    folder.parent.mkdir()
    dry = told(app, "model", "push", "learner", "--to", str(folder), *LICENCE, "--dry-run")
    assert (dry["people"], folder.exists()) == ([{"study": "two-models", "matches": 2, "agreed": 2}], False)
    assert told(app, "model", "push", "learner", "--to", str(folder), *LICENCE)["status"] == "done"
    written = files_in(folder)
    assert sum(map(len, written.values())) == dry["size"]
    card = written["README.md"].decode()
    assert "\nlicense: cc-by-4.0\n" in card.partition("\n---\n")[0]
    for said in ("talks@1", "two-models", learner.sha256, "flask training run tiny", "may repeat what they wrote"):
        assert said in card
    with reading(engine) as session:
        row = get_model(session, "learner")
        assert model_card(session, settings.home, row, "cc-by-4.0") == card  # the same rows, the same bytes
    pulled = told(app, "model", "pull", str(folder), "--name", "again")
    assert pulled["sha256"] == row.options["sha256"]
    own, back = (files_in(settings.home / "checkpoints" / name) for name in ("learner", "again"))
    assert own == back
    played = moves_of(engine, settings, "learner")
    assert any(text for _, _, text in played)
    assert moves_of(engine, settings, "again") == played
    assert "name that no model has" in refusal(app, "model", "pull", str(folder), "--name", "again")
    again = told(app, "model", "push", "learner", "--to", str(folder), *LICENCE)  # over an earlier push
    assert again["status"] == "done"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    line = refusal(app, "model", "push", "learner", "--to", str(tmp_path / "other"), *LICENCE, code=1)
    assert "an empty folder, or one of an earlier push" in line
    assert files_in(tmp_path / "other") == {"thesis.txt": b"mine"}


def test_a_push_has_an_option_for_each_field_of_its_spec_and_takes_them_from_a_file(
    app: Flask, engine: Engine, hub: HubServer, tmp_path: Path
) -> None:
    with writing(engine) as session:
        ensure_baselines(session)
    wanted = tmp_path / "push.yaml"
    wanted.write_text("to: lab/tiny\nlicence: other\nlicence_link: https://lab.example/licence\n")
    push = ("model", "push", "tiny", "--spec", str(wanted))
    dry = told(app, *push, "--dry-run")
    assert (dry["to"], dry["licence"], dry["visibility"]) == ("lab/tiny", "other", "private")
    for public in (["--public"], ["--visibility", "public"]):
        dry = told(app, *push, *public, "--to", "lab/second", "--revision", "next", "--dry-run")
        assert (dry["to"], dry["visibility"]) == ("lab/second@next", "public")
    refused = refusal(app, "model", "push", "tiny", "--to", "lab/tiny", "--licence", "other")
    assert refused.startswith("Error: --licence-link: expected the address of its text")
    assert "visibility: expected private or public, got 'secret'" in refusal(app, *push, "--visibility", "secret")
    assert "model: expected a model or a dataset, got none" in refusal(app, "model", "push", "--spec", str(wanted))
    wanted.write_text("dataset: talks\nto: lab/talks\nlicence: mit\n")
    assert "dataset: expected none, but a model, got 'talks'; `flask dataset push` pushes those" in refusal(
        app, "model", "push", "--spec", str(wanted)
    )
    assert "model: expected a model or a dataset, got both" in refusal(app, *push)
    assert hub.repositories == {}
    for name, command in (("model", push_model), ("dataset", push_dataset)):
        asked = {each.name for each in command.params}
        assert asked >= {*PublicationSpec.model_fields} - {"model", "dataset"} | {name}


def test_a_folder_in_which_something_was_changed_or_could_run_code_is_refused_and_nothing_is_registered(
    app: Flask, engine: Engine, settings: Settings, learner: Dataset, tmp_path: Path
) -> None:
    folder = tmp_path / "learner"
    told(app, "model", "push", "learner", "--to", str(folder), *LICENCE)

    def refused(change: Callable[[Path], None], *options: str) -> str:
        other = tmp_path / "changed"
        shutil.rmtree(other, ignore_errors=True)
        shutil.copytree(folder, other)
        change(other)
        line = refusal(app, "model", "pull", str(other), *(options or ("--name", "again")))
        assert not (settings.home / "checkpoints" / "again").exists()
        with reading(engine) as session:
            assert session.scalar(select(LanguageModel.id).where(LanguageModel.name == "again")) is None
        return line

    def claims(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
        def write(other: Path) -> None:
            said = json.loads((other / MANIFEST).read_text())
            change(said)
            (other / MANIFEST).write_text(json.dumps(said))

        return write

    def renamed(name: str) -> Callable[[dict[str, Any]], None]:
        return lambda said: said["files"].update({"config.json": {**said["files"]["config.json"], "name": name}})

    assert "expected model.safetensors with the hash" in refused(
        lambda other: (other / "model.safetensors").write_bytes(b"other weights")
    )
    assert "expected the file config.json, got none" in refused(lambda other: (other / "config.json").unlink())
    assert "names of files inside of it, got '../../evil.json'" in refused(claims(renamed("../../evil.json")))
    assert "other files can run code" in refused(claims(renamed("modeling.py")))
    assert "expected a model, got 'dataset'" in refused(claims(lambda said: said.update(kind="dataset")))
    assert "expected a manifest of a push" in refused(lambda other: (other / MANIFEST).write_text("{"))
    assert "as a push writes it" in refused(lambda other: (other / MANIFEST).unlink())
    other_hash = claims(lambda said: said["about"].update(checkpoint_sha256="0" * 64))
    assert "expected a checkpoint with the hash" in refused(other_hash)
    # A name leads to a folder, so neither a manifest's nor one's own may lead out of it.
    before = {*tmp_path.rglob("*"), *settings.home.rglob("*")}
    outside = claims(lambda said: said.update(name=f"../../{tmp_path.name}/outside"))
    assert "name: expected 1 to 80 letters, digits" in refused(outside, "--game", "negotiation")
    assert "name: expected 1 to 80 letters, digits" in refused(lambda _: None, "--name", "../outside")
    assert "--game: expected negotiation or taboo, got 'nope'" in refused(lambda _: None, "--game", "nope")
    assert {*tmp_path.rglob("*"), *settings.home.rglob("*")} == before


def test_a_model_goes_to_the_hub_by_lfs_and_comes_back(
    app: Flask, engine: Engine, settings: Settings, learner: Dataset, hub: HubServer, people: People
) -> None:
    done = told(app, "model", "push", "learner", "--to", "lab/learner", *LICENCE)
    assert done["status"] == "done"
    assert done["revision"] == hub.repositories["models", "lab/learner"]["main"]
    assert hub.private["models", "lab/learner"]
    weights = (settings.home / "checkpoints" / "learner" / "model.safetensors").read_bytes()
    assert hub.tree("models", "lab/learner")["model.safetensors"] == weights
    assert len(hub.uploads) == 1
    assert hub.tokens == {TOKEN, ""} or hub.tokens == {TOKEN}
    with reading(engine) as session:
        row = session.scalars(select(Publication)).one()
        assert (row.target, row.licence, row.sent_at is not None) == ("lab/learner", "cc-by-4.0", True)
        assert TOKEN not in json.dumps([row.spec, row.error, row.name])
        assert session.scalars(select(PublishedPerson.participant_id)).all() == [people.person(1)]
    tree = {**hub.tree("models", "lab/learner"), "old-rows.jsonl": b"{}\n"}
    hub.commit("models", "lab/learner", "main", tree)
    told(app, "model", "push", "learner", "--to", "lab/learner", *LICENCE)
    assert "old-rows.jsonl" not in hub.tree("models", "lab/learner")  # the newest commit has what was pushed alone
    assert len(hub.uploads) == 1  # what is there is not sent again
    told(app, "model", "push", "learner", "--to", "lab/learner", "--revision", "second", *LICENCE)
    assert set(hub.repositories["models", "lab/learner"]) == {"main", "second"}

    found = told(app, "model", "pull", "lab/learner", "--revision", "second", "--name", "again")
    assert found["notes"].startswith("Pulled from lab/learner@")
    own, back = (files_in(settings.home / "checkpoints" / name) for name in ("learner", "again"))
    assert own == back
    assert not any((settings.home / "pulled").iterdir())
    logs = "".join(path.read_text(errors="replace") for path in settings.home.rglob("*.log"))
    assert TOKEN not in logs


def test_a_dataset_goes_to_the_hub_and_comes_back_as_the_same_rows(
    app: Flask, engine: Engine, settings: Settings, people: People, hub: HubServer
) -> None:
    people.play(agreed(people, "ann"))
    dataset = cut_all(engine, settings.home)
    told(app, "dataset", "push", "talks", "--to", "lab/talks", "--public", *LICENCE)
    assert not hub.private["datasets", "lab/talks"]
    tree = hub.tree("datasets", "lab/talks")
    assert tree["rows.jsonl"] == file_of(settings.home, dataset).read_bytes()
    assert "data_files: rows.jsonl" in tree["README.md"].decode()
    with writing(engine) as session:
        session.get_one(Dataset, dataset.id).sha256 = "0" * 64  # as in another house, which has no such rows
    found = told(app, "dataset", "pull", "lab/talks", "--name", "theirs")
    assert (found["rows"], found["sha256"]) == (2, dataset.sha256)
    assert "1 of 1" not in refusal(app, "dataset", "push", "theirs", "--to", "lab/more", *LICENCE)


def test_a_page_pulls_datasets_and_says_at_the_field_what_is_wrong(
    app: Flask, engine: Engine, settings: Settings, people: People, hub: HubServer, tmp_path: Path
) -> None:
    people.play(agreed(people, "ann"))
    dataset = cut_all(engine, settings.home)
    told(app, "dataset", "push", "talks", "--to", "lab/talks", "--public", *LICENCE)
    with writing(engine) as session:
        session.get_one(Dataset, dataset.id).sha256 = "0" * 64
    client = signed_in(app)
    assert 'href="/admin/datasets/pull"' in client.get("/admin/datasets").text
    assert client.get("/admin/datasets/pull?like=1").status_code == 400  # no pull is filled in from an earlier one
    for place, why in (
        ("talks", "OWNER/NAME of a repository, or a folder"),
        ("~nobody-here/talks", "a folder of a user of this machine"),
        ("lab/nothing", "expected a dataset of the hub that the token may see"),
        (str(tmp_path), "as a push writes it"),
    ):
        answer = client.post("/admin/datasets/pull", data={"place": place})
        if answer.status_code == 303:
            answer = result_of_pull(app, client, answer)
        else:
            assert answer.status_code == 400
        at_the_field = re.search(r'name="place" .*?</div>', answer.text, re.DOTALL)
        assert at_the_field is not None
        assert f'value="{place}"' in at_the_field[0]
        assert why in at_the_field[0]
    answer = client.post("/admin/datasets/pull", data={"place": "lab/talks", "name": "theirs"})
    page = result_of_pull(app, client, answer).text
    [number] = re.findall(r'href="/admin/datasets/(\d+)">The dataset from lab/talks is registered', page)
    with reading(engine) as session:
        row = session.get_one(Dataset, int(number))
        assert (row.name, row.rows, row.sha256) == ("theirs", 2, dataset.sha256)


def result_of_pull(app: Flask, client: FlaskClient, began: TestResponse) -> TestResponse:
    """The page of a pull that has begun, once it is over."""
    assert began.status_code == 303
    app.extensions["pull"].wait(PATIENCE)
    return client.get(began.location)


def test_a_pull_from_a_slow_hub_goes_on_while_nobody_waits_and_can_be_cancelled(
    app: Flask, engine: Engine, settings: Settings, people: People, hub: HubServer
) -> None:
    people.play(agreed(people, "ann"))
    cut_all(engine, settings.home)
    told(app, "dataset", "push", "talks", "--to", "lab/talks", "--public", *LICENCE)
    client, place = signed_in(app), "/admin/datasets/pull"
    hub.hold = threading.Event()
    began = client.post(place, data={"place": "lab/talks", "name": "theirs"})
    assert began.status_code == 303
    assert hub.asked.wait(PATIENCE)
    for page in (client.get(began.location).text, client.get("/admin/models/pull").text):
        assert "Pulling lab/talks" in page
        assert "Cancel the pull" in page
        assert 'name="place"' not in page  # another one would be refused
        assert "</time> UTC" not in page  # which is of the zone that its reader has chosen
    assert 'is shown on the page <a href="/admin/datasets/pull">Pull a dataset</a>.' in page
    second = client.post(place, data={"place": "lab/talks", "name": "twice"})
    assert (second.status_code, "no other pull at the same time" in second.text) == (409, True)
    assert 'value="twice"' in second.text  # to be sent again once the other one is over
    assert "Pulling lab/talks" in second.text
    assert client.post("/admin/pulls/cancel").location == place
    page = result_of_pull(app, client, began).text
    assert "The pull was cancelled." in page
    assert 'value="theirs"' in page  # as it was typed, to be tried again
    with reading(engine) as session:
        assert session.scalar(select(func.count()).where(Dataset.name == "theirs")) == 0
    assert not [*(settings.home / "datasets").glob(".*")]
    hub.hold.set()
    page = result_of_pull(app, client, client.post(place, data={"place": "lab/talks", "name": "theirs"})).text
    assert "The dataset from lab/talks is registered." in page


def test_of_two_pulls_that_are_asked_for_at_once_one_begins(
    app: Flask, engine: Engine, hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.hold = threading.Event()
    hub.add("datasets", "lab/talks", {"config.json": b"{}"})
    begun = []

    class SlowlyBegun(RunningPull):
        def __init__(self, *arguments: Any) -> None:
            begun.append(self)
            time.sleep(1)  # in which the other request comes
            super().__init__(*arguments)

    monkeypatch.setattr(pulls, "RunningPull", SlowlyBegun)
    clients = [signed_in(app), signed_in(app)]
    with ThreadPoolExecutor() as threads:
        form = {"place": "lab/talks"}
        answers = threads.map(lambda client: client.post("/admin/datasets/pull", data=form).status_code, clients)
    assert (sorted(answers), len(begun)) == ([303, 409], 1)
    clients[0].post("/admin/pulls/cancel")
    begun[0].wait(PATIENCE)
    hub.hold.set()


def test_a_pull_that_is_begun_again_keeps_what_it_has_fetched_long_ago(
    app: Flask, settings: Settings, hub: HubServer
) -> None:
    hub.add("datasets", "lab/talks", {"config.json": b"{}"})
    refusal(app, "dataset", "pull", "lab/talks")
    fetched = settings.home / "pulled"
    long_ago = (datetime.now(UTC) - timedelta(days=8)).timestamp()
    for each in fetched.rglob("*"):
        os.utime(each, (long_ago, long_ago))
    refusal(app, "dataset", "pull", "lab/talks")
    delete_stopped_pulls(settings.home)
    assert [*fetched.glob("*/config.json")]


def test_a_pull_that_is_ended_just_after_its_commit_keeps_the_checkpoint(
    app: Flask, engine: Engine, settings: Settings, learner: Dataset, tmp_path: Path
) -> None:
    folder = tmp_path / "learner"
    told(app, "model", "push", "learner", "--to", str(folder), *LICENCE)

    def pulled(name: str, transact: Any) -> None:
        spec = ModelPullSpec(place=str(folder), name=name)
        with pytest.raises(SystemExit):
            pull_model(transact, settings, spec, look=check_checkpoint, tell=lambda _: None)

    def ended_after_the_commit(work: Callable[[Session], Any]) -> Any:
        done = transact(engine)(work)
        return ended(done) if type(done) is int else done

    def ended_before_the_commit(work: Callable[[Session], Any]) -> Any:
        return transact(engine)(lambda session: ended(done) if type(done := work(session)) is int else done)

    def ended(done: int) -> None:
        raise SystemExit(1)

    pulled("again", ended_after_the_commit)
    pulled("never", ended_before_the_commit)
    with reading(engine) as session:
        assert checkpoint_hash(settings.home / "checkpoints" / "again") == get_model(session, "again").options["sha256"]
    assert not (settings.home / "checkpoints" / "never").exists()


PULLING = """
import os
from app.publication import pulling
def pulled(said, tell):
    print("the database is away, trying again")
    os.system("echo Fetching 3 files")
    return 7
pulling._pulled = pulled
pulling.main()
"""


@pytest.mark.parametrize("let_go", [True, False], ids=["let go", "held"])
def test_what_else_a_pull_prints_is_no_part_of_its_answer_after_which_it_ends_well(let_go: bool) -> None:
    with subprocess.Popen([sys.executable, "-c", PULLING], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"{}\n")
        process.stdin.flush()
        assert pickle.load(process.stdout) == 7  # noqa: S301 - our own process writes it
        if let_go:
            process.stdin.close()
        assert process.wait(PATIENCE) == 0


def test_a_pull_whose_answers_cannot_be_read_is_over(
    app: Flask, engine: Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running_pull, "_MODULE", "this")  # which prints a poem
    pull = RunningPull(PullRequest(DATASET, DatasetPullSpec(place="lab/talks"), "ann"), settings, engine)
    pull.wait(PATIENCE)
    assert "what its process answered cannot be read" in str(pull.error)


def test_the_size_of_what_is_fetched_is_told_while_a_folder_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "half").write_bytes(b"half of it")
    (tmp_path / "manifest").write_bytes(b"all")
    scan = os.scandir

    def deleted(path: Any) -> Any:
        if str(path).endswith("weights"):
            shutil.move(path, tmp_path.with_name("gone"))
        return scan(path)

    monkeypatch.setattr("os.scandir", deleted)
    assert running_pull._bytes_below(tmp_path) == 3


def test_a_page_pulls_a_model_and_keeps_its_licence(
    app: Flask, engine: Engine, learner: Dataset, tmp_path: Path
) -> None:
    folder = tmp_path / "learner"
    told(app, "model", "push", "learner", "--to", str(folder), *LICENCE)
    client = signed_in(app)
    result_of_pull(app, client, client.post("/admin/models/pull", data={"place": str(folder), "name": "again"}))
    with reading(engine) as session:
        own, again = (get_model(session, name) for name in ("learner", "again"))
    assert own.options["sha256"] == again.options["sha256"]
    refused = client.post("/admin/models/pull", data={"place": str(folder), "name": "again"})
    refused = result_of_pull(app, client, refused)
    assert re.search(r'name="name" .*?a name that no model has', refused.text, re.DOTALL)
    card = f"/admin/models/{again.id}/card"
    assert "was added by hand, under no declared licence" in client.get(card).text
    for given, field in (
        ({"licence": "mine", "reason": "Ours."}, "licence"),
        ({"licence": "mit", "reason": " "}, "reason"),
    ):
        answer = client.post(card, data=given)
        assert answer.status_code == 400
        assert re.search(rf'name="{field}"[^>]* aria-invalid="true"', answer.text)
    assert client.post(card, data={"licence": "mit", "reason": "From our own lab."}).status_code == 303
    page = client.get(card).text
    assert "under no declared licence" not in page
    assert "<dt>again</dt><dd>mit</dd>" in page
    with reading(engine) as session:
        assert session.scalars(select(ReleasePermission.by)).one() == "admin"


def test_what_the_hub_refuses_is_one_line_and_leaves_nothing_half_done(
    make_app: Callable[..., Flask],
    app: Flask,
    engine: Engine,
    settings: Settings,
    learner: Dataset,
    hub: HubServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    push = ("model", "push", "learner", "--to", "lab/learner", *LICENCE)
    for at, status, said in (
        ("create", 401, "HF_TOKEN: expected a token that may use lab/learner"),
        ("create", 403, "HF_TOKEN: expected a token that may use lab/learner"),
        ("/upload/", 507, "got status 507; try again later"),
        ("/commit/", 500, "got status 500; try again later"),
        ("/commit/", 412, "a revision that nobody else changes meanwhile"),
    ):
        hub.refuse = at, status
        line = refusal(app, *push, code=1)
        assert said in line
        assert TOKEN not in line
    hub.refuse = None
    with reading(engine) as session:
        assert {row.status for row in session.scalars(select(Publication))} == {"failed"}
    number = told(app, "publication", "list")
    assert number
    resumed = told(app, "publication", "resume", "1")
    assert resumed["status"] == "done"
    assert len(hub.uploads) == 1
    assert "a kind" not in refusal(app, "model", "pull", "lab/nothing", "--name", "again")
    assert "expected a revision of lab/learner, got 'v9'" in refusal(
        app, "model", "pull", "lab/learner", "--revision", "v9", "--name", "again"
    )
    hub.cut = 1000
    monkeypatch.setattr("huggingface_hub.file_download.constants.HF_HUB_DOWNLOAD_TIMEOUT", 2)
    assert "what was sent or fetched stays" in refusal(app, "model", "pull", "lab/learner", "--name", "again")
    hub.cut = None
    with reading(engine) as session:
        assert session.scalar(select(LanguageModel.id).where(LanguageModel.name == "again")) is None
    told(app, "model", "pull", "lab/learner", "--name", "again")
    nowhere = make_app(HF_ENDPOINT="http://127.0.0.1:9", HF_TOKEN=TOKEN)
    with nowhere.app_context():
        line = refusal(nowhere, "model", "pull", "lab/learner", "--name", "x")
    assert "hub http://127.0.0.1:9: expected an answer" in line
    without = make_app(HF_ENDPOINT=hub.url, HF_TOKEN="")
    with without.app_context():
        assert "got none; set one" in refusal(without, "model", "pull", "lab/learner", "--name", "x")
    assert "OWNER/NAME of a repository, or a folder" in refusal(
        app, "model", "push", "learner", "--to", "learner", *LICENCE
    )


def test_nothing_leaves_without_everybody_and_who_withdraws_reads_what_left(
    app: Flask, engine: Engine, settings: Settings, learner: Dataset, hub: HubServer, people: People
) -> None:
    told(app, "model", "push", "learner", "--to", "lab/learner", *LICENCE)
    with reading(engine) as session:
        token = find_progress(session, 1).enrolment.token
    page = app.test_client().get(f"/s/me/{token}/leave").text
    assert "learner" in page
    assert "lab/learner" in page
    app.test_client().post(f"/s/me/{token}/leave", data={"act": "no publication"})
    line = refusal(app, "model", "push", "learner", "--to", "lab/learner", *LICENCE)
    assert "2 of 2 games of study two-models in which somebody has not agreed" in line
    assert "lab/learner" in app.test_client().get(f"/s/me/{token}/leave").text
    with reading(engine) as session:
        row = session.scalars(select(Publication)).one()
        assert row.status == "done"
    with writing(engine) as session:  # a push that waited while somebody withdrew
        session.get_one(Publication, row.id).status = "failed"
        assert session.query(Wave).count() == 1
    assert "has not agreed" in refusal(app, "publication", "resume", str(row.id), code=1)
    assert "licence: expected" in refusal(
        app, "model", "push", "learner", "--to", "lab/x", "--licence", "free", "--yes"
    )


def test_a_page_names_what_leaves_before_it_is_pushed(
    app: Flask, engine: Engine, settings: Settings, learner: Dataset, people: People
) -> None:
    client = signed_in(app)
    with reading(engine) as session:
        number = get_model(session, "learner").id
    page = client.get(f"/admin/models/{number}/card").text
    assert "Push to a hub" in page
    assert learner.sha256 in page
    assert learner.sha256 in client.get(f"/admin/models/{number}/README.md").text
    assert "talks@1" in client.get(f"/admin/datasets/{learner.id}/card").text
    form = {"model": "learner", "to": "lab/learner", "visibility": "private", "licence": "", "action": "start"}
    assert client.post("/admin/publications/new", data=form).status_code == 400  # nobody chooses a licence for you
    form["licence"] = "mit"
    asked = client.post("/admin/publications/new", data=form).text
    assert "2 games of people of study two-models" in asked
    assert "Copies cannot be recalled" in asked
    with reading(engine) as session:
        assert session.scalars(select(Publication)).all() == []
    agreed_to = re.search(r'name="agreed" value="([0-9a-f]{64})"', asked)
    assert agreed_to is not None
    assert client.post("/admin/publications/new", data={**form, "agreed": agreed_to[1]}).status_code == 303
    with reading(engine) as session:
        assert session.scalars(select(Publication.status)).all() == ["waiting"]
    folder = {**form, "to": str(settings.home / "published")}
    refused = client.post("/admin/publications/new", data=folder)
    assert refused.status_code == 400
    with writing(engine) as session:
        consents.withdraw_publication(session, people.person(1))
    page = client.get(f"/admin/models/{number}/card").text
    assert "2 of 2 games of study two-models" in page
    assert "Push to a hub" not in page
