"""Rounds as figures, read from a real database: one, several, unfinished, imported, and cross-play."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median

import pytest
from flask import Flask
from sqlalchemy import Engine, event, select, update

from app.analysis.crossplay import cross_play
from app.analysis.rounds import RoundAnalysis, analyse
from app.core.config import Settings
from app.core.errors import NotFound
from app.core.extensions import reading, writing
from app.models import LanguageModel, MatchRow, SeatRow
from app.rounds import matrix
from app.rounds.spec import RoundSpec
from tests.rounds import CONTEXTS, WORDS, add_models, haggler, make_round, play
from tests.stub_openai import Messages, StubServer


@pytest.fixture
def settings(app: Flask) -> Settings:
    settings: Settings = app.config["SETTINGS"]
    return settings


@pytest.fixture(scope="module")
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        server.script("haggler", haggler)
        server.script("guesser", guess)
        yield server


def guess(messages: Messages) -> str:
    """In taboo a player that now and then guesses, whatever its role."""
    drawn = hashlib.sha256(repr(messages).encode()).digest()[0]
    return f"I know the word! It is `{WORDS.items[drawn % 7]}`!" if drawn % 3 else "It is a thing."


def figures(engine: Engine, *round_ids: int) -> list[RoundAnalysis]:
    with reading(engine) as session:
        return analyse(session, round_ids)


def matches_of(engine: Engine, *round_ids: int) -> list[MatchRow]:
    with reading(engine) as session:
        found = select(MatchRow).where(MatchRow.round_id.in_(round_ids), MatchRow.status == "over")
        return list(session.scalars(found))


def scores_of(engine: Engine, model: str, round_ids: list[int], *seats: int) -> list[float]:
    """What a model got in those seats, match by match."""
    with reading(engine) as session:
        sat = (
            select(MatchRow, SeatRow.seat)
            .join(SeatRow, SeatRow.match_id == MatchRow.id)
            .join(LanguageModel, LanguageModel.id == SeatRow.language_model_id)
            .where(MatchRow.round_id.in_(round_ids), LanguageModel.name == model, SeatRow.seat.in_(seats))
        )
        return [row.utility_1 if seat else row.utility_0 for row, seat in session.execute(sat)]


def test_a_round_of_two_models_is_told_as_its_matches_have_it(
    engine: Engine, settings: Settings, stub: StubServer
) -> None:
    add_models(engine, stub.url, "haggler")
    round_id = make_round(engine, "haggler", "scripted", matches=40, swap_seats=True)
    play(engine, settings, round_id)
    [found] = figures(engine, round_id)
    rows = matches_of(engine, round_id)
    columns = {name: figure.value for name, figure in found.metrics.columns.items()}
    scores = [score for row in rows for score in (row.utility_0 or 0, row.utility_1 or 0)]
    assert (found.matches, found.planned, found.complete, found.state) == (40, 40, True, "done")
    assert found.partner_weight == 0
    assert columns["score_mean"] == pytest.approx(mean(scores))
    assert columns["score_median"] == median(scores)
    assert columns["messages_mean"] == pytest.approx(mean(row.ply for row in rows))
    assert columns["words_mean"] == pytest.approx(mean(row.words or 0 for row in rows))
    assert columns["tokens_mean"] == pytest.approx(mean(row.tokens for row in rows if row.tokens is not None))
    assert columns["agreement_rate"] == mean(bool(row.agreed) for row in rows)
    assert columns["violations_mean"] == pytest.approx(mean(row.violations for row in rows))
    assert columns["violations_mean"] > 0
    parts = {part.player: part.columns["score_mean"].value for part in found.metrics.parts}
    assert parts == {
        name: pytest.approx(mean(scores_of(engine, name, [round_id], 0, 1))) for name in ("haggler", "scripted")
    }


def test_rounds_stand_side_by_side_in_the_order_asked_for(engine: Engine, settings: Settings) -> None:
    negotiation = make_round(engine, "scripted", config={"objective": "comp"})
    taboo = make_round(engine, "scripted", game="taboo")
    for round_id in (negotiation, taboo):
        play(engine, settings, round_id)
    first, second = figures(engine, taboo, negotiation, taboo)
    assert (first.round_id, first.game, first.partner_weight) == (taboo, "taboo", None)
    assert (second.round_id, second.game, second.partner_weight) == (negotiation, "negotiation", -1)
    assert second.metrics.columns["score_mean"].value == pytest.approx(0)
    assert sum(outcome.matches for outcome in first.metrics.outcomes) == 30
    assert [part.role for part in first.metrics.parts] == ["attacker", "defender"]


def test_an_unfinished_round_is_told_as_far_as_it_is_and_says_so(engine: Engine, settings: Settings) -> None:
    round_id = make_round(engine, "scripted", matches=20)
    [empty] = figures(engine, round_id)
    assert (empty.matches, empty.complete, empty.metrics.columns) == (0, False, {})
    assert empty.players == ("scripted",)
    play(engine, settings, round_id)
    with writing(engine) as session:
        session.execute(update(MatchRow).where(MatchRow.index >= 5).values(status="playing"))
    [found] = figures(engine, round_id)
    assert (found.matches, found.planned, found.complete) == (5, 20, False)
    assert found.metrics.columns["messages_mean"].value == mean(row.ply for row in matches_of(engine, round_id))


def test_an_imported_round_names_players_that_are_in_no_registry(app: Flask, engine: Engine, tmp_path: Path) -> None:
    said = ["It purrs.", "I know the word! It is `cat`!"]
    history = [{"role": role, "content": text} for role, text in zip(("attacker", "defender"), said, strict=True)]
    file = tmp_path / "episodes.json"
    file.write_text(json.dumps([{"history": history, "target_word": "cat", "max_turns": 5}] * 3))
    run = app.test_cli_runner().invoke(args=["import", "spag", str(file), "--player", "GPT-4", "--json"])
    [found] = figures(engine, json.loads(run.stdout)["round_id"])
    assert (found.source, list(found.players), found.complete) == ("import", ["GPT-4"], True)
    assert found.metrics.columns["defender_wins_rate"].value == 1
    assert found.metrics.columns["turns_mean"].value == 1
    assert found.metrics.columns["tokens_mean"].value is None


@pytest.mark.parametrize("game", ["negotiation", "taboo"])
def test_cross_play_is_a_matrix_of_mean_scores(engine: Engine, settings: Settings, stub: StubServer, game: str) -> None:
    other = "haggler" if game == "negotiation" else "guesser"
    add_models(engine, stub.url, other)
    spec = RoundSpec(game=game, models=(other, "scripted"), cross_play=True, matches=10, seed=3, pick="in-order")
    material = CONTEXTS if game == "negotiation" else WORDS
    with writing(engine) as session:
        ids = [row.id for row in matrix.create(session, spec, material, queued=False)]
    play(engine, settings, ids[0])
    with reading(engine) as session:
        begun = cross_play(session, ids[0])
    assert (begun.matches, begun.complete, list(begun.players)) == (10, False, [other, "scripted"])
    assert {(cell.row, cell.column) for cell in begun.cells} == {(other, other)}
    for round_id in ids[1:]:
        play(engine, settings, round_id)
    with reading(engine) as session:
        found = cross_play(session, ids[0])
    assert found.complete
    cells = {(cell.row, cell.column, cell.role): cell for cell in found.cells}
    if game == "negotiation":
        assert len(cells) == 4
        theirs = mean(scores_of(engine, "scripted", [ids[1]], 0, 1))
        assert cells["scripted", other, None].score.value == pytest.approx(theirs)
        alone = mean(scores_of(engine, other, [ids[0]], 0, 1))
        assert cells[other, other, None].score.value == pytest.approx(alone)
    else:
        assert len(cells) == 8
        theirs = mean(scores_of(engine, "scripted", [ids[1]], 1))  # the other attacks in it, scripted defends
        assert cells["scripted", other, "defender"].score.value == pytest.approx(theirs)
        assert cells["scripted", other, "defender"].matches == 10


def test_what_there_is_not_is_not_found(engine: Engine) -> None:
    with reading(engine) as session:
        with pytest.raises(NotFound, match="got 99"):
            analyse(session, [99])
        with pytest.raises(NotFound, match="got 99"):
            cross_play(session, 99)


def test_no_event_log_is_read(engine: Engine, settings: Settings) -> None:
    round_id = make_round(engine, "scripted", matches=5)
    play(engine, settings, round_id)
    asked: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        asked.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        figures(engine, round_id)
    finally:
        event.remove(engine, "before_cursor_execute", note)
    assert asked
    assert [statement for statement in asked if "event" in statement or "generation" in statement] == []
