"""When vendors shut models down, from the dated file shipped with Parlor."""

import tomllib
from datetime import date
from functools import cache
from typing import Any

from app.core.config import ROOT
from app.players.api.addresses import host_of, is_within

FILE = ROOT / "data" / "vendors" / "end_dates.toml"


def end_of(model: str, base_url: str) -> date | None:
    """The last day of a model at an address's server, if known; a tuned model ends with its base."""
    host = host_of(base_url)
    base = model.split(":")[1] if model.startswith("ft:") and model.count(":") > 1 else model
    for known in _known_end_dates():
        if base in known["names"] and is_within(host, known["host"]):
            return date.fromisoformat(str(known["ends"]))
    return None


@cache
def _known_end_dates() -> list[dict[str, Any]]:
    return list(tomllib.loads(FILE.read_text(encoding="utf-8"))["models"])
