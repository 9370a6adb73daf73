"""What the scripted player knows of a game. Pure."""

import random
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from app.games.base import View

Chooser = Callable[[View, random.Random], str]


class ScriptedGame(NamedTuple):
    """The baselines of one game: the function that chooses the moves of each role.

    `styles` are styles of speech beside the plain one, each with the roles in which it differs. `pieces` are the pieces
    of the game's material that the baselines can play well with, if these are not all.
    """

    game: str
    choosers: Mapping[str, Chooser]
    styles: Mapping[str, Mapping[str, Chooser]] = MappingProxyType({})
    pieces: Callable[[], Sequence[Any]] | None = None

    def chooser(self, role: str, style: str) -> Chooser | None:
        """The function that chooses the moves of a role in a style of speech; the plain one if the role has no
        other.
        """
        return self.styles.get(style, {}).get(role) or self.choosers.get(role)
