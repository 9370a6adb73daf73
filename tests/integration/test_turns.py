"""A language model's turn: the lease, corrections, failures, and what happens when a worker or a bell is lost."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, select, update

from app.core.config import Settings
from app.core.extensions import reading, writing
from app.jobs.leases import MOST_DEATHS
from app.matches import live
from app.matches.events import Aborted
from app.matches.lobby import person_in, start_match_against
from app.matches.stored import StoredMatch, StoredSeat, load
from app.matches.sweep import take_forgotten_turns, take_or_renew_lease
from app.matches.turns import play_turn, reading_delay
from app.models import EventRow, GenerationRow, MatchRow
from app.players.base import PlayerSpec
from app.registry import add_api_model, find_model
from tests.stack import PATIENCE, wait_until
from tests.stub_openai import Messages, Reply, StubServer, failing, hanging, rate_limited

SPLIT = {"counts": [3, 2, 1], "values": [[1, 3, 1], [2, 0, 4]]}
DeskMaker = Callable[..., Any]


@pytest.fixture
def against(engine: Engine, stub: StubServer) -> Callable[..., StoredMatch]:
    """Starts a match of a person in seat 0, who goes first, against a model of the stub."""

    def start(model: str, *, first: int = 1, game: str = "negotiation", **options: Any) -> StoredMatch:
        config = {**SPLIT, "first": first} if game == "negotiation" else {"word": "candle"}
        spec = {"base_url": stub.url, "model": model, "key_env": "", "retries": 1, "timeout": 5, **options}
        with writing(engine) as session:
            row = add_api_model(session, f"{model}-{time.monotonic_ns()}", None, [game], spec)
            seats = StoredSeat("person"), StoredSeat.of(row)
            return live.create(session, game, config, seats, seed=3, source="live", instant=True)

    return start


def now(engine: Engine, record: StoredMatch) -> StoredMatch:
    with reading(engine) as session:
        return load(session, record.id)


def match_row(engine: Engine, record: StoredMatch) -> MatchRow:
    with reading(engine) as session:
        return session.get_one(MatchRow, record.id)


def generations(engine: Engine, record: StoredMatch) -> list[GenerationRow]:
    with reading(engine) as session:
        query = select(GenerationRow).where(GenerationRow.match_id == record.id).order_by(GenerationRow.id)
        return list(session.scalars(query))


def kinds(engine: Engine, record: StoredMatch) -> list[str]:
    with reading(engine) as session:
        query = select(EventRow.kind).where(EventRow.match_id == record.id).order_by(EventRow.seq)
        return list(session.scalars(query))


def test_a_models_move_is_stored_with_the_call_behind_it(
    engine: Engine, desk: DeskMaker, against: Callable[..., StoredMatch], stub: StubServer
) -> None:
    stub.script("polite", "[message] Good day. I like books.")
    record = against("polite")
    assert play_turn(desk(), record.id)
    assert now(engine, record).match.ply == 1
    (generation,) = generations(engine, record)
    assert generation.text == "[message] Good day. I like books."
    assert generation.prompt == stub.requests[0].body["messages"]
    assert (generation.seat, generation.ply, generation.attempt, generation.error) == (1, 0, 0, None)
    assert generation.completion_tokens
    row = match_row(engine, record)
    assert (row.to_move, row.model_to_move, row.lease_owner) == (0, False, None)
    assert desk.told == [(record.id, True), (record.id, False)]  # type: ignore[attr-defined]


def test_a_second_ring_finds_nothing_to_do(
    engine: Engine, desk: DeskMaker, against: Callable[..., StoredMatch], stub: StubServer
) -> None:
    record = against("stub-negotiator")
    assert play_turn(desk(), record.id)
    assert not play_turn(desk("another"), record.id)
    assert not play_turn(desk("another"), "no such match")
    assert len(stub.requests) == 1


def test_of_many_rings_at_once_one_plays(
    engine: Engine, desk: DeskMaker, against: Callable[..., StoredMatch], stub: StubServer
) -> None:
    stub.script("slow", *[hanging(0.5)] * 3)
    record = against("slow")
    played: list[bool] = []
    threads = [
        threading.Thread(target=lambda n=n: played.append(play_turn(desk(f"w{n}"), record.id))) for n in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(played) == [False] * 5 + [True]
    assert len(stub.requests) == 1
    assert kinds(engine, record) == ["started", "message"]


def test_a_bad_move_is_answered_with_its_reason_in_the_retry_only(
    engine: Engine, desk: DeskMaker, against: Callable[..., StoredMatch], stub: StubServer
) -> None:
    stub.script("learner", "no prefix", "[message] Now I see.", "[message] And on we go.")
    record = against("learner")
    play_turn(desk(), record.id)
    first, second = (request.body["messages"] for request in stub.requests)
    assert second[: len(first)] == first
    assert second[len(first)] == {"role": "assistant", "content": "no prefix"}
    assert "[message]" in second[-1]["content"]
    assert kinds(engine, record) == ["started", "violation", "message"]
    assert [(row.ply, row.attempt) for row in generations(engine, record)] == [(0, 0), (0, 1)]
    live.commit(engine, live.MoveSubmission(record.id, 0, "[message] hi", "a", 1), instant=True)
    play_turn(desk(), record.id)
    assert "no prefix" not in str(stub.requests[-1].body)


def test_five_bad_moves_end_the_match_as_the_models_fault(
    engine: Engine, desk: DeskMaker, against: Callable[..., StoredMatch]
) -> None:
    record = against("stub-broken")
    play_turn(desk(), record.id)
    assert kinds(engine, record) == ["started", *["violation"] * 5, "aborted", "ended"]
    row = match_row(engine, record)
    assert (row.status, row.reason, row.violations, row.lease_owner) == ("over", "aborted", 5, None)
    assert now(engine, record).match.stopped.fault == "model"  # type: ignore[union-attr]


def test_a_model_that_does_not_answer_ends_the_match_kindly(
    engine: Engine, desk: DeskMaker, against: Callable[..., StoredMatch]
) -> None:
    record = against("stub-500", retries=0)
    play_turn(desk(TURN_SECONDS=0.1), record.id)
    assert kinds(engine, record) == ["started", "aborted", "ended"]
    (generation,) = generations(engine, record)
    assert "500" in (generation.error or "")
    assert generation.text is None
    assert now(engine, record).match.view(0).transcript == ()


@pytest.mark.parametrize(
    ("reply", "fault", "said"),
    [
        (Reply("Overloaded.", status=500), "vendor", "Overloaded."),
        (Reply("The prompt was flagged.", status=400), "vendor", "The prompt was flagged."),
        (Reply("No such field: top_k.", status=400), "settings", "No such field"),
        (Reply("<think>Books", finish_reason="length"), "settings", "raise the limit"),
        (Reply(body=b'{"choices": [{"message": {"refusal": "I will not."}}]}'), "model", "I will not."),
    ],
)
def test_a_match_that_a_model_cannot_go_on_with_says_whose_fault_it_was(
    engine: Engine,
    desk: DeskMaker,
    against: Callable[..., StoredMatch],
    stub: StubServer,
    reply: Reply,
    fault: str,
    said: str,
) -> None:
    stub.script("lost", reply)
    record = against("lost", retries=0)
    play_turn(desk(TURN_SECONDS=2.0), record.id)
    assert kinds(engine, record) == ["started", "aborted", "ended"]
    stopped = now(engine, record).match.stopped
    assert isinstance(stopped, Aborted)
    assert (stopped.fault, said in stopped.detail) == (fault, True)


def test_a_busy_server_is_asked_again(
    engine: Engine, desk: DeskMaker, against: Callable[..., StoredMatch], stub: StubServer
) -> None:
    stub.script("busy", rate_limited(0.05), *failing(1, "[message] here I am"))
    record = against("busy", retries=4)
    play_turn(desk(), record.id)
    assert kinds(engine, record) == ["started", "message"]
    assert generations(engine, record)[0].retries == 2


def lease_of(engine: Engine, record: StoredMatch) -> datetime:
    """Until when the match is somebody's."""
    with reading(engine) as session:
        until = session.get_one(MatchRow, record.id).lease_until
    assert until is not None
    return until


