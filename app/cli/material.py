"""Options of commands that take material: one for each game that has a kind of material, such as `--contexts FILE`."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import click

from app.core.errors import Invalid, Verbatim
from app.games import GAMES, find_game
from app.games.material import MaterialKind
from app.rounds.lifecycle import Material
from app.rounds.material import ALL, material_of_file, own_material

F = TypeVar("F", bound=Callable[..., Any])


def material_options(more: str = "") -> Callable[[F], F]:
    """Add an option for each kind of material; `more` tells in the help what the command does with it."""

    def add(command: F) -> F:
        for _, option in reversed([*material_parameters(more=more)]):
            command = option(command)
        return command

    return add


def material_parameters(prefix: str = "", more: str = "") -> Iterator[tuple[str, Callable[[F], F]]]:
    """These options, each with its click parameter name, which begins with `prefix`."""
    for game in GAMES.values():
        if (kind := game.material) is not None:
            default = f", or {ALL}. [default: {ALL}]" if kind.listed() else ". [default: generated]"
            said, called = f"{game.title}: {kind.file}{more}{default}", prefix + kind.name.replace("-", "_")
            yield called, click.option(f"--{kind.name}", called, metavar="FILE", help=said)


def named_material(game: str, given: dict[str, Any]) -> str | None:
    """The file given with one of these options; all of them are removed from `given`.

    Raises Invalid for an option of another game.
    """
    files = {each.material.name: given.pop(each.material.name) for each in GAMES.values() if each.material is not None}
    return own_file(game, {name: path for name, path in files.items() if path is not None})


def own_file(game: str, files: Mapping[str, str]) -> str | None:
    """The file given for the game's kind of material; `files` are by kind. Raises Invalid for another kind."""
    own = find_game(game).material
    for other in GAMES.values():
        if (kind := other.material) is not None and kind.name in files and (own is None or kind.name != own.name):
            raise Invalid(f"--{kind.name}", expected=f"only with {other.name}", got=Verbatim(f"it with {game}"))
    return next(iter(files.values()), None)


def read_material(game: str, path: str | None, config: Mapping[str, Any]) -> Material | None:
    """The material in a file; without a file, the game's own list if the config leaves it open. Raises Invalid."""
    found = find_game(game)
    kind: MaterialKind | None = found.material
    if kind is not None and path is not None:
        return material_of_file(kind, path)
    return None if kind is None or config.get(kind.fields[0]) is not None else own_material(found)
