"""A round is played whole, the same however it is played, and is neither lost nor doubled by what goes wrong."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain, pairwise, repeat
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Connection, Engine, event, func, select, update
from sqlalchemy.orm import Session

from app.core.config import Settings
from app.core.errors import Conflict, Invalid, NotFound
from app.core.extensions import reading, writing
from app.jobs import states
from app.jobs.leases import MOST_DEATHS
from app.matches import export
from app.matches.filter import read_choice
from app.matches.sweep import take_forgotten_turns
from app.models import EventRow, GenerationRow, MatchRow, RoundRange, RoundRow
from app.registry import add_api_model, get_model
from app.rounds import lifecycle, ranges, runner
from app.rounds.job import ROUND
from app.rounds.listing import waits_behind
from tests.model_servers import changing
from tests.rounds import CONTEXTS, add_models, calls_of, check, facts, haggler, make_round, play, row_of
from tests.stack import PATIENCE, wait_until
from tests.stub_openai import GARBAGE, HALF, Messages, Reply, StubServer, hanging, rate_limited


@pytest.fixture
def settings(app: Flask) -> Settings:
    # So long that no slow machine loses it.
    return app.config["SETTINGS"].model_copy(update={"ROUND_LEASE": PATIENCE, "ROUND_PATIENCE": 20.0})


@pytest.fixture(scope="module")
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        server.script("haggler", haggler)
        yield server


Takes = list[tuple[str, ranges.LeasedRange]]


@pytest.fixture
def takes(monkeypatch: pytest.MonkeyPatch) -> Takes:
    """Who has taken which part, in this order."""
    made: Takes = []
    take = ranges.take

    def recorded(session: Session, round_id: int, owner: str, *rest: Any) -> ranges.LeasedRange | None:
        if taken := take(session, round_id, owner, *rest):
            made.append((owner, taken))
        return taken

    monkeypatch.setattr(ranges, "take", recorded)
    return made


# ---- The same round, however it is played ---------------------------------------


@pytest.mark.parametrize("game", ["negotiation", "taboo"])
def test_scripted_rounds_are_the_same_by_one_worker_and_by_three(engine: Engine, settings: Settings, game: str) -> None:
    first, second = (make_round(engine, "scripted", game=game, matches=60, seed=3) for _ in range(2))
    play(engine, settings, first)
    play(engine, settings, second, workers=3)
    assert check(engine, first, 60) == check(engine, second, 60)


def test_matches_that_came_together_are_written_twenty_at_a_time_while_others_wait(
    engine: Engine, settings: Settings, stub: StubServer
) -> None:
    may_answer = threading.Event()

    def patient(messages: Messages) -> str:
        may_answer.wait(PATIENCE)
        return haggler(messages)

    stub.script("patient", patient)
    add_models(engine, stub.url, "patient", in_flight=64)
    number, before = make_round(engine, "patient", matches=64), len(stub.requests)

    def hold() -> None:
        """Keep the database from the round until nearly all of its matches have something to write down."""
        wait_until(lambda: len(stub.requests) >= before + 60, "a call in each match")
        with writing(engine) as session:
            lifecycle.lock(session, number)
            may_answer.set()
            wait_until(lambda: len(stub.requests) >= before + 110, "a second call in most of them")

    written: list[dict[str, int]] = [{}]

    def count(connection: Connection) -> None:
        of_each = select(EventRow.match_id, func.count()).group_by(EventRow.match_id)
        written.append({row[0]: row[1] for row in connection.execute(of_each)})

    event.listen(engine, "commit", count)
    holder = threading.Thread(target=hold)
    holder.start()
    play(engine, settings, number)
    holder.join()
    event.remove(engine, "commit", count)
    together = [sum(old.get(match) != new[match] for match in new) for old, new in pairwise(written)]
    assert max(together) == 20


@pytest.mark.either_database
def test_a_round_of_a_model_is_the_same_with_1_7_or_64_calls_in_flight(
    engine: Engine, settings: Settings, stub: StubServer
) -> None:
    told = []
    for in_flight in (1, 7, 64):
        name = f"haggler-{in_flight}"
        stub.script(name, haggler)
        add_models(engine, stub.url, name, in_flight=in_flight)
        round_id = make_round(engine, name, matches=40)
        play(engine, settings, round_id)
        told.append([{**match, "seats": None} for match in check(engine, round_id, 40).values()])
        assert row_of(engine, round_id).violations > 0  # the model breaks rules, too
    assert told[0] == told[1] == told[2]


def test_what_a_round_costs_is_counted(engine: Engine, settings: Settings, stub: StubServer) -> None:
    add_models(engine, stub.url, "haggler")
    round_id = make_round(engine, "haggler", "scripted", matches=12)
    play(engine, settings, round_id)
    told, row = check(engine, round_id, 12), row_of(engine, round_id)
    assert row.calls == calls_of(told) > 12
    assert row.completion_tokens >= sum(match["figures"][3] for match in told.values()) > 0
    assert row.prompt_tokens > row.completion_tokens


def test_swapped_seats_let_either_model_play_either_side(engine: Engine, settings: Settings, stub: StubServer) -> None:
    add_models(engine, stub.url, "haggler")
    round_id = make_round(engine, "haggler", "scripted", matches=6, swap_seats=True)
    play(engine, settings, round_id)
    told = check(engine, round_id, 6)
    for index in (0, 2, 4):
        assert [seat[2] for seat in told[index]["seats"]] == [seat[2] for seat in told[index + 1]["seats"]][::-1]
        assert told[index]["config"] == told[index + 1]["config"]


# ---- Stopped and gone on with ------------------------------------------------------


@pytest.mark.either_database
def test_a_cancelled_round_waits_for_no_answer_and_can_be_resumed(
    engine: Engine, settings: Settings, stub: StubServer
) -> None:
    stub.script("slow", Reply(haggler, delay=0.5))
    add_models(engine, stub.url, "slow", in_flight=16)
    round_id = make_round(engine, "slow", matches=60)
    thread = threading.Thread(target=play, args=(engine, settings, round_id))
    thread.start()
    wait_until(lambda: row_of(engine, round_id).finished > 3, "some matches that are over")
    with writing(engine) as session:
        assert ROUND.cancel(session, round_id).status == states.CANCELLING
    stub.script("slow", hanging(3600))
    thread.join(PATIENCE)
    assert not thread.is_alive()
    row = row_of(engine, round_id)
    assert row.status == states.CANCELLED
    assert 0 < row.finished < 60
    before = facts(engine, round_id)
    assert any(match["status"] == "playing" for match in before.values())
    stub.script("slow", haggler)
    with writing(engine) as session:
        ROUND.resume(session, round_id, queued=False)
    play(engine, settings, round_id)
    after = check(engine, round_id, 60)
    for index, match in before.items():
        assert after[index]["log"][: len(match["log"])] == match["log"]
    undisturbed = make_round(engine, "slow", matches=60)
    play(engine, settings, undisturbed)
    assert facts(engine, undisturbed) == after


def test_a_round_that_nobody_plays_is_cancelled_at_once(engine: Engine) -> None:
    round_id = make_round(engine, "scripted")
    with writing(engine) as session:
        assert ROUND.cancel(session, round_id).status == states.CANCELLED


def test_workers_that_write_at_once_lose_no_name_that_another_has_heard(
    engine: Engine, settings: Settings, stub: StubServer
) -> None:
    """Each name but the last comes once, so that one which is lost never comes back."""
    names = [f"m-{number}" for number in range(10)]
    stub.answer_with("m", changing(chain(*([name, *["m-9"] * 11] for name in names), repeat("m-9"))))
    add_models(engine, stub.url, "m")
    number = make_round(engine, "m", matches=60)
    play(engine, settings, number, workers=3)
    with reading(engine) as session:
        heard = set(session.scalars(select(GenerationRow.model)))
        [kept] = (session.get_one(RoundRow, number).returned_models or {}).values()
    assert heard == set(kept) == set(names)


# One at a time: then most matches of what is taken away were not begun.
@pytest.mark.parametrize(("in_flight", "matches"), [(8, 24), (1, 8)])
def test_a_worker_that_lost_its_lease_writes_nothing_any_more(
    engine: Engine, settings: Settings, stub: StubServer, takes: Takes, in_flight: int, matches: int
) -> None:
    stub.script("slow", Reply(haggler, delay=0.1))
    add_models(engine, stub.url, "slow", in_flight=in_flight)
    round_id = make_round(engine, "slow", matches=matches)

    robbed: list[tuple[str, int]] = []

    def rob() -> None:
        wait_until(lambda: row_of(engine, round_id).moves > 2, "some moves")
        held = select(RoundRange).where(RoundRange.round_id == round_id, RoundRange.lease_owner.is_not(None))
        with writing(engine) as session:
            for each in session.scalars(held):
                robbed.append((str(each.lease_owner), each.start))
                each.lease_owner = "a thief"

    thief = threading.Thread(target=rob)
    thief.start()
    play(engine, settings.model_copy(update={"ROUND_LEASE": 2.0}), round_id, workers=2)
    thief.join()
    check(engine, round_id, matches)
    assert robbed
    for owner, start in robbed:
        took = [(worker, part.leases) for worker, part in takes if part.start == start]
        assert took[0] == (owner, 0)
        assert (
            took[1][1] == 1
        )  # when the thief's lease had run out: the round did not end by the worker who had lost it


def test_a_part_whose_worker_died_is_taken_over_by_another(engine: Engine, settings: Settings, takes: Takes) -> None:
    round_id = make_round(engine, "scripted", matches=12)
    with writing(engine) as session:
        left = ranges.take(session, round_id, "a dead worker", -1)
    assert left is not None
    play(engine, settings, round_id, workers=2)
    check(engine, round_id, 12)
    dead, *others = takes
    assert dead == ("a dead worker", left)
    assert sorted((part.start, part.leases) for _, part in others) == [(0, 1), (4, 0), (8, 0)]
    assert "a dead worker" not in {owner for owner, _ in others}


def test_a_round_is_lent_no_part_of_an_earlier_one(engine: Engine) -> None:
    earlier, later = (make_round(engine, "scripted", matches=1) for _ in range(2))
    with writing(engine) as session:
        assert ranges.take(session, later, "one", 60) is not None
        assert ranges.take(session, later, "another", 60) is None
        assert ranges.take(session, earlier, "another", 60) is not None


def test_leases_are_renewed_while_a_model_keeps_them_waiting(
    engine: Engine, settings: Settings, stub: StubServer
) -> None:
    released = threading.Event()
    stub.script("kept", lambda messages: haggler(messages) if released.wait(PATIENCE) else "")
    add_models(engine, stub.url, "kept", in_flight=1)
    round_id = make_round(engine, "kept", matches=1)

    def lease_end() -> datetime | None:
        with reading(engine) as session:
            return session.scalar(select(RoundRange.lease_until).where(RoundRange.round_id == round_id))

    short = settings.model_copy(update={"ROUND_LEASE": 3.0})
    worker = threading.Thread(target=play, args=(engine, short, round_id), daemon=True)
    worker.start()
    try:
        for _ in range(2):
            wait_until(lambda: lease_end() is not None, "a lease")
            until = lease_end()
            wait_until(lambda until=until: (lease_end() or until) > until, "a lease that is renewed")
    finally:
        released.set()
        worker.join(PATIENCE)
    check(engine, round_id, 1)


def test_a_worker_that_slept_longer_than_its_lease_plays_on_where_it_was(
    engine: Engine, settings: Settings, stub: StubServer
) -> None:
    stub.script("slow", Reply(haggler, delay=0.1))
    add_models(engine, stub.url, "slow", in_flight=64)  # more than there are matches, so that it looks for others
    round_id = make_round(engine, "slow", matches=12)
    long_ago = datetime(2026, 1, 1, tzinfo=UTC)
    held = update(RoundRange).where(RoundRange.lease_until.is_not(None)).values(lease_until=long_ago)
    with reading(engine) as session:
        starts = session.scalars(select(RoundRange.start).where(RoundRange.round_id == round_id)).all()
    awake = threading.Event()

    def let_leases_lapse() -> None:
        while not awake.wait(0.05):
            for start in starts:  # one each time: the workers lock several, in an order of their own
                with writing(engine) as session:
                    session.execute(held.where(RoundRange.start == start))

    sleep = threading.Thread(target=let_leases_lapse)
    sleep.start()
    play(engine, settings, round_id)
    awake.set()
    sleep.join()
    check(engine, round_id, 12)


def test_parts_that_kill_their_workers_stop_the_round(engine: Engine, settings: Settings) -> None:
    round_id = make_round(engine, "scripted", matches=8)
    long_ago = datetime(2026, 1, 1, tzinfo=UTC)
    died = {"lease_owner": "the last that died", "lease_count": MOST_DEATHS - 1, "lease_until": long_ago}
    with writing(engine) as session:
        session.execute(update(RoundRange).where(RoundRange.start == 0).values(**died))
    play(engine, settings, round_id)
    row = row_of(engine, round_id)
    assert row.status == states.FAILED
    assert row.error == "10 workers died while playing the matches 0 to 3; `flask round resume` tries them again"
    with writing(engine) as session:
        ROUND.resume(session, round_id, queued=False)
    play(engine, settings, round_id)
    check(engine, round_id, 8)


# ---- Models that do not answer -------------------------------------------------------


def test_a_server_that_is_busy_or_talks_nonsense_costs_no_match(
    engine: Engine, settings: Settings, stub: StubServer
) -> None:
    trouble = [rate_limited(0.2), rate_limited(), Reply("Oh.", status=500), GARBAGE, Reply(body=b""), HALF]
    stub.script("moody", *trouble, haggler)
    add_models(engine, stub.url, "moody", in_flight=4)
    round_id = make_round(engine, "moody", matches=10)
    play(engine, settings, round_id)
    told, row = check(engine, round_id, 10), row_of(engine, round_id)
    assert (row.aborted, row.error) == (0, None)
    assert row.failed_calls == len(trouble)
    stub.script("moody", haggler)
    calm = make_round(engine, "moody", matches=10)
    play(engine, settings, calm)
    assert facts(engine, calm) == told


def test_a_server_that_falls_silent_is_waited_for(engine: Engine, settings: Settings, stub: StubServer) -> None:
    stub.script("asleep", *[hanging(3600)] * 3, haggler)
    add_models(engine, stub.url, "asleep", in_flight=3, timeout=1)
    round_id = make_round(engine, "asleep", matches=5)
    play(engine, settings, round_id)
    check(engine, round_id, 5)
    assert row_of(engine, round_id).failed_calls == 3


def test_a_model_that_stays_away_stops_the_round_and_nothing_is_aborted(
    engine: Engine, settings: Settings, stub: StubServer
) -> None:
    stub.script("gone", haggler, haggler, Reply("The server had an error.", status=500))
    add_models(engine, stub.url, "gone", in_flight=1)
    round_id = make_round(engine, "gone", matches=5)
    play(engine, settings.model_copy(update={"ROUND_PATIENCE": 1.0}), round_id)
    row = row_of(engine, round_id)
    assert (row.status, row.aborted) == (states.FAILED, 0)
    assert row.error is not None
    assert row.error.startswith("no answer for 1 s: gone at ")
    stub.script("gone", haggler)
    with writing(engine) as session:
        ROUND.resume(session, round_id, queued=False)
    play(engine, settings, round_id)
    check(engine, round_id, 5)


def test_a_round_whose_model_is_away_gives_its_worker_back_and_loses_no_patience(
    engine: Engine, settings: Settings, stub: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "HOLD", 0.1)
    add_models(engine, "http://127.0.0.1:9/v1", "away")  # nothing listens there
    round_id = make_round(engine, "away", matches=5, queued=True)

    def change(**values: Any) -> None:
        with writing(engine) as session:
            session.execute(update(RoundRow).where(RoundRow.id == round_id).values(enqueued_at=None, **values))

    def is_called() -> bool:
        with writing(engine) as session:
            return round_id in ROUND.take_unattended(session)

    play(engine, settings, round_id)  # comes back, long before the patience of 20 s has run out
    row = row_of(engine, round_id)
    assert (row.status, row.aborted, row.error is not None) == (states.WAITING, 0, True)
    assert row.retry_at is not None
    assert row.retry_at > datetime.now(UTC)
    assert not is_called()
    with writing(engine) as session:
        assert not lifecycle.begin(session, round_id)  # a late message changes nothing
    long_ago = datetime.now(UTC) - timedelta(seconds=25)
    change(retry_at=datetime.now(UTC) - timedelta(seconds=1), away_since=long_ago)
    assert is_called()
    play(engine, settings, round_id)
    row = row_of(engine, round_id)
    assert (row.status, row.aborted) == (states.FAILED, 0)
    assert (row.error or "").startswith("no answer for 20 s: away at ")
    with writing(engine) as session:
        model = get_model(session, "away")
        model.options = {**model.options, "base_url": stub.url, "model": "haggler"}
        ROUND.resume(session, round_id, queued=True)
    play(engine, settings, round_id)
    check(engine, round_id, 5)


def test_a_waiting_round_names_the_rounds_that_workers_are_busy_with(engine: Engine) -> None:
    busy, waiting, terminal = (make_round(engine, "scripted", queued=number < 2) for number in range(3))
    with writing(engine) as session:
        for number in (busy, terminal):
            lifecycle.begin(session, number)
            ranges.take(session, number, "somebody", 60)
        rows = [ROUND.get(session, number) for number in (busy, waiting, terminal)]
        assert waits_behind(session, rows) == {busy: [], waiting: [busy], terminal: []}
        rows[1].retry_at = datetime.now(UTC) + timedelta(seconds=60)
        assert waits_behind(session, rows)[waiting] == []  # it waits for a model


def test_a_key_that_is_refused_stops_the_round_at_once(engine: Engine, settings: Settings, stub: StubServer) -> None:
    stub.script("locked", Reply("Incorrect API key.", status=401))
    add_models(engine, stub.url, "locked")
    round_id = make_round(engine, "locked", matches=5)
    before = len(stub.requests_of("locked"))
    play(engine, settings, round_id)
    assert len(stub.requests_of("locked")) - before <= 5  # none was tried again
    row = row_of(engine, round_id)
    assert (row.status, row.finished) == (states.FAILED, 0)
    assert row.error is not None
    assert "HTTP 401" in row.error


def test_a_round_calls_no_host_that_is_not_allowed_and_follows_no_redirect(
    engine: Engine, settings: Settings, stub: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub.script("m", haggler)
    stub.script("mover", Reply(status=307, headers={"Location": "http://169.254.169.254/latest/meta-data"}))
    add_models(engine, stub.url, "m", "mover", retries=0)
    added = make_round(engine, "m", matches=3)
    monkeypatch.setenv("API_HOSTS", "api.openai.com")  # since the model was added
    before = len(stub.requests)
    play(engine, settings, added)
    assert len(stub.requests) == before
    assert "expected a host that API_HOSTS allows (api.openai.com), got '127.0.0.1'" in (
        row_of(engine, added).error or ""
    )
    monkeypatch.delenv("API_HOSTS")
    moved = make_round(engine, "mover", matches=3)
    play(engine, settings, moved)
    assert "a redirect (HTTP 307) that leads to 169.254.169.254, and none is followed" in (
        row_of(engine, moved).error or ""
    )
    for number in (added, moved):
        assert (row_of(engine, number).status, row_of(engine, number).finished) == (states.FAILED, 0)


def test_a_model_that_always_breaks_the_rules_aborts_every_match(
    engine: Engine, settings: Settings, stub: StubServer
) -> None:
    add_models(engine, stub.url, "stub-broken", in_flight=16)
    round_id = make_round(engine, "stub-broken", matches=20)
    play(engine, settings, round_id)
    told = check(engine, round_id, 20)
    assert row_of(engine, round_id).aborted == 20
    assert {match["end"][0] for match in told.values()} == {"aborted"}
    assert all(match["figures"][1] == 5 for match in told.values())


def test_a_request_that_is_refused_aborts_its_match_alone(engine: Engine, settings: Settings, stub: StubServer) -> None:
    stub.script("narrow", Reply("This model's maximum context length is 10 tokens.", status=400), haggler)
    add_models(engine, stub.url, "narrow", in_flight=1)
    round_id = make_round(engine, "narrow", matches=4)
    play(engine, settings, round_id)
    told = check(engine, round_id, 4)
    assert [match["end"][0] == "aborted" for match in told.values()] == [True, False, False, False]


# ---- What cannot be -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"matches": 0}, "matches: expected a whole number from 1 to 1000000, got 0"),
        ({"matches": 10**9}, "matches: expected a whole number from 1 to 1000000, got 1000000000"),
        ({"matches": 5, "swap_seats": True}, "matches: expected an even number where seats are swapped, got 5"),
        ({"pick": "best"}, "pick: expected in-order or shuffled or random, got 'best'"),
        ({"config": {"objective": 3}}, "config.objective: expected self, coop, comp or a number from -1 to 1, got 3"),
        ({"sampling": {"temperature": 9}}, "sampling.temperature: expected a number from 0 to 2, got 9"),
        (
            {"config": {"counts": [1, 1, 1], "values": [[1, 1, 8], [8, 1, 1]]}, "material": CONTEXTS},
            "config: expected no counts where a test gives each match its own, got one",
        ),
    ],
)
def test_a_round_that_cannot_be_is_refused_in_one_line(engine: Engine, changes: dict, message: str) -> None:
    with pytest.raises(Invalid) as refused:
        make_round(engine, "scripted", **changes)
    assert refused.value.message == message
    with reading(engine) as session:
        assert session.scalar(select(func.count()).select_from(RoundRow)) == 0


def test_models_of_another_game_are_refused(engine: Engine, stub: StubServer) -> None:
    with writing(engine) as session:
        options = {"model": "x", "base_url": stub.url, "key_env": ""}
        add_api_model(session, "only-taboo", None, ["taboo"], options)
    with pytest.raises(NotFound) as refused:
        make_round(engine, "only-taboo")
    assert (
        refused.value.message
        == "models: expected one that plays negotiation and is usable in rounds (scripted), got 'only-taboo'"
    )


def test_a_round_that_is_over_is_neither_cancelled_nor_resumed(engine: Engine, settings: Settings) -> None:
    round_id = make_round(engine, "scripted", matches=4)
    play(engine, settings, round_id)
    for change in (
        lambda session: ROUND.cancel(session, round_id),
        lambda session: ROUND.resume(session, round_id, queued=True),
    ):
        with pytest.raises(Conflict), writing(engine) as session:
            change(session)
    check(engine, round_id, 4)


def test_matches_of_rounds_are_not_taken_for_turns_that_were_forgotten(
    engine: Engine, settings: Settings, stub: StubServer
) -> None:
    stub.script("slow", Reply(haggler, delay=5))
    add_models(engine, stub.url, "slow")
    round_id = make_round(engine, "slow", matches=4)
    waiting = select(MatchRow).where(MatchRow.round_id == round_id, MatchRow.model_to_move)

    def all_wait() -> bool:
        with reading(engine) as session:
            return len(session.scalars(waiting).all()) == 4

    play(engine, settings, round_id, until=all_wait)
    with writing(engine) as session:
        for match in session.scalars(waiting):
            match.moved_at = datetime(2026, 1, 1, tzinfo=UTC)
        session.flush()
        assert len(session.scalars(waiting).all()) == 4
        assert not take_forgotten_turns(session)


# ---- Moves that a model wrapped --------------------------------------------------------------


def wrapping(messages: Messages) -> str:
    """The haggler's moves in bold, behind a label."""
    return f"Assistant: **{haggler(messages)}**"


