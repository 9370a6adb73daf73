"""The API while others write: no match is missed or read twice, and what has a key is done once."""

import threading
import time
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, func, insert, select, text, update
from sqlalchemy.orm import Session
from werkzeug.test import TestResponse

from app.core.extensions import reading, writing
from app.matches.arrival import forget_numbers_of_another_server
from app.matches.store import NewMatch, insert_matches
from app.matches.stored import StoredSeat, opened
from app.models import MatchRow, RoundRow
from app.registry import PERSON
from tests.programs import Program, read_on, until

ROUND = {"game": "taboo", "models": ["scripted"], "matches": 2, "seed": 7}


@pytest.fixture
def program(app: Flask) -> Program:
    return Program(app, "read", "run")


def new_matches(count: int, seed: int = 0) -> list[NewMatch]:
    seats = StoredSeat(PERSON), StoredSeat(PERSON)
    return [NewMatch(opened("taboo", {"word": "cake"}, seats, seed + each), "selfplay") for each in range(count)]


def add(session: Session, count: int, seed: int = 0) -> list[str]:
    """Store so many new matches; their ids."""
    begun = new_matches(count, seed)
    insert_matches(session, begun)
    return [each.record.id for each in begun]


def add_many(engine: Engine, count: int) -> None:
    """Store so many matches without their logs, as quickly as can be."""
    with writing(engine) as session:
        [one] = add(session, 1)
        row = session.execute(select(MatchRow.__table__).where(MatchRow.id == one)).mappings().one()
        rows = [{**row, "id": f"{one[:10]}{each:012}"} for each in range(count - 1)]
        session.execute(insert(MatchRow), rows)


def test_no_match_is_missed_or_read_twice_while_a_thousand_more_come_in(
    app: Flask, engine: Engine, program: Program
) -> None:
    add_many(engine, 10_000)
    begun, written = threading.Event(), list[str]()

    def write(seed: int) -> None:
        begun.wait()
        for number in range(50):
            with writing(engine) as session:
                ids = add(session, 10, seed + number)
                time.sleep(0.005)  # in which the other one draws later numbers and may commit first
            written.extend(ids)

    writers = [threading.Thread(target=write, args=(seed,)) for seed in (0, 1_000_000)]
    for writer in writers:
        writer.start()
    seen: list[str] = []
    cursor: str | None = None
    for ids, behind in read_on(program, None, "limit=200"):
        begun.set()
        seen += ids
        cursor = behind
    while any(writer.is_alive() for writer in writers):
        for ids, behind in read_on(program, cursor, "limit=200"):
            seen += ids
            cursor = behind
    seen += until(program, cursor, 11_000 - len(seen))[0]
    with reading() as session:
        assert session.scalar(select(func.count()).select_from(MatchRow)) == 11_000
    assert len(written) == 1_000
    assert len(seen) == len({*seen}) == 11_000


@pytest.mark.postgresql_alone  # one transaction writes at a time
def test_a_match_that_is_committed_after_later_ones_is_not_passed_by(
    app: Flask, engine: Engine, program: Program
) -> None:
    with writing() as session:
        first = add(session, 1)
    seen, cursor = until(program, None, 1)
    assert seen == first
    with Session(engine) as slow, slow.begin():
        held = add(slow, 1)
        with writing() as session:
            later = add(session, 1)
        assert [ids for ids, _ in read_on(program, cursor)] == [[]]  # the later one is there, and has to wait
    seen, cursor = until(program, cursor, 2)
    assert seen == held + later
    assert until(program, cursor, 0) == ([], cursor)


def test_the_place_behind_the_last_match_stays_good(app: Flask, program: Program) -> None:
    assert program.get("/matches") == {"items": [], "next": None, "more": False}
    with writing() as session:
        first = add(session, 3)
    seen, cursor = until(program, None, 3)
    assert sorted(seen) == sorted(first)
    page = program.get(f"/matches?limit=200&cursor={cursor}")
    assert page == {"items": [], "next": cursor, "more": False}
    with writing() as session:
        session.execute(text('DELETE FROM "match"'))  # as an import that was aborted takes its matches away
        second = add(session, 2)
    assert sorted(until(program, cursor, 2)[0]) == sorted(second)


def test_matches_of_a_database_that_was_moved_to_another_server_are_read(
    app: Flask, engine: Engine, program: Program
) -> None:
    with writing() as session:
        moved = add(session, 2)
        session.execute(update(MatchRow).values(inserted_in=10**15))
    with writing() as session:
        forget_numbers_of_another_server(session)
    assert sorted(until(program, None, 2)[0]) == sorted(moved)
    if engine.dialect.name == "postgresql":
        with reading() as session:
            assert {*session.scalars(select(MatchRow.inserted_in))} == {0}


def test_of_requests_with_one_key_at_the_same_moment_one_creates_the_job(
    app: Flask, program: Program, enqueued_jobs: list[Any]
) -> None:
    answers: list[TestResponse] = []
    start = threading.Barrier(4)

    def send() -> None:
        start.wait()
        answers.append(program.post("/rounds", ROUND, key="once"))

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.status_code for answer in answers] == [201] * 4
    assert len({answer.data for answer in answers}) == 1
    with reading() as session:
        assert session.scalar(select(func.count()).select_from(RoundRow)) == 1
    assert enqueued_jobs == [("round", 1)]
