"""What pages read of many matches and rounds: by their plans and rows, as seconds are of no use to a test."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, event, select, text

from app.analysis.reading import chosen_tables, extent, matches_of, sampled_indexes
from app.analysis.tournaments import TournamentChoice, tournament_matches
from app.cleanup.listing import CleanupFilter, candidates
from app.core.extensions import reading, writing
from app.matches import transcripts
from app.matches.filter import MatchFilter
from app.matches.overview import overview
from app.models import LanguageModel, MatchRow, RoundRow, SeatRow
from app.registry import add_scripted_model
from app.rounds.listing import open_rounds
from app.spend import call_sums
from app.web.admin.home_charts import small_charts
from app.web.admin.home_parts import people_today
from bench.page_costs import fill


@pytest.fixture
def many(app: Flask, engine: Engine) -> Engine:
    """A database with ten thousand matches and 52 rounds, all over."""
    with writing(engine) as session:
        add_scripted_model(session, "second", None, session.scalars(select(LanguageModel).limit(1)).one().options)
    with engine.begin() as connection:
        fill(connection)
        if engine.dialect.name == "postgresql":
            connection.execute(text("ANALYZE"))
    return engine


@contextmanager
def asked(engine: Engine | type[Engine]) -> Iterator[list[tuple[str, Any]]]:
    """The statements that are made meanwhile, with their values."""
    found: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, values: Any, *_rest: Any) -> None:
        if statement.startswith("SELECT"):
            found.append((statement, values))

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(engine, "before_cursor_execute", note)


def plan_of(engine: Engine, statement: str, values: Any) -> Any:
    """How the database makes a statement: lines on SQLite, and on PostgreSQL the nodes of the plan, with their rows."""
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            return [row[-1] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)]
        found = connection.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", values).scalar_one()
        return list(_nodes((json.loads(found) if isinstance(found, str) else found)[0]["Plan"]))


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from _nodes(part)


def rows_read(nodes: list[dict[str, Any]], table: str) -> int:
    """The rows of a table that PostgreSQL looks at."""
    return sum(
        (each["Actual Rows"] + each.get("Rows Removed by Filter", 0)) * each["Actual Loops"]
        for each in nodes
        if each.get("Relation Name") == table
    )


def test_todays_matches_of_people_are_counted_without_their_rows(many: Engine, app: Flask) -> None:
    # Not today's own midnight: just after it hardly a match is of the day, and PostgreSQL may take any index.
    midnight = datetime.now(UTC) - timedelta(hours=20)
    with app.test_request_context(), reading(many) as session, asked(many) as statements:
        overview(session, datetime.now(UTC), midnight)
        people_today(session, midnight)
        small_charts(session, midnight)
    wanted = [
        each for each in statements if "match.started_at >=" in each[0].replace('"', "") and "seat" not in each[0]
    ]
    assert len(wanted) == 3
    for statement, values in wanted:
        plan = plan_of(many, statement, values)
        if many.dialect.name == "sqlite":
            found = [line for line in plan if "match" in line]
            assert found
            assert all("SEARCH match USING COVERING INDEX ix_match_source_started" in line for line in found)
        else:
            assert {each["Index Name"] for each in plan if "Index Name" in each} == {"ix_match_source_started"}


def test_matches_of_a_long_round_are_counted_by_day_by_their_index(many: Engine, app: Flask) -> None:
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    with writing(many) as session:
        row = session.get_one(RoundRow, 1)
        row.started_at, row.ended_at = midnight - timedelta(days=90), midnight
    with app.test_request_context(), reading(many) as session, asked(Engine) as statements:
        small_charts(session, midnight)
    [counted] = [each for each in statements if "match.ended_at >=" in each[0].replace('"', "")]
    plan = plan_of(many, *counted)
    if many.dialect.name == "sqlite":
        found = [line for line in plan if "match" in line]
        assert found
        assert all("SEARCH match USING COVERING INDEX ix_match_round_ended" in line for line in found)
    else:
        assert {each["Index Name"] for each in plan if "Index Name" in each} == {"ix_match_round_ended"}


def test_a_leaderboard_reads_the_matches_that_are_drawn_once_and_no_seats_of_rounds(many: Engine) -> None:
    with reading(many) as session, asked(many) as statements:
        [found] = tournament_matches(session, TournamentChoice(), 500)
    assert 300 < found.results.matches.sum() < 500  # the others were aborted
    [drawn] = [each for each in statements if "LIMIT" in each[0]]
    plan = plan_of(many, *drawn)
    if many.dialect.name == "postgresql":
        assert 500 <= rows_read(plan, "match") <= 1_000  # each once, and none that is not drawn
        assert rows_read(plan, "seat") == 0
    else:
        read = [line.removesuffix(" LEFT-JOIN") for line in plan if "USING" in line and "seat" not in line]
        assert read == [
            "SCAN match USING INDEX sqlite_autoindex_match_1", "SEARCH round_1 USING INTEGER PRIMARY KEY (rowid=?)"
        ]  # fmt: skip
        seats = [line for line in plan if "USING" in line and "seat" in line]
        assert seats
        assert all("USING INDEX sqlite_autoindex_seat_1 (match_id=?" in line for line in seats)


def test_a_sample_of_a_round_is_read_without_seats_and_as_they_are(many: Engine) -> None:
    with reading(many) as session, asked(many) as statements:
        found = matches_of(session, [2], sampled_indexes(session.get_one(RoundRow, 2), 500))
        [chosen] = chosen_tables(session, MatchFilter(round=2), 500).values()
        assert extent(session, MatchFilter(round=2), 500)[0] == 501
    assert not [statement for statement, _ in statements if "seat." in statement.replace("swap_seat", "")]
    assert len(found) == len(chosen) == 500
    assert (found.utility == chosen.utility).all()
    with reading(many) as session:
        seats = select(MatchRow.index, LanguageModel.name).join(SeatRow, SeatRow.match_id == MatchRow.id)
        seats = seats.join(LanguageModel).where(MatchRow.round_id == 2, SeatRow.seat == 0)
        first = dict(session.execute(seats.order_by(MatchRow.index)).all())
        whole = matches_of(session, [2])
    assert [whole.players[number] for number in whole.player[:, 0]] == [*first.values()]
    assert len(set(first.values())) == 2


def test_what_could_be_removed_is_listed_without_reading_all_rounds_for_each(many: Engine, app: Flask) -> None:
    with reading(many) as session, asked(many) as statements:
        assert len(candidates(session, app.config["SETTINGS"].home, CleanupFilter("round"))) == 50
    of_talk = [each for each in statements if "talk_of = " in each[0]]
    assert len(of_talk) == 50
    if many.dialect.name == "sqlite":
        assert not [line for line in plan_of(many, *of_talk[0]) if line.startswith("SCAN round")]


def test_of_a_players_many_matches_only_those_that_are_drawn_are_read(many: Engine) -> None:
    with reading(many) as session, asked(many) as statements:
        name = session.scalars(select(LanguageModel.name).order_by(LanguageModel.id).limit(1)).one()
        assert extent(session, MatchFilter(player=name), 300)[0] == 301
    [sample] = [each for each in statements if "LIMIT" in each[0] and "max(" in each[0]]
    plan = plan_of(many, *sample)
    if many.dialect.name == "postgresql":
        assert rows_read(plan, "match") <= 1_000
    else:
        assert next(line for line in plan if "match" in line).endswith("match USING INDEX sqlite_autoindex_match_1")


def test_open_rounds_are_found_without_reading_those_that_are_over(many: Engine) -> None:
    with reading(many) as session, asked(many) as statements:
        assert open_rounds(session) == []
    if many.dialect.name == "sqlite":
        lines = [line for statement in statements for line in plan_of(many, *statement)]
        assert lines
        assert not [line for line in lines if line.startswith("SCAN round")]


def test_players_of_the_latest_matches_are_counted_by_the_seats_of_peoples_alone(
    many: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcripts, "MOST_COUNTED", 500)
    with reading(many) as session, asked(many) as statements:
        found = transcripts.facets(session, MatchFilter(since=datetime(2020, 1, 1, tzinfo=UTC).date()))
    people, models = found["source"]["live"], found["source"]["selfplay"]
    assert people + models == 500
    assert sorted(found["player"].values()) == sorted((people, models, 500))  # one model plays everywhere
    assert found["player"]["person"] == people
    [seats] = [each for each in statements if "seat.seat" in each[0] and "LIMIT" in each[0]]
    plan = plan_of(many, *seats)
    if many.dialect.name == "postgresql":
        assert rows_read(plan, "seat") == 2 * people
        assert rows_read(plan, "match") <= 1_000
    else:
        lines = [line for line in plan if line.startswith("SEARCH seat") and "enrolment_id" not in line]
        assert len(lines) == 2, plan
        assert all("(match_id=? AND seat=?)" in line for line in lines)


def test_calls_since_a_day_are_not_searched_for_where_earlier_ones_are_summed(many: Engine) -> None:
    call_sums.recount(many)
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    with writing(many) as session:
        session.execute(text("UPDATE generation SET at = :now WHERE id > 9900"), {"now": midnight.replace(tzinfo=None)})
    with reading(many) as session, asked(many) as statements:
        list(call_sums.CallsSince(session, midnight).latest())
    assert len(statements) <= 4
