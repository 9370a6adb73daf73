"""What a test call finds out about servers as they are today, what is said of it, and what follows; over HTTP."""

import json
from collections.abc import Callable
from itertools import chain, repeat
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, func, select

from app.core.config import Settings
from app.core.extensions import reading, writing
from app.jobs import states
from app.model_calls.request_runner import make_here
from app.model_calls.test_call import request_check
from app.models import GenerationRow, LanguageModel, ModelRequest, RoundRow
from app.players.api.end_dates import end_of
from app.registry import add_api_model, get_model
from app.registry.changes import clone_model
from tests import model_servers as servers
from tests.experimenter import signed_in
from tests.model_requests import ask_for_test
from tests.rounds import add_models, haggler, make_round, play
from tests.shell import Finished
from tests.stub_openai import StubServer, hanging

pytestmark = [
    pytest.mark.usefixtures("vendor_environment"),
    pytest.mark.parametrize("database_url", ["sqlite"], indirect=True),  # the calls are the same on both
]
Tested = Callable[..., dict[str, Any]]


@pytest.fixture
def settings(app: Flask) -> Settings:
    return app.config["SETTINGS"]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.players.api.client._FIRST_PAUSE", 0.001)


@pytest.fixture
def tested(engine: Engine, settings: Settings, stub: StubServer) -> Tested:
    """What a test call of a model at such a server comes to."""

    def test(server: servers.Server, **options: Any) -> dict[str, Any]:
        stub.answer_with("m", server)
        if number_of(engine) is None:
            add_models(engine, stub.url, "m", **options)
        number = number_of(engine)
        assert number is not None
        return make_here(engine, settings, ask_for_test(engine, number))

    return test


def number_of(engine: Engine, name: str = "m") -> int | None:
    with reading(engine) as session:
        return session.scalar(select(LanguageModel.id).where(LanguageModel.name == name))


def row_of(engine: Engine, name: str = "m") -> LanguageModel:
    with reading(engine) as session:
        return get_model(session, name)


def checked(engine: Engine, settings: Settings, name: str = "m") -> dict[str, Any]:
    with writing(engine) as session:
        number = request_check(session, get_model(session, name)).id
    return make_here(engine, settings, number)


FOUND = [
    (
        servers.hidden_reasoner,
        {"reasoning_form": "effort"},
        {
            "token_field": "max_completion_tokens", "reasoning": "hidden", "reasoning_switch": "always",
            "reasoning_room": 2000, "reasoning_tokens": 900, "log_probs": "refused", "structured_output": "yes",
            "sampling": {"temperature": "refused", "top_p": "refused", "seed": "unverified"},
            "usage": True, "cached_tokens": True, "cost": False, "model": "o-2026", "fingerprint": "fp-1",
        },
    ),
    (
        servers.vllm,
        {},
        {
            "token_field": "max_tokens", "reasoning": "yes", "reasoning_switch": "off", "reasoning_form": "template",
            "reasoning_room": 2000, "log_probs": "yes", "structured_output": "yes",
            "sampling": {"temperature": "unverified", "top_p": "unverified", "seed": "unverified"},
        },
    ),
    (
        servers.llama_cpp,
        {},
        {
            "reasoning": "no", "reasoning_switch": "not found", "reasoning_room": None, "log_probs": "ignored",
            "structured_output": "ignored", "cached_tokens": False,
        },
    ),
    (
        servers.ollama,
        {"reasoning_form": "effort"},
        {"reasoning": "no", "reasoning_switch": "on", "reasoning_form": "effort", "fingerprint": "fp_ollama"},
    ),
    (
        servers.openrouter,
        {"reasoning_form": "reasoning"},
        {
            "reasoning": "yes", "reasoning_switch": "always", "reasoning_tokens": 350, "cost": True,
            "provider": "Acme", "model": "acme/large",
        },
    ),
    (
        servers.deepseek,
        {"reasoning_form": "thinking"},
        {"reasoning": "yes", "reasoning_switch": "off", "reasoning_form": "thinking", "cached_tokens": True},
    ),
    (
        servers.anthropic,
        {"reasoning_form": "budget"},
        {
            "sampling": {"temperature": "refused", "top_p": "refused", "seed": "unverified"}, "log_probs": "ignored",
            "structured_output": "ignored",
        },
    ),
    (servers.streaming, {}, {"streams": True, "usage": False, "structured_output": "yes", "completion_tokens": 0}),
    (
        servers.transformers_serve,
        {},
        {"log_probs": "refused", "structured_output": "refused", "reasoning_switch": "not found"},
    ),
    (servers.three_megabytes, {}, {"keeps_limit": False, "reasoning": "no"}),
]  # fmt: skip


