"""A match of Adversarial Taboo in the format of its authors:
`{history: [{role, content}], target_word, max_turns}`. Pure.

Source: Cheng et al. 2024, arXiv 2404.10642.
"""

from collections.abc import Sequence
from typing import Any

from app.core.errors import Invalid
from app.datasets.records import ExportableMatch, unpacked
from app.games.base import JSON, Event
from app.games.taboo.rules import TABOO
from app.matches.events import LogEvent, Started


def episode_of(match: ExportableMatch) -> JSON:
    """The match as an episode, identical to its source. Raises Invalid for a match of another game."""
    facts = unpacked(match.facts)
    episode = _episode_from_events(match.events)
    history: list[Any] = episode["history"]
    for at, move in facts.get("moves", {}).items():
        history[int(at)] = move
    history += facts.get("after", [])
    fields: JSON = facts.get("fields", {})
    return episode | fields


def facts_of(raw: JSON, events: Sequence[LogEvent]) -> JSON:
    """Everything that the events do not reproduce: `moves` by their place, those `after` the verdict, and all other
    fields.
    """
    made = _episode_from_events(events)
    played = len(made["history"])
    facts: JSON = {}
    moves = {str(at): raw["history"][at] for at in range(played) if raw["history"][at] != made["history"][at]}
    if moves:
        facts["moves"] = moves
    if len(raw["history"]) > played:
        facts["after"] = raw["history"][played:]
    fields = {name: value for name, value in raw.items() if name != "history" and made.get(name) != value}
    if fields:
        facts["fields"] = fields
    return facts


def _episode_from_events(events: Sequence[LogEvent]) -> JSON:
    started = events[0]
    if not isinstance(started, Started) or started.game != TABOO.name:
        raise Invalid("match", expected=f"one of {TABOO.name}", got=started)
    moves = [event for event in events if isinstance(event, Event)]
    return {
        "history": [{"role": TABOO.roles[event.seat], "content": event.text} for event in moves],
        "target_word": started.config["word"],
        "max_turns": started.config["max_turns"],
    }
