"""Answers of today's chat servers, over HTTP: which are moves, what was thought, and what follows from all others."""

import asyncio
import csv
import html
import io
import json
import re

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, func, select

from app.core.config import Settings
from app.core.errors import Invalid
from app.core.extensions import reading, writing
from app.jobs import states
from app.matches.erasing import empty_prompts
from app.model_calls.request_runner import make_here
from app.models import EventRow, GenerationRow, LanguageModel, MatchRow
from app.players.api import player as api_player
from app.players.api.options import read_options
from app.players.base import Generation, PlayerFailed, PlayerSpec
from tests.api_answers import MOVE, SAMPLES, THOUGHT, Sample, completion, error, usage
from tests.datasets import cut, rows_of
from tests.experimenter import signed_in
from tests.model_requests import ask_for_test
from tests.rounds import add_models, check, haggler, make_round, play, row_of
from tests.stub_openai import Messages, Reply, Request, StubServer

pytestmark = pytest.mark.usefixtures("vendor_environment")

CHAT = [{"role": "user", "content": "Your move."}]


@pytest.fixture
def settings(app: Flask) -> Settings:
    return app.config["SETTINGS"]


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return signed_in(app)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.players.api.client._FIRST_PAUSE", 0.001)


def player(stub: StubServer, **options: object) -> api_player.ApiPlayer:
    return api_player.make(PlayerSpec("api", "tested", {"model": "m", "base_url": stub.url, "retries": 1, **options}))


def ask(asked: api_player.ApiPlayer) -> Generation:
    return asyncio.run(asked.complete(CHAT))


def failure(asked: api_player.ApiPlayer) -> PlayerFailed:
    with pytest.raises(PlayerFailed) as caught:
        ask(asked)
    return caught.value


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_an_answer_is_what_it_is(stub: StubServer, sample: Sample) -> None:
    stub.script("m", sample.reply)
    if sample.outcome == "move":
        generation, fault = ask(player(stub)), None
    else:
        failed = failure(player(stub))
        generation, fault = failed.generation, failed.fault
        assert sample.said in failed.message
        assert failed.message.isprintable()
    assert (generation.outcome, fault) == (sample.outcome, sample.fault)
    assert (generation.text, generation.reasoning) == (sample.text, sample.reasoning)
    assert len(stub.requests) == 1 + sample.retried


def test_what_a_server_counts_is_kept_with_the_answer(stub: StubServer) -> None:
    told = usage(450, 400) | {"prompt_tokens_details": {"cached_tokens": 64}, "cost": 0.25}
    stub.script("m", completion({"content": MOVE}, usage=told, provider="P", system_fingerprint="fp"))
    generation = ask(player(stub))
    assert (generation.prompt_tokens, generation.cached_tokens) == (90, 64)
    assert (generation.completion_tokens, generation.reasoning_tokens) == (450, 400)
    assert (generation.cost, generation.cost_source) == (0.25, "server")
    kept = {name: generation.sampling[name] for name in ("provider", "fingerprint", "finish_reason")}
    assert kept == {"provider": "P", "fingerprint": "fp", "finish_reason": "stop"}


def test_parts_that_are_not_known_are_left_out_and_named(stub: StubServer) -> None:
    stub.script("m", completion({"content": [{"type": "audio"}, {"type": "text", "text": MOVE}]}))
    generation = ask(player(stub))
    assert (generation.text, generation.sampling["left_out"]) == (MOVE, ["audio"])


def test_three_megabytes_of_reasoning_leave_the_move_whole(stub: StubServer) -> None:
    stub.script("m", completion({"content": f"<think>{'word ' * 600_000}</think>{MOVE}"}))
    generation = ask(player(stub))
    assert generation.text == MOVE
    assert len(generation.reasoning or "") == 200_000


def test_a_limit_that_reasoning_ate_is_raised_by_what_the_model_reasons(stub: StubServer) -> None:
    moves = completion({"content": MOVE}, usage=usage(1850, 1800))
    stub.script("m", moves, completion({"content": None}, "length", usage=usage(200, 200)))
    asked = player(stub)
    ask(asked)
    assert "this model reasons for 1,800 tokens a move" in failure(asked).message


# ---- Asking differently -----------------------------------------------------------


