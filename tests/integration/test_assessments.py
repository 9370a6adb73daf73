"""Two models answer the same held-out questions, and raters rate them: whatever stops it, every call is made once."""

import asyncio
import csv
import io
import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, select

from app.assessments import lifecycle, listing
from app.assessments.job import ASSESSMENT
from app.assessments.runner import run_assessment
from app.assessments.training_overlap import held_out
from app.core.config import Settings
from app.core.errors import Invalid
from app.core.extensions import reading, writing
from app.jobs import states
from app.jobs.context import JobContext
from app.models import AssessedAnswer, Assessment, Dataset, GenerationRow, TrainingJob
from app.registry.changes import is_in_use
from tests.assessments import make_assessment, run
from tests.datasets import import_rows
from tests.integration.test_cli_society import flask
from tests.societies import QUESTIONS, add_chat_models, model_of, opinion
from tests.stub_openai import Messages, Reply, Request, StubServer

NICE, PLAIN, JUDGE, SLOW, MUTE, SHY = "nice", "plain", "judge", "slow", "mute", "shy"
MANY = [f"{question} Case {number}." for question in QUESTIONS.questions for number in (1, 2)]


def judged(messages: Messages) -> str:
    """Seven for an answer with a kind word in it, else three; engagement is one less."""
    asked = messages[-1]["content"]
    return f"Rating: {(7 if 'gladly' in asked else 3) - ('go on talking' in asked)}\nReason: so it is."


@pytest.fixture(scope="module")
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        server.script(NICE, "I will gladly help you with it.")
        server.script(PLAIN, "Wait and see.")
        server.script(JUDGE, judged)
        server.script(SLOW, Reply(opinion, delay=0.02))
        server.script(MUTE, "I would rather not say.")
        yield server


@pytest.fixture(autouse=True)
def _models(engine: Engine, stub: StubServer) -> None:
    add_chat_models(engine, stub.url, NICE, PLAIN, JUDGE, SLOW, MUTE, SHY, in_flight=4)


@pytest.fixture
def settings(app: Flask) -> Settings:
    found: Settings = app.config["SETTINGS"]
    return found


def figures(engine: Engine, number: int) -> Any:
    with reading(engine) as session:
        return listing.figures_of(session, ASSESSMENT.get(session, number))


def calls_of(engine: Engine, number: int) -> list[tuple[int, bool, str, str]]:
    """Question, whose answer, call and text of all that was answered."""
    found = (
        select(AssessedAnswer.question, AssessedAnswer.of_base, GenerationRow.call, GenerationRow.text)
        .join(GenerationRow, GenerationRow.answer_id == AssessedAnswer.id)
        .where(AssessedAnswer.assessment_id == number, GenerationRow.error.is_(None))
        .order_by(AssessedAnswer.question, AssessedAnswer.of_base, GenerationRow.call)
    )
    with reading(engine) as session:
        return [tuple(row) for row in session.execute(found)]  # type: ignore[misc]


def answers(engine: Engine, number: int) -> list[AssessedAnswer]:
    with reading(engine) as session:
        return lifecycle.answers_of(session, number)


def test_the_better_model_is_found_better_by_paired_differences_with_intervals(
    engine: Engine, settings: Settings
) -> None:
    number = make_assessment(engine, NICE, PLAIN, JUDGE, questions=MANY)
    row = run(engine, settings, number)
    assert (row.status, row.error, row.answers, row.calls) == (states.DONE, None, 24, 24 * 3)
    alignment, engagement = figures(engine, number)
    assert alignment.difference[:4] == (4.0, 4.0, 4.0, 12)
    assert (alignment.model.value, alignment.base.value, alignment.better, alignment.worse) == (7.0, 3.0, 12, 0)
    assert (engagement.model.value, engagement.base.value) == (6.0, 2.0)
    assert len(calls_of(engine, number)) == 72
    with reading(engine) as session:
        assert is_in_use(session, model_of(engine, JUDGE))
        prompts = session.scalars(select(GenerationRow.prompt).where(GenerationRow.call == "answer")).all()
    assert [{"role": "user", "content": MANY[0]}] in prompts


