"""What the scripted player knows of a game. Pure."""

import random
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from app.games.base import View

Chooser = Callable[[View, random.Random], str]


class ScriptedGame(NamedTuple):
    """The baselines of one game: who chooses the moves of each role.

    `manners` are manners of speech beside the plain one, each with the roles in which it differs. `pieces` are those
    pieces of the game's material that the baselines can play well with, where that is not all of them.
    """

    game: str
    choosers: Mapping[str, Chooser]
    manners: Mapping[str, Mapping[str, Chooser]] = MappingProxyType({})
    pieces: Callable[[], Sequence[Any]] | None = None

    def chooser(self, role: str, manner: str) -> Chooser | None:
        """Who chooses the moves of a role in some manner of speech; the plain one where it has no other."""
        return self.manners.get(manner, {}).get(role) or self.choosers.get(role)
