"""Budgets: a job whose calls have cost so much stops, keeps what was under way, and goes on with a higher one."""

import asyncio
import html
import json
import os
import re
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, func, select, update

from app.alignments import steps as alignment_steps
from app.alignments.job import ALIGNMENT
from app.assessments.job import ASSESSMENT
from app.campaigns import steps as campaign_steps
from app.campaigns.job import CAMPAIGN
from app.core.config import Settings
from app.core.errors import Conflict, Invalid
from app.core.extensions import reading, writing
from app.finetuning.job import TRAINING
from app.job_kinds import JOB_KINDS
from app.jobs import states
from app.jobs.context import JobContext
from app.jobs.kind import JobKind
from app.jobs.spec import JobBudget
from app.jobs.spending import dollars
from app.matches.lobby import start_match_against
from app.models import GenerationRow, LanguageModel
from app.registry.spending import spent_since
from app.rounds.job import ROUND
from app.society.job import SOCIETY
from app.society.runner import run_society
from scripts.translations import job_specs
from tests.assessments import make_alignment, make_assessment, pretend_rated
from tests.assessments import run as run_assessment
from tests.campaigns import add_local, campaign_of, pretend_trained
from tests.experimenter import signed_in
from tests.rounds import add_models, haggler, make_round
from tests.rounds import play as play_round
from tests.shell import Finished, Shell
from tests.societies import add_chat_models, make_society, opinion
from tests.societies import run as run_made
from tests.stub_openai import Reply, StubServer

AT_ONCE = 4
PRICES = {"price_in": 100.0, "price_out": 400.0}  # so that a call costs about a cent
Run = Callable[..., Finished]


@pytest.fixture(scope="module")
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        for name in ("paid", "dear", "single", "unpriced"):
            server.script(name, Reply(opinion, delay=0.01))
        server.script("haggler", Reply(haggler, delay=0.01))
        server.script("uncounted", Reply(opinion, delay=0.01, usage=False))
        server.script("uncounted-haggler", Reply(haggler, delay=0.01, usage=False))
        yield server


@pytest.fixture
def settings(app: Flask, engine: Engine, stub: StubServer) -> Settings:
    add_chat_models(engine, stub.url, "paid", "dear", "uncounted", in_flight=AT_ONCE, **PRICES)
    add_chat_models(engine, stub.url, "single", in_flight=1, **PRICES)
    add_chat_models(engine, stub.url, "unpriced", in_flight=AT_ONCE)
    add_models(engine, stub.url, "haggler", "uncounted-haggler", in_flight=AT_ONCE, **PRICES)
    stub.requests.clear()
    found: Settings = app.config["SETTINGS"]
    return found


def society(engine: Engine) -> int:
    return make_society(engine, "paid")


def a_round(engine: Engine) -> int:
    return make_round(engine, "haggler", "scripted", matches=12)


def assessment(engine: Engine) -> int:
    return make_assessment(engine, "paid", "dear", "paid", "dear")


MADE: dict[str, tuple[JobKind[Any], Callable[[Engine], int], Callable[[Engine, Settings, int], Any]]] = {
    "society": (SOCIETY, society, run_made),
    "round": (ROUND, a_round, play_round),
    "assessment": (ASSESSMENT, assessment, run_assessment),
}


def row_of(engine: Engine, kind: JobKind[Any], number: int) -> Any:
    with reading(engine) as session:
        return kind.get(session, number)


def resumed(engine: Engine, kind: JobKind[Any], number: int, **budget: Any) -> None:
    with writing(engine) as session:
        kind.resume(session, number, queued=False, budget=JobBudget(**budget))


def with_budget(engine: Engine, kind: JobKind[Any], number: int, **budget: Any) -> None:
    with writing(engine) as session:
        row = kind.get(session, number)
        row.budget_usd, row.budget_tokens = budget.get("usd"), budget.get("tokens")


def stored(engine: Engine) -> tuple[int, int]:
    """Calls in the log, and their tokens."""
    tokens = func.sum(func.coalesce(GenerationRow.prompt_tokens, 0) + func.coalesce(GenerationRow.completion_tokens, 0))
    with reading(engine) as session:
        count, found = session.execute(select(func.count(), tokens)).one()
    return count, found or 0


