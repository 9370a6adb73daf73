"""Write down what the golden logs replay to: `python -m tests.golden.snapshots`. What is there stays as it is."""

import json
from pathlib import Path
from typing import Any

from app.games.base import Event
from app.matches import engine
from app.matches.events import from_json
from app.matches.views import seat_view

HERE = Path(__file__).parent
SNAPSHOTS = HERE / "views.json"


def logs() -> dict[str, list[dict[str, Any]]]:
    """Every golden log, by `game/name`."""
    return {
        f"{path.parent.name}/{path.stem}": [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for path in sorted(HERE.glob("*/*.jsonl"))
    }


def final_views(log: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What each seat is shown at the end of a log."""
    events = [from_json(raw) for raw in log]
    times = ["2030-01-01T00:00:00.000Z" for event in events if isinstance(event, Event)]
    return [seat_view("golden", engine.replay(events), times, seat) for seat in (0, 1)]


if __name__ == "__main__":
    known = json.loads(SNAPSHOTS.read_text(encoding="utf-8")) if SNAPSHOTS.exists() else {}
    views = {name: final_views(log) for name, log in logs().items()}
    SNAPSHOTS.write_text(
        json.dumps(views | known, ensure_ascii=False, indent=1, sort_keys=True) + "\n", encoding="utf-8"
    )
