"""What models have cost, on the page, in its file and by the command; and one stop for all spending."""

import csv
import io
import json
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, event, func, select, update

from app.core.config import Settings
from app.core.errors import Conflict
from app.core.extensions import reading, writing
from app.jobs import states
from app.matches.lobby import start_match_against
from app.model_calls.test_call import request_test
from app.models import CallSum, Campaign, GenerationRow, LanguageModel, MatchRow, RoundRange, RoundRow, Study, Wave
from app.registry import get_model
from app.registry.changes import remove_model
from app.registry.spending import spending_limit, spent_since
from app.spend import call_sums
from app.spend.chart import spend_chart
from app.spend.figures import ALL, PERIODS, SpendSums, begin_of, read_spend, read_spend_lines
from app.spend.stop import end_stop, stop_spending
from app.studies import payments
from app.studies.cost import most_a_place
from app.studies.store import design_of_wave
from app.studies.waves import settings_of
from tests.campaigns import campaign_that_awaits
from tests.enrolments import finish
from tests.experimenter import signed_in
from tests.rounds import add_models, haggler, make_round, play, row_of
from tests.shell import Finished
from tests.societies import add_chat_models, make_society, opinion
from tests.societies import run as run_society
from tests.stub_openai import Reply, StubServer
from tests.waves import assigned, new_wave

Run = Callable[..., Finished]


@pytest.fixture(scope="module")
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        server.script("haggler", Reply(haggler))
        server.script("chatter", Reply(opinion))
        yield server


@pytest.fixture
def settings(app: Flask, engine: Engine, stub: StubServer) -> Settings:
    add_models(engine, stub.url, "haggler", price_in=100.0, price_out=400.0)
    add_chat_models(engine, stub.url, "chatter", price_in=100.0, price_out=400.0)
    found: Settings = app.config["SETTINGS"]
    return found


def test_every_sum_is_what_the_stored_calls_have_cost(
    app: Flask, engine: Engine, settings: Settings, flask: Run
) -> None:
    number = make_round(engine, "haggler", "scripted", matches=4)
    play(engine, settings, number)
    society = make_society(engine, "chatter")
    run_society(engine, settings, society)
    with reading(engine) as session:
        stored = session.execute(
            select(GenerationRow.model, func.count(), func.sum(GenerationRow.cost)).group_by(GenerationRow.model)
        ).all()
        by_model = {row.model: (row[1], row[2]) for row in stored if row[2]}
        everything = spent_since(session, datetime(2000, 1, 1, tzinfo=UTC))
        found = read_spend(session, ALL)
    assert {model.name: (sums.calls, pytest.approx(sums.usd)) for model, sums in found.by_model() if model} == by_model
    assert found.total.usd == pytest.approx(everything)
    runs = {each: sums.usd for each, sums in found.by_run()}
    assert runs == {
        ("round", number): pytest.approx(row_of(engine, number).cost),
        ("society", society): pytest.approx(by_model["chatter"][1]),
    }
    assert sum(sums.usd for _, sums in found.by_day()) == pytest.approx(everything)

    client = signed_in(app)
    page = client.get("/admin/spend").text
    assert f"/admin/rounds/{number}" in page
    assert f"/admin/societies/{society}" in page
    file = csv.DictReader(io.StringIO(client.get("/admin/spend?format=csv").text))
    assert sum(float(line["usd"]) for line in file) == pytest.approx(everything, abs=1e-4)
    said = json.loads(flask("spend", "show", "--json").stdout)
    assert said["total"]["usd"] == pytest.approx(everything)
    assert {line["model"]: line["calls"] for line in said["by_model"]} == {
        name: calls for name, (calls, _) in by_model.items()
    }


