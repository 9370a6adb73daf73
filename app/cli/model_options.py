"""Options shared by several commands of `flask model`: of its registry row, and of how it is called."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from app.cli.base import RepeatableOption, is_pair, read_pairs, read_value
from app.core.errors import Conflict, Verbatim
from app.games import GAMES

F = TypeVar("F", bound=Callable[..., Any])

NONE = "none"  # for an option without a value
_METAVARS = {"temperature": "T", "top_p": "P", "top_k": "K", "timeout": "SECONDS"}  # N for all others

label_option = click.option(
    "--label", metavar="LABEL", help="The only name that participants see. [default: a neutral one]"
)
games_option = click.option(
    "--game", "games", cls=RepeatableOption, belongs=GAMES.__contains__, metavar="GAME", help="What it plays. [all]"
)
style_option = click.option(
    "--prompt-style", default="full", show_default=True, metavar="STYLE", help="How it is prompted."
)

PRICE_HELP = {  # of options that are US dollars a million tokens
    "price_in": "US dollars a million tokens of prompts",
    "price_out": "US dollars a million tokens of answers",
    "price_cached": "Likewise of prompts read from the server's cache; unset: as --price-in",
    "price_cache_write": "Likewise of prompts written to it; unset: as --price-in",
    "price_reasoning": "Likewise of reasoning; unset: as --price-out",
}


def number_options(**texts: str) -> Callable[[F], F]:
    """Add an option for each name, in this order, with its help; values stay text for `read_numbers`."""

    def add(command: F) -> F:
        for name, text in reversed(texts.items()):
            option = click.option(f"--{name.replace('_', '-')}", name, metavar=_METAVARS.get(name, "N"), help=text)
            command = option(command)
        return command

    return add


def further_option(text: str) -> Callable[[F], F]:
    """Add `--option NAME=VALUE`, passed as `more`."""
    return click.option("--option", "more", cls=RepeatableOption, belongs=is_pair, metavar="NAME=VALUE", help=text)


def given_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a command that were given."""
    return {option: value for option, value in given.items() if value is not None}


def read_numbers(options: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The options, with those in `names` read as values; "none" becomes None."""
    return {name: _read_option(value) if name in names else value for name, value in options.items()}


def with_further(options: Mapping[str, Any], more: Sequence[str]) -> dict[str, Any]:
    """The options together with those of `--option`. Raises Conflict for a name given twice, and Invalid for no
    pair.
    """
    # An extra option's value may be a key put there by mistake, so it is never shown.
    further = read_pairs(more, "--option", show=False)
    if twice := sorted(set(options) & set(further)):
        raise Conflict("--option", expected=f"{twice[0]} once", got=Verbatim("it twice"))
    return {**options, **further}


def _read_option(text: str) -> Any:
    return None if text == NONE else read_value(text)
