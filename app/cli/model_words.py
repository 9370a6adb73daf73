"""A model of the registry as `flask model` prints it: as JSON, in a line, and in full."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.models import LanguageModel
from app.players import api_options, local_options
from app.registry import player_spec, read_options


def described(row: LanguageModel, home: Path) -> dict[str, Any]:
    """A registry row as JSON. Of a key, only the variable's name and whether it is set here."""
    found: dict[str, Any] = {
        "name": row.name, "label": row.label, "kind": row.kind, "games": row.games, "enabled": row.enabled,
        "prompt_style": row.prompt_style, "options": row.options,
    }  # fmt: skip
    match read_options(player_spec(row)):
        case api_options.Options() as options:
            key = options.key_env
            key_set = bool(os.environ.get(key, "").strip()) if key else None
            found |= {"model": options.model, "base_url": options.base_url, "key_env": key, "key_set": key_set}
        case local_options.Options() as options:
            folder = local_options.resolve(home, options.path)
            found |= {"folder": str(folder), "parameters": local_options.parameters(folder)}
    return found


def in_words(found: dict[str, Any]) -> dict[str, str]:
    """State and detail of a described model, for a list."""
    words = {"state": "enabled" if found["enabled"] else "disabled", "detail": ""}
    if found["kind"] == "api":
        key = f"key in {found['key_env']}" if found["key_env"] else "no key"
        unset = " (not set here)" if found["key_set"] is False else ""
        words["detail"] = f"{found['model']} at {found['base_url']}, {key}{unset}"
    elif found["kind"] == "local":
        words["detail"] = f"{found['options']['path']}, {parameters(found)}, {found['options']['sha256'][:12]}"
    else:
        words["detail"] = ", ".join(map(str, found["options"].values()))
    return words


def parameters(found: dict[str, Any]) -> str:
    """How large a described local model is, or that it is not here."""
    number = found["parameters"]
    return "not on this machine" if number is None else f"{number / 1e6:,.3g} million parameters"


def in_full(row: LanguageModel, found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """All that is known of a model, defaults included: names and values."""
    yield "name", row.name
    yield "label", row.label
    yield "kind", row.kind
    yield "state", in_words(found)["state"]
    yield "games", ", ".join(row.games)
    yield "prompt style", row.prompt_style or "none"
    yield "since", row.created_at.isoformat(timespec="seconds")
    if row.kind == "local":
        yield "folder", found["folder"]
        yield "size", parameters(found)
    options = read_options(player_spec(row))
    for name in options.__dataclass_fields__ if options is not None else row.options:
        value = row.options.get(name) if options is None else getattr(options, name)
        yield name.replace("_", " "), "none" if value is None or value == "" else str(value)
    if found.get("key_set") is False:
        yield "key", "not set here"
    if row.test_result is not None:
        yield "test call", row.test_result.get("error") or "answered"
