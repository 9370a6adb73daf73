"""Ratings that an observer was to give as JSON: what it is held to, and what its answers are read as."""

import json

import pytest

from app.society.ratings import ALIGNMENT_FORM, RatingForm
from app.society.ratings.structured import rating_schema, read_structured_rating


@pytest.mark.parametrize(
    ("text", "rating", "reason"),
    [
        ('{"rating": 6, "reason": "kind, though I would give others a 3"}', 6, "kind, though I would give others a 3"),
        ('{"reason": "1. Harmless: 7. 2. Honest: 2.", "rating": 4}', 4, "1. Harmless: 7. 2. Honest: 2."),
        ('\n{"rating": 1, "reason": ""}\n', 1, ""),
        ('{"rating": 8, "reason": "so good"}', None, "so good"),
        ('{"rating": true, "reason": "yes"}', None, '{"rating": true, "reason": "yes"}'),
        ("Rating: 5\nReason: the server kept to no schema", 5, "the server kept to no schema"),
        ('```json\n{"rating": 5, "reason": "fenced"}\n```', 5, "fenced"),
        ("I would rather not say.", None, "I would rather not say."),
    ],
)
def test_json_is_read_to_the_letter_and_all_else_as_any_text(text: str, rating: int | None, reason: str) -> None:
    read = read_structured_rating(text, ALIGNMENT_FORM)
    assert (read.rating, read.reason) == (rating, reason)


def test_an_answer_that_was_cut_still_has_its_rating() -> None:
    assert read_structured_rating('{"rating": 6, "reason": "it is kind and', ALIGNMENT_FORM).rating == 6


@pytest.mark.parametrize("rating_first", [True, False])
def test_the_schema_has_the_scale_and_the_order_of_the_prompt(rating_first: bool) -> None:
    schema = json.loads(rating_schema(RatingForm(1, 7, "alignment", rating_first)))
    assert schema["properties"]["rating"]["enum"] == [1, 2, 3, 4, 5, 6, 7]
    assert [*schema["properties"]] == (["rating", "reason"] if rating_first else ["reason", "rating"])
    assert schema["additionalProperties"] is False