def test_the_lease_is_held_for_as_long_as_the_model_thinks(
    engine: Engine, desk: DeskMaker, against: Callable[..., StoredMatch], stub: StubServer
) -> None:
    thought = threading.Event()
    stub.script("thinker", lambda _: "[message] I am back." if thought.wait(PATIENCE) else "", "[message] never asked")
    record = against("thinker")
    worker = threading.Thread(target=play_turn, args=(desk("slow", TURN_LEASE=2.0), record.id))
    worker.start()
    wait_until(lambda: stub.requests, "a call")
    first = lease_of(engine, record)
    wait_until(lambda: lease_of(engine, record) >= first + timedelta(seconds=2), "a lease that began after the first")
    assert not play_turn(desk("eager", TURN_LEASE=2.0), record.id)
    thought.set()
    worker.join()
    assert len(stub.requests) == 1
    assert kinds(engine, record) == ["started", "message"]


def test_a_dead_workers_turn_is_found_and_played_once(
    engine: Engine, desk: DeskMaker, against: Callable[..., StoredMatch]
) -> None:
    record = against("stub-negotiator")
    past = datetime.now(UTC) - timedelta(seconds=60)
    with writing(engine) as session:  # what a worker leaves that was killed while it held the turn
        row = {"lease_owner": "dead", "lease_until": past, "lease_count": 1, "moved_at": past}
        session.execute(update(MatchRow).where(MatchRow.id == record.id).values(**row))
    with writing(engine) as session:
        assert list(take_forgotten_turns(session)) == [record.id]
    with writing(engine) as session:
        assert list(take_forgotten_turns(session)) == []  # it was rung for just now
    assert play_turn(desk(), record.id)
    assert kinds(engine, record) == ["started", "message"]


