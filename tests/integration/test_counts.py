"""Matches that are over are counted as they end: whatever happens to them, a count from scratch finds the same."""

import random
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask_migrate import downgrade, upgrade
from sqlalchemy import Engine, event, func, select, update
from sqlalchemy.orm import Session

from app.analysis.headline import headline
from app.analysis.reading import chosen_tables
from app.analysis.rounds import analyse
from app.analysis.running_mean import running_means
from app.core.errors import Invalid
from app.core.extensions import db, reading, transact, writing
from app.datasets import rounds as imported
from app.matches import counts
from app.matches.erasing import end_by_leaving, erase_texts
from app.matches.filter import MatchFilter, conditions
from app.matches.transcripts import facets
from app.models import MatchCount, MatchRow, RoundRow
from app.registry import add_scripted_model
from app.rounds.listing import score
from app.rounds.transcripts import latest_over
from app.schema import allow_migrations
from tests.integration.test_cli_import import LINES
from tests.integration.test_search import NO_DEAL, talk
from tests.rounds import make_round, play
from tests.shell import Finished

CHOICES: list[dict[str, Any]] = [
    {}, {"reason": "deal"}, {"player": "person"}, {"player": "scripted"}, {"source": "selfplay"}, {"source": "import"},
    {"game": "negotiation", "player": "person", "source": "live"}, {"game": "taboo"}, {"status": "playing"},
    {"source": "live", "status": "over", "reason": "no deal"},
]  # fmt: skip


def kept_and_found(engine: Engine, choice: dict[str, Any]) -> tuple[int, int]:
    """How many matches that are over a filter chooses: by the counts that are kept, and one by one."""
    chosen = MatchFilter(**choice)
    number = select(func.count()).select_from(MatchRow).where(*conditions(chosen), MatchRow.status == "over")
    with reading(engine) as session:
        return counts.count_over(session, chosen), session.scalar(number) or 0


def take_in(engine: Engine, folder: Path, *, broken: bool) -> None:
    """Import dialogues of people; a broken import takes back what it had written."""
    folder.mkdir(exist_ok=True)
    (folder / "data.txt").write_text(LINES * 150)
    wanted = imported.dialogues(str(folder / "data.txt"))

    def matches() -> Iterator[Any]:
        for place, each in enumerate(wanted.source):
            if broken and place == 250:
                raise Invalid("data.txt", expected="a dialogue", got="none")
            yield each

    try:
        imported.take_in(transact(engine), wanted, matches(), 300, "imported", 15)
    except Invalid:
        assert broken


@pytest.mark.parametrize("seed", [1, 2])
def test_a_recount_finds_what_was_counted_whatever_happened(
    app: Flask, engine: Engine, tmp_path: Path, seed: int
) -> None:
    draw, settings = random.Random(seed), app.config["SETTINGS"]
    ended: list[str] = []

    def people() -> None:
        ended.append(
            talk(engine, "[message] hats", moves=draw.choice([NO_DEAL, ("[propose] (0 books, 0 hats, 0 balls)",) * 2]))
        )

    def leave() -> None:
        left = talk(engine, "[message] I have to go", moves=())
        with writing(engine) as session:
            assert end_by_leaving(session, left, draw.randrange(2))

    def erase() -> None:
        if ended:
            with writing(engine) as session:
                erase_texts(session, draw.choice(ended), [0, 1])

    def selfplay() -> None:
        game = draw.choice(["negotiation", "taboo"])
        number = make_round(engine, "scripted", game=game, matches=draw.randrange(1, 12), seed=draw.randrange(99))
        play(engine, settings, number, workers=2)

    happenings: list[Callable[[], Any]] = [
        people, people, leave, erase, selfplay, lambda: talk(engine, "[message] still here", moves=()),
        lambda: take_in(engine, tmp_path, broken=draw.random() < 0.5), lambda: counts.merge(engine),
    ]  # fmt: skip
    for happen in [*happenings, *draw.choices(happenings, k=16)]:
        happen()
    found = counts.recount(engine)
    assert not found.differences
    kept = [kept_and_found(engine, choice) for choice in CHOICES]
    assert [one for one, _ in kept] == [
        other if "status" not in choice or choice["status"] == "over" else 0
        for choice, (_, other) in zip(CHOICES, kept, strict=True)
    ]
    assert kept[0][0] == found.matches > 300
    assert kept[1][0] > 0


