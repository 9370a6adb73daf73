"""`flask import` and `flask export lm-selfplay|spag`: into the database and out again without a loss."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, func, select

from app.core.extensions import reading
from app.matches.stored import load
from app.models import MatchRow, RoundRow, SeatRow
from tests.shell import Finished
from tests.unit.datasets import published
from tests.unit.datasets.published import game

Run = Callable[..., Finished]
DEAL = ["[message] Hi!", "[message] Fine.", "[propose] (1 books, 0 hats, 0 balls)", "[propose] books 0 hats 2 balls 3"]
GAMES = [
    game(DEAL),
    game(
        ["[message] \x00 Größe", "[message] ok", "[ABORT]"],
        first=1,
        tries=[(2, f"no {n}", "Begin!") for n in range(5)],
    ),
    game(["[message] Hm."] * 50, p0_score=3),
    *[game(DEAL, first=n % 2, tokens=n) for n in range(1100)],
]
EPISODES: list[dict[str, Any]] = [
    {
        "history": [
            {"role": "attacker", "content": f"It purrs. {n}"},
            {"role": "defender", "content": "I know the word! It is `cat`!"},
            {"role": "attacker", "content": "Right.\x00"},
        ],
        "target_word": "Cat",
        "max_turns": 5,
        "id": n,
    }
    for n in range(450)
]
LINES = """\
1 0 4 2 1 2 YOU: hats for me <eos> THEM: deal <eos> YOU: <selection> item0=0 item1=4 item2=0 <eos> reward=8 agree 1 4 4 1 1 2
1 4 4 1 1 2 THEM: hats for me <eos> YOU: deal <eos> THEM: <selection> item0=1 item1=0 item2=1 <eos> reward=6 agree 1 0 4 2 1 2
1 6 2 0 4 1 THEM: hello <eos> YOU: <selection> disconnect <eos> reward=disconnect agree 1 8 2 1 4 0
"""  # noqa: E501


@pytest.fixture
def run(flask: Run) -> Run:
    return flask


def said(result: Finished) -> Any:
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def nothing_in(engine: Engine) -> bool:
    with reading(engine) as session:
        return session.scalar(select(func.count()).select_from(RoundRow)) == 0


def test_a_folder_of_selfplay_goes_in_and_comes_out_the_same(run: Run, engine: Engine, tmp_path: Path) -> None:
    folder = published.write(tmp_path / "in", GAMES)
    taken = said(run("import", "lm-selfplay", folder, "--objective", "coop", "--json"))
    assert taken["matches"] == 1103
    with reading(engine) as session:
        row = session.get_one(RoundRow, taken["round_id"])
        assert (row.status, row.finished, row.aborted, row.violations) == ("done", 1103, 1, 5)
        matches = session.scalars(select(MatchRow).where(MatchRow.round_id == row.id).order_by(MatchRow.index)).all()
        assert [match.index for match in matches] == list(range(1103))
        assert [(match.reason, match.utility_0) for match in matches[:4]] == [
            ("deal", 7), ("aborted", 0), ("move limit", 0), ("deal", 7),
        ]  # fmt: skip
        assert matches[0].tokens == 7
        record = load(session, matches[0].id)
        assert record.match.over
        assert [(seat.kind, seat.player) for seat in record.seats] == [("model", "imported")] * 2
    out = said(run("export", "lm-selfplay", "--round", taken["round_id"], "--out", tmp_path / "out", "--json"))
    assert out["matches"] == 1103
    assert published.read(tmp_path / "out") == published.read(folder)


@pytest.mark.parametrize("rule", ["strict", "released"])
def test_games_of_taboo_go_in_and_come_out_the_same(run: Run, engine: Engine, tmp_path: Path, rule: str) -> None:
    (tmp_path / "in.json").write_text(json.dumps(EPISODES))
    taken = said(run("import", "spag", tmp_path / "in.json", "--rule", rule, "--player", "gpt-4", "--json"))
    assert taken["matches"] == 450
    with reading(engine) as session:
        assert set(session.scalars(select(MatchRow.reason))) == {"defender wins"}
        assert set(session.scalars(select(SeatRow.player))) == {"gpt-4"}
    said(run("export", "spag", "--round", taken["round_id"], "--out", tmp_path / "out.json", "--json"))
    assert json.loads((tmp_path / "out.json").read_text()) == EPISODES


def test_human_dialogues_become_matches_of_people(run: Run, engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text(LINES)
    assert said(run("import", "dialogues", tmp_path / "data.txt", "--json"))["matches"] == 2
    assert run("round", "list").stdout.splitlines()[1].startswith("data.txt ")
    with reading(engine) as session:
        matches = session.execute(select(MatchRow.reason, MatchRow.utility_0).order_by(MatchRow.index)).all()
        assert [tuple(match) for match in matches] == [("deal", 8), ("aborted", 0)]
        assert set(session.scalars(select(SeatRow.kind))) == {"person"}
    said(run("export", "lm-selfplay", "--round", 1, "--out", tmp_path / "out", "--json"))
    again = said(run("import", "lm-selfplay", tmp_path / "out", "--json"))
    with reading(engine) as session:
        back = session.execute(
            select(MatchRow.reason, MatchRow.utility_0).where(MatchRow.round_id == again["round_id"])
        )
        assert sorted(map(tuple, back)) == [("aborted", 0), ("deal", 8)]


def test_games_with_another_limit_say_so(run: Run, tmp_path: Path) -> None:
    folder = published.write(tmp_path / "in", [game(["[message] Hm."] * 6)])
    assert "got one that stops after 6" in run("import", "lm-selfplay", folder).stderr
    assert said(run("import", "lm-selfplay", folder, "--limit", 6, "--json"))["matches"] == 1


def test_an_import_is_asked_for_by_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text(json.dumps(EPISODES[:3]))
    (tmp_path / "import.yaml").write_text(f"file: {tmp_path / 'in.json'}\nrule: released\nplayer: gpt-4\n")
    assert said(run("import", "spag", "--spec", tmp_path / "import.yaml", "--json"))["matches"] == 3
    settings = json.loads(run("round", "show", "1", "--json").stdout)["config"]
    assert settings == {"rule": "released"}
    folder = published.write(tmp_path / "in", [game(["[message] Hm."] * 6)])
    (tmp_path / "import.yaml").write_text(f"folder: {folder}\nlimit: 6\nobjective: -0.5\n")
    assert said(run("import", "lm-selfplay", "--spec", tmp_path / "import.yaml", "--json"))["matches"] == 1
    assert json.loads(run("round", "show", "2", "--json").stdout)["config"] == {"objective": -0.5, "limit": 6}
    (tmp_path / "import.yaml").write_text(f"folder: {folder}\nlimits: 6\n")
    refused = run("import", "lm-selfplay", "--spec", tmp_path / "import.yaml").stderr
    assert "import.yaml:2: limits: expected one of the fields folder, objective, limit, player" in refused


def test_a_bad_file_leaves_nothing_behind(run: Run, engine: Engine, tmp_path: Path) -> None:
    folder = published.write(tmp_path / "in", [game(DEAL)] * 300)
    (folder / "results" / "250.json").write_text("{")
    (tmp_path / "in.json").write_text(json.dumps([*EPISODES, {}]))
    (tmp_path / "data.txt").write_text(LINES + "and so on\n")
    for arguments, message in (
        (("lm-selfplay", folder), "results/250.json: expected the result of a game, got no JSON at line 1"),
        (("lm-selfplay", folder, "--objective", "mean"), "objective: expected self, coop, comp or a number"),
        (("lm-selfplay", tmp_path / "none"), "json_logs: expected the folder json_logs of self-play games"),
        (("spag", tmp_path / "in.json"), "in.json, episode 450, history: expected it to be there, got []"),
        (("dialogues", tmp_path / "data.txt"), "data.txt, line 4: expected a dialogue"),
        (("spag", tmp_path / "in.json", "--player", " "), "player: expected 1 to 80 characters"),
    ):
        result = run("import", *arguments)
        assert result.exit_code == 2
        assert message in result.stderr
        assert result.stderr.count("\n") == 1
    assert nothing_in(engine)


def test_an_empty_list_is_no_round(run: Run, engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text("[]")
    result = run("import", "spag", tmp_path / "in.json")
    assert (result.exit_code, result.stderr) == (2, f"Error: {tmp_path / 'in.json'}: expected games, got none\n")
    assert nothing_in(engine)


def test_a_round_is_written_only_as_what_it_is(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text(json.dumps(EPISODES[:1]))
    taken = said(run("import", "spag", tmp_path / "in.json", "--json"))
    wrong = run("export", "lm-selfplay", "--round", taken["round_id"], "--out", tmp_path / "out")
    assert (wrong.exit_code, wrong.stderr) == (2, "Error: round 1: expected one of negotiation, got one of taboo\n")
    assert run("export", "spag", "--round", 99, "--out", tmp_path / "out").exit_code == 2
    assert not (tmp_path / "out").exists()
