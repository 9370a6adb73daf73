"""The Python client on a whole Parlor with its workers: jobs, what was played, lost connections, refusals."""

import csv
import http.client
import io
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from parlor_client import JobFailed, Lab, NotReachable, ParlorError, Refused, ServerTooOld, __version__
from sqlalchemy import select

from app import accounts
from app.accounts import tokens
from app.core.extensions import writing
from app.models import User
from app.rounds import lifecycle
from app.rounds.spec import RoundSpec
from tests.forwarder import Forwarder
from tests.shell import Shell
from tests.stack import Stack, free_port, running_parlor
from tests.stub_openai import StubServer
from tests.tables import add_model, database
from tests.waves import new_wave

TABOO: Any = {"game": "taboo", "models": ["scripted"], "matches": 20, "seed": 7}
ITS_OWN = {"match_id", "round_id", "at"}  # columns in which equal rounds differ


@pytest.fixture(scope="module")
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        yield server


@pytest.fixture(scope="module")
def parlor(stub: StubServer) -> Iterator[Stack]:
    with running_parlor(WORKER_QUEUES="batch") as running:
        add_model(running, stub.url, "haggler", "stub-negotiator", "Partner Blue")
        yield running


@pytest.fixture(scope="module")
def token(parlor: Stack) -> str:
    return new_token(parlor, "read", "run")


@pytest.fixture
def lab(parlor: Stack, token: str) -> Iterator[Lab]:
    with Lab(parlor.url, token) as lab:
        yield lab


def new_token(parlor: Stack, *scopes: str, made: datetime | None = None) -> str:
    """A token that is good for a day from when it was made."""
    made = made or datetime.now(UTC)
    with database(parlor) as engine, writing(engine) as session:
        user = session.scalar(select(User).where(User.name == accounts.FIRST_USER))
        user = user or accounts.create_user(session, accounts.FIRST_USER, None, made)
        return tokens.create(session, user, f"{'-'.join(scopes)} {made.timestamp()}", scopes, 1, made)[1]


def command(shell: Shell, parlor: Stack, *line: object) -> str:
    ran = shell.flask(line, env=parlor.env)
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def rows_of(text: str) -> list[dict[str, str]]:
    """The rows of an export without what names a match and says when it was."""
    rows = [*csv.DictReader(io.StringIO(text, newline=""))]
    assert rows
    return [{name: value for name, value in row.items() if name not in ITS_OWN} for row in rows]


