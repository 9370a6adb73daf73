"""The options that choose matches: the same for exports, analyses and datasets."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from app.matches.filter import CONSENTS, NAMES, SOURCES, STATUSES, MatchFilter, read_choice

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = {
    "game": ("GAME", "Only this game."),
    "player": ("NAME", "Only matches of this model, or of people: person."),
    "role": ("ROLE", "Only matches in which the player had this role."),
    "reason": ("OUTCOME", "Only matches that ended so, such as deal."),
    "status": ("STATUS", f"Only these: {', '.join(STATUSES)}."),
    "source": ("SOURCE", f"Only matches from here: {', '.join(SOURCES)}."),
    "since": ("DAY", "Only matches that began on this day or later, in UTC."),
    "until": ("DAY", "Only matches that began on this day or earlier, in UTC."),
    "match": ("ID", "Only this match."),
    "round": ("R", "Only this round."),
    "campaign": ("N", "Only rounds and evaluations of this campaign."),
    "study": ("NAME", "Only this study."),
    "arm": ("NAME", "Only arms of this name."),
    "consent": ("WHETHER", f"Only matches whose people all agreed to training, or not all: {', '.join(CONSENTS)}."),
}


def filter_options(*without: str) -> Callable[[F], F]:
    """Adds the options of `MatchFilter` to a command, but for those that it has itself."""

    def add(command: F) -> F:
        for name in reversed([each for each in NAMES if each not in without]):
            metavar, text = _OPTIONS[name]
            command = click.option(f"--{name}", metavar=metavar, help=text)(command)
        return command

    return add


def read_filter(options: Mapping[str, Any]) -> MatchFilter:
    """The filter that the options of a command make. Raises NotFound and Invalid as `read_choice` does."""
    return read_choice({name: str(options[name]) for name in NAMES if options.get(name) is not None})
