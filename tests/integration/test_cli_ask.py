"""`flask model ask`: one question, a conversation, and files of questions that can be gone on with."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, func, select

from app.core.config import Settings
from app.core.extensions import reading
from app.model_calls.request_batch import ask_all
from app.models import GenerationRow, ModelRequest
from app.players.base import ChatSampling
from tests.shell import Finished
from tests.societies import add_chat_models
from tests.stub_openai import Messages, Reply, StubServer

Run = Callable[..., Finished]
QUESTIONS = [f"Question {number}?" for number in range(12)]


def echo(messages: Messages) -> str:
    return f"{len(messages)}: {messages[-1]['content']}"


@pytest.fixture(scope="module")
def server() -> Iterator[StubServer]:
    with StubServer() as found:
        found.script("echo", echo)
        yield found


@pytest.fixture
def settings(app: Flask, engine: Engine, server: StubServer) -> Settings:
    add_chat_models(engine, server.url, "echo", in_flight=4)
    found: Settings = app.config["SETTINGS"]
    return found


@pytest.fixture
def ask(flask: Run, settings: Settings) -> Run:
    return lambda *arguments, **options: flask("model", "ask", *arguments, **options)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_file_of_questions_is_answered_in_its_order_and_gone_on_with(
    ask: Run, engine: Engine, server: StubServer, tmp_path: Path
) -> None:
    source, out = tmp_path / "questions.txt", tmp_path / "answers.jsonl"
    source.write_text("\n\n".join(QUESTIONS))
    files = ("--file", source, "--out", out)
    assert ask("echo", *files).stdout == f"12 of 12 questions: {out}.\n"
    answers = lines_of(out)
    assert [each["question"] for each in answers] == QUESTIONS
    assert [each["response"] for each in answers] == [f"1: {question}" for question in QUESTIONS]
    with reading(engine) as session:
        kept = dict(session.execute(select(GenerationRow.request_id, GenerationRow.text)).all())
    assert {each["request"]: each["response"] for each in answers} == kept

    whole = out.read_text()
    out.write_text(whole[: len(whole) // 2])  # as of a program that was killed in the middle of a line
    answered = len(out.read_text().splitlines()) - 1
    asked_before = len(server.requests)
    assert ask("echo", *files, "--json").exit_code == 0
    assert [each["response"] for each in lines_of(out)] == [each["response"] for each in answers]
    assert len(server.requests) - asked_before == 12 - answered
    assert ask("echo", *files).exit_code == 0
    assert len(server.requests) - asked_before == 12 - answered  # nothing was left to ask

    source.write_text("Another question?\n")
    refused = ask("echo", *files)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "--out: expected a new file, or answers of echo to these questions, got another line 1" in refused.stderr


def test_rows_are_put_in_the_template_that_was_asked_for(ask: Run, server: StubServer, tmp_path: Path) -> None:
    source, out = tmp_path / "rows.json", tmp_path / "answers.jsonl"
    source.write_text(json.dumps([{"instruction": "Sum up.", "input": "A story.", "output": "x"}, {"query": "Why?"}]))
    asked = ask("echo", "--file", source, "--out", out, "--template", "alpaca", "--preset", "published")
    assert asked.exit_code == 0
    assert asked.stderr == "echo is not local: its answers may repeat themselves.\n"
    first, second = lines_of(out)
    assert "### Instruction:\nSum up.\n\n### Input:\nA story.\n\n### Response:" in first["response"]
    assert (first["input"], "input" in second) == ("A story.", False)
    body = server.requests[-1].body
    assert (body["temperature"], body["top_p"]) == (0.7, 0.9)
    assert 256 in body.values()


def test_a_question_that_is_refused_is_noted_and_a_model_that_is_away_ends_the_asking(
    ask: Run, server: StubServer, tmp_path: Path
) -> None:
    source, out = tmp_path / "questions.txt", tmp_path / "answers.jsonl"
    source.write_text("\n".join(QUESTIONS))
    too_long = Reply("This model's maximum context length is 10 tokens.", status=400)
    server.script("echo", echo, too_long, Reply("The server had an error.", status=500))
    stopped = ask("echo", "--file", source, "--out", out)
    server.script("echo", echo)
    assert stopped.exit_code == 1
    assert "the same command goes on there" in stopped.stderr
    before = lines_of(out)
    assert ask("echo", "--file", source, "--out", out).exit_code == 0
    after = lines_of(out)
    assert after[: len(before)] == before
    assert [each["question"] for each in after] == QUESTIONS
    for each in after:
        assert each["response"] == f"1: {each['question']}" or "maximum context length" in each["error"]


def test_lines_that_are_typed_are_a_conversation_until_an_empty_one(ask: Run) -> None:
    typed = ask("echo", "--system", "Be brief.", typed=b"Hello\nAnd now?\n\nAnew\n")
    assert typed.stdout.splitlines() == ["2: Hello", "4: And now?", "2: Anew"]
    single = ask("echo", "--template", "alpaca", typed=b"Hello\nAnd now?\n")
    assert [line[:2] for line in single.stdout.splitlines() if line[1:2] == ":"] == ["1:", "1:"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Hello", "--file", "x", "--out", "y"), "MESSAGE: expected none beside --file"),
        (("--file", "x"), "--out: expected both --file IN and --out FILE"),
        (("--file", "/nowhere.txt", "--out", "y"), "--file: expected a file of questions"),
        (("--json",), "--json: expected MESSAGE or --file beside it"),
        (("Hello", "--no-repeat-ngram", "2"), "no_repeat_ngram: expected none for a model that is not local"),
        (("Hello", "--no-repeat-ngram", "0"), "--no-repeat-ngram: expected a whole number from 1 to 100"),
        (("  ",), "MESSAGE: expected something to ask"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(ask: Run, arguments: tuple[str, ...], message: str) -> None:
    refused = ask("echo", *arguments)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"Error: {message}")
    assert refused.stderr.count("\n") == 1


def test_who_stops_taking_answers_leaves_no_request_that_waits(engine: Engine, settings: Settings) -> None:
    chats = [[{"role": "user", "content": question}] for question in QUESTIONS]
    found = ask_all(engine, settings, "echo", iter(chats), ChatSampling())
    first = next(found)
    found.close()
    assert first.result["text"] == "1: Question 0?"
    with reading(engine) as session:
        open_ones = session.scalar(select(func.count()).where(ModelRequest.status.in_(("waiting", "running"))))
    assert open_ones == 0  # what was under way was waited for