@pytest.mark.parametrize("made", MADE)
def test_a_job_stops_in_the_middle_keeps_every_call_and_goes_on_with_a_higher_budget(
    engine: Engine, settings: Settings, stub: StubServer, made: str
) -> None:
    kind, make, run = MADE[made]
    number = make(engine)
    with_budget(engine, kind, number, usd=0.2)
    run(engine, settings, number)
    row = row_of(engine, kind, number)
    assert row.status == states.FAILED
    assert row.error.startswith("budget of $0.20 reached: $0.")
    assert row.error.endswith(" spent; resume with a higher one")
    calls, tokens = stored(engine)
    assert calls == len(stub.requests) == row.calls  # none was sent that is not in the log
    assert tokens == row.prompt_tokens + row.completion_tokens
    dearest = max(_cost(each) for each in _generations(engine))
    assert 0.2 <= row.cost <= 0.2 + (2 if made == "assessment" else 1) * AT_ONCE * dearest

    resumed(engine, kind, number, usd=0.3)
    run(engine, settings, number)
    row = row_of(engine, kind, number)
    assert (row.status, row.budget_usd) == (states.FAILED, 0.3)
    assert row.error.startswith("budget of $0.30 reached: $0.")

    resumed(engine, kind, number, usd=1000)
    run(engine, settings, number)
    assert (row_of(engine, kind, number).status, row_of(engine, kind, number).error) == (states.DONE, None)


def test_a_server_that_counts_no_tokens_is_held_to_a_budget_in_money_by_an_estimate(
    engine: Engine, settings: Settings
) -> None:
    number = make_society(engine, "uncounted")
    with_budget(engine, SOCIETY, number, usd=0.2)
    run_made(engine, settings, number)
    row = row_of(engine, SOCIETY, number)
    assert row.error.startswith("budget of $0.20 reached: $0.2")
    assert row.unpriced_calls == 0
    assert {each.cost_source for each in _generations(engine)} == {"estimate"}


def test_tokens_have_a_budget_whatever_they_cost(engine: Engine, settings: Settings) -> None:
    number = make_society(engine, "unpriced")
    with_budget(engine, SOCIETY, number, tokens=1500)
    run_made(engine, settings, number)
    row = row_of(engine, SOCIETY, number)
    tokens = row.prompt_tokens + row.completion_tokens
    assert row.status == states.FAILED
    assert row.error == f"budget of 1500 tokens reached: {tokens} spent; resume with a higher one"


UNCOUNTED: dict[str, Callable[[Engine], int]] = {
    "society": lambda engine: make_society(engine, "uncounted"),
    "round": lambda engine: make_round(engine, "uncounted-haggler", "scripted", matches=12),
    "assessment": lambda engine: make_assessment(engine, "uncounted", "paid", "uncounted"),
}


@pytest.mark.parametrize("made", UNCOUNTED)
def test_a_server_that_counts_no_tokens_is_held_to_a_budget_in_tokens_by_an_estimate(
    app: Flask, engine: Engine, settings: Settings, stub: StubServer, made: str
) -> None:
    kind, _, run = MADE[made]
    number = UNCOUNTED[made](engine)
    with_budget(engine, kind, number, tokens=1500)
    run(engine, settings, number)
    row = row_of(engine, kind, number)
    tokens = row.prompt_tokens + row.completion_tokens + row.estimated_tokens
    assert row.status == states.FAILED
    assert row.error == (
        f"budget of 1500 tokens reached: {tokens} spent, {row.estimated_tokens} of them by estimate; resume with a"
        " higher one"
    )
    calls = _generations(engine)
    uncounted = [call for call in calls if call.prompt_tokens is None]
    said = [(*(each["content"] for each in call.prompt), call.text or "") for call in uncounted]
    assert row.estimated_tokens == pytest.approx(sum(len("".join(each)) for each in said) / 3.5, rel=0.01)
    assert (len(calls), len(uncounted) > 0) == (len(stub.requests), True)
    page = signed_in(app).get(f"/admin/{'societies' if made == 'society' else f'{made}s'}/{number}").text
    assert f'<dt>Tokens, estimated</dt><dd><span data-figure="estimated_tokens">{row.estimated_tokens:,}</span>' in page

    resumed(engine, kind, number, tokens=1_000_000_000)
    run(engine, settings, number)
    assert row_of(engine, kind, number).status == states.DONE