@pytest.mark.parametrize(("server", "options", "expected"), FOUND, ids=lambda each: getattr(each, "__name__", None))
def test_a_test_call_finds_out_how_a_server_wants_to_be_asked(
    tested: Tested, engine: Engine, server: servers.Server, options: dict[str, Any], expected: dict[str, Any]
) -> None:
    result = tested(server, **options)
    assert result["ok"], result
    found = row_of(engine).findings
    assert found is not None
    assert {name: found[name] for name in expected} == expected
    assert found["unanswered"] == []
    assert found["calls"] <= 8


def test_all_calls_of_a_test_are_kept_short_and_counted(tested: Tested, engine: Engine, stub: StubServer) -> None:
    tested(servers.hidden_reasoner, price_in=1.0, price_out=10.0)
    found = row_of(engine).findings
    assert found is not None
    limits = [each.body.get("max_tokens", each.body.get("max_completion_tokens")) for each in stub.requests]
    assert max(limits) <= 200 + 2000
    with reading(engine) as session:
        calls, prompt, completion = session.execute(
            select(
                func.count(),
                func.sum(GenerationRow.prompt_tokens),
                func.sum(GenerationRow.completion_tokens),
            )
        ).one()
    assert (found["calls"], found["prompt_tokens"], found["completion_tokens"]) == (calls, prompt, completion)
    assert found["usd"] == pytest.approx((prompt + 10 * completion) / 1e6)


def test_room_for_reasoning_is_learnt_and_a_given_one_is_left_alone(tested: Tested, engine: Engine) -> None:
    tested(servers.hidden_reasoner)
    assert row_of(engine).options["reasoning_room"] == 2000
    with writing(engine) as session:
        get_model(session, "m").options = {**get_model(session, "m").options, "reasoning_room": 5000}
    tested(servers.hidden_reasoner)
    assert row_of(engine).options["reasoning_room"] == 5000


def test_a_form_that_was_found_is_used_and_a_clone_finds_its_own(tested: Tested, engine: Engine) -> None:
    tested(servers.deepseek)  # at an address that says nothing of its form
    row = row_of(engine)
    assert row.options["reasoning_form"] == "thinking"
    assert row.findings
    with writing(engine) as session:
        clone_model(session, "m", "other", options={"temperature": 0.5})
    assert row_of(engine, "other").findings is None


def test_a_later_refusal_updates_what_is_known(
    tested: Tested, engine: Engine, settings: Settings, stub: StubServer, app: Flask
) -> None:
    tested(servers.llama_cpp)
    stub.answer_with("m", servers.anthropic)
    play(engine, settings, make_round(engine, "m", matches=1))
    found = row_of(engine).findings
    assert found is not None
    assert found["sampling"]["temperature"] == "refused"
    assert found["changed_at"] is not None
    page = signed_in(app).get(f"/admin/models/{number_of(engine)}").text
    assert "A later call was refused" in page


def test_a_server_that_hangs_ends_the_test_in_time_with_one_line(
    engine: Engine, settings: Settings, stub: StubServer
) -> None:
    stub.script("m", hanging(600))
    add_models(engine, stub.url, "m", timeout=0.3)
    number = number_of(engine)
    assert number is not None
    result = make_here(engine, settings, ask_for_test(engine, number))
    assert not result["ok"]
    assert "expected an answer within 0.3 s, got none" in result["error"]
    assert row_of(engine).findings is None