def test_a_turn_in_good_hands_is_not_rung_for(engine: Engine, against: Callable[..., StoredMatch]) -> None:
    record = against("stub-negotiator")
    with writing(engine) as session:
        values = {
            "moved_at": datetime.now(UTC) - timedelta(seconds=60),
            "lease_until": datetime.now(UTC) + timedelta(seconds=60),
        }
        session.execute(update(MatchRow).where(MatchRow.id == record.id).values(**values))
        assert list(take_forgotten_turns(session)) == []


def test_a_turn_that_kills_its_workers_is_given_up(
    engine: Engine, desk: DeskMaker, against: Callable[..., StoredMatch], stub: StubServer
) -> None:
    record = against("stub-negotiator")
    with writing(engine) as session:
        session.execute(update(MatchRow).where(MatchRow.id == record.id).values(lease_count=MOST_DEATHS))
    assert not play_turn(desk(), record.id)
    assert kinds(engine, record) == ["started", "aborted", "ended"]
    assert now(engine, record).match.stopped.fault == "us"  # type: ignore[union-attr]
    assert stub.requests == []


def test_a_model_that_takes_too_long_ends_the_match_kindly(
    engine: Engine, desk: DeskMaker, against: Callable[..., StoredMatch], stub: StubServer
) -> None:
    stub.script("sleeper", hanging(3600))
    record = against("sleeper", timeout=600)
    play_turn(desk(TURN_SECONDS=0.5), record.id)
    match = now(engine, record).match
    assert isinstance(match.stopped, Aborted)
    assert (match.stopped.fault, match.stopped.detail) == ("model", "no answer within 0.5 s")


def test_leaving_while_the_model_thinks_ends_the_match_once(
    engine: Engine, desk: DeskMaker, against: Callable[..., StoredMatch], stub: StubServer
) -> None:
    left = threading.Event()

    def think(_messages: Messages) -> str:
        left.wait(PATIENCE)
        return "[message] sorry, I was away"

    stub.script("thinker", think)
    record = against("thinker")
    worker = threading.Thread(target=play_turn, args=(desk("slow", TURN_LEASE=0.6), record.id))
    worker.start()
    wait_until(lambda: stub.requests, "the call of the model")
    assert live.commit(engine, live.MoveSubmission(record.id, 0, None), instant=True).answer.ok
    left.set()
    worker.join()
    assert kinds(engine, record) == ["started", "resigned", "ended"]