class Particular:
    """A server that refuses fields one by one, in OpenAI's words or in others."""

    def __init__(self, *refused: str, with_param: bool = True) -> None:
        self.refused = refused
        self.with_param = with_param

    def __call__(self, request: Request) -> Reply:
        for name in self.refused:
            if name in request.body:
                said = f"`{name}` is deprecated for this model."
                return error(400, said, param=name if self.with_param else None)
        return Reply(haggler(request.body["messages"]))


@pytest.mark.parametrize("with_param", [True, False])
def test_refused_fields_are_left_out_and_named_otherwise_once_for_all(stub: StubServer, with_param: bool) -> None:
    stub.answer_with("m", Particular("max_tokens", "temperature", "top_p", "seed", with_param=with_param))
    asked = player(stub, top_p=0.9, seed=4)
    first, second = ask(asked), ask(asked)
    assert len(stub.requests) == 6
    assert set(stub.requests[-1].body) == {"model", "messages", "max_completion_tokens"}
    for generation in (first, second):
        assert generation.sampling["refused"] == ["temperature", "top_p", "seed"]
        assert not {"temperature", "top_p", "seed", "max_tokens"} & set(generation.sampling)
        assert generation.sampling["max_completion_tokens"] == 256


def test_a_server_that_takes_neither_name_of_the_limit_is_asked_twice(stub: StubServer) -> None:
    stub.answer_with("m", Particular("max_tokens", "max_completion_tokens"))
    failed = failure(player(stub))
    assert (failed.fault, len(stub.requests)) == ("settings", 2)
    assert "change the model's option max_tokens" in failed.message


def test_a_round_keeps_what_it_learnt_for_the_next_one(engine: Engine, settings: Settings, stub: StubServer) -> None:
    stub.answer_with("m", Particular("max_tokens", "temperature"))
    add_models(engine, stub.url, "m", in_flight=1)
    round_id = make_round(engine, "m", matches=2)
    play(engine, settings, round_id)
    check(engine, round_id, 2)
    asked = len(stub.requests)
    with reading(engine) as session:
        options = session.scalars(select(LanguageModel.options).where(LanguageModel.name == "m")).one()
    assert (options["token_field"], options["refused_fields"]) == ("max_completion_tokens", ["temperature"])
    play(engine, settings, make_round(engine, "m", matches=2))
    assert all("temperature" not in request.body for request in stub.requests[asked:])
    assert all("max_tokens" not in request.body for request in stub.requests[asked:])


def test_a_test_call_finds_out_how_a_model_is_to_be_asked_and_its_page_says_so(
    client: FlaskClient, engine: Engine, settings: Settings, stub: StubServer
) -> None:
    stub.answer_with("m", Particular("max_tokens", "temperature"))
    add_models(engine, stub.url, "m")
    with reading(engine) as session:
        number = session.scalars(select(LanguageModel.id).where(LanguageModel.name == "m")).one()
    assert make_here(engine, settings, ask_for_test(engine, number))["ok"]
    page = client.get(f"/admin/models/{number}").text
    assert "refused by the server, not sent" in page
    assert "max_completion_tokens" in page


# ---- Reasoning that is asked for -----------------------------------------------------


