"""Rewards and weights of a dataset's moves against figures worked out by hand, and the forms of rows."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from flask import Flask
from sqlalchemy import Engine

from app.core.errors import Invalid
from app.core.extensions import writing
from app.datasets import rounds as imported
from app.datasets import store
from app.datasets.export import export_dataset, formats_of
from app.datasets.exporters.row_formats import FORMATS, export_rows
from app.models import Dataset
from tests.datasets import cut, matches_of, rows_of, seat_of, take_in
from training.data import read_conversations
from training.rewards import rewarded_rows

RIGHT = "I know the word! It is cat!"
ATTACKER_WINS = ("It purrs.", "A cat?")
DEFENDER_WINS = ("It purrs.", "Is it an engine?", "It drinks milk.", RIGHT)
RULES_BROKEN = ("It is a cat.",)
TIED = ("It purrs.", "Is it an engine?", "No.", "Hm.", "No.", "Hm.", "No.", "Hm.")
EPISODES = (DEFENDER_WINS, ATTACKER_WINS, RULES_BROKEN, TIED, DEFENDER_WINS)
DIALOGUE = (
    "1 6 2 0 4 1 THEM: hi <eos> YOU: hats? <eos> THEM: ok <eos> YOU: <selection> item0=1 item1=2 item2=0 <eos>"
    " reward=6 agree 1 8 2 1 4 0\n"
)


@pytest.fixture
def episodes(engine: Engine, app: Flask, tmp_path: Path) -> int:
    """A round of two games that the defender wins, one that the attacker wins, one tie, and one of broken rules."""
    file = tmp_path / "episodes.json"
    roles = ("attacker", "defender")
    games = [
        {
            "history": [{"role": roles[ply % 2], "content": text} for ply, text in enumerate(texts)],
            "target_word": "cat",
            "max_turns": 4,
        }
        for texts in EPISODES
    ]
    file.write_text(json.dumps(games))
    return take_in(engine, imported.spag(str(file), "strict"))


def own(row: dict[str, Any], key: str) -> list[Any]:
    return [each[key] for each in row["messages"] if each["role"] == "assistant"]


def by_seat(engine: Engine, home: Path, number: int, dataset: Dataset) -> dict[tuple[int, int], dict[str, Any]]:
    """The rows by index of the match and seat."""
    indices = {match.id: match.index for match in matches_of(engine, number).values()}
    return {(indices[seat_of(row)[0]] or 0, seat_of(row)[1]): row for row in rows_of(home, dataset)}


# ---- Rewards --------------------------------------------------------------------


def test_a_winners_moves_share_a_reward_of_1_and_all_others_weigh_nothing(
    engine: Engine, home: Path, episodes: int
) -> None:
    dataset = cut(engine, home, rounds=[episodes], rewards="spag")
    rows = by_seat(engine, home, episodes, dataset)
    assert len(rows) == 9  # nobody but the attacker has moved in the game of broken rules
    first, *_ = sorted(rows)
    # Three decided games, of which the defender won two and the attacker one: 3 / (2 · 2) and 3 / (2 · 1).
    winners = {(first[0], 1): (0.75, [0.8 / 1.8, 1 / 1.8]), (first[0] + 1, 0): (1.5, [1.0])}
    winners[first[0] + 4, 1] = winners[first[0], 1]
    for place, row in rows.items():
        weight, rewards = winners.get(place, (0.0, None))
        assert own(row, "reward") == pytest.approx(rewards or [0.0] * len(own(row, "reward")))
        assert set(own(row, "weight")) == {weight}
        assert set(own(row, "player_role")) == {("attacker", "defender")[place[1]]}
        assert row["game"] == "taboo"
        assert "policy" not in row
    assert dataset.spec["decay"] == 0.8
    assert dataset.spec["weights"] == {"taboo": {"attacker": 1.5, "defender": 0.75}}
    figures = dataset.figures["rewards"]
    assert (figures["moves"], figures["by_role"]) == (
        5,
        [["taboo", "attacker", 1, 1, 1.5], ["taboo", "defender", 4, 0.5, 0.75]],
    )
    assert dataset.own_words == sum(len(text.split()) for text in (*DEFENDER_WINS[1::2] * 2, ATTACKER_WINS[0]))


def test_decay_and_weights_are_as_asked_for_and_a_filter_leaves_losers_out(
    engine: Engine, home: Path, episodes: int
) -> None:
    dataset = cut(engine, home, rounds=[episodes], rewards="spag", decay="0.5", role_weights="no", filter="nonzero")
    rows = rows_of(home, dataset)
    assert [own(row, "reward") for row in rows] == [
        pytest.approx(each) for each in ([1 / 3, 2 / 3], [1], [1 / 3, 2 / 3])
    ]
    assert {weight for row in rows for weight in own(row, "weight")} == {1}
    again = cut(engine, home, rounds=[episodes], rewards="spag", decay="0.5", role_weights="no", filter="nonzero")
    assert again.sha256 == dataset.sha256
    plain = rows_of(home, cut(engine, home, rounds=[episodes], filter="nonzero"))
    assert not any({"reward", "weight", "player_role"} & set(each) for row in plain for each in row["messages"])
    assert set(plain[0]) == {"group", "messages"}


def test_a_negotiators_reward_is_how_far_it_lies_above_the_mean(
    engine: Engine, app: Flask, home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "data.txt"
    file.write_text(DIALOGUE)
    number = take_in(engine, imported.dialogues(str(file)), "person")
    rows = rows_of(home, cut(engine, home, rounds=[number], rewards="spag"))
    scores = [(score - 3) / 10 for score in scores_of(engine, number)]
    for row in rows:
        moves = len(own(row, "reward"))
        powers = [0.8**later for later in range(moves - 1, -1, -1)]
        expected = [scores[seat_of(row)[1]] * each / sum(powers) for each in powers]
        assert own(row, "reward") == pytest.approx(expected)
        assert set(own(row, "weight")) == {1}
    dataset = cut(engine, home, rounds=[number], rewards="spag", positive_only="yes")
    for row in rows_of(home, dataset):
        assert set(own(row, "weight")) == {1 if scores[seat_of(row)[1]] > 0 else 0}
    assert [form.name for form in formats_of(dataset)] == ["spag-rows", "openai", "trl-prompt-completion"]


def scores_of(engine: Engine, number: int) -> tuple[float, float]:
    """6 and 0, in the order of the seats."""
    (match,) = matches_of(engine, number).values()
    return match.utility_0 or 0, match.utility_1 or 0


def test_matches_without_a_winner_give_no_dataset_with_rewards(engine: Engine, home: Path, episodes: int) -> None:
    with pytest.raises(Invalid, match="rewards spag: expected to keep at least one transcript, got none of "):
        cut(engine, home, rounds=[episodes], rewards="spag", reason="tied game")


# ---- Forms ----------------------------------------------------------------------


def exported(home: Path, dataset: Dataset, form: str, template: str | None = None) -> bytes:
    return b"".join(export_dataset(home, dataset, form, template))


def test_spag_rows_are_one_row_a_move_that_a_training_reads_again(
    engine: Engine, home: Path, episodes: int, tmp_path: Path
) -> None:
    dataset = cut(engine, home, rounds=[episodes], rewards="spag", style="compact")
    written = exported(home, dataset, "spag-rows")
    assert written == exported(home, dataset, "spag-rows")
    rows = json.loads(written)
    assert rows[:2] == [
        {
            "query": "defend in 4 turns\n\nanswer\n\nIt purrs.\n\nYou: ",
            "target": "Is it an engine?",
            "reward": pytest.approx(0.8 / 1.8),
            "weight": 0.75,
            "type": "sample",
            "role": "defender",
        },
        {
            "query": (
                "defend in 4 turns\n\nanswer\n\nIt purrs.\n\nYou: Is it an engine?\n\nPartner: It drinks milk.\n\nYou: "
            ),
            "target": RIGHT,
            "reward": pytest.approx(1 / 1.8),
            "weight": 0.75,
            "type": "sample",
            "role": "defender",
        },
    ]
    assert len(rows) == 5
    plain = json.loads(exported(home, dataset, "spag-rows", "plain"))
    assert plain[1]["query"] == (
        "user: defend in 4 turns\n\nanswer\n\nIt purrs.\nassistant: Is it an engine?\nuser: It drinks milk.\nassistant:"
    )
    assert json.loads(exported(home, dataset, "spag-rows", "chatml"))[2]["query"].endswith("<|im_start|>assistant\n")
    file = tmp_path / "rows.json"
    file.write_bytes(written)
    read = rewarded_rows(read_conversations(file))
    assert [each.messages[1]["player_role"] for each in read] == [row["role"] for row in rows]


def test_openai_takes_weights_of_0_and_1_and_its_own_fields_alone(engine: Engine, home: Path, episodes: int) -> None:
    weighted = cut(engine, home, rounds=[episodes], rewards="spag")
    with pytest.raises(Invalid) as refused:
        exported(home, weighted, "openai")
    assert str(refused.value) == (
        "row 2: weight: expected 0 or 1, the only weights that OpenAI accepts, got 0.75; build the dataset with"
        " `--no-role-weights`, or choose another format"
    )
    assert [form.name for form in formats_of(weighted)] == ["spag-rows", "trl-prompt-completion"]
    dataset = cut(engine, home, rounds=[episodes], rewards="spag", role_weights="no", style="compact")
    chats = [json.loads(line) for line in exported(home, dataset, "openai").splitlines()]
    assert len(chats) == 3
    assert chats[1] == {
        "messages": [
            {"role": "user", "content": "attack with the word cat in 4 turns\n\nbegin"},
            {"role": "assistant", "content": "It purrs.", "weight": 1},
        ]
    }
    completion = json.loads(exported(home, dataset, "trl-prompt-completion").splitlines()[2])
    assert completion == {
        "prompt": [chats[1]["messages"][0]],
        "completion": [{"role": "assistant", "content": "It purrs."}],
        "weight": 1.0,
        "reward": 1.0,
    }


def test_pairs_of_responses_are_written_of_comparisons_alone(engine: Engine, home: Path, episodes: int) -> None:
    dataset = cut(engine, home, rounds=[episodes])
    with pytest.raises(Invalid, match=r"^format: expected parlor or spag-rows or .*, as the dataset holds conv"):
        exported(home, dataset, "trl-preference")
    row = {"query": "Why?", "responses": ["So.", "Because.", "Ask."], "scores": [2, 7, 7]}
    (pair,) = export_rows([json.dumps(row).encode()], FORMATS["trl-preference"])
    assert json.loads(pair) == {
        "prompt": [{"role": "user", "content": "Why?"}],
        "chosen": [{"role": "assistant", "content": "Because."}],
        "rejected": [{"role": "assistant", "content": "So."}],
    }
    with writing(engine) as session:
        kept = store.get_dataset(session, dataset.id)
        kept.kind = "comparisons"
        with pytest.raises(Invalid, match=r"^format: expected parlor or trl-preference, as the dataset holds comp"):
            exported(home, kept, "openai")


# ---- Command line ---------------------------------------------------------------


def flask(app: Flask, *arguments: str) -> Result:
    return app.test_cli_runner().invoke(args=["dataset", *arguments])


def test_the_command_line_builds_shows_and_writes_rewards(
    app: Flask, engine: Engine, episodes: int, tmp_path: Path
) -> None:
    out = tmp_path / "rows.json"
    built = flask(
        app, "build", "--round", str(episodes), "--rewards", "spag", "--format", "spag-rows", "--out", str(out)
    )
    assert built.exit_code == 0, built.stderr
    assert built.stdout.startswith(f"Dataset 1 (round {episodes} all spag@1): 9 rows of 5 matches in ")
    assert len(json.loads(out.read_text())) == 5
    shown = flask(app, "show", "1").stdout
    assert "decay             0.8\n" in shown
    assert "rewarded moves    5\n" in shown
    assert "taboo, defender: 4 rewarded moves, mean reward 0.5, weight 0.75\n" in shown
    again = tmp_path / "again.json"
    told = flask(app, "export", "1", "--format", "spag-rows", "--out", str(again), "--json")
    assert json.loads(told.stdout)["out"] == str(again)
    assert again.read_bytes() == out.read_bytes()
    kept = tmp_path / "kept.jsonl"
    kept.write_text("mine")
    for arguments, line in (
        (("export", "1", "--format", "openai", "--out", str(kept)), "row 2: weight: expected 0 or 1"),
        (("export", "1", "--format", "openai"), "row 2: weight: expected 0 or 1"),
        (("export", "1", "--template", "plain"), "template: expected format spag-rows beside it, got 'parlor'"),
        (("build", "--round", "1", "--decay", "0.5"), "decay: expected rewards beside it, got none"),
        (("build", "--round", "1", "--no-role-weights"), "--role-weights: expected rewards beside it, got none"),
        (
            ("build", "--round", "1", "--rewards", "spag", "--decay", "2"),
            "decay: expected a number from 0 to 1, got '2'",
        ),
        (("build", "--round", "1", "--format", "openai"), "--format: expected --out FILE beside it, got none"),
    ):
        refused = flask(app, *arguments)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert refused.stderr.startswith(f"Error: {line}")
        assert refused.stderr.count("\n") == 1
    assert kept.read_text() == "mine"
