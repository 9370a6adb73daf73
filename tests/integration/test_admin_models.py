"""The registry's pages: add a model, have a worker try it, label it, switch it."""

import html
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from redis import Redis
from sqlalchemy import Engine, select, update
from sqlalchemy.orm import selectinload

from app.core.config import load_settings
from app.core.errors import Conflict
from app.core.extensions import reading, writing
from app.core.queues import MAKE_REQUEST, TURNS
from app.matches.turns import WorkerContext
from app.model_calls.request_lifecycle import take_forgotten
from app.model_calls.request_runner import make_request
from app.model_calls.test_call import request_test
from app.models import LanguageModel, ModelRequest
from app.players import prompts
from app.registry import ensure_baselines
from app.web.admin import models as pages
from app.web.admin import models_form
from app.web.labels import LABELS
from tests.campaigns import add_local
from tests.experimenter import labelled, signed_in
from tests.model_requests import keep_result, latest
from tests.stack import PATIENCE, wait_until
from tests.stub_openai import StubServer, hanging

FORM = {"name": "mine", "games": ["negotiation"], "model": "stub-negotiator", "base_url": "http://127.0.0.1:9/v1",
        "key_env": "", "retries": "0"}  # fmt: skip


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The requests that a worker was told of; the broker is there."""
    numbers: list[int] = []
    for module in (pages, models_form):
        monkeypatch.setattr(module, "enqueue_request", lambda _url, number: numbers.append(number))
    return numbers


@pytest.fixture
def client(app: Flask, asked: list[int]) -> FlaskClient:
    return signed_in(app)


def add(client: FlaskClient, **form: Any) -> str:
    answer = client.post("/admin/models/new", data={**FORM, **form})
    assert answer.status_code == 303, answer.text
    return str(answer.location)


def stored(engine: Engine, name: str = "mine") -> LanguageModel | None:
    with reading(engine) as session:
        every = select(LanguageModel).options(selectinload(LanguageModel.test_request))
        return session.scalar(every.where(LanguageModel.name == name))


def test_the_list_shows_what_is_registered_and_the_form_what_can_be(client: FlaskClient) -> None:
    page = client.get("/admin/models").text
    assert "House partner" in page
    assert 'name="base_url"' in client.get("/admin/models/new").text


def test_what_needs_no_test_call_says_so_until_one_was_made(client: FlaskClient, engine: Engine) -> None:
    with writing(engine) as session:
        ensure_baselines(session)  # tiny is one
    add_local(engine, "mine", "/elsewhere/weights")
    names = {"scripted": "needs none", "tiny": "needs none", "mine": "not yet"}
    found = client.get("/admin/models").text
    assert "Scripted models and those that came with Parlor need no test call." in found
    overview = client.get("/admin/").text.partition('id="models"')[2]
    for name, says in names.items():
        row = stored(engine, name)
        assert row is not None
        own = client.get(f"/admin/models/{row.id}").text
        for page in (found, overview):
            cells = page.partition(f'href="/admin/models/{row.id}"')[2].partition("</tr>")[0]
            assert (says in cells, len(re.findall("needs none|not yet", cells))) == (True, 1), name
        assert name == "scripted" or says in own.partition('id="test"')[2].partition("</div>")[0]
        assert ("It needs a test call" in own) == (name == "mine")
    tiny = stored(engine, "tiny")
    assert tiny is not None
    keep_result(engine, tiny.id, ok=False, error="no weights")
    assert "no answer" in client.get("/admin/models").text


def test_a_model_is_added_as_on_the_command_line_and_tried(
    client: FlaskClient, engine: Engine, asked: list[int]
) -> None:
    more = {
        "temperature": "none",
        "top_p": "0.9",
        "seed": "3",
        "max_tokens": "99",
        "extra": '{"top_k": 4}',
        "tokens_per_minute": "90000",
        "reasoning": "1500",
        "reasoning_form": "budget",
        "reasoning_room": "2000",
    }
    where = add(client, label="Robin", key_env="MY_API_KEY", token_field="max_completion_tokens", **more)
    row = stored(engine)
    assert row is not None
    assert (row.label, row.games, row.kind, asked) == ("Robin", ["negotiation"], "api", [latest(engine)])
    assert row.options == {
        "model": "stub-negotiator", "base_url": "http://127.0.0.1:9/v1", "key_env": "MY_API_KEY", "temperature": None,
        "top_p": 0.9, "seed": 3, "max_tokens": 99, "retries": 0, "token_field": "max_completion_tokens",
        "extra": {"top_k": 4}, "tokens_per_minute": 90_000, "key_host": "127.0.0.1",
        "reasoning": "1500", "reasoning_form": "budget", "reasoning_room": 2000,
    }  # fmt: skip
    page = client.get(where).text
    assert "A worker was asked" in page
    assert "js/admin/waiting.js" in page


@pytest.mark.parametrize(
    ("wrong", "says", "status"),
    [
        ({"base_url": "ftp://host"}, "base_url: expected an address such as", 400),
        ({"base_url": "http://me:sk-abcdefgh12345678@host/v1"}, "base_url: expected an address such as", 400),
        ({"temperature": "hot"}, "temperature: expected a number from 0 to 2", 400),
        ({"temperature": "nan"}, "temperature: expected a number from 0 to 2", 400),
        ({"seed": "1e400"}, "seed: expected a whole number", 400),
        ({"base_url": "localhost"}, "base_url: expected an address such as", 400),
        ({"base_url": "http://" + "a" * 1000}, "base_url: expected an address such as", 400),
        ({"extra": "top_k"}, "extra: expected a JSON object", 400),
        ({"extra": "[" * 20_000}, "extra: expected a JSON object", 400),
        ({"extra": '{"a": NaN}'}, "extra: expected at most 10000 characters of JSON, without NaN", 400),
        ({"extra": '{"a": 1e999}'}, "extra: expected at most", 400),
        ({"extra": '{"a": "\\u0000"}'}, "extra: expected at most", 400),
        ({"extra": '{"a": "\\ud800"}'}, "extra: expected at most", 400),
        ({"key_env": "sk-abcdefgh12345678"}, "key_env: expected the NAME", 400),
        ({"key_env": "SECRET_KEY"}, "key_env: expected the variable of a key", 400),
        (
            {"key_env": "HOME"},
            "key_env: expected a variable that KEY_VARIABLES allows (*_API_KEY, OPENAI_*), got H",
            400,
        ),
        ({"base_url": "http://169.254.169.254/v1"}, "base_url: expected the address of a model", 400),
        ({"games": []}, "games: expected at least one", 400),
        ({"name": "scripted"}, "name: expected one that is not taken", 409),
        ({"name": ""}, "name: expected 1 to 80 characters", 400),
        ({"label": "House partner"}, "label: expected one that is not taken", 409),
        ({"model": ""}, "model: expected a name", 400),
        (
            {"prompt_style": "terse"},
            "prompt_style: expected one of negotiation (full, compact), got &#39;terse&#39;",
            400,
        ),
    ],
)
def test_what_cannot_be_is_said_and_the_form_keeps_what_was_typed(
    client: FlaskClient, engine: Engine, asked: list[int], wrong: dict[str, Any], says: str, status: int
) -> None:
    answer = client.post("/admin/models/new", data={**FORM, "organisation": "kept as typed", **wrong})
    assert answer.status_code == status
    at_the_field = f'<p lang="en" class="error" id="refused">{labelled(says)}'
    assert (at_the_field in answer.text, f'role="alert">{labelled(says)}' in answer.text) == (True, True)
    assert not re.search(r"(base_url|key_env|max_tokens|prompt_style)[^<>=]* expected|another form", answer.text)
    assert "kept as typed" in answer.text
    assert asked == []
    assert stored(engine) is None


def test_a_host_that_is_not_allowed_is_refused_with_those_that_are(
    make_app: Callable[..., Flask], asked: list[int]
) -> None:
    client = signed_in(make_app(API_HOSTS="api.openai.com, LOCALHOST"))
    answer = client.post("/admin/models/new", data=FORM)
    assert answer.status_code == 400
    assert "API_HOSTS allows (api.openai.com, localhost)" in answer.text
    add(client, base_url="http://localhost:8001/v1")
    add(client, name="vendor", base_url="")


def test_a_key_goes_to_one_host_and_the_page_says_to_which(
    client: FlaskClient, engine: Engine, asked: list[int]
) -> None:
    where = add(client, name="first", base_url="https://one.example/v1", key_env="ONE_API_KEY")
    assert "sent to <code>one.example</code> only" in client.get(where).text
    add(client, name="second", base_url="https://One.Example:8443/v2", key_env="ONE_API_KEY")
    for variable, host in (("ONE_API_KEY", "other.example"), ("OPENAI_API_KEY", "other.example")):
        form = {**FORM, "name": "third", "base_url": f"https://{host}/v1", "key_env": variable}
        answer = client.post("/admin/models/new", data=form)
        if variable == "ONE_API_KEY":
            assert answer.status_code == 409
            assert "got ONE_API_KEY, which is bound to one.example by first" in answer.text
        else:
            assert answer.status_code == 303
    add(client, name="without", base_url="https://third.example/v1", key_env="")
    answer = client.post("/admin/models/new", data={**FORM, "name": "fourth", "base_url": "", "key_env": "ONE_API_KEY"})
    assert answer.status_code == 409
    assert "belongs to api.openai.com" in answer.text


def test_no_hosts_mean_any() -> None:
    assert load_settings({"API_HOSTS": " "}).api_hosts == ()


# ---- The prompt style --------------------------------------------------------


def _offer(monkeypatch: pytest.MonkeyPatch, folder: Path, *files: str) -> None:
    """These prompts and no others."""
    for each in files:
        (folder / each).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(prompts.FOLDER / each, folder / each)
    monkeypatch.setattr(prompts, "FOLDER", folder)
    prompts._templates.cache_clear()


@pytest.fixture
def _fresh_prompts() -> Iterator[None]:
    yield
    prompts._templates.cache_clear()


_FULL = "negotiation/full-2.txt", "taboo/full-2.attacker.txt", "taboo/full-2.defender.txt"


@pytest.mark.usefixtures("_fresh_prompts")
def test_the_only_prompt_style_is_told_and_not_asked_for(
    client: FlaskClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _offer(monkeypatch, tmp_path, *_FULL)
    form = client.get("/admin/models/new").text
    assert "All games have this one only." in form
    assert 'name="prompt_style"' not in form
    assert "full-2 of Deal or No Deal" in client.get(add(client)).text


@pytest.mark.usefixtures("_fresh_prompts")
def test_of_several_prompt_styles_one_is_chosen_that_all_its_games_have(
    client: FlaskClient, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _offer(monkeypatch, tmp_path, *_FULL, "negotiation/compact-1.txt")
    assert re.findall(r"<option[^>]*>(full|compact)<", client.get("/admin/models/new").text) == ["full", "compact"]
    both = {**FORM, "games": ["negotiation", "taboo"], "prompt_style": "compact"}
    answer = client.post("/admin/models/new", data=both)
    assert answer.status_code == 400
    assert "Prompt style: expected one of taboo (full)" in answer.text
    assert "<option selected>compact<" in answer.text
    assert "compact-1 of Deal or No Deal" in client.get(add(client, prompt_style="compact")).text
    assert stored(engine).prompt_style == "compact"  # type: ignore[union-attr]


# ---- The test call -----------------------------------------------------------


@pytest.mark.parametrize(
    ("remote", "says"),
    [
        ("stub-negotiator", "It answers with a legal move."),
        ("stub-broken", "the answer is not a legal move"),
        ("stub-500", "expected an answer, got HTTP 500"),
    ],
)
def test_a_worker_stores_what_came_of_a_test_call(
    client: FlaskClient, engine: Engine, desk: Callable[..., WorkerContext], stub: StubServer, remote: str, says: str
) -> None:
    where = add(client, base_url=stub.url, model=remote)
    row = stored(engine)
    assert row is not None
    make_request(desk(), latest(engine))
    page = client.get(where).text
    assert says in page
    assert "js/admin/waiting.js" not in page
    client.post(where, data={"action": "test"})
    assert "A worker was asked" in client.get(where).text


def test_a_test_call_without_a_key_says_where_to_set_it(
    client: FlaskClient, engine: Engine, desk: Callable[..., WorkerContext]
) -> None:
    where = add(client, key_env="NO_SUCH_API_KEY")
    row = stored(engine)
    assert row is not None
    make_request(desk(), latest(engine))
    assert "set it where the workers run" in client.get(where).text


def test_a_test_call_goes_to_no_host_that_is_not_allowed_any_more(
    client: FlaskClient,
    engine: Engine,
    desk: Callable[..., WorkerContext],
    stub: StubServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where = add(client, base_url=stub.url, model="stub-negotiator")
    row = stored(engine)
    assert row is not None
    monkeypatch.setenv("API_HOSTS", "api.openai.com")
    make_request(desk(), latest(engine))
    assert "expected a host that API_HOSTS allows (api.openai.com)" in client.get(where).text
    assert stub.requests == []


def test_a_model_that_is_gone_or_scripted_is_not_called(engine: Engine, desk: Callable[..., WorkerContext]) -> None:
    scripted = stored(engine, "scripted")
    assert scripted is not None
    make_request(desk(), 999)
    with writing(engine) as session, pytest.raises(Conflict, match="which is scripted"):
        request_test(session, session.get_one(LanguageModel, scripted.id))


def test_without_a_broker_the_test_call_waits_until_it_is_back(app: Flask) -> None:
    client = signed_in(app)
    where = client.post("/admin/models/new", data=FORM).location
    assert client.post(where, data={"action": "test"}).status_code == 303
    assert "A worker was asked" in client.get(where).text


def test_a_doorbell_that_rings_twice_calls_the_model_once(
    client: FlaskClient, engine: Engine, desk: Callable[..., WorkerContext], stub: StubServer
) -> None:
    stub.script("slow", hanging(1.0))
    add(client, base_url=stub.url, model="slow")
    number = latest(engine)
    workers = [threading.Thread(target=make_request, args=(desk(name), number)) for name in ("one", "two")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    make_request(desk("three"), number)
    moves = [request for request in stub.requests if "17 times 24" not in str(request.body["messages"])]
    assert len(moves) == 1


def test_a_test_call_whose_doorbell_was_lost_is_asked_for_again(
    make_app: Callable[..., Flask],
    engine: Engine,
    broker: str,
    desk: Callable[..., WorkerContext],
    stub: StubServer,
) -> None:
    app = make_app(REDIS_URL=broker)
    client = signed_in(app)
    where = client.post("/admin/models/new", data={**FORM, "base_url": stub.url}).location
    with app.app_context(), Redis.from_url(broker) as redis:
        assert redis.llen(TURNS) == 1
        redis.flushall()
        settings = app.config["SETTINGS"]
        env = {**os.environ, "DATABASE_URL": settings.database_url, "REDIS_URL": broker, "UPKEEP_EVERY": "0.5"}
        upkeep = subprocess.Popen([sys.executable, "-m", "workers.upkeep"], env=env)
        try:
            wait_until(lambda: redis.llen(TURNS), "a doorbell")
            assert MAKE_REQUEST.encode() in redis.lrange(TURNS, 0, 0)[0]
            make_request(desk(), latest(engine))
            assert "It answers with a legal move." in client.get(where).text
            redis.flushall()
            time.sleep(1.2)
            assert redis.llen(TURNS) == 0
        finally:
            upkeep.terminate()
            upkeep.wait(PATIENCE)


def test_a_test_call_is_sent_again_when_nobody_makes_it_and_not_for_ever(client: FlaskClient, engine: Engine) -> None:
    where = add(client)
    number = latest(engine)

    def forgotten(leased: timedelta | None = None, **ago: float) -> list[int]:
        with writing(engine) as session:
            request = session.get_one(ModelRequest, number)
            request.created_at, request.enqueued_at = datetime.now(UTC) - timedelta(**ago), None
            request.lease_until = None if leased is None else datetime.now(UTC) + leased
            session.flush()
            return list(take_forgotten(session, 60))

    assert [forgotten(seconds=1), forgotten(seconds=5)] == [[], [number]]
    assert forgotten(timedelta(seconds=30), seconds=5) == []
    assert forgotten(timedelta(seconds=-1), seconds=5) == [number]
    assert "A worker was asked" in client.get(where).text
    assert forgotten(hours=1) == []
    assert "expected a worker to make the call within 10 minutes, got none" in client.get(where).text


# ---- Changes -----------------------------------------------------------------


def test_a_model_is_labelled_and_switched(client: FlaskClient, engine: Engine) -> None:
    where = add(client)
    assert client.post(where, data={"action": "edit", "label": "Kim"}).status_code == 303
    assert client.post(where, data={"action": "rounds-off"}).status_code == 303
    row = stored(engine)
    assert row is not None
    assert (row.label, row.usable_in_rounds, row.offered_to_people) == ("Kim", False, False)
    back = client.post(where, data={"action": "rounds-on", "from": "list"})
    assert back.location == f"/admin/models#line-{row.id}"
    assert stored(engine).usable_in_rounds  # type: ignore[union-attr]


def test_people_are_offered_a_model_only_after_a_test_call_and_a_press(
    client: FlaskClient, engine: Engine, stub: StubServer, desk: Callable[..., WorkerContext]
) -> None:
    guest = client.application.test_client()
    where = add(client, label="Robin")
    row = stored(engine)
    assert row is not None

    def offered() -> bool:
        listed = "Robin" in guest.get("/").text
        asked = {"game": "negotiation", "opponent": "Robin"}
        assert guest.post("/api/matches", json=asked).status_code == (201 if listed else 404)
        return listed

    make_request(desk(), latest(engine))  # nothing listens at its address
    refused = client.post(where, data={"action": "people-on"})
    assert (refused.status_code, "whose test call has failed" in refused.text) == (409, True)
    assert re.search(r'role="switch"[^>]*aria-disabled="true" aria-describedby="why-people-', client.get(where).text)
    assert not offered()
    stub.script("stub-negotiator", "[message] Hello there!")
    options = {**row.options, "base_url": stub.url}
    with writing(engine) as session:
        session.execute(update(LanguageModel).where(LanguageModel.id == row.id).values(options=options))
    client.post(where, data={"action": "test"})
    make_request(desk(), latest(engine))
    assert not offered()  # nobody has switched it on
    assert client.post(where, data={"action": "people-on"}).status_code == 303
    assert offered()
    assert client.post(where, data={"action": "rounds-off"}).status_code == 303
    assert offered()  # one switch does not move the other


@pytest.mark.parametrize(
    ("form", "status", "says"),
    [
        ({"action": "edit", "label": "House partner"}, 409, "which scripted has"),
        ({"action": "edit", "label": ""}, 400, "Label: expected 1 to 80 characters"),
        ({"action": "explode"}, 400, "action: expected test, check-sampling, edit, rounds-on"),
        ({}, 400, "action: expected"),
    ],
)
def test_a_change_that_cannot_be_changes_nothing(
    client: FlaskClient, engine: Engine, form: dict[str, str], status: int, says: str
) -> None:
    where = add(client, label="Robin")
    answer = client.post(where, data=form)
    assert (answer.status_code, labelled(says) in answer.text) == (status, True)
    assert f'value="{form.get("label", "Robin")}" maxlength=80' in answer.text  # as it was typed, or as it is
    row = stored(engine)
    assert row is not None
    assert (row.label, row.usable_in_rounds, row.offered_to_people) == ("Robin", True, False)
    assert client.post("/admin/models/999", data={"action": "rounds-on"}).status_code == 404
    assert client.get("/admin/models/999").status_code == 404
    assert client.get(f"/admin/models/{2**70}").status_code == 404


# ---- Labels ------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["models", "rounds", "rounds/new?game=taboo", "campaigns", "jobs", "datasets", "benchmarks"]
)
def test_refusals_call_a_field_as_its_page_does(client: FlaskClient, path: str) -> None:
    add(client, label="Robin")  # without a model that can be scored, there are no fields of a benchmark
    page = client.get(f"/admin/{path if '?' in path else path + '/new'}").text
    shown = dict(re.findall(r'<label for="(\w+)">([^<]+)</label>', page))
    known = {name: label for name, label in shown.items() if name in LABELS and name != "further"}  # an example
    assert known
    assert {name: label for name, label in known.items() if not html.unescape(label).startswith(LABELS[name])} == {}


def test_a_clone_of_a_local_model_has_other_arguments_for_its_chat_template(
    client: FlaskClient, engine: Engine
) -> None:
    add_local(engine, "mine", "/elsewhere/weights")
    row = stored(engine)
    assert row is not None
    address = f"/admin/models/{row.id}/clone"
    assert 'name="template_arguments"' in client.get(address).text
    form = {"name": "other", "reasoning": "off", "template_arguments": '{"style": "<plain>"}', "stop": '["User:"]'}
    refused = client.post(address, data={**form, "template_arguments": "[1]"})
    assert refused.status_code == 400
    assert "expected a JSON object such as" in refused.text
    assert client.post(address, data=form).status_code == 303
    other = stored(engine, "other")
    assert other is not None
    assert (other.options["reasoning"], other.options["template_arguments"]) == ("off", {"style": "<plain>"})
    assert other.options["stop"] == ["User:"]
    assert "[&#34;User:&#34;]" in client.get(f"/admin/models/{other.id}/clone").text
    page = client.get(f"/admin/models/{other.id}").text
    assert "\\u003cplain\\u003e" in page
    assert "enable_thinking" in page
    assert "&#34;style&#34;" in client.get(f"/admin/models/{other.id}/clone").text