def test_two_workers_at_once_spend_no_more_than_what_was_under_way(
    engine: Engine, settings: Settings, stub: StubServer
) -> None:
    number = make_round(engine, "haggler", "scripted", matches=40)
    with_budget(engine, ROUND, number, usd=0.5)
    play_round(engine, settings, number, workers=2)
    row = row_of(engine, ROUND, number)
    assert row.status == states.FAILED
    assert stored(engine)[0] == len(stub.requests) == row.calls
    dearest = max(_cost(each) for each in _generations(engine))
    assert 0.5 <= row.cost <= 0.5 + 2 * AT_ONCE * dearest
    resumed(engine, ROUND, number, usd=1000)
    play_round(engine, settings, number, workers=2)
    assert row_of(engine, ROUND, number).status == states.DONE


def test_what_a_killed_worker_has_spent_counts(engine: Engine, settings: Settings) -> None:
    number = society(engine)
    with_budget(engine, SOCIETY, number, usd=0.3)
    worker = os.fork()
    if worker == 0:
        engine.dispose(close=False)
        context = JobContext(engine, settings, uuid.uuid4().hex, threading.Event())
        asyncio.run(run_society(context, number))
        os._exit(0)
    until = time.monotonic() + 60
    while row_of(engine, SOCIETY, number).cost < 0.05 and time.monotonic() < until:
        time.sleep(0.01)
    os.kill(worker, signal.SIGKILL)
    os.waitpid(worker, 0)
    spent = row_of(engine, SOCIETY, number).cost
    with writing(engine) as session:
        SOCIETY.get(session, number).lease_until = None
    run_made(engine, settings, number)
    row = row_of(engine, SOCIETY, number)
    dearest = max(_cost(each) for each in _generations(engine))
    assert 0 < spent < 0.3 <= row.cost <= 0.3 + AT_ONCE * dearest
    assert "budget of $0.30 reached" in row.error


def test_jobs_without_one_have_the_budget_of_the_settings(engine: Engine, settings: Settings) -> None:
    number = society(engine)
    run_made(engine, settings.model_copy(update={"JOB_BUDGET_USD": 0.1}), number)
    assert row_of(engine, SOCIETY, number).error.startswith("budget of $0.10 reached")


def test_money_is_no_budget_where_a_price_is_unknown(engine: Engine, settings: Settings) -> None:
    refusal = (
        "budget.usd: expected models whose prices are known, got unpriced without price_in and price_out; give it"
        " prices, or set a budget of tokens"
    )
    for make in (
        lambda: make_round(engine, "unpriced", "scripted", budget={"usd": 5}),
        lambda: make_assessment(engine, "paid", "unpriced", "paid", budget={"usd": 5}),
    ):
        with pytest.raises(Invalid) as refused:
            make()
        assert refused.value.message.startswith(refusal)
    assert make_round(engine, "unpriced", "scripted", budget={"tokens": 5})


def test_the_command_takes_a_budget_and_resume_a_higher_one(
    flask: Run, engine: Engine, settings: Settings, tmp_path: Path
) -> None:
    asked = ("--agents", "paid", "--observers", "paid", "--config", "size=2", "iterations=1", "critics=2")
    ran = flask("society", "run", *asked, "--budget", "0.1")
    assert ran.exit_code == 1
    assert "budget of $0.10 reached: $0.1" in ran.stderr
    assert "`flask society resume 1` goes on" in ran.stderr
    [listed] = json.loads(flask("society", "list", "--json").stdout)
    assert listed["error"].startswith("budget of $0.10 reached")
    assert flask("society", "resume", "1", "--budget", "none").stderr.startswith("Error: --budget: expected ")
    assert flask("society", "resume", "1", "--budget", "1000").exit_code == 0
    shown = json.loads(flask("society", "show", "1", "--json").stdout)
    assert (shown["status"], shown["budget_usd"], shown["budget_tokens"]) == ("done", 1000.0, None)


