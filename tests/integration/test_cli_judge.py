"""`flask judge`: verdicts in the order of the file, and one line for a file that is none."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from app.cli.judge import judge


def episode(*texts: str, max_turns: int = 5) -> dict[str, Any]:
    """A recorded game about a cat, the attacker first."""
    history = [{"role": ("attacker", "defender")[ply % 2], "content": text} for ply, text in enumerate(texts)]
    return {"history": history, "target_word": "cat", "max_turns": max_turns}


EPISODES = [
    episode("a small pet", "a cat?"),
    episode("cat"),
    episode("hi", "hello", max_turns=1),
    episode("hi", "I know the word! It is `cat`!"),
    episode("I will concatenate", max_turns=1),
]


def run(*arguments: str, given: str | bytes | None = None) -> Result:
    return CliRunner().invoke(judge, list(arguments), input=given)


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "episodes.json").write_text(json.dumps(EPISODES))
    return str(tmp_path / "episodes.json")


def test_json_has_outcome_and_plies_in_the_files_order(file: str) -> None:
    result = run(file, "--rule", "released", "--json")
    assert json.loads(result.stdout) == [
        {"outcome": "attacker wins", "plies": 2},
        {"outcome": "attacker breaks the rules", "plies": 1},
        {"outcome": "tied game", "plies": 2},
        {"outcome": "defender wins", "plies": 2},
        {"outcome": "attacker breaks the rules", "plies": 1},
    ]


def test_the_strict_rule_is_the_default_and_knows_words_from_their_parts(file: str) -> None:
    assert json.loads(run(file, "--json").stdout)[-1] == {"outcome": "tied game", "plies": 1}
    assert run(file).stdout.splitlines()[-1] == "4\ttied game\t1"


def test_a_dash_reads_stdin() -> None:
    assert json.loads(run("-", "--json", given=json.dumps(EPISODES[:1])).stdout)[0]["plies"] == 2


def test_a_mark_before_the_text_and_texts_in_parts_are_read() -> None:
    said = [{"type": "text", "text": "Is it a "}, {"type": "text", "text": "cat?"}]
    history = [{"role": "attacker", "content": "It purrs."}, {"role": "defender", "content": said}]
    episodes = [{"history": history, "target_word": "cat", "max_turns": 1}]
    assert run("-", given=json.dumps(episodes).encode("utf-8-sig")).stdout == "0\tattacker wins\t2\n"


def test_no_episodes_give_no_verdicts() -> None:
    assert run("-", "--json", given="[]").stdout == "[]\n"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("[1,\n2", "line 2, column 2"),
        (b"\xff\xfe\x00", "UTF-8"),
        ("[" * 100_000, "expected"),
        ("{}", "expected a list"),
        ("[1]", "episode 0"),
        ('[{"history": [], "target_word": "cat", "max_turns": 0}]', "max_turns"),
        ('[{"history": [{"role": "judge", "content": "x"}], "target_word": "cat", "max_turns": 1}]', "role"),
        ("", "line 1, column 1"),
        (
            '[{"history": [], "target_word": "cat", "target_word": "dog", "max_turns": 1}]',
            "stdin: expected each field of an object once, got 'target_word' twice",
        ),
    ],
)
def test_a_file_that_is_none_is_refused_in_one_line(given: str | bytes, words: str) -> None:
    result = run("-", given=given)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [("/nowhere.json",), ("-", "--rule", "kind"), ()])
def test_a_missing_file_or_an_unknown_rule_is_refused_in_one_line(arguments: tuple[str, ...]) -> None:
    result = run(*arguments, given="[]")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