@pytest.mark.parametrize(
    ("form", "reasoning", "sent"),
    [
        ("effort", "off", {"reasoning_effort": "none"}),
        ("effort", "low", {"reasoning_effort": "low"}),
        ("switch", "off", {"reasoning": {"enabled": False}}),
        ("switch", "medium", {"reasoning": {"enabled": True}, "reasoning_effort": "medium"}),
        ("thinking", "off", {"thinking": {"type": "disabled"}}),
        ("thinking", "high", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
        ("budget", "1500", {"thinking": {"type": "enabled", "budget_tokens": 1500}}),
        ("budget", "off", {"thinking": {"type": "disabled"}}),
        ("reasoning", "off", {"reasoning": {"enabled": False}}),
        ("reasoning", "high", {"reasoning": {"effort": "high"}}),
        ("reasoning", 1500, {"reasoning": {"max_tokens": 1500}}),
        ("template", "off", {"chat_template_kwargs": {"enable_thinking": False, "thinking": False}}),
        (
            "template",
            1500,
            {"chat_template_kwargs": {"enable_thinking": True, "thinking": True}, "thinking_token_budget": 1500},
        ),
        ("template", "server", {}),
    ],
)
def test_reasoning_is_asked_for_in_the_form_of_the_server(
    stub: StubServer, form: str, reasoning: str | int, sent: dict[str, object]
) -> None:
    stub.script("m", MOVE)
    generation = ask(player(stub, reasoning=reasoning, reasoning_form=form, temperature=None))
    body = stub.requests[0].body
    assert {name: value for name, value in body.items() if name not in ("model", "messages", "max_tokens")} == sent
    assert generation.sampling == {**sent, "max_tokens": body["max_tokens"], "finish_reason": "stop"}


@pytest.mark.parametrize(
    ("options", "tokens"),
    [
        ({"reasoning": "off"}, 50),
        ({"reasoning": "low"}, 2050),
        ({"reasoning": 700}, 750),
        ({"reasoning": "high", "reasoning_room": 100}, 150),
        ({"reasoning_room": 4000}, 4050),
    ],
)
def test_reasoning_has_room_of_its_own_and_a_move_no_more_for_it(
    stub: StubServer, options: dict[str, object], tokens: int
) -> None:
    stub.script("m", "word " * 1000)
    generation = ask(player(stub, max_tokens=50, **options))
    assert stub.requests[0].body["max_tokens"] == tokens
    assert len(generation.text or "") == 50 * 8


@pytest.mark.parametrize(
    ("address", "form"),
    [
        ("https://api.openai.com/v1", "effort"),
        ("https://mine.openai.azure.com/openai/v1", "effort"),
        ("https://generativelanguage.googleapis.com/v1beta/openai", "effort"),
        ("https://openrouter.ai/api/v1", "reasoning"),
        ("https://api.deepseek.com", "thinking"),
        ("https://api.anthropic.com/v1", "budget"),
        ("https://api.together.xyz/v1", "switch"),
        ("http://127.0.0.1:11434/v1", "effort"),
        ("http://127.0.0.1:8000/v1", "template"),
        ("https://notopenai.com/v1", "template"),
    ],
)
def test_the_form_of_a_server_follows_from_its_address(address: str, form: str) -> None:
    assert read_options({"model": "m", "base_url": address}).reasoning_form == form


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"reasoning": "much"}, "reasoning: expected server, off, low, medium, high or a number of tokens"),
        ({"reasoning": 0}, "reasoning: expected server, off"),
        ({"reasoning": 9, "reasoning_form": "effort"}, "at this server, which takes no number, got 9"),
        ({"reasoning_form": "words"}, "reasoning_form: expected effort"),
        ({"reasoning_room": -1}, "reasoning_room: expected a whole number"),
        ({"reasoning": "off", "extra": {"chat_template_kwargs": {}}}, "extra: expected no field that the option"),
    ],
)
def test_reasoning_that_cannot_be_is_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(Invalid, match=re.escape(said)):
        read_options({"model": "m", "base_url": "http://127.0.0.1:8000/v1", **options})


@pytest.mark.parametrize(
    "reply",
    [
        error(400, "Unsupported value: 'reasoning_effort' does not support 'none'.", param="reasoning_effort"),
        error(400, "Reasoning is mandatory for this endpoint and cannot be disabled."),
    ],
)
def test_a_model_that_cannot_do_without_reasoning_says_which_option_to_change(stub: StubServer, reply: Reply) -> None:
    stub.script("m", reply)
    failed = failure(player(stub, reasoning="off", reasoning_form="effort"))
    assert "change the model's option reasoning" in failed.message
    assert failed.fault == "settings"


# ---- Rounds -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (error(400, "Unknown parameter: 'top_k'.", param="top_k"), "Unknown parameter"),
        (completion({"content": None, "reasoning": THOUGHT}, "length"), "raise the limit"),
        (Reply(body=b'{"error": {"code": 402, "message": "Insufficient credits."}}'), "Insufficient credits"),
    ],
)
def test_a_round_stops_at_the_first_sign_that_its_model_is_asked_wrongly(
    engine: Engine, settings: Settings, stub: StubServer, reply: Reply, said: str
) -> None:
    stub.script("m", reply)
    add_models(engine, stub.url, "m", in_flight=4)
    round_id = make_round(engine, "m", matches=40)
    play(engine, settings, round_id)
    row = row_of(engine, round_id)
    assert (row.status, row.aborted) == (states.FAILED, 0)
    assert said in str(row.error)
    assert len(stub.requests) <= 4