class Proxy:
    """A port through which a Parlor is asked, whose faults befall the next requests that create a job or export rows.

    faults: `lost` answers nothing although the request was passed on, `refused` neither; a number is answered instead.
    The first stream of events breaks off behind its first event.
    """

    def __init__(self, parlor: Stack) -> None:
        self.address = parlor.url.removeprefix("http://")
        self.faults: list[str | int] = []
        self.keys: list[str | None] = []  # those of all requests that create a job
        self.seen_events: list[str | None] = []  # the Last-Event-ID of each that follows one
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (ProxyHandler,), {"proxy": self}))
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> "Proxy":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class ProxyHandler(BaseHTTPRequestHandler):
    proxy: Proxy

    def do_GET(self) -> None:
        events = self.path.endswith("/events")
        if events:
            self.proxy.seen_events.append(self.headers["Last-Event-ID"])
        if self.path.startswith("/api/v1/exports/") and self.proxy.faults:
            return self._fail(self.proxy.faults.pop(0))
        return self._pass_on(cut=events and len(self.proxy.seen_events) == 1)

    def do_POST(self) -> None:
        self.proxy.keys.append(self.headers["Idempotency-Key"])
        fault = self.proxy.faults.pop(0) if self.proxy.faults else None
        if fault is None or fault == "lost":
            self._pass_on(lost=fault == "lost")
        else:
            self._fail(fault)

    def _fail(self, fault: str | int) -> None:
        if isinstance(fault, int):
            self.send_response(fault)
            self.send_header("Retry-After", "1")
            self.end_headers()

    def _pass_on(self, *, lost: bool = False, cut: bool = False) -> None:
        """Send a request to the Parlor and its answer back: none of it if lost, up to the first event if cut."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        upstream = http.client.HTTPConnection(self.proxy.address)
        upstream.request(self.command, self.path, body or None, dict(self.headers))
        answer = upstream.getresponse()
        if lost:
            answer.read()
            return
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.headers["Content-Type"] or "text/plain")
        if coding := answer.headers["Content-Encoding"]:
            self.send_header("Content-Encoding", coding)
        if cut:
            self.send_header("Content-Length", "1000000")  # more than comes: what is read breaks off
        self.end_headers()
        with suppress(ConnectionError):
            for line in answer:
                self.wfile.write(line)
                if cut and line.startswith(b"data:"):
                    self.wfile.write(b"\n")
                    break
        upstream.close()

    def log_message(self, *_: object) -> None:
        """Nothing: the tests say what went wrong."""


# ---- Jobs -----------------------------------------------------------------------


def test_a_round_is_run_waited_for_and_read_as_commands_write_it(
    lab: Lab, parlor: Stack, shell: Shell, tmp_path: Path
) -> None:
    job = lab.rounds.run(**TABOO).wait()
    assert (job.status, job.error, job.figures["done"], job.is_over) == ("done", None, 20, True)
    for name in ("matches", "moves", "events"):
        path = lab.export(name, tmp_path / f"{name}.csv", round=job.number)
        written = command(shell, parlor, "export", name, "--round", job.number, "--out", "-")
        assert path.read_bytes().decode() == written
    assert sorted(each.name for each in tmp_path.iterdir()) == ["events.csv", "matches.csv", "moves.csv"]
    matches = [*lab.matches(round=job.number)]
    moves = [*lab.matches(round=job.number).moves()]
    told = [*csv.DictReader(io.StringIO((tmp_path / "moves.csv").read_text(encoding="utf-8"), newline=""))]
    assert [each["text"] for each in moves] == [each["text"] for each in told]
    assert (len(matches), len(moves)) == (20, sum(int(each["moves"] or 0) for each in matches))
    assert all(isinstance(each["seed"], str | int) for each in matches)
    whole = lab.match(str(matches[0]["match_id"]))
    assert whole["match_id"] == matches[0]["match_id"]


def test_command_api_and_client_make_equal_rows(lab: Lab, parlor: Stack, token: str, shell: Shell) -> None:
    by_client = lab.rounds.run(**TABOO).wait().number
    request = http.client.HTTPConnection(parlor.url.removeprefix("http://"))
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request.request("POST", "/api/v1/rounds", json.dumps(TABOO), headers)
    by_api = json.loads(request.getresponse().read())["id"]
    lab.rounds[by_api].wait()
    options = ("--models", "scripted", "--matches", 20, "--seed", 7)
    command(shell, parlor, "round", "run", "taboo", *options)
    by_command = next(lab.rounds.list()).number
    assert len({by_client, by_api, by_command}) == 3
    made = [rows_of(command(shell, parlor, "export", "moves", "--round", n)) for n in (by_client, by_api, by_command)]
    assert made[0] == made[1] == made[2]


def test_a_cross_play_is_waited_for_as_a_whole(lab: Lab) -> None:
    job = lab.rounds.run(game="taboo", cross_play=True, models=["scripted", "haggler"], matches=2, seed=1)
    assert len(job.created_with) == 3  # each of both plays both
    job.wait()
    assert {each.status for each in (job, *job.created_with)} == {"done"}


def test_a_job_is_cancelled_and_goes_on(lab: Lab) -> None:
    job = lab.rounds.run(game="taboo", models=["scripted"], matches=2000, seed=2).cancel()
    assert job.status in ("cancelling", "cancelled")
    with pytest.raises(JobFailed) as failed:
        job.wait()
    assert str(failed.value) == f"rounds[{job.number}]: expected it to be done, got cancelled"
    assert job.resume().wait().figures["done"] == 2000
    for again in (job.cancel, job.resume):
        with pytest.raises(Refused) as refused:
            again()
        assert (refused.value.code, refused.value.status) == ("conflict", 409)


def test_a_job_that_fails_says_why_and_goes_on_with_a_higher_budget(lab: Lab) -> None:
    spec: Any = {"game": "negotiation", "models": ["haggler", "scripted"], "matches": 4, "seed": 3}
    job = lab.rounds.run(**spec, budget={"tokens": 1})
    with pytest.raises(JobFailed) as failed:
        job.wait()
    error = failed.value
    assert (error.kind, error.number, error.status) == ("rounds", job.number, "failed")
    assert str(error).startswith(f"rounds[{job.number}]: expected it to be done, got failed: budget of 1 tokens ")
    assert job.resume(budget={"tokens": 10**7}).wait().status == "done"


def test_a_job_whose_terminal_is_gone_is_not_waited_for_and_goes_on_when_it_is_resumed(lab: Lab, parlor: Stack) -> None:
    asked = RoundSpec(game="taboo", models=("scripted",), matches=200, seed=6)
    with database(parlor) as engine, writing(engine) as session:
        row = lifecycle.create(session, asked, queued=False)  # for a terminal, so that no worker is told of it
        row.status, number = "running", row.id
    job = lab.rounds[number]
    with pytest.raises(JobFailed) as failed:
        job.wait()
    assert str(failed.value) == (
        f"rounds[{job.number}]: expected it to be done, got interrupted; nobody works on it any more: job.resume()"
        " hands it to the workers"
    )
    assert (failed.value.status, job.is_over) == ("interrupted", False)
    assert job.resume().wait().status == "done"


RECIPE = """
recipe: rows
version: 1
about: Rows of a round.
inputs: {matches: 2, seed: 7}
steps:
  - name: play
    do: round
    with: {game: taboo, models: [scripted], matches: "${matches}"}
  - name: rows
    do: keep
    with: {rounds: ["${play.round}"], filter: all}