def test_what_later_calls_do_not_answer_is_left_open_and_said(
    tested: Tested, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.players.api.probing.PROBE_SECONDS", 0.5)

    def answer(request: Any) -> Any:
        return hanging(600) if "17 times 24" in str(request.body["messages"]) else servers.llama_cpp(request)

    assert tested(answer)["ok"]
    found = row_of(engine).findings
    assert found is not None
    assert found["structured_output"] == "not tried"
    assert "expected all answers of the test within 0.5 s" in found["unanswered"][0]


# ---- The sampling --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server", "verdict", "highest", "calls"),
    [
        (servers.llama_cpp, "sent", 2.0, 16),
        (servers.capped, "sent", 1.0, 18),
        (servers.ollama, "unverified", 2.0, 16),
        (servers.anthropic, "refused", 2.0, 1),
    ],
)
def test_twice_eight_draws_say_whether_a_temperature_has_an_effect(
    tested: Tested, engine: Engine, settings: Settings, stub: StubServer,
    server: servers.Server, verdict: str, highest: float, calls: int,
) -> None:  # fmt: skip
    tested(server, seed=4)
    asked = len(stub.requests)
    result = checked(engine, settings)
    assert result["ok"], result
    assert (result["check"]["verdict"], result["check"]["highest"]) == (verdict, highest)
    with reading(engine) as session:
        number = session.scalar(select(func.max(ModelRequest.id)))
        kept = session.scalars(select(GenerationRow).where(GenerationRow.request_id == number)).all()
    assert len(kept) == calls
    assert all("seed" not in request.body for request in stub.requests[asked:])
    found = row_of(engine).findings
    assert found is not None
    assert found["sampling"]["temperature"] == verdict
    play(engine, settings, make_round(engine, "m", matches=1))
    with reading(engine) as session:
        states = session.scalars(select(GenerationRow.sampling).where(GenerationRow.match_id.is_not(None))).all()
    assert {each["sampling_state"] for each in states} == {verdict}


def test_a_temperature_that_was_refused_once_is_sent_again_when_the_server_takes_it(
    tested: Tested, engine: Engine, settings: Settings, stub: StubServer
) -> None:
    tested(servers.anthropic)
    assert "temperature" in row_of(engine).options["refused_fields"]
    stub.answer_with("m", servers.llama_cpp)
    assert checked(engine, settings)["check"]["verdict"] == "sent"
    assert "temperature" not in row_of(engine).options["refused_fields"]


# ---- In a round --------------------------------------------------------------------------


def test_a_model_that_changes_in_mid_round_is_said_on_its_page_and_in_the_terminal(
    engine: Engine, settings: Settings, stub: StubServer, app: Flask, flask: Callable[..., Finished]
) -> None:
    stub.answer_with("m", servers.changing(chain(["m-may"] * 9, repeat("m-june"))))
    add_models(engine, stub.url, "m", in_flight=1)
    steady = make_round(engine, "m", matches=1)
    play(engine, settings, steady)
    changed = make_round(engine, "m", matches=4)
    play(engine, settings, changed)
    said = "m changed in mid-round: it called itself m-may, m-june"
    client = signed_in(app)
    assert said in client.get(f"/admin/rounds/{changed}").text
    assert "changed in mid-round" not in client.get(f"/admin/rounds/{steady}").text
    assert said in flask("round", "show", str(changed)).stdout


def test_prompts_that_a_server_refuses_end_their_matches_alone_and_it_is_the_settings_fault(
    engine: Engine, settings: Settings, stub: StubServer
) -> None:
    stub.answer_with("m", servers.picky(45, haggler))
    add_models(engine, stub.url, "m", in_flight=1)
    round_id = make_round(engine, "m", matches=30)
    play(engine, settings, round_id)
    with reading(engine) as session:
        failed = session.scalars(select(GenerationRow).where(GenerationRow.error.is_not(None))).all()
        row = session.get_one(RoundRow, round_id)
        assert (row.status, row.finished) == (states.DONE, 30)
        assert row.aborted == len(failed) > 0
    assert {each.outcome for each in failed} == {"misconfigured"}
    assert all("got HTTP 400: Invalid input." in str(each.error) for each in failed)


