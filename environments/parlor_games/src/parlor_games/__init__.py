"""Parlor's games as environments of verifiers: `verifiers.load_environment("parlor-games", game="taboo")`."""

from importlib import import_module
from typing import Any

__all__ = ["load_environment"]


def load_environment(game: str = "negotiation", **options: Any) -> Any:
    """An environment of one game; README.md has the options. Needs verifiers, which the rest does without."""
    return import_module(f"{__name__}.environment").make_environment(game, **options)
