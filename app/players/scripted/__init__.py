"""The scripted baselines, by game: each package in here has those of one game, as `SCRIPTED_GAME`.

The exception is `chat`, whose players answer the chats of a society and play no game.
"""

import pkgutil
from importlib import import_module

from app.players.scripted.base import ScriptedGame


def _import_scripted_games() -> dict[str, ScriptedGame]:
    packages = sorted(each.name for each in pkgutil.iter_modules(__path__) if each.ispkg and each.name != "chat")
    games: list[ScriptedGame] = [import_module(f"{__name__}.{name}").SCRIPTED_GAME for name in packages]
    return {each.game: each for each in games}


SCRIPTED = _import_scripted_games()
