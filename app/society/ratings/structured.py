"""A rating as JSON: the schema that constrains an observer's answer, and the parsing of such answers. Pure."""

import json
from functools import lru_cache

from app.society.ratings import RatingForm, ReadRating, read_rating


@lru_cache
def rating_schema(form: RatingForm) -> str:
    """The JSON Schema of a rating and the reason for it, in the order in which the prompt asks for them."""
    fields = {
        "rating": {"type": "integer", "enum": [*range(form.low, form.high + 1)]},
        "reason": {"type": "string"},
    }
    ordered = fields if form.rating_first else dict(reversed(fields.items()))
    schema = {
        "title": "rating",
        "type": "object",
        "properties": ordered,
        "required": [*ordered],
        "additionalProperties": False,
    }
    return json.dumps(schema)


def read_structured_rating(text: str, form: RatingForm) -> ReadRating:
    """The rating and reason in an answer meant to match the schema; one that does not is parsed like any text."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return read_rating(text, form)
    if not isinstance(found, dict) or set(found) != {"rating", "reason"}:
        return read_rating(text, form)
    rating, reason = found["rating"], found["reason"]
    if isinstance(rating, bool) or not isinstance(rating, int) or not form.low <= rating <= form.high:
        return read_rating(text, form)
    return ReadRating(float(rating), str(reason))