def test_a_scripted_partner_with_a_delay_plays_in_the_worker(engine: Engine, desk: DeskMaker) -> None:
    with writing(engine) as session:
        seats = StoredSeat("person"), StoredSeat.of(find_model(session, "negotiation", "scripted"))
        config = {**SPLIT, "first": 1}
        record = live.create(session, "negotiation", config, seats, seed=1, source="live", instant=False)
    assert record.match.ply == 0
    began = time.monotonic()
    assert play_turn(desk(READING_WORDS_PER_MINUTE=6000), record.id)
    assert time.monotonic() - began > 1
    assert kinds(engine, record) == ["started", "message"]
    assert generations(engine, record) == []


def test_two_models_play_each_other_to_the_end_under_one_lease(engine: Engine, desk: DeskMaker) -> None:
    with writing(engine) as session:
        both = StoredSeat.of(find_model(session, "taboo", "scripted"))
        record = live.create(session, "taboo", {"word": "candle"}, (both, both), seed=1, source="live", instant=False)
    assert play_turn(desk(), record.id)
    assert now(engine, record).match.over


@pytest.mark.parametrize(("pace", "words", "low", "high"), [(0, 50, 0, 0), (240, 3, 1, 3), (240, 500, 12, 12)])
def test_the_delay_follows_the_words_and_has_a_ceiling(
    app: Any, engine: Engine, pace: int, words: int, low: float, high: float
) -> None:
    settings = app.config["SETTINGS"].model_copy(update={"READING_WORDS_PER_MINUTE": pace})
    with writing(engine) as session:
        people = StoredSeat("person"), StoredSeat("model", None, PlayerSpec("api", "x"))
        record = live.create(
            session, "negotiation", {**SPLIT, "first": 1}, people, seed=1, source="live", instant=False
        )
    assert low <= reading_delay(record, "word " * words, settings) <= high


def test_a_lease_by_name_that_reaches_too_far_ahead_is_void(engine: Engine) -> None:
    now = datetime.now(UTC)
    with writing(engine) as session:
        assert take_or_renew_lease(session, "upkeep", "whose clock had jumped", now + timedelta(seconds=100))
        assert not take_or_renew_lease(session, "upkeep", "another", now + timedelta(seconds=60))
        assert not take_or_renew_lease(session, "upkeep", "another", now)  # somebody who only lets go
        assert take_or_renew_lease(session, "upkeep", "another", now + timedelta(seconds=30))


def test_of_two_upkeeps_one_holds_the_lease_until_it_is_gone(engine: Engine) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=30)
    with writing(engine) as session:
        assert take_or_renew_lease(session, "upkeep", "one", soon)
    with writing(engine) as session:
        assert not take_or_renew_lease(session, "upkeep", "two", soon)
        assert take_or_renew_lease(session, "upkeep", "one", datetime.now(UTC) - timedelta(seconds=1))
    with writing(engine) as session:
        assert take_or_renew_lease(session, "upkeep", "two", soon)


def test_a_wrapped_move_is_read_in_a_live_match_of_a_model_and_no_persons_is(
    engine: Engine, settings: Settings, desk: DeskMaker, stub: StubServer
) -> None:
    stub.script("wrapping", "```\n[message] Good day.\n```")
    spec = {"base_url": stub.url, "model": "wrapping", "key_env": "", "retries": 0}
    with writing(engine) as session:
        row = add_api_model(session, "wrapping", None, ["negotiation"], spec)
        record = start_match_against(session, settings, "negotiation", row)
    person = person_in(record)
    if record.match.to_move != person:
        assert play_turn(desk(), record.id)
    tried = live.MoveSubmission(record.id, person, '"[message] hi"')
    assert live.commit(engine, tried, instant=True).answer.violation == "no_prefix"
    live.commit(engine, replace(tried, text="[message] hi"), instant=True)
    assert play_turn(desk(), record.id)
    assert now(engine, record).match.view(person).transcript[-1].text == "[message] Good day."
    row_now = match_row(engine, record)
    assert row_now.config["lenient"] is True
    assert row_now.lenient_moves == row_now.ply - 1  # all but the person's