def test_a_page_says_why_it_stopped_and_raises_the_budget(app: Flask, engine: Engine, settings: Settings) -> None:
    client = signed_in(app)
    for made, path in (("society", "societies"), ("round", "rounds"), ("assessment", "assessments")):
        kind, make, run = MADE[made]
        number = make(engine)
        with_budget(engine, kind, number, usd=0.1)
        run(engine, settings, number)
        page = client.get(f"/admin/{path}/{number}").text
        assert "budget of $0.10 reached" in page
        assert re.search(r'name="budget_usd"[^>]* value="0\.1"', page)
        assert "Everything made so far is kept: Resume continues from there." in page
        assert "budget of $0.10 reached" in client.get(f"/admin/{path}").text
        answer = client.post(f"/admin/{path}/{number}", data={"action": "resume", "budget_usd": "x"})
        assert answer.status_code == 400
        assert "Budget, USD: expected a number above 0, got &#39;x&#39;" in answer.text
        client.post(f"/admin/{path}/{number}", data={"action": "resume", "budget_usd": "20"})
        row = row_of(engine, kind, number)
        assert (row.status, row.budget_usd, row.error) == (states.WAITING, 20.0, None)
        with_budget(engine, kind, number, usd=0.1 + 0.2, tokens=12_000_000)
        with writing(engine) as session:
            kind.cancel(session, number)
        page = client.get(f"/admin/{path}/{number}").text
        assert re.search(r'name="budget_usd"[^>]* value="0\.3"', page)
        assert re.search(r'name="budget_tokens"[^>]* value="12000000"', page)


def test_whatever_can_be_given_a_budget_is_resumed_with_a_higher_one() -> None:
    asked = {spec.__module__.rpartition(".")[0] for spec in job_specs() if "budget" in spec.model_fields}
    spending = {next(each for each in asked if kind.runner.startswith(f"{each}.")) for kind in JOB_KINDS if kind.spends}
    assert spending == asked


@pytest.mark.parametrize(
    ("usd", "said"), [(5, "$5.00"), (0.2, "$0.20"), (0.2512, "$0.2512"), (0.000015, "$0.000015"), (1234.5, "$1234.50")]
)
def test_small_amounts_have_the_digits_that_they_need(usd: float, said: str) -> None:
    assert dollars(usd) == said


# ---- Jobs that create others -----------------------------------------------------------


def test_the_jobs_of_a_campaign_share_its_budget(engine: Engine, settings: Settings) -> None:
    add_local(engine, "mine")
    number = campaign_of(engine, "mine", partners=["haggler"], budget={"usd": 0.3})
    context = JobContext(engine, settings, uuid.uuid4().hex)
    part = campaign_steps.take_steps(context, number)
    assert part is not None
    assert row_of(engine, ROUND, part.number).budget_usd == 0.3
    with writing(engine) as session:
        first = ROUND.get(session, part.number)
        first.cost, first.status, first.error = 0.3, states.FAILED, "budget of $0.30 reached: $0.3 spent"
    campaign_steps.take_steps(context, number)
    error = "budget of $0.30 reached: $0.30 spent; resume with a higher one"
    assert row_of(engine, CAMPAIGN, number).error == error
    resumed(engine, CAMPAIGN, number, usd=0.5)
    assert (row_of(engine, ROUND, part.number).budget_usd, row_of(engine, CAMPAIGN, number).budget_usd) == (0.5, 0.5)
    with reading(engine) as session:
        left = CAMPAIGN.budget_left(session, CAMPAIGN.get(session, number))
    assert left.usd == pytest.approx(0.2)


def carried(engine: Engine, settings: Settings, number: int) -> Any:
    """The row of an alignment after all that it does by itself, with trainings and ratings that are made up."""
    context = JobContext(engine, settings, uuid.uuid4().hex)
    while (part := alignment_steps.take_steps(context, number)) is not None:
        if part.kind is SOCIETY:
            run_made(engine, settings, part.number)
        elif part.kind is TRAINING:
            pretend_trained(engine, part.number)
        else:
            pretend_rated(engine, part.number)
    return row_of(engine, ALIGNMENT, number)


