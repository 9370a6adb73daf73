"""The options of commands that name material: one for each game that has some, such as `--contexts FILE`."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from app.core.errors import Invalid, Verbatim
from app.games import GAMES, find_game
from app.games.material import MaterialKind
from app.rounds.lifecycle import Material
from app.rounds.material import ALL, material_of_file, own_material

F = TypeVar("F", bound=Callable[..., Any])


def material_options(more: str = "") -> Callable[[F], F]:
    """Adds an option for each kind of material; `more` is what the command does with it, for the help."""

    def add(command: F) -> F:
        for game in reversed(GAMES.values()):
            if (kind := game.material) is not None:
                default = f"or {ALL}. [default: {ALL}]" if kind.listed() else "[default: generated]"
                said = f"{game.title}: {kind.file}{more}, {default}"
                command = click.option(f"--{kind.name}", metavar="FILE", help=said)(command)
        return command

    return add


def named_material(game: str, given: dict[str, Any]) -> str | None:
    """The file that one of these options names, all of which are taken out of `given`.

    Raises Invalid for an option of another game.
    """
    own = find_game(game).material
    files = {each.name: (kind, given.pop(kind.name)) for each in GAMES.values() if (kind := each.material) is not None}
    for other, (kind, path) in files.items():
        if path is not None and (own is None or kind.name != own.name):
            raise Invalid(f"--{kind.name}", expected=f"only with {other}", got=Verbatim(f"it with {game}"))
    return next((path for kind, path in files.values() if path is not None), None)


def read_material(game: str, path: str | None, config: Mapping[str, Any]) -> Material | None:
    """The material of a file, or without one the game's own list where the config leaves it open. Raises Invalid."""
    found = find_game(game)
    kind: MaterialKind | None = found.material
    if kind is not None and path is not None:
        return material_of_file(kind, path)
    return None if kind is None or config.get(kind.fields[0]) is not None else own_material(found)
