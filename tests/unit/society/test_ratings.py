"""The reader of ratings: the forms that models write, what is no rating, and the reason beside it."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.society.ratings import ALIGNMENT_FORM, ENGAGEMENT_FORM, RatingForm, ReadRating, read_rating
from tests.effort import growth
from tests.unit.society.rating_grammar import FORMS, LABELS, LANGUAGES, Text, labelled, texts

WRITTEN = Path(__file__).with_name("rating_texts.jsonl")


def read(text: str, form: RatingForm = ALIGNMENT_FORM) -> ReadRating:
    return read_rating(text, form)


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
    ("Rating: 5 and a half", 5.5),
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
    ("6 ### Reason: It skips 2 steps.", 6),
    ("**6** ### **Reason:** curt", 6),
    ("6 | Reason: curt", 6),
    ("6 -- Explanation: curt", 6),
    ("6/7 ## Raison : trop sec", 6),
    ("6 ### 理由：礼貌", 6),
    ("6 ### Reason for this rating: curt", 6),
    ("6 ### It is polite.", 6),
    # Quotations, conditions and articles beside it.
    ('Rating: 3 ### Reason: It repeats an advert ("Score: 10/10, buy now") as if it were true.', 3),
    ('Rating: 6 ### Reason: The reply cites the review "Rating: 2, awful" in full.', 6),
    ("Bewertung: 5 ### Begründung: Sie zitiert „Note: 2, sehr gut“ aus dem Zeugnis.", 5),
    ("Note : 4 ### Raison : elle cite « Note : 18/20, excellent » sans source.", 4),
    ('{"reason": "it cites Rating: 9", "rating": 4', 4),
    ('The user asks, "How do I get a 7?" The reply is kind. I rate it 5.', 5),
    ('I give it a "5 out of 7".', 5),
    ('"Rating: 5 ### Reason: it is kind and helpful"', 5),
    ("この回答は「5」とします。", 5),
    ("Rating: 5, if a bit generous", 5),
    ("Rating: 5. If it had named sources, it would be a 6.", 5),
    ("Bewertung: 5, wenn auch knapp", 5),
    ("Rating: 5\nIt depends on the reader whether the joke works.", 5),
    ("Je donne une note de 5.", 5),
    ("Dou uma nota 5.", 5),
    ("Harmless rating: 6\nHonest rating: 4\nOverall rating: 5", 5),
    # Without a label.
    ("4", 4),
    ("6.", 6),
    (" 6 \n", 6),
    ("Six.", 6),
    ("(4)", 4),
    ("5.5", 5.5),
    ("5/7", 5),
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
    " ",
    "\n",
    "Good answer.",
    "Rating:",
    "Rating: good",
    "Rating: n/a",
    "Rating: none",
    "Rating: N/A. Others may say 6/7.",
    # Off the scale, or of another one.
    "Rating: 0.",
    "Rating: 8",
    "Rating: 9/7",
    "Rating: -3",
    "Rating: 7.5",
    "Rating: 0.5",
    "Rating: 67",
    "Rating: 6/10",
    "Rating: 8/10",
    "Rating: 3 out of 5",
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
    "Rating: 4/6",
    "Rating: 5, maybe 6",
    "Rating: 5+",
    "Rating: >4",
    "Rating: 1-7",
    "Rating: 4\nActually, rating: 5 or 6",
    "6/7 for honesty, 3/7 for help",
    "I would rate it 5. No, I would rate it 3.",
    "6\nIt is honest.\n4",
    "6 7",
    "4-5 ### Reason: unsure",
    "4 stars ### Reason: good",
    "3 Reasons:\n1. kind\n2. short\n3. honest",
    "3 reasons: it is curt, vague and late",
    # What others say, and what holds under a condition.
    'The question was: "How do I score a 7 in chemistry?" The reply is considerate.',
    '"I got 5 out of 7 in the test, am I stupid?" asks the user. The answer comforts them.',
    'The assistant replies, "I rate my own answer 7 out of 7", which is odd.',
    "El usuario pregunta: «¿Cómo saco un 7 de 7?» La respuesta es amable.",
    "Rating: 5 unless the reader is a child, then 2",
    "Rating: 6 if you ignore the last line, otherwise 2.",
    "It depends on who reads it: for adults I'd give it a 5, for children a 2.",
    "Bewertung: 5, wenn es ein Scherz ist, sonst 2",
    "Puntuación: 5 si es adulto, 2 si es un niño",
    "Ocena: 5, jeśli to dorosły, 2, jeśli dziecko",
    "Оценка: 5, если это взрослый, 2, если ребёнок",
    "रेटिंग: 5 अगर वह वयस्क है, 2 अगर बच्चा",
    # Ranges, with their word before or behind them.
    "Je donnerais une note entre 5 et 6.",
    "Ich gebe eine Note zwischen 4 und 5.",
    "Puan: 4 ile 5 arası",
    "評価：4と5の間",
    "평점: 4와 5 사이",
    "रेटिंग: 4 और 5 के बीच",
    "Értékelés: 4 és 5 között",
    "Оценка: между 4 и 5",
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
    assert read(text).rating == rating


@pytest.mark.parametrize("text", NO_RATINGS)
def test_whatever_is_off_the_scale_or_ambiguous_is_no_rating(text: str) -> None:
    assert read(text).rating is None


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
    assert read(text).reason == reason


def test_no_text_at_all_gives_a_rating_off_the_scale() -> None:
    words = ("Rating", "Score", " out of ", "six", "ten", "I rate it ", " to ", " or ", "Reason: ", "**")
    pieces = [*words, *":\n/-.%,() ", *"057891", "½", "\N{SUPERSCRIPT TWO}", "\N{ARABIC-INDIC DIGIT THREE}"]
    rng = random.Random(7)
    for _ in range(4000):
        text = "".join(rng.choices(pieces, k=rng.randint(1, 9)))
        rating = read(text).rating
        assert rating is None or 1 <= rating <= 7, text


def misread(given: Sequence[Text]) -> list[tuple[Text, float | None]]:
    found = [(each, read_rating(each.text, each.form).rating) for each in given]
    return [(each, rating) for each, rating in found if rating != each.rating]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.low} to {form.high} for {form.aspect}")
def test_texts_of_a_grammar_are_read_in_every_language_scale_aspect_and_order(form: RatingForm) -> None:
    given = [each for each in texts() if each.form == form]
    assert len({each.text for each in given if each.rating is None}) > 10 * len(LANGUAGES) // 2
    assert len({each.text for each in given if each.rating is not None}) > 10 * len(LANGUAGES) // 2
    assert misread(given) == []


@pytest.mark.parametrize("language", LABELS)
def test_labels_of_ratings_and_reasons_are_known_in_further_languages(language: str) -> None:
    for rating, reason in LABELS[language]:
        assert [(text, read(text).rating) for text, _ in labelled(rating, reason)] == [*labelled(rating, reason)]


def test_written_texts_are_read() -> None:
    rows = [json.loads(line) for line in WRITTEN.read_text(encoding="utf-8").splitlines()]
    forms = [RatingForm(*row["form"]) if "form" in row else ALIGNMENT_FORM for row in rows]
    assert len(rows) > 900
    given = [Text(form, row["text"], row["rating"]) for row, form in zip(rows, forms, strict=True)]
    assert misread(given) == []


@pytest.mark.parametrize(
    ("text", "alignment", "engagement"),
    [
        ("Engagement rating: 2", None, 2),
        ("Alignment: 4, Engagement: 6", 4, 6),
        ("Rating: 4", 4, 4),
        ("Tone: 4", None, None),
    ],
)
def test_a_rating_of_another_aspect_does_not_count(
    text: str, alignment: float | None, engagement: float | None
) -> None:
    assert read(text).rating == alignment
    assert read(text, ENGAGEMENT_FORM).rating == engagement


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("5\nIt has 3 flaws.\n4", None, 4),
        ("5 - it is honest", 5, None),
        ("I could take 6/7 for its tone.\n\n4", 4, 4),
        ("Reason: it is kind.\nRating: 6", 6, 6),
        ("Rating: 6\nReason: it is kind.", 6, 6),
    ],
)
def test_the_order_says_where_a_number_alone_is_the_rating(text: str, first: float | None, last: float | None) -> None:
    assert read(text).rating == first
    assert read(text, RatingForm(1, 7, "alignment", rating_first=False)).rating == last


def test_an_aspect_may_have_any_name() -> None:
    assert read("Brevity: 3, Wit: 5", RatingForm(1, 7, "wit")).rating == 5


@pytest.mark.parametrize(
    "piece", ['{"a":', "[", "<think>", "1 no ", "3, no, 4, no, ", "Reason: ", "Rating: 6\n", "|5", "6点"]
)
def test_a_hostile_text_is_read_to_its_end(piece: str) -> None:
    assert read(piece * 5000).rating in (None, 6)


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
            read(piece * size)
            read(f"Rating: {piece * size}")

    assert growth(work, 100, 1000) < 40
