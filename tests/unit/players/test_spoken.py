"""Whether the split of a deal was named in the talk before it."""

import pytest

from app.games.negotiation.spoken import read_talk

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
        (["I take the book and a hat, you get both hats and the balls", "I take the hats and the balls"], True),
        (["I want the hats. Or I take the book, and you take the hats and the balls", "ok"], True),
        # Two books of one, or hats for both sides that are more than there are, are parts of no split.
        (["You get both hats and both balls, I take the two books", "ok"], False),
        (["I take the book and both hats, and you get both hats and all the balls", "deal"], False),
        (["You get a hat and all the balls, and I keep the book", "deal"], False),  # one hat is nobody's
        (
            ["the book is worth 4 points to me", "what is worth the most to you?"],
            False,
        ),  # nobody says who is to get what
    ],
)
def test_a_split_is_said_by_whoever_names_it_whatever_comes_of_it(talk: list[str], said: bool) -> None:
    messages = [(number % 2, f"[message] {text}") for number, text in enumerate(talk)]
    assert ((1, 0, 0) in read_talk(COUNTS, messages).named) is said
    turned = [(1 - seat, text) for seat, text in messages]
    assert ((0, 2, 3) in read_talk(COUNTS, turned).named) is said  # whichever seat is whose


@pytest.mark.parametrize(
    ("answer", "misquoted"),
    [
        ("Agreed: I take the book, and you get the rest", False),
        ("Deal: you get the hats and the balls", False),
        ("Okay, deal! I take the book and a hat, you get the rest", True),
        ("It's a deal. You get the book, I take the rest", True),
        ("Agreed", None),  # says no split
        ("Deal if I get a hat, too", None),  # asks for another one
        ("No, I take everything", None),
    ],
)
def test_an_acceptance_is_compared_with_the_split_on_the_table(answer: str, misquoted: bool | None) -> None:
    talk = [(0, "[message] You take the book, I take the hats and the balls"), (1, f"[message] {answer}")]
    assert read_talk(COUNTS, talk).misquoted is misquoted


def test_the_last_split_is_the_one_that_each_seat_reads() -> None:
    talk = [(0, "[message] I take the book, you take the rest"), (1, "[message] I take the book, you take the rest")]
    assert read_talk(COUNTS, talk).last == ((0, 2, 3), (0, 2, 3))
    assert read_talk(COUNTS, [(0, "[message] hello")]).last == (None, None)