# ---- On pages and in the terminal -------------------------------------------------------


def test_the_page_and_the_command_say_it_in_plain_words(
    tested: Tested, engine: Engine, settings: Settings, app: Flask, flask: Callable[..., Finished]
) -> None:
    tested(servers.llama_cpp, price_in=1.0, price_out=2.0)
    client: FlaskClient = signed_in(app)
    where = f"/admin/models/{number_of(engine)}"
    page = client.get(where).text
    assert "How to call this model" in page
    assert "ignored: the server takes a schema and does not keep to it" in page
    assert "16 calls of at most 40 tokens each, $0.00192 at most" in page
    assert client.post(where, data={"action": "check-sampling"}).status_code == 303
    assert "to check the sampling" in client.get(where).text
    verified = flask("model", "verify-sampling", "m")
    assert verified.exit_code == 0, verified.stderr
    assert "16 calls of at most 40 tokens each, $0.00192 at most" in verified.stderr
    assert "m: sent: of 8 answers 1 differ at 0 and 8 at 2." in verified.stdout
    assert "Sampling checked at" in client.get(where).text
    shown = flask("model", "show", "m").stdout
    assert "found: temperature" in shown
    assert "sent, and it has an effect" in shown
    assert json.loads(flask("model", "show", "m", "--json").stdout)["findings"]["version"] == 1


def test_the_models_of_a_server_are_listed_with_the_end_that_it_tells(
    engine: Engine, stub: StubServer, flask: Callable[..., Finished]
) -> None:
    add_models(engine, stub.url, "m")
    stub.listed = {"stub-500": {"shutdown_date": "2027-01-14"}, "stub-hang": {"shutdown_date": None}}
    lines = flask("model", "list-remote", "m").stdout.splitlines()
    assert "stub-500         ends 2027-01-14, by the server" in lines
    assert "stub-hang" in lines
    found = json.loads(flask("model", "list-remote", "m", "--json").stdout)["models"]
    assert {each["name"]: each["ends"] for each in found}["stub-500"] == "2027-01-14"
    refused = flask("model", "list-remote", "scripted")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)


def test_a_server_that_is_away_is_said_in_one_line(engine: Engine, flask: Callable[..., Finished]) -> None:
    add_models(engine, "http://127.0.0.1:9/v1", "m")
    failed = flask("model", "list-remote", "m")
    assert (failed.exit_code, failed.stderr.count("\n")) == (1, 1)
    assert "expected a connection" in failed.stderr


def test_a_model_whose_vendor_ends_it_says_so_on_its_page(
    engine: Engine, app: Flask, flask: Callable[..., Finished]
) -> None:
    tuned = "ft:gpt-4o-mini-2024-07-18:lab::x1"
    with writing(engine) as session:
        for name, remote in (("tuned", tuned), ("base", "gpt-4o-mini-2024-07-18")):
            add_api_model(session, name, None, ["taboo"], {"model": remote, "base_url": "https://api.openai.com/v1"})
    page = signed_in(app).get(f"/admin/models/{number_of(engine, 'tuned')}").text
    assert "Its vendor shuts this model down on" in page
    assert "2027-01-14, when its vendor shuts it down" in flask("model", "show", "base").stdout
    assert end_of("gpt-4o-mini-2024-07-18", "https://openrouter.ai/api/v1") is None


def test_a_model_that_is_not_behind_an_api_has_no_sampling_to_check(flask: Callable[..., Finished]) -> None:
    refused = flask("model", "verify-sampling", "scripted")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert "expected one behind an API, got 'scripted', which is not" in refused.stderr