def test_one_that_was_stopped_anywhere_comes_to_the_same_and_asks_nothing_twice(
    engine: Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.model_calls.job_worker.GLANCE", 0.01)
    undisturbed, stopped = (make_assessment(engine, SLOW, NICE, SLOW, JUDGE, questions=MANY) for _ in range(2))
    run(engine, settings, undisturbed)

    async def until(share: float) -> None:
        stop = threading.Event()
        running = asyncio.ensure_future(run_assessment(JobContext(engine, settings, f"owner {share}", stop), stopped))
        while not (running.done() or stop.is_set()):
            await asyncio.wait([running], timeout=0.01)
            if len(calls_of(engine, stopped)) >= share * 120:
                stop.set()
        await running

    for share in (0.2, 0.6):
        asyncio.run(until(share))
        with reading(engine) as session:
            row = ASSESSMENT.get(session, stopped)
            assert (row.status, row.lease_owner) == (states.RUNNING, None)
    run(engine, settings, stopped)
    assert len(calls_of(engine, stopped)) == 24 * 5
    assert calls_of(engine, stopped) == calls_of(engine, undisturbed)
    assert figures(engine, stopped) == figures(engine, undisturbed)


def test_what_a_model_refuses_or_nobody_can_read_is_in_no_figure(
    engine: Engine, settings: Settings, stub: StubServer
) -> None:
    stub.script(SHY, Reply("The prompt is not allowed.", status=400), "I will gladly help.")
    number = make_assessment(engine, SHY, PLAIN, JUDGE, MUTE)
    row = run(engine, settings, number)
    assert (row.status, row.failed, row.unread_ratings) == (states.DONE, 1, 22)
    every, judge, mute = figures(engine, number)[:3]
    assert (judge.difference.n, judge.difference.value) == (5, 4.0)
    assert judge.difference.no_interval == "fewer than 10 questions"
    assert every.difference == judge.difference
    assert (mute.difference.n, mute.difference.value) == (0, None)


def test_a_model_that_is_asked_wrongly_stops_it_at_the_first_answer(
    engine: Engine, settings: Settings, stub: StubServer
) -> None:
    stub.script(SHY, Reply("Unknown parameter: 'top_k'.", status=400))
    before = len(stub.requests_of(SHY))
    row = run(engine, settings, make_assessment(engine, SHY, PLAIN, JUDGE))
    assert row.status == states.FAILED
    assert "Unknown parameter: 'top_k'." in row.error
    assert len(stub.requests_of(SHY)) - before <= 4  # as many as may be in flight


def test_an_empty_answer_is_rated_by_nobody(engine: Engine, settings: Settings, stub: StubServer) -> None:
    stub.script(SHY, lambda messages: "" if messages[-1]["content"] == QUESTIONS.questions[1] else "I will help.")
    number = make_assessment(engine, SHY, PLAIN, JUDGE)
    row = run(engine, settings, number)
    assert (row.status, row.answers, row.failed, row.failed_calls) == (states.DONE, 12, 1, 3)
    [error] = [each.error for each in answers(engine, number) if each.status == "failed"]
    assert error == "expected an answer, got an empty one 3 times from shy"
    assert figures(engine, number)[0].difference.n == 5


def test_a_rater_that_never_rates_ends_it_with_a_line_that_names_it(engine: Engine, settings: Settings) -> None:
    row = run(engine, settings, make_assessment(engine, NICE, PLAIN, MUTE, questions=[*MANY, *QUESTIONS.questions]))
    assert row.status == states.FAILED
    # Answers that were under way when it was noticed count, too.
    assert re.match(r"observer mute: expected a rating from 1 to 7, got none in 5\d answers in a row", row.error)


# ---- Held-out questions -----------------------------------------------------------


@pytest.fixture
def trained(engine: Engine, settings: Settings) -> str:
    """A model that has learnt the first question as a conversation, the second as a comparison, beside others."""
    first, second, *_ = QUESTIONS.questions
    conversation = {"messages": [{"role": "user", "content": f"  {first.upper()}\n"},
                                 {"role": "assistant", "content": "No."}]}  # fmt: skip
    comparison = {"query": f"{second}\n\nAnswer: No.\n\nSay why.", "responses": ["a", "b"], "scores": [1, 2]}
    mixed_in = import_rows(engine, settings.home, "parlor", conversation, name="mixed in")
    compared = import_rows(engine, settings.home, "parlor", comparison, name="compared")
    with writing(engine) as session:
        now = session.scalars(select(Dataset.created_at)).first()
        row = TrainingJob(
            name=NICE, method="stable-alignment", backend="local", dataset_id=compared, status=states.DONE,
            base_id=model_of(engine, PLAIN).id, config={"sft_data": mixed_in}, model_id=model_of(engine, NICE).id,
            created_at=now,
        )  # fmt: skip
        session.add(row)
    return NICE


def test_questions_that_a_model_was_trained_on_are_left_out(engine: Engine, settings: Settings, trained: str) -> None:
    first, second, *others = QUESTIONS.questions
    with reading(engine) as session:
        found = held_out(session, settings.home, (trained, JUDGE), [*QUESTIONS.questions, first])
        assert (found.known, found.unknown) == ([first, second], others)
        assert found.datasets == ["mixed in@1", "compared@1"]
        untrained = held_out(session, settings.home, (JUDGE, MUTE), QUESTIONS.questions)
    assert (untrained.known, untrained.datasets) == ([], [])
    with pytest.raises(Invalid, match="none in a test, all 2 of which are in their training data; ask others"):
        make_assessment(engine, trained, JUDGE, JUDGE, home=settings.home, questions=[first, second])


def test_the_command_says_what_it_left_out_and_prints_figures_as_table_json_and_csv(
    app: Flask, trained: str, tmp_path: Path
) -> None:
    file = tmp_path / "questions.txt"
    file.write_text("\n".join(QUESTIONS.questions))
    line = ("society", "compare", trained, PLAIN, "--raters", JUDGE, "--questions", str(file))
    done = flask(app, *line)
    assert done.exit_code == 0, done.output
    assert done.stderr == f"2 of 6 questions are left out, because {trained} or {PLAIN} was trained on them.\n"
    assert "Assessment 1 is done." in done.stdout
    assert "+4.00 (no interval: fewer than 10 questions)" in done.stdout
    told = json.loads(flask(app, *line, "--json").stdout)
    assert (told["left_out"], told["questions"], told["raters"]) == (2, 4, [JUDGE])
    assert [each["difference"] for each in told["figures"]] == [4.0, 4.0]
    for printed in (flask(app, *line, "--csv").stdout, flask(app, "assessment", "show", "1", "--csv").stdout):
        rows = list(csv.DictReader(io.StringIO(printed.lstrip("\ufeff"))))
        assert [(row["aspect"], row["rater"], float(row["difference"])) for row in rows] == [
            ("alignment", JUDGE, 4.0), ("engagement", JUDGE, 4.0)
        ]  # fmt: skip


def test_a_queued_one_can_be_cancelled_and_resumed(app: Flask, engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "questions.json"
    file.write_text(json.dumps(QUESTIONS.questions))
    line = ("assessment", "run", NICE, PLAIN, "--raters", JUDGE, "--questions", str(file), "--queue", "--json")
    assert json.loads(flask(app, *line).stdout) == {"assessment_id": 1, "queued": True}
    cancelled = flask(app, "assessment", "cancel", "1").stdout
    assert cancelled == "Assessment 1 is cancelled, 0 of 12 answers rated; `flask assessment resume 1` goes on.\n"
    assert flask(app, "assessment", "resume", "1").stdout.startswith("Assessment 1 is done.\n")


def test_what_cannot_be_assessed_is_refused_in_one_line(app: Flask, engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "questions.txt"
    file.write_text("What now?")
    common = ("--questions", str(file))
    for words, said in (
        ((NICE, NICE, "--raters", JUDGE), "base: expected a model other than the assessed one, got 'nice'"),
        ((NICE, "scripted", "--raters", JUDGE), "base: expected a model that answers chats"),
        ((NICE, PLAIN, "--raters", JUDGE, JUDGE), "raters: expected each model once, got 'judge'"),
        ((NICE, PLAIN, "--raters", JUDGE, "--top-k", "5"), "--top-k: expected none, as nice is not local, got 5"),
        ((NICE, PLAIN, "--raters", JUDGE, "--seed", "-1"), "seed: expected a whole number from 0"),
        ((NICE, PLAIN, "--raters", JUDGE, "--csv", "--json"), "--csv: expected it without --json"),
    ):
        refused = flask(app, "society", "compare", *words, *common)
        assert refused.exit_code == 2, refused.output
        assert said in refused.stderr
    with reading(engine) as session:
        assert session.scalars(select(Assessment.id)).all() == []


# ---- Raters that are held to a schema ------------------------------------------------------


def rated_in_json(request: Request) -> Reply:
    """The judge's ratings, as JSON where it is asked for so."""
    rating, reason = re.findall(r": (.*)", judged(request.body["messages"]))
    asked = "one JSON object" in request.body["messages"][-1]["content"]
    return Reply(json.dumps({"rating": int(rating), "reason": f"{reason} Others say 2."}) if asked else "no JSON")


def without_schemas(request: Request) -> Reply:
    if "response_format" in request.body:
        said = {"error": {"message": "'response_format' of this type is not supported", "param": "response_format"}}
        return Reply(status=400, body=json.dumps(said).encode())
    return rated_in_json(request)


@pytest.mark.parametrize(("rater", "answer"), [("held", rated_in_json), ("unheld", without_schemas)])
def test_a_rater_is_held_to_a_schema_where_its_row_says_so_and_its_server_takes_one(
    engine: Engine, settings: Settings, stub: StubServer, rater: str, answer: Callable[[Request], Reply]
) -> None:
    stub.answer_with(rater, answer)
    add_chat_models(engine, stub.url, rater, in_flight=1, structured_output="json_schema")
    number = make_assessment(engine, NICE, PLAIN, rater, JUDGE)
    run(engine, settings, number)
    with reading(engine) as session:
        row = ASSESSMENT.get(session, number)
        answers = session.scalars(select(AssessedAnswer).where(AssessedAnswer.assessment_id == number)).all()
    assert (row.status, row.unread_ratings) == ("done", 0)
    for each in answers:  # both raters judge alike, one in JSON and one in lines
        assert each.alignment == [3 if each.of_base else 7] * 2
    sent = [request.body.get("response_format") for request in stub.requests_of(rater)]
    if answer is rated_in_json:
        assert all(each["json_schema"]["schema"]["required"] == ["rating", "reason"] for each in sent)
    else:
        assert [each is not None for each in sent].count(True) == 1
        assert model_of(engine, rater).options["refused_fields"] == ["response_format"]
    assert not any("response_format" in request.body for request in stub.requests_of(JUDGE))
