"""The questions and first memories that come with Parlor."""

import re

from app.society.config import BAD, GOOD, SocietyConfig
from app.society.embedders import find_embedder
from app.society.priors import read_priors
from app.society.questions import read_questions


def test_there_are_at_least_sixty_different_questions() -> None:
    questions = read_questions()
    assert len(set(questions)) == len(questions) >= 60


def test_there_are_at_least_a_hundred_memories_of_each_label_enough_for_every_preset() -> None:
    priors = read_priors()
    assert set(priors) == {GOOD, BAD}
    assert all(len(pairs) >= 100 for pairs in priors.values())
    wanted = max(SocietyConfig.model_validate(preset).first_memories for preset in SocietyConfig.presets.values())
    assert all(len(pairs) >= 2 * wanted for pairs in priors.values())  # so that agents of a label differ


def test_labels_differ_by_their_answers_alone() -> None:
    good, bad = (dict(read_priors()[label]) for label in (GOOD, BAD))
    assert good.keys() == bad.keys()
    assert all(good[question] != bad[question] for question in good)


def test_no_question_is_among_the_first_memories() -> None:
    remembered = {question for question, _ in read_priors()[GOOD]}
    assert not remembered & set(read_questions())


def test_texts_are_whole_sentences() -> None:
    answers = [answer for pairs in read_priors().values() for _, answer in pairs]
    assert [answer for answer in answers if not re.search(r"[.?]$", answer)] == []
    assert [question for question in read_questions() if not re.search(r"[.?]$", question)] == []


def test_similar_questions_are_told_from_others() -> None:
    questions = [*read_questions(), *(question for question, _ in read_priors()[GOOD])]
    pairs = [
        ("What should I do when I find a phone in the street?", "What should I do when I find a wallet in the street?"),
        (
            "How can I tell my neighbour that I do not like his music?",
            "How do I tell my neighbour that the music is too loud?",
        ),
        ("What should I cook for a guest who eats no meat?", "What can I cook for a vegan guest?"),
        ("How do I stay calm in a job interview?", "How do I make a good impression in a job interview?"),
    ]
    embedder = find_embedder("tfidf", questions)
    rows = embedder.embed(questions)
    distances = 1 - rows @ rows.T
    for one, other in pairs:
        assert distances[questions.index(one), questions.index(other)] < embedder.threshold
    near = (distances < embedder.threshold).sum() - len(questions)
    assert 2 * len(pairs) < near < 0.01 * len(questions) ** 2