def test_a_new_round_reads_wrapped_moves_and_counts_them(engine: Engine, settings: Settings, stub: StubServer) -> None:
    stub.script("wrapping", wrapping)
    stub.script("plain", haggler)
    add_models(engine, stub.url, "wrapping", "plain")
    wrapped, plain = (make_round(engine, name, matches=6) for name in ("wrapping", "plain"))
    for number in (wrapped, plain):
        play(engine, settings, number)
    row = row_of(engine, wrapped)
    assert row.config["lenient"] is True
    assert row.lenient_moves == row.moves > 12
    assert row_of(engine, plain).lenient_moves == 0
    with reading(engine) as session:
        matches = session.scalars(select(MatchRow).where(MatchRow.round_id == wrapped)).all()
        assert [each.lenient_moves for each in matches] == [each.ply for each in matches]
        assert all(each.config["lenient"] for each in matches)
        talk = select(EventRow.body).where(EventRow.kind == "message", EventRow.match_id == matches[0].id)
        body = session.scalars(talk.limit(1)).one()
        assert body["original"] == f"Assistant: **{body['text']}**"
        rows = [*export.rows(session, export.MOVES, read_choice({"round": str(wrapped)}))]
        (original,) = [column for column in export.MOVES.columns if column.name == "original"]
        assert {original.read(each) for each in rows} == {f"Assistant: **{each.body['text']}**" for each in rows}


def test_a_round_that_is_not_to_read_so_refuses_them_and_so_does_one_of_before(
    engine: Engine, settings: Settings, stub: StubServer
) -> None:
    stub.script("wrapping", wrapping)
    add_models(engine, stub.url, "wrapping")
    without = make_round(engine, "wrapping", matches=2, lenient=False)
    play(engine, settings, without)
    row = row_of(engine, without)
    assert "lenient" not in row.config  # as in rounds of before
    assert (row.moves, row.lenient_moves, row.aborted) == (0, 0, 2)
    with reading(engine) as session:
        assert not lifecycle.spec_of(session, row).lenient