def test_counts_that_agree_are_added_up(engine: Engine) -> None:
    for _ in range(45):
        talk(engine, "[message] hats", moves=NO_DEAL)
    talk(engine, "[message] a", "[message] b")
    counts.merge(engine)
    with reading(engine) as session:
        rows = session.execute(select(MatchCount.reason, MatchCount.matches).order_by(MatchCount.reason)).all()
        assert [tuple(row) for row in rows] == [("deal", 1), ("no deal", 45)]
        assert facets(session, MatchFilter())["reason"] == {"no deal": 45, "deal": 1}


def test_the_scores_of_a_round_are_those_of_its_matches(app: Flask, engine: Engine) -> None:
    number = make_round(engine, "scripted", matches=20, swap_seats=True)
    play(engine, app.config["SETTINGS"], number)
    with reading(engine) as session:
        over = session.execute(select(MatchRow.reason, MatchRow.utility_0, MatchRow.utility_1)).all()
        found = score(session, number)
    assert len(over) == 20
    assert found.mean == pytest.approx(sum(first + second for _, first, second in over) / 40)
    assert found.share == max(sum(row.reason == reason for row in over) for reason in {row.reason for row in over}) / 20


def test_a_command_finds_what_is_wrong_and_puts_it_right(engine: Engine, flask: Callable[..., Finished]) -> None:
    talk(engine, "[message] a", "[message] b"), talk(engine, "[message] hats", moves=NO_DEAL)
    assert flask("match", "recount").stdout == "Counted 2 matches. The counts were right.\n"
    with writing(engine) as session:
        session.execute(update(MatchCount).where(MatchCount.reason == "deal").values(matches=7))
    told = flask("match", "recount").stdout
    assert "game negotiation, source live, reason deal" in told
    assert "1 matches instead of 7" in told
    assert kept_and_found(engine, {"reason": "deal"}) == (1, 1)
    assert flask("match", "recount").stdout == "Counted 2 matches. The counts were right.\n"


def test_the_migration_counts_what_is_there(app: Flask, tmp_path: Path) -> None:
    talk(db.engine, "[message] hats", moves=NO_DEAL), talk(db.engine, "[message] still here", moves=())
    take_in(db.engine, tmp_path, broken=False)
    allow_migrations(app)
    downgrade(revision="0062")
    upgrade()
    found = counts.recount(db.engine)
    assert (found.matches, found.differences) == (301, ())


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)  # PostgreSQL keeps statistics, and chooses by them
def test_what_is_read_of_a_round_is_not_looked_for_among_all_matches_that_are_over(app: Flask, engine: Engine) -> None:
    with writing(engine) as session:
        add_scripted_model(session, "other", None, {})
    number = make_round(engine, "scripted", "other", matches=12)
    play(engine, app.config["SETTINGS"], number)
    asked: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_more: Any) -> None:
        asked.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", note)
    with writing(engine) as session:
        row = session.get_one(RoundRow, number)
        assert headline(session, row) is not None
        assert len(running_means(session, number)) == 12
        assert latest_over(session, number)
        assert analyse(session, [number])
        counts.count_ended(session, session.scalars(select(MatchRow.id)).all())
    event.remove(engine, "before_cursor_execute", note)
    assert len(asked) > 5
    with engine.connect() as connection:
        for statement, parameters in asked:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
            assert "ix_match_to_play" not in str(plan), statement


READERS: dict[str, Callable[[Session], Any]] = {
    "counted": lambda session: facets(session, MatchFilter())["player"],
    "latest": lambda session: facets(session, MatchFilter(since=date(2020, 1, 1)))["player"],
    "analysed": lambda session: chosen_tables(session, MatchFilter()),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_model_that_is_added_and_plays_while_matches_are_counted_is_no_error(
    app: Flask, engine: Engine, reader: str
) -> None:
    play(engine, app.config["SETTINGS"], make_round(engine, "scripted", matches=2))
    added: list[int] = []

    def add(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        read = " ".join(statement.split())
        if read == "SELECT language_model.id, language_model.name FROM language_model" and not added:
            added.append(0)
            with writing(engine) as session:
                add_scripted_model(session, "newcomer", None, {})
            play(engine, app.config["SETTINGS"], make_round(engine, "newcomer", matches=1))

    event.listen(engine, "after_cursor_execute", add)
    try:
        with reading(engine) as session:
            assert READERS[reader](session)
    finally:
        event.remove(engine, "after_cursor_execute", add)
    assert added
