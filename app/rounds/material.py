"""The material of a round's matches: pieces from a file, a text or the game's own list."""

from app.games.base import Game
from app.games.material import MaterialKind
from app.matches.material import pieces_of_file
from app.rounds.lifecycle import Material

ALL = "all"  # in place of a file: the list that ships with the game


def material_of_file(kind: MaterialKind, path: str) -> Material:
    """The pieces in a file, in order. Raises Invalid, with the number of the first invalid line."""
    if path == ALL and kind.listed():
        return Material(f"the list of {kind.title.lower()}", kind.listed())
    return Material(path, pieces_of_file(kind, path))


def material_of_text(kind: MaterialKind, text: str, source: str) -> Material:
    """The pieces of a text that was read from `source`. Raises Invalid."""
    return Material(source, kind.read(text.splitlines(), source))


def own_material(game: Game[object]) -> Material | None:
    """The list shipped with the game; None if each match draws its own piece, or none at all."""
    kind = game.material
    return None if kind is None or not kind.listed() else material_of_file(kind, ALL)
