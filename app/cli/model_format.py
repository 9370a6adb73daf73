"""A registered model as `flask model` prints it: in one line, and in full."""

from collections.abc import Iterator
from typing import Any

from app.models import LanguageModel
from app.players.api import finding_words
from app.players.api import options as api_options
from app.players.api.end_dates import end_of
from app.players.api.server_findings import read_findings
from app.registry import player_spec, read_options
from app.registry.prices import price_words


def in_words(found: dict[str, Any]) -> dict[str, str]:
    """The uses of a described model, and its detail, for a list."""
    uses = [word for word, use in (("rounds", "usable_in_rounds"), ("people", "offered_to_people")) if found[use]]
    if not found["games"] and not found["archived"]:
        uses = ["societies"]
    words = {"for": " and ".join(uses) or ("nothing (archived)" if found["archived"] else "nothing"), "detail": ""}
    if found["kind"] == "api":
        key = f"key in {found['key_env']}" if found["key_env"] else "no key"
        unset = " (not set here)" if found["key_set"] is False else ""
        prices = price_words(found["options"])
        words["detail"] = f"{found['model']} at {found['base_url']}, {key}{unset}{prices and ', '}{prices}"
    elif found["kind"] == "local":
        words["detail"] = f"{found['options']['path']}, {parameters(found)}, {found['options']['sha256'][:12]}"
    else:
        words["detail"] = ", ".join(map(str, found["options"].values()))
    return words


def parameters(found: dict[str, Any]) -> str:
    """The size of a described local model, or that it is not here."""
    number = found["parameters"]
    return "not on this machine" if number is None else f"{number / 1e6:,.3g} million parameters"


def in_full(row: LanguageModel, found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Everything known about a model, including defaults, as names and values."""
    yield "name", row.name
    yield "label", row.label
    yield "kind", row.kind
    yield "used for", in_words(found)["for"]
    yield "games", ", ".join(row.games)
    yield "prompt style", row.prompt_style or "none"
    yield "since", row.created_at.isoformat(timespec="seconds")
    if row.kind == "local":
        yield "folder", found["folder"]
        if found["adapters_over"] is not None:
            yield "adapters over", found["adapters_over"]
        yield "size", parameters(found)
        yield "played with", found["play_with"]
        yield from _served_lines(found["served"])
    options = read_options(player_spec(row))
    for name in options.__dataclass_fields__ if options is not None else row.options:
        value = row.options.get(name) if options is None else getattr(options, name)
        yield name.replace("_", " "), "none" if value is None or value == "" else str(value)
    if found.get("key_set") is False:
        yield "key", "not set here"
    yield "test call", (row.test_request is not None and row.test_request.error) or found["test_call"]
    if isinstance(options, api_options.ApiOptions) and (end := end_of(options.model, options.base_url)) is not None:
        yield "ends", f"{end:%Y-%m-%d}, when its vendor shuts it down"
    yield from found_lines(row)
    if row.notes:
        yield "notes", row.notes


def _served_lines(served: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    """The lines about the engine of a described model, if it has or had one."""
    if served is not None:
        yield "server", f"{served['engine']} at {served['base_url']} {served['words']}"
        yield "server asked as", served["model"]
        yield "server restarts", str(served["restarts"])
        if served["error"] is not None:
            yield "server's error", served["error"]


def found_lines(row: LanguageModel) -> list[tuple[str, str]]:
    """The findings of a test call about a model's server, in words; empty if there are none."""
    findings, options = read_findings(row.findings), read_options(player_spec(row))
    if findings is None or not isinstance(options, api_options.ApiOptions):
        return []
    lines = [(f"found: {str(field).lower()}", str(value)) for field, value in finding_words.in_words(findings, options)]
    lines.append(("found at", findings.at.isoformat(timespec="seconds")))
    if findings.changed_at is not None:
        lines.append(("changed by a refusal at", findings.changed_at.isoformat(timespec="seconds")))
    return lines


def next_steps(found: dict[str, Any]) -> str:
    """The next steps with a described model that was just added."""
    name = found["name"]
    if not found["games"]:
        return f'Try it: flask model ask {name} "How do I make bread?"\nSocieties can use it.'
    test = "" if found["test_call"] == "needs none" else f"flask model test {name}, then "
    return (
        f"Try it: flask play {found['games'][0]} --against {name}\n"
        f"Rounds can use it. To offer it to people: {test}flask model set {name} --people on"
    )