@pytest.mark.parametrize("spent_in", ["society", "society_again"])
def test_an_alignment_stops_in_its_middle_and_goes_on_with_a_higher_budget_asking_nothing_twice(
    app: Flask, engine: Engine, settings: Settings, stub: StubServer, spent_in: str
) -> None:
    folder = settings.home / "checkpoints" / "mine"
    folder.mkdir(parents=True)
    add_local(engine, "mine", str(folder))
    wanted = {
        "agents": {"paid": 1.0}, "share": 1e-6, "observers": ["paid"], "seed": 3,
        "society": {"critics": 1, "iterations": 2},
    }  # fmt: skip

    def societies(row: Any) -> dict[str, int]:
        with reading(engine) as session:
            begun = ALIGNMENT.steps_of(session, row.id)
            return {step.name: step.number or 0 for step in begun if step.kind == SOCIETY.name}

    def spent(row: Any) -> float:
        return sum(row_of(engine, SOCIETY, number).cost for number in societies(row).values())

    whole = carried(engine, settings, make_alignment(engine, "mine", "whole", **wanted))
    asked, first = len(stub.requests), row_of(engine, SOCIETY, societies(whole)["society"]).cost
    enough = round(first / 2 if spent_in == "society" else first + (spent(whole) - first) / 2, 4)

    row = carried(engine, settings, make_alignment(engine, "mine", "halved", budget={"usd": enough}, **wanted))
    assert spent_in in societies(row)
    with reading(engine) as session:
        assert "assessment" not in {step.name for step in ALIGNMENT.steps_of(session, row.id)}
    stopped = f"budget of {dollars(enough)} reached: {dollars(spent(row))} spent; resume with a higher one"
    assert (row.status, row.error) == (states.FAILED, stopped)
    page = signed_in(app).get(f"/admin/alignments/{row.id}").text
    assert stopped in html.unescape(page)
    assert "Everything made so far is kept. Resume continues from this step." in page
    assert page.count("<dt>Budget, USD</dt>") == 1
    assert re.search(rf'name="budget_usd"[^>]* value="{re.escape(f"{Decimal(str(enough)).normalize():f}")}"', page)

    resumed(engine, ALIGNMENT, row.id, usd=1000)
    row = carried(engine, settings, row.id)
    assert (whole.status, row.status, row.error) == (states.DONE, states.DONE, None)
    assert len(stub.requests) == 2 * asked
    assert spent(row) == pytest.approx(spent(whole))


# ---- The whole installation ------------------------------------------------------------


def test_nobody_begins_a_call_once_the_budget_of_all_is_used_up(
    engine: Engine, settings: Settings, stub: StubServer
) -> None:
    first = society(engine)
    run_made(engine, settings, first)
    spent = row_of(engine, SOCIETY, first).cost
    made = len(stub.requests)
    limited = settings.model_copy(update={"SPENDING_LIMIT_USD": round(spent / 2, 2)})
    second, played = society(engine), a_round(engine)
    run_made(engine, limited, second)
    play_round(engine, limited, played)
    for kind, number in ((SOCIETY, second), (ROUND, played)):
        row = row_of(engine, kind, number)
        assert row.status == states.FAILED
        assert re.fullmatch(
            r"budget of \$[\d.]+ a month of this installation reached: \$[\d.]+ spent since \d{4}-\d\d-01, UTC; raise"
            r" SPENDING_LIMIT_USD or wait for the next month",
            row.error,
        )
    assert len(stub.requests) == made
    free = make_round(engine, "scripted", "scripted", matches=2)
    play_round(engine, limited, free)
    assert row_of(engine, ROUND, free).status == states.DONE

    with writing(engine) as session:
        SOCIETY.resume(session, second, queued=False)
    run_made(engine, settings.model_copy(update={"SPENDING_LIMIT_USD": 10 * spent}), second)
    assert row_of(engine, SOCIETY, second).status == states.DONE