def test_sums_of_earlier_calls_change_no_figure(
    engine: Engine, settings: Settings, flask: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = make_round(engine, "haggler", "scripted", matches=4)
    play(engine, settings, number)
    run_society(engine, settings, make_society(engine, "chatter"))
    with writing(engine) as session:
        latest = session.scalar(select(func.max(GenerationRow.id))) or 0
        earlier, then = GenerationRow.id <= latest // 2, datetime.now(UTC) - timedelta(days=2)
        session.execute(update(GenerationRow).where(earlier).values(at=then))
        session.execute(update(GenerationRow).where(GenerationRow.id == 1).values(cost=None))
    monkeypatch.setattr(call_sums, "_LEAST", 1)

    def lines() -> list[Any]:
        with reading(engine) as session:
            spent = [read_spend_lines(session, period).lines for period in PERIODS]
            found = [read_spend(session, period, most=most) for period in PERIODS for most in (None, 1)]
        exact = [
            [line._replace(sums=line.sums._replace(usd=round(line.sums.usd, 9))) for line in each] for each in spent
        ]
        figures = [
            [each.runs, *(sums._replace(usd=round(sums.usd, 9)) for _, sums in each.by_day())]
            + [(purpose, sums._replace(usd=round(sums.usd, 9))) for purpose, sums in each.by_run()[:1]]
            for each in found
        ]
        return [*(sorted(map(repr, each)) for each in exact), figures]

    before = lines()
    assert call_sums.keep_sums(engine) == latest // 2  # those of the last hour stay out
    assert lines() == before
    assert call_sums.keep_sums(engine) == 0
    with writing(engine) as session:
        session.execute(update(CallSum).values(cost=CallSum.cost + 1))
    assert lines() != before
    assert call_sums.recount(engine) == latest // 2
    assert lines() == before
    assert "Summed 0 calls." in flask("spend", "recount").stdout  # too few for sums of their own
    assert lines() == before


def test_the_page_has_the_dearest_runs_and_says_how_many_further_ones_there_are(
    app: Flask, engine: Engine, settings: Settings, stub: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_sums, "_LEAST", 1)
    monkeypatch.setattr(call_sums, "_SETTLED", timedelta(0))
    add_models(engine, stub.url, "of unknown price")
    rounds = [make_round(engine, "scripted", "scripted", matches=1, seed=seed) for seed in range(5)]
    for number in rounds:
        play(engine, settings, number)
    with reading(engine) as session:
        priced, free, unknown = (get_model(session, name).id for name in ("haggler", "scripted", "of unknown price"))

    def call(number: int | None, tokens: int, cost: float | None = None, model: int = priced, days: int = 0) -> None:
        at = datetime.now(UTC) - timedelta(days=days)
        with writing(engine) as session:
            match = None if number is None else session.scalars(select(MatchRow.id).filter_by(round_id=number)).one()
            row = GenerationRow(
                match_id=match, attempt=0, language_model_id=model, model="x", prompt=[], sampling={}, latency=0.1,
                retries=0, at=at, cost=cost, prompt_tokens=tokens, completion_tokens=tokens // 2,
            )  # fmt: skip
            session.add(row)

    for place, number in enumerate(rounds):
        call(number, 1_000 * place, days=place)  # the last round is the dearest by prices alone
        call(number, 0, cost=0.001, days=1)
    call(rounds[0], 10**6, model=free)
    call(rounds[1], 0, cost=5.0)
    call(rounds[3], 500, model=unknown)
    call(rounds[0], 0, model=unknown)  # which costs nothing at any price
    call(None, 10, cost=0.5)
    assert call_sums.keep_sums(engine) == 15
    call(rounds[2], 0, cost=4.0)  # has no kept sums yet
    order = [rounds[1], rounds[2], rounds[4], rounds[3], None, rounds[0]]
    for period in PERIODS:
        with reading(engine) as session:
            found = read_spend(session, period)
            some = [read_spend(session, period, most=most) for most in range(7)]
            of_lines = [line.sums for line in read_spend_lines(session, period).lines]
        of_runs = [sums for _, sums in found.by_run()]
        for total in (SpendSums.of(of_lines), SpendSums.of(of_runs)):
            assert total._replace(usd=round(total.usd, 9)) == found.total._replace(usd=round(found.total.usd, 9))
        for most, each in enumerate(some):
            assert each.by_run()[:most] == found.by_run()[:most]
            assert each.runs == len(found.by_run())
    assert [purpose.number for purpose, _ in found.by_run()] == order
    assert {purpose.number: sums.unpriced for purpose, sums in found.by_run() if sums.unpriced} == {rounds[3]: 1}
    monkeypatch.setattr("app.web.admin.spend._AT_MOST", 2)
    page = signed_in(app).get("/admin/spend?period=all").text
    shown = [number for number in order if f'href="/admin/rounds/{number}"' in page]
    assert shown == order[:2]
    assert "4 further runs cost less; the CSV file has them." in page


def test_calls_of_a_model_that_is_removed_and_all_later_ones_stay_in_the_sums(
    engine: Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_sums, "_LEAST", 1)
    monkeypatch.setattr(call_sums, "_SETTLED", timedelta(0))

    def call(name: str, cost: float) -> None:
        with writing(engine) as session:
            model = session.scalars(select(LanguageModel).where(LanguageModel.name == name)).one()
            request = request_test(session, model)
            row = GenerationRow(
                request_id=request.id, attempt=0, language_model_id=model.id, model=name, prompt=[{"role": "user"}],
                sampling={}, cost=cost, latency=0.1, retries=0, at=datetime.now(UTC),
            )  # fmt: skip
            session.add(row)

    def spent() -> tuple[int, float, float]:
        with reading(engine) as session:
            total = read_spend(session, ALL).total
            return total.calls, total.usd, spent_since(session, datetime.now(UTC) - timedelta(days=1))

    call("haggler", 1.0)
    call("chatter", 2.0)
    call("chatter", 4.0)
    assert call_sums.keep_sums(engine) == 3
    with writing(engine) as session:
        remove_model(session, "chatter")
    assert spent() == (3, 7.0, 7.0)
    with reading(engine) as session:
        kept = session.scalars(select(GenerationRow).where(GenerationRow.language_model_id.is_(None))).all()
        assert [each.prompt for each in kept] == [[], []]
    call("haggler", 8.0)
    assert spent() == (4, 15.0, 15.0)
    assert call_sums.keep_sums(engine) == 1
    assert spent() == (4, 15.0, 15.0)
    call_sums.recount(engine)
    assert spent() == (4, 15.0, 15.0)


def test_an_installation_without_calls_has_no_figures(app: Flask, flask: Run) -> None:
    client = signed_in(app)
    for period in PERIODS:
        assert "No model was called in this time." in client.get(f"/admin/spend?period={period}").text
    assert client.get("/admin/spend?period=year").status_code == 400
    assert "no model was called" in flask("spend", "show").stdout
    assert begin_of("week", datetime(2026, 3, 3, 12, tzinfo=UTC)) == datetime(2026, 2, 24, tzinfo=UTC)


def test_the_chart_tells_apart_the_dearest_models_of_each_day(app: Flask, engine: Engine, settings: Settings) -> None:
    names = [f"m{number}" for number in range(8)]
    add_models(engine, "http://127.0.0.1:9/v1", *names)
    now = datetime.now(UTC)
    with writing(engine) as session:
        ids = [get_model(session, name).id for name in names]
    by_day_and_model = {
        ((now - timedelta(days=number % 2)).date(), ids[number]): SpendSums(usd=8.0 - number) for number in range(8)
    }
    with reading(engine) as session:
        found = replace(read_spend(session, "week", now), by_day_and_model=by_day_and_model)
    chart = spend_chart(found)
    today, yesterday = now.date().isoformat(), (now - timedelta(days=1)).date().isoformat()
    assert sum(row["usd"] for row in chart.data) == 36
    assert {row["model"] for row in chart.data if row["day"] == yesterday} == {"m1", "m3", "m5", "m7"}
    others = "6 all other models"
    assert chart.described.header[1:] == ("1 m0", "2 m1", "3 m2", "4 m3", "5 m4", others, "All models")
    assert chart.described.rows[-1] == (today, "8.00", "0.00", "6.00", "0.00", "4.00", "2.00", "20.00")
    assert f"36.00 US dollars from {begin_of('week', now):%Y-%m-%d} to {today}, UTC; 20.00 of them on {today}." in (
        chart.described.sentence
    )
    drawn = chart.spec()["data"]["values"]
    assert {row["mark"] for row in drawn if row["model"] == "1 m0"} == {"1"}  # whoever sees no colours reads these
    client = signed_in(app)
    assert "has cost anything in this period." in client.get("/admin/spend").text


def test_calls_that_were_written_out_of_order_at_midnight_are_on_their_own_days(
    app: Flask, engine: Engine, settings: Settings
) -> None:
    now = datetime.now(UTC)
    begin = begin_of("week", now)
    with writing(engine) as session:
        for seconds in (-300, -200, -100, -1, 0.3, -0.2, 1, 5, 100, 200, 300):
            at = begin + timedelta(seconds=seconds)
            row = GenerationRow(attempt=0, model="x", prompt=[], sampling={}, latency=1, retries=0, at=at, cost=0.01)
            session.add(row)
            session.flush()
    with reading(engine) as session:
        found = read_spend(session, "week", now)
    assert {day for day, _ in found.by_day_and_model} == {begin.date()}
    assert spend_chart(found).data[0]["usd"] == pytest.approx(0.06)


def test_a_stop_ends_jobs_and_calls_and_can_be_undone(
    app: Flask, engine: Engine, settings: Settings, flask: Run
) -> None:
    waiting = make_round(engine, "haggler", "scripted", matches=4, queued=True)
    done = make_round(engine, "haggler", "scripted", matches=2)
    play(engine, settings, done)
    client = signed_in(app)
    page = client.get("/admin/spend").text
    assert "Stop all spending" in page
    name = row_of(engine, waiting).name
    assert f'{name}</a> <span class="soft small nowrap">round {waiting}</span>' in page
    assert 'data-name="spend-by-day"' in page
    assert client.post("/admin/spend", data={"action": "stop"}).status_code == 303
    assert row_of(engine, waiting).status == states.CANCELLED
    assert row_of(engine, done).status == states.DONE
    assert "Spending is stopped." in client.get("/admin/spend").text
    with reading(engine) as session:
        assert "all spending was stopped by" in (spending_limit(session, settings) or "")
    with writing(engine) as session:
        paid = session.scalars(select(LanguageModel).where(LanguageModel.name == "haggler")).one()
        with pytest.raises(Conflict, match="calls of paid models are stopped for now"):
            start_match_against(session, settings, "negotiation", paid)
    later = make_round(engine, "haggler", "scripted", matches=2)
    play(engine, settings, later)
    assert "all spending was stopped" in (row_of(engine, later).error or "")
    refused = client.post("/admin/spend", data={"action": "stop"})
    assert refused.status_code == 409
    assert "flask spend resume" in refused.text
    assert f"{name} (round {waiting})" in flask("spend", "resume").stdout
    assert row_of(engine, waiting).status == states.WAITING
    assert row_of(engine, done).status == states.DONE
    with reading(engine) as session:
        assert spending_limit(session, settings) is None
    assert "expected a stop to end, got none" in flask("spend", "resume").stderr


def test_a_stop_ends_only_when_no_worker_is_ending_its_jobs_any_more(engine: Engine, settings: Settings) -> None:
    over, held = (make_round(engine, "haggler", "scripted", matches=4, queued=True) for _ in range(2))
    with writing(engine) as session:
        until = datetime.now(UTC) + timedelta(seconds=settings.ROUND_LEASE)
        part = update(RoundRange).where(RoundRange.round_id == held)
        session.execute(part.values(lease_owner="a worker", lease_until=until))
        stop_spending(session, "somebody")
        session.get_one(RoundRow, over).status = states.DONE  # before its worker learned of the stop
    with writing(engine) as session, pytest.raises(Conflict, match=rf"\(round {held}\), which a worker is just ending"):
        end_stop(session)
    with writing(engine) as session:
        session.execute(part.values(lease_owner=None, lease_until=None))
    with writing(engine) as session:
        found = end_stop(session)
    assert [job.number for job, _ in found.jobs] == [held]
    assert row_of(engine, over).status == states.DONE
    assert row_of(engine, held).status == states.WAITING


def status_of(engine: Engine, campaign: int) -> str:
    with reading(engine) as session:
        return session.get_one(Campaign, campaign).status


def test_a_job_that_cannot_go_on_after_a_stop_stays_cancelled(engine: Engine, settings: Settings) -> None:
    before, awaited, other = (make_round(engine, "haggler", "scripted", matches=2, queued=True) for _ in range(3))
    campaign = campaign_that_awaits(engine, awaited, spent=before)
    with writing(engine) as session:
        row = session.get_one(RoundRow, before)
        row.status, row.cost = states.DONE, 2.0
    with writing(engine) as session:
        stop_spending(session, "somebody")
    with writing(engine) as session:
        found = end_stop(session)
    assert [(job.kind.name, job.number) for job in found.left] == [("campaign", campaign)]
    assert "budget" in found.left[0].refused
    assert status_of(engine, campaign) == states.CANCELLED
    assert row_of(engine, awaited).status == states.CANCELLED
    assert [job.number for job, _ in found.jobs] == [other]
    assert row_of(engine, other).status == states.WAITING


def test_a_stop_ends_only_when_what_a_campaign_waits_for_has_stopped(engine: Engine, settings: Settings) -> None:
    awaited = make_round(engine, "haggler", "scripted", matches=2, queued=True)
    campaign = campaign_that_awaits(engine, awaited)
    until = datetime.now(UTC) + timedelta(seconds=settings.ROUND_LEASE)
    part = update(RoundRange).where(RoundRange.round_id == awaited)
    with writing(engine) as session:
        session.execute(part.values(lease_owner="a worker", lease_until=until))
        stop_spending(session, "somebody")
    with (
        writing(engine) as session,
        pytest.raises(Conflict, match=rf"\(round {awaited}\), which a worker is just ending"),
    ):
        end_stop(session)
    assert status_of(engine, campaign) == states.CANCELLED
    with writing(engine) as session:
        session.execute(part.values(lease_owner=None, lease_until=None))
    with writing(engine) as session:
        assert end_stop(session).left == []
    assert status_of(engine, campaign) == row_of(engine, awaited).status == states.WAITING


def test_storage_is_counted_by_kind(app: Flask, engine: Engine, settings: Settings, flask: Run) -> None:
    (settings.home / "datasets").mkdir(exist_ok=True)
    (settings.home / "datasets" / "rows.jsonl").write_bytes(b"x" * 2_500_000)
    kinds = {each["kind"]: each for each in json.loads(flask("storage", "--json").stdout)["kinds"]}
    assert kinds["datasets"] == {"kind": "datasets", "size": 2_500_000, "files": 1}
    assert kinds["database"]["size"] > 0
    assert 'data-as="Size">2.5 MB<' in signed_in(app).get("/admin/spend").text


def test_the_page_is_read_beside_the_thread_in_which_matches_are_played(
    app: Flask, engine: Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = signed_in(app)
    reads: dict[str, set[int]] = {}
    walk = os.walk

    def noted_walk(folder: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        reads.setdefault("files", set()).add(threading.get_ident())
        return walk(folder)

    def note_statement(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "generation" in statement:
            reads.setdefault("calls", set()).add(threading.get_ident())

    monkeypatch.setattr(os, "walk", noted_walk)
    event.listen(Engine, "before_cursor_execute", note_statement)
    try:
        assert client.get("/admin/spend?period=all").status_code == 200
        assert client.get("/admin/spend?format=csv").status_code == 200
    finally:
        event.remove(Engine, "before_cursor_execute", note_statement)
    assert {"files", "calls"} == set(reads)
    assert threading.get_ident() not in set.union(*reads.values())


def test_peoples_pay_stands_beside_models_money_and_caps_of_waves_say_when_they_are_reached(
    app: Flask, engine: Engine, flask: Run
) -> None:
    with writing(engine) as session:
        wave = new_wave(session)
        number = wave.id
        progress = assigned(session, wave, "P1")
        payments.record_owed(session, finish(session, progress))
        assigned(session, wave, "P2")  # under way: a share of the cap is reserved
        file, paid = settings_of(wave), sum(row.amount for row in payments.payments_of(session, progress.enrolment.id))
        currency = design_of_wave(session, wave).pay.currency
        most = most_a_place(design_of_wave(session, wave)) * (1 + file.fee)
        left = file.most_spent - paid * (1 + file.fee) - most
        study = session.get_one(Study, wave.study_id).name
    with_fee = paid * (1 + file.fee)
    assert file.fee > 0
    client = signed_in(app)
    page = client.get("/admin/spend").text
    assert f"{with_fee:.2f} {currency}" in page.partition('id="studies"')[2].partition("</section>")[0]
    assert f"{with_fee:.2f} {currency}" in page.partition('id="days"')[2].partition("</section>")[0]
    caps = page.partition('id="limits"')[2].partition("</section>")[0]
    assert f"/admin/studies/waves/{number}" in caps
    assert f"Not before {int(left / most)} more people, each at the highest pay" in caps
    lines = [*csv.DictReader(io.StringIO(client.get("/admin/spend?format=pay").text))]
    assert {line["study"] for line in lines} == {study}
    assert sum(Decimal(line["amount"]) for line in lines) == paid
    said = json.loads(flask("spend", "show", "--json").stdout)
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    assert said["people"] == [{"study": study, "day": today, "currency": currency, "with_fee": f"{with_fee:.4f}"}]
    assert (
        f"Study {study} paid or owes 1 person, with fees: {with_fee:.2f} {currency}." in flask("spend", "show").stdout
    )
    with writing(engine) as session:
        wave = session.get_one(Wave, number)
        wave.settings = {**wave.settings, "most_spent": str(round(with_fee + most, 2))}
    assert "Reached: no room for one more person" in client.get("/admin/spend").text
    assert client.get("/admin/spend?period=all").status_code == 200
