"""What a model may not say to the people of a study."""

import pytest

from app.games.taboo.words import target_words
from app.matches.safety import CONTACT, LINK, OFFENSIVE, unsafe
from tests.effort import growth


@pytest.mark.parametrize(
    "text",
    [
        "[message] I would like the book, and you get both hats.",
        "[propose] (1 books, 2 hats, 0 balls)",
        "It costs 1,000,000 dollars; 3 of 4 people agree. 10 9 8, go!",
        "I am at home. Is it @ noon? No. So...what now?",
        "A rooster crows, an axe cuts; the scrapbook is classic.",
        "Was it in 1998, 1999 or 2001-2002?",
    ],
)
def test_what_is_said_in_a_game_passes(text: str) -> None:
    assert unsafe(text) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Mail ada.lovelace@example.org please", CONTACT),
        ("ada (at) example.org", CONTACT),
        ("I am @ada_l there", CONTACT),
        ("Call +49 (0)30 1234 567", CONTACT),
        ("555-123-4567", CONTACT),
        ("See https://example.org/x", LINK),
        ("look at www.example.xyz", LINK),
        ("my page is example.com", LINK),
        ("You are an  IDIOT", OFFENSIVE),
        ("Fucking hat", OFFENSIVE),
        ("go and kill yourself", OFFENSIVE),
    ],
)
def test_what_nobody_should_read_has_its_reason(text: str, reason: str) -> None:
    assert unsafe(text) == reason


def test_no_target_word_of_taboo_is_unsafe() -> None:
    assert [word for word in target_words() if unsafe(word)] == []


@pytest.mark.parametrize("piece", ["a", "a.", "a-", "1", "1.1", "word", "@", "a@", "(at)", "kill ", " ", "1234-1234 "])
def test_a_long_text_is_looked_through_once(piece: str) -> None:
    assert growth(lambda size: unsafe(piece * size), 2000, 8000) <= 6.25
