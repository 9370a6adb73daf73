"""docs/adding-a-game.md is followed as it stands: its files make a game that is played, exported and learned."""

import csv
import io
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from flask import Flask
from jinja2 import ChoiceLoader, DictLoader
from sqlalchemy import Engine, select, update

from app import games
from app.analysis.rounds import analyse
from app.campaigns.job import CampaignKind
from app.campaigns.steps import take_steps
from app.core.config import ROOT, Settings
from app.core.errors import Invalid
from app.core.extensions import reading, writing
from app.games.base import Game
from app.games.metrics import COMMON
from app.jobs.context import JobContext
from app.matches import live
from app.matches.stored import StoredSeat, load
from app.models import Campaign, MatchRow, RecipeStep, RoundRow
from app.players import prompts, scripted
from app.players.base import PlayerSpec
from app.registry import PERSON, ensure_baselines
from app.rounds.job import ROUND, RoundKind
from app.web import tickets
from tests import jobs
from tests.campaigns import campaign_form
from tests.datasets import cut, own_moves, rows_of
from tests.experimenter import signed_in
from tests.rounds import check, make_round, play, round_form, row_of

DOC = (ROOT / "docs" / "adding-a-game.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The code blocks of a language that are whole files: they begin with a docstring or a tag."""
    return re.findall(rf"```{language}\n(.*?)```", DOC, re.DOTALL)


def module(name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module with that text, to be imported by that name."""
    made = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, made)
    exec(compile(text, "docs/adding-a-game.md", "exec"), made.__dict__)  # noqa: S102
    return made


@pytest.fixture
def settings(app: Flask) -> Settings:
    return app.config["SETTINGS"]  # type: ignore[no-any-return]


@pytest.fixture
def chain(app: Flask, engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Game[Any]]:
    """The game of the page, installed, and known to the scripted player of the registry."""
    rules, package, baseline, _ = blocks("python")
    module("app.games.chain.rules", rules, monkeypatch)
    game: Game[Any] = module("app.games.chain", package, monkeypatch).GAME
    monkeypatch.setitem(games.GAMES, game.name, game)
    players = module("app.players.scripted.chain", baseline, monkeypatch)
    monkeypatch.setitem(scripted.SCRIPTED, game.name, players.SCRIPTED_GAME)
    for name in games.GAMES:
        (tmp_path / name).symlink_to(prompts.FOLDER / name) if name != game.name else (tmp_path / name).mkdir()
    (tmp_path / game.name / "full-1.txt").write_text(blocks("text")[0], encoding="utf-8")
    monkeypatch.setattr(prompts, "FOLDER", tmp_path)
    fragment = DictLoader({"games/chain.html": blocks("html")[0]})
    app.jinja_loader = ChoiceLoader([app.jinja_loader, fragment])  # type: ignore[list-item, misc]
    for cached in (prompts._templates, prompts._sections):
        cached.cache_clear()
    with writing(engine) as session:
        ensure_baselines(session, small_models=False)
    yield game
    for cached in (prompts._templates, prompts._sections):
        cached.cache_clear()


def test_the_game_of_the_page_can_be_played(app: Flask, engine: Engine, chain: Game[Any]) -> None:
    model = StoredSeat("model", None, PlayerSpec("api", "x"))
    with writing(engine) as session:
        seats = StoredSeat(PERSON), model
        config = {"letter": "c", "limit": 4}
        record = live.create(session, "chain", config, seats, seed=1, source="live", instant=True)

    def say(seat: int, text: str) -> live.MoveReply:
        ply = record.match.ply
        return live.commit(
            engine, live.MoveSubmission(record.id, seat, text, f"{ply}-{text}", None), instant=True
        ).answer

    client = app.test_client()
    ticket = tickets.issue(app.config["SETTINGS"], record.id, 0)
    page = client.get(f"/play/{record.id}?ticket={ticket}", follow_redirects=True)
    assert page.status_code == 200
    assert "The first letter is" in page.text

    assert say(0, "dog").message == "Please say a word that begins with c."
    assert say(0, "Candle").ok
    with reading(engine) as session:
        waiting = load(session, record.id)
    chat = prompts.messages(waiting.match.view(1), waiting.match.prompts[1] or {})
    assert chat[0]["content"].endswith("Your partner began with:\n\nCandle")
    assert 'begins with "c"' in chat[0]["content"]
    for seat, word in ((1, "egg"), (0, "goat"), (1, "tea")):
        assert say(seat, word).ok
    with reading(engine) as session:
        over = load(session, record.id).match
    assert over.ended is not None
    assert (over.ended.reason, over.ended.utilities) == ("chain complete", (4, 4))
    assert chain.utility_range(config) == (4, 4)
    result = client.get(f"/play/{record.id}/result")
    assert result.status_code == 200
    assert "goat" in result.text


def round_of_a_match(engine: Engine, match: str) -> int:
    """A round that has this match alone; its number."""
    with writing(engine) as session:
        row = RoundRow(
            name="chains", game="chain", source="import", config={}, matches=1, finished=1, seed=1, pick="in-order",
            sampling={}, status="done", queued=False, created_at=datetime.now(UTC),
        )  # fmt: skip
        session.add(row)
        session.flush()
        session.execute(update(MatchRow).where(MatchRow.id == match).values(round_id=row.id, index=0))
        return row.id


def over(engine: Engine) -> str:
    """A match of two people that is over; its id."""
    with writing(engine) as session:
        seats = StoredSeat(PERSON), StoredSeat(PERSON)
        record = live.create(session, "chain", {"letter": "c", "limit": 2}, seats, seed=1, source="live", instant=True)
    for seat, word in ((0, "candle"), (1, "egg")):
        assert live.commit(engine, live.MoveSubmission(record.id, seat, word), instant=True).answer.ok
    return record.id


def test_its_rounds_have_the_figures_that_all_games_have(app: Flask, engine: Engine, chain: Game[Any]) -> None:
    client = signed_in(app)
    number = round_of_a_match(engine, over(engine))
    for path in (f"rounds/{number}", f"rounds/{number}?tab=charts", "matches/analysis?game=chain"):
        assert client.get(f"/admin/{path}").status_code == 200, path
    page = client.get(f"/admin/rounds/{number}").text
    for words in ("Mean score: 2.00", "Messages in a match", "chain complete"):
        assert words in page
    with reading(engine) as session:
        [found] = analyse(session, [number])
    assert list(found.metrics.columns) == list(COMMON.columns)


def test_a_metric_of_its_own_is_shown(
    app: Flask, engine: Engine, chain: Game[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    defined: dict[str, Any] = {}
    exec(compile(blocks("python")[-1], "docs/adding-a-game.md", "exec"), defined)  # noqa: S102
    monkeypatch.setattr(type(chain), "metrics", defined["METRICS"])
    number = round_of_a_match(engine, over(engine))
    assert "Complete chains" in signed_in(app).get(f"/admin/rounds/{number}").text
    with reading(engine) as session:
        [found] = analyse(session, [number])
    assert found.metrics.columns["complete_rate"][0] == 1


def test_guests_start_it_from_the_home_page_with_options_made_from_its_config(app: Flask, chain: Game[Any]) -> None:
    client = app.test_client()
    home = client.get("/").text
    assert re.search(r'<label for="chain-limit">Words</label>\s*<p class="hint">Then the chain is complete.</p>', home)
    assert client.post("/start/chain", data={"limit": "101"}).status_code == 400
    started = client.post("/start/chain", data={"limit": "4"})
    assert started.status_code == 303
    assert client.get(started.location).status_code == 200
    app.config["SETTINGS"] = app.config["SETTINGS"].model_copy(update={"GUEST_CONFIG": False})
    refused = client.post("/api/matches", json={"game": "chain", "config": {"letter": "q"}})
    assert (refused.status_code, "no letter from a guest" in refused.text) == (403, True)


def test_a_bad_config_is_refused_by_field(chain: Game[Any]) -> None:
    for raw, field in (({"limit": "1"}, "limit"), ({"letter": "ab"}, "letter"), ({"words": 3}, "config")):
        with pytest.raises(Invalid) as refused:
            chain.config(raw)
        assert refused.value.field == field


def test_its_moves_cannot_be_asked_for_as_json_before_it_says_in_which_form(engine: Engine, chain: Game[Any]) -> None:
    with pytest.raises(Invalid) as refused:
        make_round(engine, "scripted", game="chain", material=None, sampling={"structured": True})
    assert refused.value.message == "structured: expected a game whose moves can be asked for as JSON, got 'chain'"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)  # the trainings take long; other games' run on both
def test_it_is_played_in_a_round_exported_and_learned(
    app: Flask, engine: Engine, settings: Settings, chain: Game[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RoundKind, "enqueue", lambda *_, **_queue: None)
    client = signed_in(app)
    page = client.get("/admin/rounds/new?game=chain")
    assert (page.status_code, 'name="limit"' in page.text, 'name="contexts"' in page.text) == (200, True, False)
    form = round_form("chain") | {"matches": "60"}
    estimated = client.post("/admin/rounds/new", data=form | {"action": "estimate"})
    assert estimated.status_code == 200
    refused = client.post("/admin/rounds/new", data=form | {"limit": "1"})
    assert (refused.status_code, "a whole number from 2 to 100" in refused.text) == (400, True)
    started = client.post("/admin/rounds/new", data=form | {"limit": "4"})
    assert (started.status_code, started.location) == (303, "/admin/rounds/1")
    assert row_of(engine, 1).config == {"limit": 4, "lenient": True}
    play(engine, settings, 1)
    check(engine, 1, 60)
    for tab in ("summary", "charts", "transcripts", "settings", "log"):
        assert client.get(f"/admin/rounds/1?tab={tab}").status_code == 200
    assert client.get("/admin/rounds/new?like=1").text.count('name="limit" type="text" value="4"') == 1
    exported = client.get("/admin/export/matches.csv?round=1")
    told = list(csv.DictReader(io.StringIO(exported.text)))
    assert {(row["game"], row["reason"], row["utility_0"]) for row in told} == {("chain", "chain complete", "4")}
    match = told[0]["match_id"]
    assert client.get(f"/admin/matches/{match}").status_code == 200
    moves = client.get("/admin/export/moves.csv?round=1")
    assert moves.text.count("\n") >= 60 * 4

    dataset = cut(engine, settings.home, "words", rounds=[1], filter="all", style="full")
    rows = rows_of(settings.home, dataset)
    assert len(rows) == 120
    assert {word for row in rows for word in own_moves(engine, row)} & {"apple", "earth", "night"}
    assert jobs.run(
        engine, settings, jobs.make_job(engine, dataset, "learner", epochs=12, width=32, learning_rate=0.01)
    )

    monkeypatch.setattr(CampaignKind, "enqueue", lambda *_, **_queue: None)
    new = client.get("/admin/campaigns/new?game=chain&base=learner")
    assert (new.status_code, 'name="limit"' in new.text, "held out" in new.text) == (200, True, False)
    wanted = campaign_form("chain", "learner")
    wanted |= {"iterations": "1", "matches": "120", "evaluation": "24", "limit": "2", "partners": []}
    wanted |= {"filter": "all", "evaluation_temperature": "none", "epochs": "1", "name": "loop", "seed": "1"}
    begun = client.post("/admin/campaigns/new", data=wanted)
    assert (begun.status_code, begun.location) == (303, "/admin/campaigns/1"), begun.text
    while (part := take_steps(JobContext(engine, settings, "a worker"), 1)) is not None:
        if part.kind is ROUND:
            play(engine, settings, part.number)
        else:
            assert jobs.run(engine, settings, part.number)
    with reading(engine) as session:
        row = session.get_one(Campaign, 1)
        assert (row.status, row.error) == ("done", None), row.error
        figures = session.scalars(
            select(RecipeStep.figures).where(RecipeStep.name.startswith("evaluate")).order_by(RecipeStep.place)
        ).all()
        assert [found["messages_mean"]["n"] for found in figures if found] == [24, 24]
    page = client.get("/admin/campaigns/1")
    assert (page.status_code, "loop-1" in page.text) == (200, True)
    assert client.get("/admin/campaigns").status_code == 200
    assert client.get("/admin/matches/analysis?game=chain").status_code == 200
