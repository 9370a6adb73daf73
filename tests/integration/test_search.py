"""Matches are found by what was said in them and by their figures, and both databases find the same."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from flask import Flask
from flask_migrate import downgrade, upgrade
from sqlalchemy import Engine, Table, delete, func, select, text

from app.backup.tables import tables_of
from app.core.errors import Invalid
from app.core.extensions import db, reading, transact, writing
from app.matches import live
from app.matches.erasing import erase_texts
from app.matches.filter import conditions, read_choice
from app.matches.stored import StoredMatch, StoredSeat, load
from app.matches.text_index import rebuild_index
from app.models import MatchRow, MatchText
from app.registry import PERSON
from app.schema import allow_migrations
from tests.experimenter import signed_in
from tests.shell import Finished

DEAL = ("[propose] (1 books, 2 hats, 0 balls)", "[propose] (0 books, 0 hats, 3 balls)")
NO_DEAL = ("[propose] (1 books, 2 hats, 3 balls)", "[propose] (1 books, 2 hats, 3 balls)")


def talk(engine: Engine, *said: str, moves: Sequence[str] = DEAL) -> str:
    """A negotiation of two people that say this and then end it; its id."""
    config = {"counts": [1, 2, 3], "values": [[1, 3, 1], [4, 0, 2]], "first": 0}
    with writing(engine) as session:
        seats = StoredSeat(PERSON), StoredSeat(PERSON)
        record = live.create(session, "negotiation", config, seats, seed=7, source="live", instant=True)
    for each in (*said, *moves):
        record = say(engine, record, each)
    return record.id


def say(engine: Engine, record: StoredMatch, words: str) -> StoredMatch:
    seat = record.match.to_move
    assert seat is not None
    return live.commit(engine, live.MoveSubmission(record.id, seat, words), instant=True).record


def found(engine: Engine, **choice: Any) -> set[str]:
    with reading(engine) as session:
        return set(session.scalars(select(MatchRow.id).where(*conditions(read_choice(choice)))))


def test_words_phrases_beginnings_and_what_was_not_said(engine: Engine) -> None:
    hats = talk(engine, "[message] I take BOTH hats, don't I?", "[message] Nein, für Straße und Café")
    balls = talk(engine, "[message] Both of us want the hats", "[message] 黒猫が好き")
    expected = {
        "both hats": {hats, balls}, '"both hats"': {hats}, "both -take": {balls}, "don't": {hats},
        '-"both hats"': {balls},
        "STRASSE": {hats}, "cafe\u0301": {hats}, "caf*": {hats}, "caf": set(), "猫": {balls}, '"both of" us': {balls},
        '"bo"*': {hats, balls}, '"take bo"*': {hats}, "propose": {hats, balls}, '"hats don"': {hats},
        '"café propose"': set(),  # no phrase goes from one line into the next
        "bread": set(), "-bread": {hats, balls}, "OR hats": set(), "hats NOT take": set(),
    }  # fmt: skip
    assert {asked: found(engine, text=asked) for asked in expected} == expected


@pytest.mark.parametrize(
    "asked",
    ['"', '""', "-", "*", "-*", '"*', "' OR 1=1 --", "a:b", "NEAR(a b)", "(", "{words}:x", "^a", "a & !b | c <-> d",
     "%", "_", "\\", "\x00", "\u200d", "🙂", "a\u00a0b\tc", "-" * 200, '"a ' * 60, "¶", "\ud800", ":*", "'':*"],
)  # fmt: skip
def test_every_text_is_a_query(engine: Engine, asked: str) -> None:
    talk(engine, "[message] yes")
    assert found(engine, text=asked) <= {*found(engine)}


def test_an_empty_search_finds_all_and_one_without_a_word_none(engine: Engine) -> None:
    one = talk(engine, "[message] yes")
    assert (found(engine, text=" "), found(engine, text="!?")) == ({one}, set())
    with pytest.raises(Invalid, match="text: expected at most 200 characters, got 201"):
        found(engine, text="a" * 201)


def test_figures_bound_matches(engine: Engine) -> None:
    deal, lost = talk(engine, "[message] yes", "nonsense"), talk(engine, "[message] no", "[message] no", moves=NO_DEAL)
    none = talk(engine, "[message] well", moves=())
    asked = {"joint_score>0": {deal}, "lower_score<1, moves=4": {lost}, "refused >= 1": {deal}, "words>0": {deal, lost}}
    assert {each: found(engine, figures=each) for each in asked} == asked
    assert none not in found(engine, figures="moves>=0")  # it goes on
    for wrong in ("refused", "score>1", "refused>=2x", "moves>1;drop", "moves>1e999"):
        with pytest.raises(Invalid, match="figures: expected bounds such as refused>=2, of lower_score, higher_score"):
            found(engine, figures=wrong)


def test_moves_write_no_column_that_has_an_index(engine: Engine) -> None:
    begun = talk(engine, "[message] well", moves=())

    def cells() -> dict[str, object]:
        with reading(engine) as session:
            row = session.get_one(MatchRow, begun)
            return {column.key: getattr(row, column.key) for index in indexes for column in index.columns}

    indexes = cast(Table, MatchRow.__table__).indexes
    before = cells()
    with writing(engine) as session:
        record = load(session, begun)
    say(engine, say(engine, record, "nonsense"), "[message] no")
    assert cells() == before  # else PostgreSQL writes into all of the indexes with each move


def test_deleted_words_are_found_no_more_and_the_partners_still_are(engine: Engine) -> None:
    match_id = talk(engine, "[message] my secret wish", "[message] your public answer")
    with writing(engine) as session:
        erase_texts(session, match_id, [0])
    assert (found(engine, text="secret"), found(engine, text="wish"), found(engine, text="public")) == (
        set(), set(), {match_id},
    )  # fmt: skip
    with reading(engine) as session:
        assert "secret" not in session.scalars(select(MatchText.words)).one()


def test_a_match_that_is_deleted_leaves_no_words(engine: Engine) -> None:
    talk(engine, "[message] yes")
    with writing(engine) as session:
        session.execute(delete(MatchRow))
    with reading(engine) as session:
        assert session.scalar(select(func.count()).select_from(MatchText)) == 0


def test_the_index_is_made_anew_and_old_matches_come_into_it(engine: Engine) -> None:
    one, other = talk(engine, "[message] first words"), talk(engine, "[message] other words")
    with writing(engine) as session:
        session.execute(delete(MatchText).where(MatchText.match_id == one))
    assert found(engine, text="words") == {other}
    assert rebuild_index(transact(engine)) == 2
    assert found(engine, text="words") == {one, other}


def test_pages_commands_exports_and_the_api_find_the_same(
    app: Flask, engine: Engine, flask: Callable[..., Finished]
) -> None:
    hats, _ = talk(engine, "[message] both hats"), talk(engine, "[message] hats for both")
    client = signed_in(app)
    asked = {"text": '"both hats"', "figures": "moves>1"}
    page = client.get("/admin/matches", query_string=asked).text
    assert page.count('id="line-') == 1
    assert f"line-{hats}" in page
    exported = client.get("/admin/export/matches.csv", query_string=asked).text.splitlines()
    assert [line.split(",")[0] for line in exported[1:]] == [hats]
    listed = flask("match", "list", "--text", asked["text"], "--figures", "moves>1", "--columns", "match", "--csv")
    assert listed.stdout.split() == ["match", hats]


def test_the_migration_indexes_what_is_there(app: Flask) -> None:
    one = talk(db.engine, "[message] Café, both hats", "[message] yes")
    allow_migrations(app)
    with reading() as session:
        before = session.execute(select(MatchText.match_id, MatchText.words)).all()
    downgrade(revision="0053")
    with db.engine.connect() as connection:
        assert not [table.name for table in tables_of(connection) if table.name.startswith("match_text")]
    upgrade()
    with reading() as session:
        assert session.execute(select(MatchText.match_id, MatchText.words)).all() == before
    assert found(db.engine, text='"CAFÉ both" ye*') == {one}
    with db.engine.connect() as connection:
        assert [table.name for table in tables_of(connection) if table.name.startswith("match_text")] == ["match_text"]
        assert connection.scalar(text("SELECT count(*) FROM match_text")) == 1
