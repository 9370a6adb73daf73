"""docs/adding-a-game.md is taken at its word: its files make a game that is stored, shown, prompted and replayed."""

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from flask import Flask
from jinja2 import ChoiceLoader, DictLoader
from sqlalchemy import Engine

from app import games
from app.config import ROOT
from app.extensions import reading, writing
from app.matches import live
from app.matches.stored import StoredSeat, load
from app.players import prompts
from app.players.base import PlayerSpec
from app.registry import PERSON
from app.web import tickets

DOC = (ROOT / "docs" / "adding-a-game.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    """The first code block of a language."""
    found = re.search(rf"```{language}\n(.*?)```", DOC, re.DOTALL)
    assert found
    return found[1]


@pytest.fixture
def chain(app: Flask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The game of the page, installed."""
    module = ModuleType("app.games.chain")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(block("python"), "docs/adding-a-game.md", "exec"), module.__dict__)  # noqa: S102
    monkeypatch.setitem(games.GAMES, "chain", module.CHAIN)
    folder = tmp_path / "chain"
    folder.mkdir()
    (folder / "full-1.txt").write_text(block("text"), encoding="utf-8")
    monkeypatch.setattr(prompts, "FOLDER", tmp_path)
    app.jinja_loader = ChoiceLoader([app.jinja_loader, DictLoader({"games/chain.html": block("html")})])  # type: ignore[list-item, misc]
    for cached in (prompts._templates, prompts._sections):
        cached.cache_clear()
    yield module.CHAIN
    for cached in (prompts._templates, prompts._sections):
        cached.cache_clear()


def test_the_game_of_the_page_can_be_played(app: Flask, engine: Engine, chain: Any) -> None:
    model = StoredSeat("model", None, PlayerSpec("api", "x"))
    with writing(engine) as session:
        seats = StoredSeat(PERSON), model
        config = {"letter": "c", "limit": 4}
        record = live.create(session, "chain", config, seats, seed=1, source="live", instant=True)

    def say(seat: int, text: str) -> live.MoveReply:
        ply = record.match.ply
        return live.commit(engine, live.Submission(record.id, seat, text, f"{ply}-{text}", None), instant=True).answer

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
    result = client.get(f"/play/{record.id}/result")
    assert result.status_code == 200
    assert "goat" in result.text
