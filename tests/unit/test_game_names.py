"""What is of one game stands under its name: nothing else in Parlor knows which games there are."""

import re
from pathlib import Path

import pytest

from app.core.config import ROOT
from app.games import GAMES

FOLDERS = ("app", "workers", "training", "templates", "static/js")
# Each lists what the games have registered, by name.
REGISTRIES = {"app/matches/terminal/lines.py"}
# Published formats of one game, the commands for them, and columns of tables that only one game fills.
OF_ONE_GAME = {
    "app/cli/export_formats.py", "app/cli/imports.py", "app/cli/judge.py", "app/datasets/dialogue_lines.py",
    "app/datasets/importers/dialogues.py", "app/datasets/importers/lm_selfplay.py", "app/datasets/importers/spag.py",
    "app/datasets/lm_folder.py", "app/datasets/spag_episode.py", "app/matches/export_matches.py",
    "app/matches/store.py", "app/web/admin/proposals.py",
}  # fmt: skip


def places(pattern: str) -> set[str]:
    """Where a pattern is found, but for what stands under a game's name."""
    own = re.compile(rf"/({'|'.join(GAMES)})(_\w+)?(/|\.)")
    files = [
        path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".html", ".js")
    ]
    named = {str(path.relative_to(ROOT)) for path in files if re.search(pattern, path.read_text(encoding="utf-8"))}
    return {path for path in named if not own.search(path)}


def test_no_module_and_no_page_names_a_game() -> None:
    assert places(rf"""(['"])({"|".join(GAMES)})\1""") == set()


def test_only_what_is_registered_for_a_game_uses_its_package() -> None:
    found = places(rf"from app\.(games|players\.scripted|matches\.terminal)\.({'|'.join(GAMES)})\b")
    assert found - REGISTRIES - OF_ONE_GAME == set()


@pytest.mark.parametrize("path", sorted(REGISTRIES | OF_ONE_GAME))
def test_what_is_excepted_is_there(path: str) -> None:
    assert (ROOT / Path(path)).is_file()
