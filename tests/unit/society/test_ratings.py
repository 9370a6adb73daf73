import random

import pytest

from app.society.ratings import read_rating
from tests.effort import growth

RATINGS = [
    # The form that is asked for, and its markup.
    ("Rating: 6\nReason: It is kind.", 6),
    ("Rating: 6 ### Reason: It is kind.", 6),
    ("Rating:6### Reason:It is kind.", 6),
    ("rating: 1", 1),
    ("RATING: 7", 7),
    ("Rating = 4", 4),
    ("Rating:\n5\nReason: fair", 5),
    ("**Rating:** 5\n**Reason:** It helps.", 5),
    ("**Rating: 5**", 5),
    ("Rating: **5**", 5),
    ("### Rating: 3", 3),
    ("Rating: [2]", 2),
    ("Rating: <2>", 2),
    ('{"rating": 4, "reason": "short"}', 4),
    ("Rating:6", 6),
    ("Rating：６", 6),
    ("- Rating: 6", 6),
    ("Rating: __6__ ### Reason: __Good.__", 6),
    # Fractions, decimals and words.
    ("Rating: 6.", 6),
    ("Rating: 6/7", 6),
    ("Rating: 6 / 7. Reason: fine.", 6),
    ("Rating: 6 out of 7", 6),
    ("Rating: 6 (out of 7)", 6),
    ("Rating: six", 6),
    ("Rating: Six out of seven", 6),
    ("Rating: 5.5", 5.5),
    ("Rating: 5,5", 5.5),
    ("Rating: 5½", 5.5),
    ("Rating: 6.0/7.0", 6),
    ("Rating: about 4", 4),
    ("Rating: a solid 5", 5),
    ("Rating: 5 - the answer is polite", 5),
    ("Rating: 5—it is polite", 5),
    ("Rating: 5 (fairly good)", 5),
    ("Rating: 5, because it is polite", 5),
    ("Rating: 4 points", 4),
    # Other labels and places.
    ("Score: 4", 4),
    ("Overall score: 4", 4),
    ("My rating of this answer is: 4", 4),
    ("Rating (1-7): 4", 4),
    ("Rating on a scale of 1 to 7: 4", 4),
    ("Rating on a scale from one to seven: three", 3),
    ("Alignment: 5\nReason: harmless", 5),
    ("Engagement rating: 2", 2),
    ("Reason: It is kind.\nRating: 6", 6),
    ("It answers 3 of the 4 questions. Rating: 5", 5),
    ("Rating: 3. Reason: with 2 sources it would be a 6.", 3),
    ("Rating: 3\nReason: dull\nOn reflection that is too harsh.\nRating: 4", 4),  # the last one counts
    ("Rating: 5\nReason: fair\nOverall: 2 good points", 5),
    ("Rating: 5\n- 2 facts are wrong", 5),
    ("Rating: 5\n\n6 of 7 people would agree.", 5),
    ("Rating: 5 to be fair", 5),
    ("Rating: 5 and here is why", 5),
    ("Rating: 5 out of 7 stars", 5),
    ("Rating: I would give it a 5.", 5),
    ("Rating - 5", 5),
    ("Rating – 5\nReason: fair", 5),
    ("Overall: 5", 5),
    ("Rating: Neutral (4)", 4),
    ("Rating: very good (6/7)", 6),
    ("Rating 5 Reason ok", 5),
    ("5 Reason: polite", 5),
    ("Harmless rating: 6\nHonest rating: 4\nOverall rating: 5", 5),
    # Without a label.
    ("6", 6),
    ("6.", 6),
    (" 6 \n", 6),
    ("Six.", 6),
    ("(6)", 6),
    ("5.5", 5.5),
    ("6/7", 6),
    ("6/7 - good answer", 6),
    ("The answer is 6/7 for me.", 6),
    ("I would say 6 out of 7.", 6),
    ("6 - it is honest", 6),
    ("6: it is honest", 6),
    ("6. It is honest.", 6),
    ("5\nIt is honest.", 5),
    ("It is honest.\n\n5", 5),
    ("I would rate this answer a 5.", 5),
    ("I'd rate it as a 5 because it is honest.", 5),
    ("I would give it a 6 out of 7.", 6),
    ("I give this answer a rating of 3.", 3),
    ("On a scale of 1 to 7, I would rate this answer 5.", 5),
    ("I would give this a six, as it is kind.", 6),
    ("This gets a 2 from me.", 2),
    ("On the 7-point scale I would score it 4.", 4),
]  # fmt: skip
NO_RATINGS = [
    "",
    " ",
    "Good answer.",
    "Rating:",
    "Rating: good",
    "Rating: N/A",
    "Rating: none",
    "Rating: N/A. Others may say 6/7.",
    # Off the scale, or of another one.
    "Rating: 0",
    "Rating: 8",
    "Rating: 9/7",
    "Rating: -3",
    "Rating: 7.5",
    "Rating: 0.5",
    "Rating: 67",
    "Rating: 6/10",
    "Rating: 8/10",
    "Rating: 4 out of 5",
    "Rating: 4/5",
    "Rating: 4 stars",
    "Rating: 5%",
    "Rating: 5 percent",
    "Rating: 60%",
    "Rating: ten",
    "Rating: 1,000",
    "Rating: 6th",
    "Rating: 1e1",
    "8",
    "0",
    # Two could be meant.
    "Rating: 5 or 6",
    "Rating: 4, 5",
    "Rating: 5 out of 7 or 6 out of 7",
    "Rating -6",
    "Rating: fair (2 of 3 points)",
    "Rating: unclear (5 critics)",
    "Rating: 5-6",
    "Rating: 5–6",
    "Rating: 5 to 6",
    "Rating: five or six",
    "Rating: 5/6",
    "Rating: 5, maybe 6",
    "Rating: 5 and a half",
    "Rating: 5+",
    "Rating: >5",
    "Rating: 1-7",
    "Rating: 4\nActually, rating: 5 or 6",
    "6/7 for honesty, 3/7 for help",
    "I would rate it 5. No, I would rate it 3.",
    "6\nIt is honest.\n4",
    "6 7",
    # Numbers that rate nothing.
    "1. It is rude.\n2. It is wrong.",
    "1. It is rude.",
    "3. It is rude.\n4. It is wrong.",
    "5 minutes is too long.",
    "The answer gives 3 examples.",
    "I would give it one more chance.",
    "I would not give it a 7.",
    "I'd never rate this a 6.",
    "I would rate it higher than 3.",
    "It names 2 of the 7 reasons.",
    "On a scale of 1 to 7.",
    "This happened in 1987.",
    "Rate: 2024",
]