"""


def test_a_recipe_runs_from_a_text_and_a_file_and_its_dataset_is_trained_on(lab: Lab, tmp_path: Path) -> None:
    path = tmp_path / "rows.yaml"
    path.write_text(RECIPE, encoding="utf-8")
    for job, matches in (
        (lab.recipes.run(RECIPE), 2),
        (lab.recipes.run(path, matches=3), 3),
        (lab.recipes.run(str(path), inputs={"matches": 4}, name="four"), 4),
    ):
        assert job.wait(progress=False).status == "done"
        assert matches in [each.figures["of"] for each in lab.rounds]
    dataset = next(iter(lab.datasets))
    assert lab.datasets[dataset["dataset_id"]]["matches"] == dataset["matches"]
    training = lab.trainings.run(method="tiny", dataset=str(dataset["dataset_id"]), name="small", config={"epochs": 1})
    assert training.status == "waiting"
    assert training.cancel().status == "cancelled"  # as no worker is there that would train


def test_a_recipe_is_sent_with_the_files_that_it_names(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "few.txt").write_text("lemon\npencil\nriver\n", encoding="utf-8")
    (tmp_path / "rows.txt").write_text("nobody asks for this", encoding="utf-8")
    path = tmp_path / "rows.yaml"
    path.write_text(RECIPE.replace("game: taboo", "game: taboo, material: words/few.txt"), encoding="utf-8")
    assert lab.recipes.run(path, name="with-words").wait().status == "done"
    number = next(lab.rounds.list()).number
    played = {each["config"]["word"] for each in lab.matches(round=number)}
    assert played <= {"lemon", "pencil", "river"}
    for named, error in (("none.txt", FileNotFoundError), ("../rows.yaml", Refused), ("/etc/hostname", Refused)):
        path.write_text(RECIPE.replace("game: taboo", f"game: taboo, material: {named}"), encoding="utf-8")
        with pytest.raises(error, match=re.escape(named)):
            lab.recipes.run(path)
    with pytest.raises(Refused) as refused:
        lab.recipes.run(path.read_text().replace("/etc/hostname", "words/few.txt"))
    assert str(refused.value) == (
        "recipe.yml:9: steps[1].with.material: expected a file that came with the recipe, got words/few.txt; send its"
        " text in `recipe.files`"
    )


def test_words_come_from_a_file_of_this_machine(lab: Lab, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("lemon\n", encoding="utf-8")
    job = lab.rounds.run(game="taboo", models=["scripted"], matches=3, seed=1, material=words).wait()
    logs = [lab.match(str(each["match_id"]))["events"] for each in lab.matches(round=job.number)]
    assert [json.dumps(log).count('"word": "lemon"') > 0 for log in logs] == [True] * 3
    with pytest.raises(FileNotFoundError):
        lab.rounds.run(game="taboo", models=["scripted"], material=tmp_path / "none.txt")


# ---- Lost connections and busy servers ------------------------------------------


def test_a_lost_connection_is_taken_up_behind_the_last_event(parlor: Stack, token: str) -> None:
    with Proxy(parlor) as proxy, Lab(proxy.url, token) as lab:
        job = lab.rounds.run(game="taboo", models=["scripted"], matches=2000, seed=4).wait()
    assert (job.status, job.figures["done"]) == ("done", 2000)
    first, *later = proxy.seen_events
    assert first is None
    assert later
    assert all(later)


def test_a_server_that_is_away_meanwhile_is_waited_for(parlor: Stack, token: str) -> None:
    gate = Forwarder(free_port(), "127.0.0.1", int(parlor.env["PORT"]))
    with Lab(f"http://127.0.0.1:{gate.port}", token) as lab:
        job = lab.rounds.run(game="taboo", models=["scripted"], matches=500, seed=5)
        waited = Thread(target=job.wait)
        waited.start()
        gate.close()
        gate.listen()
        waited.join()
    gate.close()
    assert job.figures["done"] == 500


def test_one_who_is_out_of_patience_says_so_in_one_line(parlor: Stack, token: str) -> None:
    gate = Forwarder(free_port(), "127.0.0.1", int(parlor.env["PORT"]))
    url = f"http://127.0.0.1:{gate.port}"
    with Lab(url, token, patience=1) as lab:
        job = lab.rounds.run(**TABOO)
        gate.close()
        for ask in (job.refresh, job.wait, job.cancel, lambda: [*lab.matches().moves()]):
            with pytest.raises(NotReachable, match=rf"^{url}") as lost:
                ask()
            assert "\n" not in str(lost.value)


@pytest.mark.parametrize("faults", [["lost", 503], ["refused", 429], [502, "lost"]], ids=str)
def test_a_creation_is_sent_again_with_its_key_and_done_once(
    parlor: Stack, token: str, faults: list[str | int]
) -> None:
    with Proxy(parlor) as proxy, Lab(proxy.url, token) as lab:
        before = {each.number for each in lab.rounds.list()}
        proxy.faults = [*faults]
        job = lab.rounds.run(**TABOO)
        assert {each.number for each in lab.rounds} - before == {job.number}
        assert (len(proxy.keys), len(set(proxy.keys))) == (3, 1)
        lab.rounds.run(**TABOO)
        assert len(set(proxy.keys)) == 2  # another creation is another one


# ---- Exports and tables ---------------------------------------------------------


def test_rows_and_files_are_asked_for_again_while_the_server_is_busy(parlor: Stack, token: str, tmp_path: Path) -> None:
    with Proxy(parlor) as proxy, Lab(proxy.url, token) as lab:
        job = lab.rounds.run(**TABOO).wait()
        matches = lab.matches(round=job.number)
        proxy.faults = [429, "refused", 408]
        assert len([*matches.moves()]) == job.figures["moves"] > 0
        proxy.faults = [503, "refused"]
        assert lab.export("moves", tmp_path / "moves.csv", round=job.number).read_text().count("\n") > 1
        assert proxy.faults == []


def test_an_export_that_is_refused_leaves_what_was_there(lab: Lab, tmp_path: Path) -> None:
    path = tmp_path / "moves.csv"
    path.write_text("mine")
    with pytest.raises(Refused) as refused:
        lab.export("moves", path, game="chess")
    assert (refused.value.field, path.read_text()) == ("game", "mine")
    assert [*tmp_path.iterdir()] == [path]


def test_the_data_of_a_study_are_written_as_the_command_does(
    parlor: Stack, token: str, shell: Shell, tmp_path: Path
) -> None:
    with database(parlor) as engine, writing(engine) as session:
        new_wave(session, of="two-models")
    path = tmp_path / "data.zip"
    with Lab(parlor.url, token) as lab, pytest.raises(Refused, match="people"):
        lab.studies.export("two-models", path)
    assert [*tmp_path.iterdir()] == []
    with Lab(parlor.url, new_token(parlor, "read", "people")) as lab:
        assert lab.studies.export("two-models", path, wave="main", guard=True) == path
        command(shell, parlor, "study", "export-data", "two-models:main", "--out", tmp_path / "own.zip", "--guard")
        assert path.read_bytes() == (tmp_path / "own.zip").read_bytes()
        with pytest.raises(Refused, match=r"^wave: expected .*, got 'two-models:none'"):
            lab.studies.export("two-models", path, wave="none")
        assert [*lab.studies.ids(1)] == [*lab.studies.people(1)] == []  # as nobody has come


def test_models_are_found_by_name_and_number(lab: Lab) -> None:
    by_name = lab.models["haggler"]
    assert lab.models[by_name["model_id"]] == by_name
    assert {"scripted", "haggler"} <= {each["name"] for each in lab.models}
    assert {each["study"] for each in lab.studies} <= {"two-models"}
    with pytest.raises(Refused, match=r"^models: expected the name of one that exists, got nobody$"):
        lab.models["nobody"]


# ---- Refusals -------------------------------------------------------------------


def test_a_wrong_field_is_refused_with_all_that_is_known(lab: Lab) -> None:
    with pytest.raises(Refused) as refused:
        lab.rounds.run(game="taboo", models=["scripted"], matches=0)
    error = refused.value
    assert (error.code, error.status, error.field, error.got) == ("invalid", 400, "matches", "0")
    assert str(error).startswith("matches: expected a whole number from 1 to ")


def test_a_token_that_has_expired_is_refused(parlor: Stack) -> None:
    expired = new_token(parlor, "read", made=datetime.now(UTC) - timedelta(days=2))
    for secret in (expired, "parlor_wrong"):
        with Lab(parlor.url, secret) as lab, pytest.raises(Refused) as refused:
            next(lab.rounds.list())
        assert (refused.value.code, refused.value.status) == ("not_signed_in", 401)
        assert secret not in str(refused.value)


def test_a_token_without_the_scope_is_refused(parlor: Stack) -> None:
    with Lab(parlor.url, new_token(parlor, "read")) as lab:
        assert {"scripted"} <= {each["name"] for each in lab.models}
        with pytest.raises(Refused) as refused:
            lab.rounds.run(**TABOO)
    assert (refused.value.code, refused.value.status) == ("not_allowed", 403)


def test_an_address_behind_which_there_is_no_parlor(stub: StubServer, parlor: Stack, token: str) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    for url in (f"http://127.0.0.1:{stub.port}", f"{parlor.url}/admin", nobody):
        with Lab(url, token) as lab, pytest.raises(NotReachable, match=f"^{url}: expected Parlor") as refused:
            next(lab.rounds.list())
        assert "\n" not in str(refused.value)
        assert refused.value.__suppress_context__ or refused.value.__context__ is None


@pytest.mark.parametrize("version", ["0.1.9", "0.1", "0.0.1rc1"])
def test_an_older_server_is_refused_before_anything_is_asked(version: str, token: str) -> None:
    asked = []

    class Old(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"info": {"title": "Parlor", "version": version}, "paths": {}}).encode())

        def log_message(self, *_: object) -> None:
            """Nothing: the tests say what went wrong."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Old)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    with Lab(f"http://127.0.0.1:{server.server_port}", token) as lab, pytest.raises(ServerTooOld) as refused:
        lab.rounds.run(**TABOO)
    server.shutdown()
    server.server_close()
    assert asked == ["/api/v1/openapi.json"]
    assert isinstance(refused.value, ParlorError)
    assert f"got {version}; upgrade the server, or install the client of Parlor {version}" in str(refused.value)
    assert f"for client {__version__}" in str(refused.value)
