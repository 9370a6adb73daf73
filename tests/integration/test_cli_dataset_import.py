"""`flask dataset import`: what comes of files of rows, what is refused, and that a training takes them."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from app.core.extensions import db, reading
from app.datasets.export import FORMAT_NAMES, formats_of
from app.datasets.store import get_dataset
from tests.integration.test_cli_dataset import build, flask

USER = {"role": "user", "content": "Which animal purrs?"}
ASSISTANT = {"role": "assistant", "content": "Ask another."}
CHAT = {"messages": [USER, {**ASSISTANT, "weight": 1}]}
RATED = {"query": "q", "responses": ["good", "bad"], "scores": [6, 2]}


def write(path: Path, *rows: Any) -> str:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return str(path)


def imported(app: Flask, *arguments: str) -> dict[str, Any]:
    result = flask(app, "dataset", "import", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    told: dict[str, Any] = json.loads(result.stdout)
    return told


def test_a_file_becomes_a_dataset_that_is_listed_shown_and_written(app: Flask, tmp_path: Path) -> None:
    file = write(tmp_path / "sandbox_v1.json", json.dumps([RATED, {**RATED, "query": "other"}], indent=1))
    told = imported(app, file, "--format", "stable-alignment")
    facts = {name: told[name] for name in ("dataset_id", "rows", "refused", "name", "version", "kind")}
    assert facts == {
        "dataset_id": 1, "rows": 2, "refused": [], "name": "sandbox_v1", "version": 1, "kind": "comparisons",
    }  # fmt: skip
    rows = flask(app, "dataset", "export", "1").stdout.splitlines()
    assert [json.loads(row) for row in rows] == [RATED, {**RATED, "query": "other"}]
    assert flask(app, "dataset", "list", "--columns", "name,rows").stdout.splitlines()[1].split() == ["sandbox_v1", "2"]
    shown = flask(app, "dataset", "show", "sandbox_v1").stdout
    assert "imported format   stable-alignment\n" in shown
    assert "imported file     sandbox_v1.json\n" in shown


def test_a_file_that_was_imported_before_gives_the_same_dataset(app: Flask, home: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "chats.jsonl", CHAT)
    first = imported(app, file, "--format", "openai")
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes((tmp_path / "chats.jsonl").read_bytes())
    again = imported(app, str(copy), "--format", "openai", "--name", "other")
    assert (again["dataset_id"], again["imported_before"]) == (first["dataset_id"], True)
    said = flask(app, "dataset", "import", file, "--format", "openai").stdout
    assert said == f"{file} was imported before: dataset 1 (chats@1), 1 row of conversations.\n"
    (home / "datasets" / f"{first['sha256']}.jsonl").unlink()
    assert imported(app, file, "--format", "openai")["dataset_id"] == 1  # and its rows are there again
    assert json.loads(flask(app, "dataset", "export", "1").stdout) == CHAT
    assert imported(app, file, "--format", "parlor")["dataset_id"] == 2  # another reading of the same bytes


def test_bad_rows_refuse_the_file_or_are_left_out(app: Flask, home: Path, tmp_path: Path) -> None:
    bad = ["nonsense", {"messages": []}, {"messages": [USER]}, {"messages": [USER, {"role": "tool", "content": ""}]}]
    file = write(tmp_path / "chats.jsonl", CHAT, *bad)
    refused = flask(app, "dataset", "import", file, "--format", "openai", "--json")
    assert refused.exit_code == 2
    assert refused.stderr == (
        f"Error: {file}: expected rows of the format openai, got 4 of 5 that are not (row 2: expected JSON, got"
        " invalid JSON at column 1; row 3: messages: expected a list of messages, got []; row 4: messages: expected a"
        " message of the assistant, got none; and 1 more); fix them, or leave them out (--skip-bad)\n"
    )
    told = json.loads(refused.stdout)
    assert (told["dataset_id"], told["rows"], [each["row"] for each in told["refused"]]) == (None, 0, [2, 3, 4, 5])
    assert list((home / "datasets").iterdir()) == []
    assert flask(app, "dataset", "list").stdout.startswith("No datasets yet: ")
    told = imported(app, file, "--format", "openai", "--skip-bad")
    assert (told["rows"], told["refused_rows"], told["refused"][3]["row"]) == (1, 4, 5)


def test_rows_without_a_history_or_nested_without_end_are_no_fault_of_ours(app: Flask, tmp_path: Path) -> None:
    rated = {"query": "q", "responses": ["a", "b"], "scores": [1, 0], "history": None}
    deep = ['{"messages": ' + "[" * depth + "]" * depth + "}" for depth in range(800, 1000, 4)]
    file = write(tmp_path / "rows.jsonl", rated, *deep)
    told = imported(app, file, "--format", "parlor", "--skip-bad")
    assert (told["kind"], told["rows"], told["refused_rows"]) == ("comparisons", 1, len(deep))


def test_only_the_forms_that_hold_its_weights_and_rewards_are_offered(app: Flask, tmp_path: Path) -> None:
    for number, message in enumerate(({"weight": 0.5}, {"reward": -1.0}, {"weight": 1}), 1):
        rows = write(tmp_path / f"{number}.jsonl", {"messages": [USER, {**ASSISTANT, **message}]})
        imported(app, rows, "--format", "parlor")
        with app.app_context(), reading(db.engine) as session:
            offered = [form.name for form in formats_of(get_dataset(session, number))]
        assert ("openai" in offered) == (number == 3), message


def test_what_cannot_be_imported_is_one_line_and_exit_code_2(app: Flask, tmp_path: Path) -> None:
    file = tmp_path / "rows"
    none = f"{file}: expected rows of the format"
    other = "row 2: expected comparisons, as in the rows before, got one of another kind"
    refusals = [
        (None, "openai", f"{file}: expected a file of rows, got no such file or directory"),
        ("", "openai", f"{none} openai, got none"),
        ("[1,", "openai", f"{file}, row 2: expected an object, got the end of the file"),
        (
            '{"a": 1}',
            "openai",
            f"{none} openai, got 1 of 1 that are not (row 1: expected an object with {{messages}}, got {{a}}); fix",
        ),
        (
            "{}",
            "csv",
            "format: expected parlor or spag-rows or stable-alignment or hh or alpaca or openai or openai-pref",
        ),
        (f"{json.dumps(RATED)}\n{json.dumps(CHAT)}", "parlor", f"{none} parlor, got 1 of 2 that are not ({other})"),
    ]
    for content, row_format, line in refusals:
        if content is not None:
            file.write_text(content)
        result = flask(app, "dataset", "import", str(file), "--format", row_format)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(f"Error: {line}")
        assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("form", FORMAT_NAMES)
def test_each_form_that_is_exported_is_imported_by_its_name(app: Flask, tmp_path: Path, form: str) -> None:
    rows = [RATED] if form == "trl-preference" else [CHAT, {"messages": [USER, ASSISTANT, USER]}]
    imported(app, write(tmp_path / "rows.jsonl", *rows), "--format", "parlor")
    out = str(tmp_path / "out")
    assert flask(app, "dataset", "export", "1", "--format", form, "--out", out).exit_code == 0
    told = imported(app, out, "--format", form, "--name", "back")
    assert (told["rows"], told["refused_rows"]) == (len(rows), 0)


def test_a_file_of_another_format_is_refused_with_the_one_to_choose(app: Flask, home: Path, tmp_path: Path) -> None:
    said = [{"from": "human", "value": "Hats?"}, {"from": "gpt", "value": "One each."}]
    file = write(tmp_path / "rows.jsonl", {"conversations": said})
    refused = flask(app, "dataset", "import", file, "--format", "openai")
    assert refused.exit_code == 2
    assert refused.stderr == (
        f"Error: {file}: expected rows of the format openai, got 1 of 1 that are not (row 1: expected an object with"
        " {messages}, got {conversations}; choose the format sharegpt); fix them, or leave them out (--skip-bad)\n"
    )
    assert list((home / "datasets").iterdir()) == []
    assert imported(app, file, "--format", "sharegpt")["rows"] == 1


def test_what_is_exported_is_imported_as_it_was_and_found_by_its_matches(app: Flask, tmp_path: Path) -> None:
    assert flask(app, "round", "run", "taboo", "--models", "scripted", "--matches", "4", "--seed", "4").exit_code == 0
    out = tmp_path / "rows.jsonl.gz"
    built = build(app, "--round", "1", "--filter", "all")
    out.write_bytes(gzip.compress(flask(app, "dataset", "export", "1").stdout_bytes))
    told = imported(app, str(out), "--format", "parlor")
    assert (told["rows"], told["sha256"], told["name"]) == (built["rows"], built["sha256"], "rows")
    shown = json.loads(flask(app, "dataset", "show", "2", "--json").stdout)
    assert {name: shown[name] for name in ("matches", "words", "own_words", "size")} == {
        name: built[name] for name in ("matches", "words", "own_words", "size")
    }
