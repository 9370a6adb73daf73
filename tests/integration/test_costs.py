"""What calls of models cost, with servers that say it in three forms: in the database, on pages, in files."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, select

from app.core.config import Settings
from app.core.errors import Invalid
from app.core.extensions import reading, writing
from app.jobs.spec import JobBudget
from app.model_calls.request_runner import make_here
from app.model_calls.test_call import request_test
from app.models import GenerationRow
from app.registry import get_model
from app.registry.prices import check_budget
from app.registry.spending import spent_since
from app.rounds.estimate import habit_of
from app.society.job import SOCIETY
from tests.experimenter import signed_in
from tests.rounds import add_models, haggler, make_round, play, row_of
from tests.shell import Finished
from tests.societies import add_chat_models, make_society, opinion
from tests.societies import run as run_society
from tests.stub_openai import Reply, StubServer

PARTS = {
    "prompt_tokens": 2000, "completion_tokens": 500, "total_tokens": 2500,
    "prompt_tokens_details": {"cached_tokens": 1024, "cache_write_tokens": 512},
    "completion_tokens_details": {"reasoning_tokens": 400},
}  # fmt: skip
BESIDE = {  # reasoning counted beside the answer, and what was cached at the top
    "prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1250, "prompt_cache_hit_tokens": 400,
    "completion_tokens_details": {"reasoning_tokens": 200},
}  # fmt: skip
ITS_OWN = {"prompt_tokens": 300, "completion_tokens": 20, "total_tokens": 320, "cost": 0.0125}
FIVE_PRICES = {"price_in": 10, "price_out": 40, "price_cached": 1, "price_cache_write": 12.5, "price_reasoning": 20}
OF_PARTS = (464 * 10 + 1024 * 1 + 512 * 12.5 + 100 * 40 + 400 * 20) / 1e6
Run = Callable[..., Finished]
Form = tuple[Mapping[str, Any], Mapping[str, Any], float, str, tuple[str, ...]]
FORMS: dict[str, Form] = {  # usage, prices, cost of a call, its source, and the counts in its row of the file
    "parts": (PARTS, FIVE_PRICES, OF_PARTS, "prices", ("2000", "500", "1024", "512", "400")),
    "beside": (BESIDE, {"price_in": 10, "price_out": 40}, 0.02, "prices", ("1000", "250", "400", "", "200")),
    "its-own": (ITS_OWN, {"price_in": 9000, "price_out": 9000}, 0.0125, "server", ("300", "20", "", "", "")),
    "unpriced": (ITS_OWN, {}, 0.0125, "server", ("300", "20", "", "", "")),
}
COUNTS = ("prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens")


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, StubServer]]:
    started = {name: StubServer() for name in FORMS}
    for name, server in started.items():
        server.__enter__()
        server.script(name, Reply(haggler, usage=FORMS[name][0]))
        server.script(f"chat-{name}", Reply(opinion, usage=FORMS[name][0]))
    yield started
    for server in started.values():
        server.__exit__()


@pytest.fixture
def settings(app: Flask, engine: Engine, servers: dict[str, StubServer]) -> Settings:
    for name, server in servers.items():
        add_models(engine, server.url, name, **FORMS[name][1])
        add_chat_models(engine, server.url, f"chat-{name}", **FORMS[name][1])
    found: Settings = app.config["SETTINGS"]
    return found


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return signed_in(app)


@pytest.mark.parametrize("name", FORMS)
def test_a_round_costs_the_same_in_the_database_on_its_page_and_in_the_file(
    client: FlaskClient, flask: Run, engine: Engine, settings: Settings, name: str
) -> None:
    _, _, cost, source, counts = FORMS[name]
    number = make_round(engine, name, matches=4)
    play(engine, settings, number)
    with reading(engine) as session:
        calls = session.scalars(select(GenerationRow)).all()
        assert {(round(call.cost or 0, 9), call.cost_source) for call in calls} == {(round(cost, 9), source)}
        spent = spent_since(session, datetime.now(UTC) - timedelta(hours=1))
        habit = habit_of(session, get_model(session, name), "negotiation", {})
    total = cost * len(calls)
    assert habit.cost == (pytest.approx(cost * habit.calls) if source == "server" else None)  # which estimates go by
    assert row_of(engine, number).cost == pytest.approx(total) == spent
    shown = f"${total:,.2f}" if total >= 1 else f"${total:.4f}"
    page = client.get(f"/admin/rounds/{number}?tab=log").text
    assert shown in page
    assert "at today’s prices" not in page
    assert json.loads(flask("round", "show", number, "--json").stdout)["cost"] == pytest.approx(total, abs=5e-5)
    rows = [*csv.DictReader(io.StringIO(client.get(f"/admin/export/generations.csv?round={number}").text))]
    assert sum(float(row["cost"]) for row in rows) == pytest.approx(total)
    assert {tuple(row[field] for field in COUNTS) for row in rows} == {counts}
    assert {row["cost_source"] for row in rows} == {source}
    match = client.get(f"/admin/matches/{calls[0].match_id}?at=2").text
    assert re.search(rf"<dt>Cost</dt><dd>\${cost:.6f}".rstrip("0"), match)
    assert ("as reported by the server" in match) == (source == "server")


def test_a_society_costs_what_its_servers_say_and_what_its_tokens_cost(engine: Engine, settings: Settings) -> None:
    number = make_society(engine, "chat-parts", "chat-its-own")
    run_society(engine, settings, number)
    with reading(engine) as session:
        calls = session.scalars(select(GenerationRow)).all()
    by_form = {name: FORMS[name][2] for name in ("parts", "its-own")}
    expected = sum(by_form[call.model.removeprefix("chat-")] for call in calls)
    assert {call.model for call in calls} == {"chat-parts", "chat-its-own"}
    with reading(engine) as session:
        row = SOCIETY.get(session, number)
        assert (row.cost, row.unpriced_calls) == (pytest.approx(expected), 0)


def test_a_budget_in_money_suits_a_model_without_prices_once_its_server_has_said_a_cost(
    engine: Engine, settings: Settings
) -> None:
    budget = JobBudget(usd=1)
    with writing(engine) as session, pytest.raises(Invalid, match="unpriced without price_in and price_out"):
        check_budget(budget, [get_model(session, "unpriced")])
    with writing(engine) as session:
        test = request_test(session, get_model(session, "unpriced")).id
    result = make_here(engine, settings, test)
    assert (result["cost"], result["cost_source"]) == (0.0125, "server")
    with reading(engine) as session:
        check_budget(budget, [get_model(session, "unpriced")])
