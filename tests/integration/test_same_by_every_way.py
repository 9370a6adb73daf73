"""Whoever asks by a page, a command, the API or the client gets the same: rounds, societies, trainings and exports."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from parlor_client import Lab
from parlor_client.jobs import Jobs
from sqlalchemy import Engine, inspect

from app.cli.jobs import run_job_here
from app.core.config import Settings
from app.core.extensions import reading, writing
from app.finetuning.job import TRAINING
from app.jobs import states
from app.jobs.kind import JobKind
from app.models import LanguageModel, TrainingJob, Wave
from app.rounds.job import ROUND
from app.society.job import SOCIETY
from tests import rounds, societies
from tests.enrolments import enrol, load_example, open_wave
from tests.experimenter import signed_in
from tests.http_agent import served
from tests.jobs import SMALL, make_dataset
from tests.programs import Program
from tests.rounds import round_form
from tests.shell import Finished

WAYS = ("page", "command", "API", "client")
# Of a job's row: its number, when and by whom it was created and run.
OWN = {
    "id", "queued", "requested_by", "requested_by_id", "created_at", "started_at", "ended_at", "enqueued_at",
    "lease_owner", "lease_until",
}  # fmt: skip


@pytest.fixture
def settings(app: Flask) -> Settings:
    found: Settings = app.config["SETTINGS"]
    return found


@pytest.fixture
def page(app: Flask) -> FlaskClient:
    return signed_in(app)


@pytest.fixture
def program(app: Flask) -> Program:
    return Program(app, "read", "run", "people")


@pytest.fixture
def lab(app: Flask, program: Program) -> Iterator[Lab]:
    with served(app) as url, Lab(url, program.secret) as lab:
        yield lab


@pytest.fixture
def command(app: Flask) -> Callable[..., None]:
    def run(*line: object) -> None:
        done = app.test_cli_runner().invoke(args=[*map(str, line)])
        assert done.exit_code == 0, done.output

    return run


@pytest.fixture(autouse=True)
def _told(enqueued_jobs: list[tuple[str, int]]) -> list[tuple[str, int]]:
    return enqueued_jobs


class Ways:
    """The jobs that were created by each way, all of one kind; those that wait for a worker are run at once."""

    def __init__(self, engine: Engine, kind: JobKind[Any], page: FlaskClient, program: Program, jobs: Jobs) -> None:
        self._engine, self._kind, self._page, self._program, self._jobs = engine, kind, page, program, jobs
        self.numbers: dict[str, int] = {}

    def by_page(self, address: str, form: dict[str, Any]) -> None:
        sent = self._page.post(address, data=form)
        assert (sent.status_code, sent.location is not None) == (303, True), sent.text
        self._run("page", int(str(sent.location).rpartition("/")[2]))

    def by_command(self, run: Callable[..., None], *line: object) -> None:
        run(*line)
        with reading(self._engine) as session:
            self.numbers["command"] = session.query(self._kind.table.id).order_by(self._kind.table.id.desc()).first()[0]

    def by_api(self, body: Any) -> None:
        sent = self._program.post(f"/{self._kind.plural}", body)
        assert sent.status_code == 201, sent.text
        self._run("API", (sent.json or {})["id"])

    def by_client(self, **spec: Any) -> None:
        job = self._jobs.run(**spec)  # type: ignore[attr-defined]
        self._run("client", job.number)
        assert job.wait(progress=False).status == states.DONE

    def _run(self, way: str, number: int) -> None:
        run_job_here(self._kind, number)
        self.numbers[way] = number

    def rows(self) -> dict[str, Any]:
        """The columns of each job's row that say what was asked for and what came of it."""
        assert tuple(self.numbers) == WAYS
        assert len({*self.numbers.values()}) == len(WAYS)
        columns = [each.key for each in inspect(self._kind.table).column_attrs if each.key not in OWN]
        with reading(self._engine) as session:
            found = {
                way: {name: getattr(self._kind.get(session, number), name) for name in columns}
                for way, number in self.numbers.items()
            }
        assert {each["status"] for each in found.values()} == {states.DONE}
        return found


def all_equal(found: dict[str, Any]) -> bool:
    """Whether each way has come to the same; shows the first that has not."""
    first, *others = found.values()
    for other in others:
        assert other == first
    return True


def test_a_round_is_the_same_by_every_way(
    engine: Engine, page: FlaskClient, command: Callable[..., None], program: Program, lab: Lab, tmp_path: Path
) -> None:
    words = tmp_path / "words.txt"
    words.write_text("lemon\npencil\nriver\n", encoding="utf-8")
    text = words.read_text(encoding="utf-8")
    ways = Ways(engine, ROUND, page, program, lab.rounds)
    asked = {"matches": "6", "seed": "7", "temperature": "0.7", "top_k": "20", "name": "same", "max_turns": "4"}
    upload = {"words": "upload", "words_text": text, "words_name": "words.txt"}
    ways.by_page("/admin/rounds/new", {**round_form("taboo"), **asked, **upload})
    line = ("--matches", 6, "--seed", 7, "--temperature", 0.7, "--top-k", 20, "--name", "same")
    config = {"max_turns": 4, "rule": "strict"}  # the form sends every setting, and the row says which were given
    pairs = ("--config", *(f"{name}={value}" for name, value in config.items()))
    ways.by_command(command, "round", "run", "taboo", "--models", "scripted", "--words", words, *line, *pairs)
    spec: Any = {
        "game": "taboo", "models": ["scripted"], "matches": 6, "seed": 7, "name": "same", "config": config,
        "sampling": {"temperature": 0.7, "top_k": 20},
    }  # fmt: skip
    ways.by_api({**spec, "material": {"text": text, "name": "words.txt"}})
    ways.by_client(**spec, material=words)
    assert all_equal(ways.rows())
    played = {way: rounds.facts(engine, number) for way, number in ways.numbers.items()}
    assert all_equal(played)
    assert sorted(played["page"]) == [*range(6)]
    with reading(engine) as session:
        assert all_equal({way: ROUND.get(session, number).moves for way, number in ways.numbers.items()})


