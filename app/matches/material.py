"""Material for single matches: the pieces in a file, and one of them for a match."""

import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.core.config import Settings
from app.core.csv_reader import decode_text
from app.core.errors import Invalid, Phrase, Verbatim
from app.core.files import file_problem
from app.games import find_game
from app.games.material import MaterialKind


def pieces_of_file(kind: MaterialKind, path: str) -> Sequence[Any]:
    """All pieces of a file, read again only when it has changed. Raises Invalid in one line."""
    try:
        return _pieces_of_file(kind, path, Path(path).stat().st_mtime_ns)
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(
            kind.name,
            expected=Phrase("a readable text file"),
            got=Verbatim(f"{path} ({file_problem(error)})"),
            subject=Phrase("%(name)s file", name=kind.name),
        ) from None


@lru_cache(maxsize=4)
def _pieces_of_file(kind: MaterialKind, path: str, _changed: int) -> Sequence[Any]:
    return kind.read(decode_text(Path(path).read_bytes()).splitlines(), path)


def with_piece(game: str, config: Mapping[str, Any], pieces: Sequence[Any], seed: int) -> Mapping[str, Any]:
    """The config with one of the pieces, drawn by the match's seed, if there are some and the config names none."""
    kind = find_game(game).material
    if kind is None or not pieces or any(config.get(name) is not None for name in kind.fields):
        return config
    return {**config, **kind.config_of(random.Random(f"{seed}/{kind.piece}").choice(pieces))}


def server_file(kind: MaterialKind | None, settings: Settings) -> str:
    """The file that the server's settings name for that kind of material; empty if they name none."""
    return "" if kind is None or kind.setting is None else str(getattr(settings, kind.setting))


def server_pieces(game: str, settings: Settings) -> Sequence[Any]:
    """The pieces of the file that the server's settings name for the game; none if they name none. Raises Invalid."""
    kind = find_game(game).material
    path = server_file(kind, settings)
    return pieces_of_file(kind, path) if kind is not None and path else ()
