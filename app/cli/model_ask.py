"""`flask model ask`: one question, a conversation at the terminal, or a file of questions that can be continued."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from app.cli.base import (
    Command,
    CommandFailed,
    ensure_database,
    json_option,
    print_json,
    read_value,
    settings,
    unwritable,
)
from app.cli.model_options import given_options, number_options
from app.cli.spec_options import add_budget_options, read_budget
from app.core.errors import Invalid, Verbatim
from app.core.extensions import db, reading, writing
from app.core.files import file_problem
from app.datasets.row_files import read_rows
from app.jobs.spec import JobBudget
from app.model_calls import question_templates, request_lifecycle
from app.model_calls.question_templates import CHAT, SAMPLING_PRESETS, TEMPLATES, chat_of, read_question
from app.model_calls.request_batch import BatchAnswer, ask_all
from app.model_calls.request_runner import make_here
from app.players.base import ChatSampling
from app.registry import get_model

_ROWS = (".json", ".jsonl", ".gz")  # suffixes of row files; any other file has one question per line
_NEW = ""  # the line that restarts the conversation


@dataclass(frozen=True, slots=True)
class _Asking:
    """How questions are asked of a model."""

    model: str
    template: str
    system: str | None
    sampling: ChatSampling

    def chat(self, question: str, more: str = "") -> list[dict[str, str]]:
        return chat_of(question, more, self.template, self.system)


@click.command(cls=Command)
@click.argument("name")
@click.argument("message", required=False)
@click.option("--file", "file", type=Path, metavar="IN", help="Ask its questions: one per line, or rows of JSON.")
@click.option("--out", type=Path, metavar="FILE", help="With --file: where the answers go, a line of JSON each.")
@click.option("--system", metavar="TEXT", help="A system message before it.")
@click.option(
    "--template",
    type=click.Choice(TEMPLATES),
    default=CHAT,
    show_default=True,
    help="The prompt template for the question.",
)
@click.option(
    "--preset", type=click.Choice(list(SAMPLING_PRESETS)), help="Sampling by name: temperature 0.7, top-p 0.9."
)
@number_options(
    temperature="0 to 2. [default: the model's own]",
    top_p="0 to 1. [default: the model's own]",
    top_k="Of local models. [default: the model's own]",
    max_tokens="Maximum tokens of the answer. [default: the model's own, or 256]",
    no_repeat_ngram="Of local models: so many tokens in a row never come twice. [default: they may]",
)
@add_budget_options
@json_option
def ask(
    name: str,
    message: str | None,
    file: Path | None,
    out: Path | None,
    system: str | None,
    template: str,
    preset: str | None,
    as_json: bool,
    usd: str | None,
    tokens: str | None,
    **given: Any,
) -> None:
    """Ask a model anything, and print its answer. MESSAGE - is read from standard input.

    Without MESSAGE each line that you type is the next turn of a conversation; an empty line begins a new one. With
    --file all questions of a file are asked, as many at once as the model may be asked; what FILE has answers for
    already is not asked again, and a budget ends the asking when it is reached. Calls are made here, with the keys of
    this environment, and kept like all calls. Exit code 0: it answered; 1: it did not.
    """
    if file is not None and message is not None:
        raise Invalid("MESSAGE", expected="none beside --file", got=message)
    if (file is None) != (out is None):
        raise Invalid(
            "--out" if out is None else "--file", expected="both --file IN and --out FILE", got=Verbatim("one")
        )
    sampling, budget = read_sampling(given, preset), read_budget({"usd": usd, "tokens": tokens})
    if file is None and budget != JobBudget():
        raise Invalid("--budget", expected="it beside --file", got=Verbatim("one question"))
    questions = None if file is None else _read_questions(file)
    ensure_database()
    asking = _Asking(name, template, system, _fitting(name, sampling, preset, given))
    if questions is not None and out is not None:
        _ask_file(asking, questions, out, as_json, budget)
    elif message is not None:
        _ask_once(asking, message, as_json)
    elif as_json:
        raise Invalid("--json", expected="MESSAGE or --file beside it", got=Verbatim("neither"))
    else:
        _converse(asking)


def _ask_once(asking: _Asking, message: str, as_json: bool) -> None:
    content = sys.stdin.read() if message == "-" else message
    if not content.strip():
        raise Invalid("MESSAGE", expected="something to ask", got=Verbatim("nothing"))
    number, result = _answer_question(asking, asking.chat(content))
    if as_json:
        print_json({"request": number, **result})
    elif result["ok"]:
        click.echo(result["text"])
    if not result["ok"]:
        raise CommandFailed(f"{asking.model} did not answer: {result['error']}")


def _converse(asking: _Asking) -> None:
    """Ask turn after turn until the input ends. With a template of single questions, each line is one."""
    told: list[dict[str, str]] = []
    prompt = sys.stdin.isatty()
    while True:
        if prompt:
            click.echo("> ", nl=False)
        line = sys.stdin.readline()
        if not line:
            return
        text = line.strip()
        if text == _NEW or asking.template != CHAT:
            told = []
        if text == _NEW:
            continue
        told = [*told, {"role": "user", "content": text}] if told else asking.chat(text)
        _, result = _answer_question(asking, told)
        if result["ok"]:
            click.echo(result["text"])
            told.append({"role": "assistant", "content": result["text"]})
        elif prompt:
            click.echo(f"{asking.model} did not answer: {result['error']}", err=True)
            told.pop()
        else:
            raise CommandFailed(f"{asking.model} did not answer: {result['error']}")


def _answer_question(asking: _Asking, chat: list[dict[str, str]]) -> tuple[int, dict[str, Any]]:
    with writing() as session:
        row = get_model(session, asking.model)
        number = request_lifecycle.create(session, row, request_lifecycle.QUESTION, chat, asking.sampling).id
    return number, make_here(db.engine, settings(), number)


# ---- Files -----------------------------------------------------------------------


def _ask_file(
    asking: _Asking, questions: Sequence[tuple[str, str]], out: Path, as_json: bool, budget: JobBudget
) -> None:
    """Append the missing answers to the file, in the order of the questions."""
    done = _mend_file_and_count_answers(out, asking.model, questions)
    chats = [asking.chat(*each) for each in questions[done:]]
    failed = 0
    stopped: BatchAnswer | None = None
    try:
        with out.open("a", encoding="utf-8") as file:
            for answer in ask_all(db.engine, settings(), asking.model, chats, asking.sampling, budget):
                if answer.ends_batch(done):
                    stopped = answer
                    break
                file.write(_answer_line(asking.model, questions[done], answer))
                file.flush()
                failed += not answer.result["ok"]
                done += 1
    except OSError as error:
        raise unwritable(out, error) from None
    if as_json:
        print_json({"out": str(out), "questions": len(questions), "done": done, "without_answer": failed})
    elif stopped is None:
        refused = f", {failed} of them refused" if failed else ""
        click.echo(f"{done} of {len(questions)} questions{refused}: {out}.")
    if stopped is not None:
        raise CommandFailed(
            f"{asking.model} did not answer question {done + 1} of {len(questions)}: {stopped.result['error']};"
            " the same command goes on there"
        )


def _answer_line(model: str, question: tuple[str, str], answer: BatchAnswer) -> str:
    """One line of the answer file. A question that the model refuses has an error instead of a response."""
    text, more = question
    found = {"question": text, **({"input": more} if more else {}), "model": model, "request": answer.request}
    result = answer.result
    found |= {"response": result["text"]} if result["ok"] else {"response": None, "error": result["error"]}
    return json.dumps(found) + "\n"


def _mend_file_and_count_answers(out: Path, model: str, questions: Sequence[tuple[str, str]]) -> int:
    """The number of questions that a file has answers for. An incomplete last line, as of a killed program, is removed.

    Raises Invalid for the answers of another model, or to other questions.
    """
    if not out.exists():
        return 0
    try:
        raw = out.read_bytes()
        whole = raw[: raw.rfind(b"\n") + 1]
        if whole != raw:
            with out.open("r+b") as file:
                file.truncate(len(whole))
    except OSError as error:
        raise unwritable(out, error) from None
    lines = whole.decode(errors="replace").splitlines()
    for number, line in enumerate(lines):
        if number >= len(questions) or _head(line) != (model, *questions[number]):
            raise Invalid(
                "--out",
                expected=f"a new file, or answers of {model} to these questions",
                got=Verbatim(f"another line {number + 1} in {out}"),
                remedy="name another file",
            )
    return len(lines)


def _head(line: str) -> tuple[object, ...] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return (found.get("model"), found.get("question"), found.get("input", "")) if isinstance(found, dict) else None


def _read_questions(path: Path) -> list[tuple[str, str]]:
    """The questions of a file, each with its input. Raises Invalid, naming the row."""
    found = []
    try:
        with path.open("rb") as file:
            if path.suffix in _ROWS:
                for row in read_rows(file, str(path)):
                    place = f"{path}, row {row.number}"
                    if row.error is not None:
                        raise row.error.at(place)
                    try:
                        found.append(read_question(row.value))
                    except Invalid as error:
                        raise error.at(place) from None
            else:
                lines = file.read().decode("utf-8-sig").splitlines()
                found = [(line.strip(), "") for line in lines if line.strip()]
    except OSError as error:
        raise Invalid(
            "--file", expected="a file of questions", got=Verbatim(f"{path} ({file_problem(error)})")
        ) from None
    except UnicodeDecodeError:
        raise Invalid("--file", expected="a file in UTF-8", got=Verbatim(path)) from None
    if not found:
        raise Invalid("--file", expected="a question", got=Verbatim(f"none in {path}"))
    return found


# ---- Sampling --------------------------------------------------------------------


def read_sampling(given: dict[str, Any], preset: str | None) -> ChatSampling:
    """The sampling of the preset, overridden by the given options. Raises Invalid, which names the option."""
    try:
        values = {name: read_value(text) for name, text in given_options(given).items()}
        return question_templates.read_sampling(values, preset)
    except Invalid as error:
        raise error.of(f"--{(error.field or '').replace('_', '-')}") from None


def _fitting(name: str, sampling: ChatSampling, preset: str | None, given: dict[str, Any]) -> ChatSampling:
    """The sampling without the part of the preset that the model does not support, after printing a message about it.
    Raises NotFound.
    """
    with reading() as session:
        kind = get_model(session, name).kind
    if kind == "local" or preset is None or given["no_repeat_ngram"] is not None:
        return sampling
    if sampling.no_repeat_ngram is not None:
        click.echo(f"{name} is not local: its answers may repeat themselves.", err=True)
    return sampling._replace(no_repeat_ngram=None)
