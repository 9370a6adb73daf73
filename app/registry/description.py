"""A registered model as JSON, for commands and the API."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from app.inference import weights
from app.models import LanguageModel
from app.players.api import options as api_options
from app.players.local import options as local_options
from app.players.local.serving import in_words as in_words_of
from app.registry import has_passed_test, needs_test, player_spec, read_options
from app.registry.adapters import engine_of


def described(row: LanguageModel, home: Path) -> dict[str, Any]:
    """A registry row as JSON. For a key, only the variable's name and whether it is set here."""
    found: dict[str, Any] = {
        "name": row.name, "label": row.label, "kind": row.kind, "games": row.games,
        "uses": row.uses, "archived": row.archived_at is not None, "notes": row.notes,
        "usable_in_rounds": row.usable_in_rounds, "offered_to_people": row.offered_to_people,
        "test_call": test_call(row), "prompt_style": row.prompt_style, "options": row.options,
        "findings": row.findings,
    }  # fmt: skip
    match read_options(player_spec(row)):
        case api_options.ApiOptions() as options:
            key = options.key_env
            key_set = bool(os.environ.get(key, "").strip()) if key else None
            found |= {"model": options.model, "base_url": options.base_url, "key_env": key, "key_set": key_set}
        case local_options.LocalOptions() as options:
            folder = local_options.resolve(home, options.path)
            found |= {"folder": str(folder), "parameters": weights.parameters(folder)}
            base = None if row.adapter_base is None else row.adapter_base.name
            found |= {"adapters_over": base, "play_with": row.play_with, "served": served_facts(row)}
    return found


def served_facts(row: LanguageModel) -> dict[str, Any] | None:
    """The engine that serves a model, and its state, without what only its requests need."""
    served = engine_of(row)
    if served is None:
        return None
    left_out = {"version", "tokenizer", "watcher", "watched_until"}
    facts = served.model_dump(mode="json", exclude=left_out)
    return {**facts, "is_watched": served.is_watched(now := datetime.now(UTC)), "words": str(in_words_of(served, now))}


def test_call(row: LanguageModel) -> str:
    """The result of a model's latest test call, in a word or two."""
    if not needs_test(row):
        return "needs none"
    if row.test_request is None or row.test_request.result is None:
        return "not yet"
    return "passed" if has_passed_test(row) else "failed"
