"""Options of the form name=value, and the arguments that belong to them."""

from typing import Any

import click
import pytest
from click.testing import CliRunner

from app.cli.base import Command, RepeatableOption, is_pair, read_pairs
from app.core.errors import AppError, Invalid


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("a=1", 1),
        ("a=-0.5", -0.5),
        ("a=[1, 2]", [1, 2]),
        ('a={"b": 1}', {"b": 1}),
        ('a="1"', "1"),
        ("a=coop", "coop"),
        ("a=null", "null"),
        ("a=NaN", "NaN"),
        ("a=", ""),
        ("a=b=c", "b=c"),
        ("a=[1", "[1"),
        ("a=1 2", "1 2"),
    ],
)
def test_a_value_is_json_where_it_looks_like_it_and_else_text(pair: str, value: Any) -> None:
    assert read_pairs([pair], "--config") == {"a": value}


@pytest.mark.parametrize("pairs", [["a"], ["=1"], [""], ["a=1", "a=2"]])
def test_a_bad_pair_is_refused_with_the_options_name(pairs: list[str]) -> None:
    with pytest.raises(Invalid, match="--config: expected"):
        read_pairs(pairs, "--config")


def test_a_refusal_of_a_hidden_pair_does_not_repeat_it() -> None:
    with pytest.raises(Invalid) as refusal:
        read_pairs(["sk-secret"], "--option", show=False)
    assert "sk-secret" not in refusal.value.message


@click.command(cls=Command)
@click.argument("name")
@click.option("--config", cls=RepeatableOption, belongs=is_pair)
@click.option("--flag", is_flag=True)
@click.option("--fail")
def command(name: str, config: tuple[str, ...], flag: bool, fail: str | None) -> None:
    if fail == "refused":
        raise AppError("one\nline")
    if fail == "interrupted":
        raise KeyboardInterrupt
    click.echo(f"{name} {' '.join(config)} {flag}")


@pytest.mark.parametrize(
    "arguments",
    [
        ["x", "--config", "a=1", "b=2", "--flag"],
        ["x", "--config", "a=1", "--config", "b=2", "--flag"],
        ["--config", "a=1", "b=2", "x", "--flag"],
        ["--flag", "--config", "a=1", "b=2", "x"],
    ],
)
def test_an_option_takes_the_pairs_after_it(arguments: list[str]) -> None:
    assert CliRunner().invoke(command, arguments).output == "x a=1 b=2 True\n"


@pytest.mark.parametrize(
    "arguments",
    [[], ["x", "y"], ["x", "--nope"], ["x", "--config"], ["x", "--fail", "refused"]],
    ids=["nothing", "too much", "unknown option", "no value", "refused by the service"],
)
def test_bad_usage_is_one_line_and_exit_code_2(arguments: list[str]) -> None:
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert not result.stdout


def test_ctrl_c_is_one_line_and_exit_code_130() -> None:
    result = CliRunner().invoke(command, ["x", "--fail", "interrupted"])
    assert result.exit_code == 130
    assert result.stderr.strip() == "Interrupted."