def test_calls_of_another_period_do_not_count(engine: Engine, settings: Settings) -> None:
    run_made(engine, settings, society(engine))
    month = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    with writing(engine) as session:
        numbers = session.scalars(select(GenerationRow.id).order_by(GenerationRow.id)).all()
        half = numbers[len(numbers) // 2]
        before = update(GenerationRow).where(GenerationRow.id < half)
        session.execute(before.values(at=month - timedelta(seconds=1)))
    expected = sum(_cost(each) for each in _generations(engine) if each.id >= half)
    with reading(engine) as session:
        assert spent_since(session, month) == pytest.approx(expected)
        assert spent_since(session, datetime.now(UTC) + timedelta(days=1)) == 0


def test_no_match_begins_with_a_paid_model_while_the_budget_of_all_is_used_up(
    engine: Engine, settings: Settings
) -> None:
    play_round(engine, settings, a_round(engine))
    limited = settings.model_copy(update={"SPENDING_LIMIT_USD": 0.01})
    with writing(engine) as session:
        paid, free = (session.scalars(select(LanguageModel).where(LanguageModel.name == name)).one()
                      for name in ("haggler", "scripted"))  # fmt: skip
        with pytest.raises(Conflict, match=r"as the budget for models is used up for now, got .Label of haggler"):
            start_match_against(session, limited, "negotiation", paid)
        assert start_match_against(session, limited, "negotiation", free)
        assert start_match_against(session, settings, "negotiation", paid)


def test_a_file_of_questions_ends_with_its_budget_and_goes_on_with_more(
    flask: Run, engine: Engine, settings: Settings, stub: StubServer, tmp_path: Path
) -> None:
    questions, out = tmp_path / "questions.txt", tmp_path / "answers.jsonl"
    questions.write_text("".join(f"What is {number}?\n" for number in range(60)))
    ask = ("model", "ask", "single", "--file", str(questions), "--out", str(out))
    ended = flask(*ask, "--budget", "0.05")
    assert ended.exit_code == 1
    assert "budget of $0.05 reached: $0.05" in ended.stderr
    answered = len(out.read_text().splitlines())
    assert 0 < answered < 60
    assert answered == len(stub.requests)
    assert flask(*ask, "--budget", "100").exit_code == 0
    assert len(out.read_text().splitlines()) == len(stub.requests) == 60


def test_a_file_of_questions_ends_with_its_budget_in_tokens_where_none_are_counted(
    flask: Run, engine: Engine, settings: Settings, stub: StubServer, tmp_path: Path
) -> None:
    questions, out = tmp_path / "questions.txt", tmp_path / "answers.jsonl"
    questions.write_text("".join(f"What is {number}?\n" for number in range(60)))
    ended = flask("model", "ask", "uncounted", "--file", str(questions), "--out", str(out), "--budget-tokens", "150")
    assert ended.exit_code == 1
    said = re.search(r"budget of 150 tokens reached: (\d+) spent, (\d+) of them by estimate", ended.stderr)
    assert said is not None
    assert said[1] == said[2]
    assert 0 < len(out.read_text().splitlines()) == len(stub.requests) < 60


def with_settings(shell: Shell, settings: Settings, **update: Any) -> Run:
    """Runs a command with other settings, in a process of its own."""
    env = {name: str(value) for name, value in settings.model_copy(update=update)}
    return lambda *line: shell.flask(line, env=env)


def test_a_file_of_questions_has_the_budget_of_the_settings(
    shell: Shell, settings: Settings, stub: StubServer, tmp_path: Path
) -> None:
    flask = with_settings(shell, settings, JOB_BUDGET_USD=0.05)
    questions, out = tmp_path / "questions.txt", tmp_path / "answers.jsonl"
    questions.write_text("".join(f"What is {number}?\n" for number in range(60)))
    ask = ("model", "ask", "single", "--file", str(questions), "--out", str(out))
    ended = flask(*ask)
    assert ended.exit_code == 1
    assert "budget of $0.05 reached: $0.05" in ended.stderr
    answered = len(stub.requests)
    assert 0 < answered < 30
    flask(*ask)
    assert answered < len(stub.requests) < 60  # each start of the command may spend as much


def test_no_match_in_a_terminal_begins_with_a_paid_model_while_the_budget_of_all_is_used_up(
    shell: Shell, engine: Engine, settings: Settings
) -> None:
    play_round(engine, settings, a_round(engine))
    refused = with_settings(shell, settings, SPENDING_LIMIT_USD=0.01)("play", "negotiation", "--against", "haggler")
    assert refused.exit_code == 2
    assert "expected a partner that costs nothing, as the budget for models is used up for now" in refused.stderr


def _generations(engine: Engine) -> list[GenerationRow]:
    with reading(engine) as session:
        return [*session.scalars(select(GenerationRow))]


def _cost(call: GenerationRow) -> float:
    tokens = (call.prompt_tokens or 0, call.completion_tokens or 0)
    return (PRICES["price_in"] * tokens[0] + PRICES["price_out"] * tokens[1]) / 1e6
