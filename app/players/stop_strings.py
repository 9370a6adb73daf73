"""The texts before which a model's answer ends, from its registry row."""

import json
from typing import Any

from app.core.errors import Invalid, Phrase

MOST, LONGEST = 4, 100  # texts, as many as OpenAI allows, and characters of each


def read_stop(raw: object) -> tuple[str, ...]:
    """Validate the option `stop`: a list of texts, which may be JSON; an empty value gives none. Raises Invalid."""
    found: Any = raw or []
    try:
        if isinstance(raw, str) and raw.strip():
            found = json.loads(raw)
    except (ValueError, RecursionError):
        found = None
    if (
        not isinstance(found, list | tuple)
        or len(found) > MOST
        or not all(isinstance(text, str) and 0 < len(text) <= LONGEST and "\0" not in text for text in found)
    ):
        raise Invalid(
            "stop",
            expected=Phrase(
                'a JSON list of at most %(most)s texts of 1 to %(longest)s characters, such as ["\\n", "User:"]',
                most=MOST,
                longest=LONGEST,
            ),
            got=raw,
        )
    return tuple(found)
