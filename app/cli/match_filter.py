"""The options that choose matches: the same for exports, analyses and datasets."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from app.jobs.spec import fields_of
from app.matches.choice import MatchChoice
from app.matches.filter import NAMES, MatchFilter, read_choice

F = TypeVar("F", bound=Callable[..., Any])

_ROUND = {"metavar": "R", "description": "Only this round."}  # datasets have several of them


def filter_options(*without: str) -> Callable[[F], F]:
    """Add the options of `MatchFilter` to a command, except those that it defines itself."""

    def add(command: F) -> F:
        for name in reversed([each for each in NAMES if each not in without]):
            schema = {**fields_of(MatchChoice), "round": _ROUND}[name]
            command = click.option(f"--{name}", metavar=schema["metavar"], help=schema["description"])(command)
        return command

    return add


def read_filter(options: Mapping[str, Any]) -> MatchFilter:
    """The filter that a command's options give. Raises NotFound and Invalid as `read_choice` does."""
    return read_choice({name: str(options[name]) for name in NAMES if options.get(name) is not None})