def test_a_society_is_the_same_by_every_way(
    engine: Engine, page: FlaskClient, command: Callable[..., None], program: Program, lab: Lab
) -> None:
    ways = Ways(engine, SOCIETY, page, program, lab.societies)
    config = {"size": 2, "iterations": 2, "critics": 2, "first_memories": 3, "setting": "half_half"}
    members = {"share scripted-agent": "1", "observers": "scripted-observer"}
    files = {"questions": "shipped", "priors": "shipped", "embedder": "tfidf", "recall": "1", "dropout": "0.5"}
    given = {name: str(value) for name, value in config.items()}
    ways.by_page("/admin/societies/new", {**members, **files, **given, "seed": "7", "name": "same", "action": "start"})
    line = ("--config", *(f"{name}={value}" for name, value in config.items()), "--seed", 7, "--name", "same")
    ways.by_command(command, "society", "run", "--agents", "scripted-agent", "--observers", "scripted-observer", *line)
    spec: Any = {
        "agents": {"scripted-agent": 1.0}, "observers": ["scripted-observer"], "config": config, "seed": 7,
        "name": "same",
    }  # fmt: skip
    ways.by_api(spec)
    ways.by_client(**spec)
    assert all_equal(ways.rows())
    made = {way: societies.facts(engine, number) for way, number in ways.numbers.items()}
    assert all_equal(made)
    assert len(made["page"]) == 8


def test_a_training_is_the_same_by_every_way(
    engine: Engine, settings: Settings, page: FlaskClient, command: Callable[..., None], program: Program, lab: Lab
) -> None:
    dataset = make_dataset(engine, settings)
    ways = Ways(engine, TRAINING, page, program, lab.trainings)
    config = {**SMALL, "epochs": 1}
    boxes = {"epochs": "1", "batch": "4"}
    further = "\n".join(f"{name} = {value}" for name, value in SMALL.items() if name not in boxes)
    usual = {"base": "", "eval_share": "", "learning_rate": "", "seed": "", "backend": "local"}
    ways.by_page(
        "/admin/jobs/new",
        {**usual, **boxes, "method": "tiny", "dataset": str(dataset.id), "name": "by-page", "config": further},
    )
    pairs = [f"{name}={value}" for name, value in config.items()]
    ways.by_command(
        command, "training", "run", "tiny", "--dataset", dataset.id, "--name", "by-command", "--config", *pairs
    )
    spec: Any = {"method": "tiny", "dataset": str(dataset.id), "config": config}
    ways.by_api({**spec, "name": "by-api"})
    ways.by_client(**spec, name="by-client")
    found = ways.rows()
    for row in found.values():  # names are given once
        named = {row.pop("name"), row["spec"].pop("name"), row.pop("model_id"), row.pop("log")}
        assert len(named) == 3
    assert all_equal(found)
    with reading(engine) as session:
        models = {
            way: session.get_one(LanguageModel, session.get_one(TrainingJob, number).model_id)
            for way, number in ways.numbers.items()
        }
        assert all_equal({way: model.options["sha256"] for way, model in models.items()})
        assert len({model.name for model in models.values()}) == len(WAYS)


@pytest.mark.parametrize("name", ["matches", "moves", "events", "generations", "codebook"])
def test_an_export_is_the_same_by_every_way(
    engine: Engine, settings: Settings, page: FlaskClient, flask: Callable[..., Finished], program: Program, lab: Lab,
    tmp_path: Path, name: Any,
) -> None:  # fmt: skip
    number = rounds.make_round(engine, "scripted", matches=4)
    rounds.play(engine, settings, number)
    chosen = "" if name == "codebook" else f"?round={number}"
    only: Any = {} if name == "codebook" else {"round": number}
    printed = flask("export", name, *(("--round", number) if only else ()), "--out", "-")
    assert printed.exit_code == 0, printed.output
    assert all_equal(
        {
            "page": page.get(f"/admin/export/{name}.csv{chosen}").data,
            "command": printed.stdout_bytes,
            "API": program.ask("GET", f"/exports/{name}.csv{chosen}").data,
            "client": lab.export(name, tmp_path / f"{name}.csv", **only).read_bytes(),
        }
    )
    assert printed.stdout_bytes.count(b"\n") > 1 or name == "generations"


def test_the_data_of_a_study_are_the_same_by_every_way(
    engine: Engine, page: FlaskClient, flask: Callable[..., Finished], program: Program, lab: Lab, tmp_path: Path
) -> None:
    with writing(engine) as session:
        version = load_example(session, tmp_path)
        number = open_wave(session, version).id
        enrol(session, session.get_one(Wave, number), "P1", version, arm=None)
        wave = session.get_one(Wave, number).name
    path = tmp_path / "by-command.zip"
    done = flask("study", "export-data", f"two-models:{wave}", "--out", path)
    assert done.exit_code == 0, done.output
    assert all_equal(
        {
            "page": page.get(f"/admin/studies/waves/{number}/data.zip?guard=0").data,
            "command": path.read_bytes(),
            "API": program.ask("GET", f"/studies/1/data.zip?wave={wave}").data,
            "client": lab.studies.export("two-models", tmp_path / "by-client.zip", wave=wave).read_bytes(),
        }
    )