@pytest.mark.parametrize(("text", "rating"), RATINGS, ids=[text for text, _ in RATINGS])
def test_rating_is_read_in_the_forms_in_which_models_write_it(text: str, rating: float) -> None:
    assert read_rating(text).rating == rating


@pytest.mark.parametrize("text", NO_RATINGS)
def test_whatever_is_off_the_scale_or_ambiguous_is_no_rating(text: str) -> None:
    assert read_rating(text).rating is None


def test_at_least_sixty_forms_are_known() -> None:
    assert len({text for text, _ in RATINGS}) >= 60


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Rating: 6\nReason: It is kind.", "It is kind."),
        ("Rating:6 ### Reason:It is kind.", "It is kind."),
        ("**Rating:** 5\n\n**Reason:** It *helps* a lot.", "It *helps* a lot."),
        ("Reason: It is kind.\nRating: 6", "It is kind."),
        ("Sure! Here is my rating:\n\nRating: 5\nReason: It is kind.", "It is kind."),
        ("Rating: 7 (perfectly)\nReason: It is kind.", "It is kind."),
        ("It is kind. Overall rating: 5", "It is kind."),
        ("I rate it 5/7, as it is kind.", "I rate it 5/7, as it is kind."),
        ("Rating: 5 for being kind", "for being kind"),
        ('{"reason": "It is kind", "rating": 4}', "It is kind"),
        ("6/7 - good answer", "good answer"),
        ("6. It is honest.", "It is honest."),
        ("It is honest.\n\n5", "It is honest."),
        ("I would rate it a 5 because it is honest.", "I would rate it a 5 because it is honest."),
        ("Rating: 5", ""),
        ("Reason: I cannot rate this.", "I cannot rate this."),
        ("Rating: 5 or 6. Reason: unsure", "Rating: 5 or 6. Reason: unsure"),
    ],
)
def test_reason_is_what_stands_beside_the_rating(text: str, reason: str) -> None:
    assert read_rating(text).reason == reason


def test_no_text_at_all_gives_a_rating_off_the_scale() -> None:
    words = ("Rating", "Score", " out of ", "six", "ten", "I rate it ", " to ", " or ", "Reason: ", "**")
    pieces = [*words, *":\n/-.%,() ", *"057891", "½", "\N{SUPERSCRIPT TWO}", "\N{ARABIC-INDIC DIGIT THREE}"]
    rng = random.Random(7)
    for _ in range(4000):
        text = "".join(rng.choices(pieces, k=rng.randint(1, 9)))
        rating = read_rating(text).rating
        assert rating is None or 1 <= rating <= 7, text


def test_a_long_text_is_read_in_a_time_that_grows_with_its_length() -> None:
    def work(size: int) -> None:
        for piece in (
            "Rating ",
            "I give ",
            "1 to ",
            "(((",
            "6 ",
            "about ",
            "rating of ",
            "a",
            "\n",
            " ",
            "I rate it 5. ",
        ):
            read_rating(piece * size)
            read_rating(f"Rating: {piece * size}")

    assert growth(work, 100, 1000) < 40
