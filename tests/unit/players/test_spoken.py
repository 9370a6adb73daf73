"""Whether the split of a deal was named in the talk before it."""

import pytest

from app.games.negotiation.spoken import was_said

COUNTS = (1, 2, 3)


@pytest.mark.parametrize(
    ("talk", "said"),
    [
        (["hello", "hi there"], False),
        (["I want the book, you take the rest", "no deal"], True),
        (["You can have the hats and the balls, I take the book", "fine"], True),
        (["I want everything", "no way, I take all hats and balls, you get the book"], True),
        (["I want the hats", "how about the book for you, and the rest for me?"], True),
        (["I want both hats and the book", "ok"], False),  # another split
        (
            ["the book is worth 4 points to me", "what is worth the most to you?"],
            False,
        ),  # nobody says who is to get what
    ],
)
def test_a_split_is_said_by_whoever_names_it_whatever_comes_of_it(talk: list[str], said: bool) -> None:
    messages = [(number % 2, f"[message] {text}") for number, text in enumerate(talk)]
    assert was_said(COUNTS, messages, (1, 0, 0)) is said
    turned = [(1 - seat, text) for seat, text in messages]
    assert was_said(COUNTS, turned, (0, 2, 3)) is said  # whichever seat is whose
