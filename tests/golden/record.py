"""Write a golden log of the baseline against itself: `python -m tests.golden.record GAME NAME SEED [JSON CONFIG]`."""

import json
import sys
from pathlib import Path

from app.matches import engine
from app.matches.events import LogEvent, to_json
from app.matches.live import turn_rng
from app.players.base import PlayerSpec
from app.players.scripted.player import make

HERE = Path(__file__).parent


def scripted_log(game: str, seed: int, config: dict[str, object]) -> list[LogEvent]:
    """The whole log of a match of the baseline against itself."""
    player = make(PlayerSpec("scripted", "scripted"))
    log: list[LogEvent] = [engine.start(game, config, seed)]
    match = engine.replay(log)
    while (seat := match.to_move) is not None:
        text = player.choose(match.view(seat), turn_rng(seed, seat, match.ply, len(match.refused)))
        for event in engine.step(match, seat, text, by_model=True):
            match = engine.apply(match, event)
            log.append(event)
    return log


def main(game: str, name: str, seed: str, config: str = "{}") -> None:
    path = HERE / game / f"{name}.jsonl"
    if path.exists():
        raise SystemExit(f"{path}: expected a new name, got one that exists; a golden log is never edited")
    lines = [
        json.dumps(to_json(event), ensure_ascii=False) for event in scripted_log(game, int(seed), json.loads(config))
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
