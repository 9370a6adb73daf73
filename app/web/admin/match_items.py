"""A match as one line of a list."""

from datetime import datetime
from typing import Any

from flask_babel import format_decimal

from app.matches.overview import MatchListItem
from app.models import MatchRow
from app.registry import PERSON


def match_item(line: MatchListItem, now: datetime) -> dict[str, Any]:
    """A match as the page shows it."""
    match = line.match
    return {
        "id": match.id,
        "game": match.game,
        "source": match.source,
        "study": line.study,
        "round": match.round_id,
        "index": match.index,
        "players": [{"role": player.role, "name": player.model or PERSON} for player in line.players],
        "moves": match.ply,
        "violations": match.violations,
        "to_move": line.players[match.to_move].model or PERSON if match.to_move is not None else None,
        "quiet": _minutes(now, match.moved_at),
        "status": match.status,
        "reason": match.reason,
        "scores": scores_of(match),
        "started_at": match.started_at,
    }


def scores_of(match: MatchRow) -> str:
    """Both seats' scores, as far as there are any."""
    scores = [score for score in (match.utility_0, match.utility_1) if score is not None]
    return " : ".join(format_decimal(score, "0.######").replace("-", "−") for score in scores)


def _minutes(now: datetime, since: datetime) -> str:
    """How long ago, as minutes and seconds."""
    minutes, seconds = divmod(max(0, int((now - since).total_seconds())), 60)
    return f"{minutes}:{seconds:02}"