def test_one_answer_without_room_among_many_ends_its_match_alone(
    engine: Engine, settings: Settings, stub: StubServer
) -> None:
    cut = completion({"content": None, "reasoning": THOUGHT}, "length")
    stub.script("m", *[haggler] * 40, cut, haggler)
    add_models(engine, stub.url, "m", in_flight=1)
    round_id = make_round(engine, "m", matches=20)
    play(engine, settings, round_id)
    row = row_of(engine, round_id)
    assert (row.status, row.aborted, row.finished) == (states.DONE, 1, 20)


def test_every_answer_has_its_outcome_in_the_database_on_the_page_and_in_the_file(
    client: FlaskClient, engine: Engine, settings: Settings, stub: StubServer
) -> None:
    impatient = settings.model_copy(update={"ROUND_PATIENCE": 0})
    names = [f"m{number}" for number in range(len(SAMPLES))]
    add_models(engine, stub.url, *names)
    for name, sample in zip(names, SAMPLES, strict=True):
        stub.script(name, sample.reply)
        play(engine, impatient, make_round(engine, name, matches=1))
    with reading(engine) as session:
        first = select(func.min(GenerationRow.id)).group_by(GenerationRow.language_model_id)
        rows = session.scalars(
            select(GenerationRow).where(GenerationRow.id.in_(first)).order_by(GenerationRow.id)
        ).all()
        matches = [str(row.match_id) for row in rows]
        kept = [(row.outcome, row.text) for row in rows]
    assert kept == [(sample.outcome, sample.text) for sample in SAMPLES]

    told = csv.DictReader(io.StringIO(client.get("/admin/export/generations.csv").text))
    in_file = {row["match_id"]: row["outcome"] for row in reversed(list(told))}
    assert [in_file[match] for match in matches] == [sample.outcome for sample in SAMPLES]

    for match, sample in zip(matches, SAMPLES, strict=True):
        page = html.unescape(client.get(f"/admin/matches/{match}").text)
        assert f"<code>{sample.outcome}</code>" in page, sample.name
        assert sample.said in page, sample.name


def thinking(messages: Messages) -> str:
    return f"<think>{THOUGHT}</think>{haggler(messages)}"


def test_thoughts_are_kept_with_the_call_and_reach_no_prompt_no_event_and_no_training(
    engine: Engine, settings: Settings, stub: StubServer
) -> None:
    stub.script("m", thinking)
    add_models(engine, stub.url, "m", in_flight=2)
    round_id = make_round(engine, "m", matches=2)
    play(engine, settings, round_id)
    check(engine, round_id, 2)
    assert all(THOUGHT not in json.dumps(request.body) for request in stub.requests)
    with reading(engine) as session:
        kept = session.execute(select(GenerationRow.reasoning, GenerationRow.outcome)).all()
        events = session.scalars(select(EventRow.body)).all()
    assert {tuple(each) for each in kept} == {(THOUGHT, "move")}
    assert all(THOUGHT not in json.dumps(body) for body in events)
    rows = rows_of(settings.home, cut(engine, settings.home, rounds=[round_id], filter="all"))
    assert rows
    assert THOUGHT not in json.dumps(rows)


def test_thoughts_are_folded_on_a_matchs_page_and_deleted_with_what_a_person_wrote(
    client: FlaskClient, engine: Engine, settings: Settings, stub: StubServer
) -> None:
    stub.script("m", thinking)
    add_models(engine, stub.url, "m", in_flight=1)
    play(engine, settings, make_round(engine, "m", matches=1))
    with reading(engine) as session:
        match_id = session.scalars(select(MatchRow.id)).one()
    page = client.get(f"/admin/matches/{match_id}?at=2").text
    folded = re.search(r"<details><summary>Reasoning, which.*?</details>", page, re.DOTALL)
    assert folded
    assert THOUGHT in folded[0]
    with writing(engine) as session:
        empty_prompts(session, match_id)
    assert THOUGHT not in client.get(f"/admin/matches/{match_id}?at=2").text
