"""What `--help` prints of every command: columns that stay apart, and texts that end where the next one begins."""

import json
import re
from collections.abc import Iterator
from inspect import cleandoc

import click
import pytest

from app.cli.commands import LIST, Commands, load, load_below
from app.cli.training_help import TrainingCommand, training_fields


def every_command() -> Iterator[tuple[str, click.Command]]:
    """Groups as they are listed, and commands with their options, each with its words."""
    listed = Commands("flask")
    for name, said in json.loads(LIST.read_text(encoding="utf-8")).items():
        if "commands" in said:
            group = listed.get_command(click.Context(listed), name)
            assert group is not None
            yield f"flask {name}", group
            yield from ((f"flask {name} {below}", load_below(name, below)) for below in said["commands"])
        else:
            yield f"flask {name}", load(name)


EVERY = [*every_command()]


def records(command: click.Command, context: click.Context) -> list[tuple[str, str]]:
    """What has two columns, but for the commands of a group."""
    options = [each for each in command.get_params(context) if isinstance(each, click.Option)]
    fields = training_fields() if isinstance(command, TrainingCommand) else ()
    return [
        *(each.get_help_record(context) or ("", "") for each in options),
        *(row for _, rows in fields for row in rows),
    ]


@pytest.mark.parametrize("width", [80, 120])
def test_help_fits_the_terminal_and_its_columns_never_touch(width: int) -> None:
    wrong = []
    for path, command in EVERY:
        context = click.Context(command, info_name=path, terminal_width=width, max_content_width=width)
        text = command.get_help(context)
        wrong += [f"{path}: {len(line)} characters: {line}" for line in text.splitlines() if len(line) > width]
        names = [name for name, _ in records(command, context)]
        names += command.list_commands(context) if isinstance(command, click.Group) else []
        wrong += [f"{path}: cut off: {line}" for line in text.splitlines() if re.search(r"\w\.\.\.$", line)]
        apart = [name for name in names if re.search(rf"^ +{re.escape(name)}(?:  +\S|$)", text, re.MULTILINE)]
        wrong += [f"{path}: {name} touches its text" for name in names if name not in apart]
    assert not wrong, "\n".join(wrong)


def faults_of(text: str) -> Iterator[str]:
    """What is wrong with one text of an option."""
    if text.count("[default") > 1:
        yield "two defaults"
    if re.search(r"[,;:] \[(?!\{)|\w\[default| [,.;:](?!\w)", text):
        yield "a mark without a word"
    if re.search(r"[a-z)]\.[A-Z]|[a-z][.,;:]\(|[a-z],[A-Z]", re.sub(r"[A-Z],[A-Z]|\w+\.[a-z]+", "", text)):
        yield "sentences that touch"
    if re.search(r"\S  +(?!\[)\S", text):
        yield "two blanks"
    if re.search(r"\b([a-z]+)\b \1\b|\baa|\bNone\b|\bTrue\b|\bFalse\b|\{'", text):
        yield "a word twice, or a value of Python"


def test_texts_of_options_and_commands_are_sentences_with_one_default() -> None:
    wrong = []
    for path, command in EVERY:
        context = click.Context(command, info_name=path)
        for name, text in records(command, context):
            wrong += [f"{path} {name}: {fault}: {text}" for fault in faults_of(text)]
        for paragraph in cleandoc(command.help or "").split("\n\n"):
            if not paragraph.startswith("\b"):
                wrong += [f"{path}: {fault}: {paragraph}" for fault in faults_of(" ".join(paragraph.split()))]
                if re.search(r"^ *[-*] |\S {2,}\S", paragraph, re.MULTILINE):
                    wrong.append(f"{path}: a list whose lines are joined: {paragraph}")
    assert not wrong, "\n".join(wrong)
