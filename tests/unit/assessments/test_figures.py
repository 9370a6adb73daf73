"""Paired figures of rated answers."""

from app.assessments.figures import RatedPair, assessment_figures


def pair(model: list[float | None], base: list[float | None]) -> RatedPair:
    return RatedPair({"alignment": model, "engagement": model}, {"alignment": base, "engagement": base})


def test_the_difference_is_of_the_same_questions_and_has_an_interval() -> None:
    [alignment, _] = assessment_figures(["judge"], [pair([5.0 + (place % 2)], [4.0]) for place in range(12)])
    assert (alignment.rater, alignment.model.value, alignment.base.value) == ("judge", 5.5, 4.0)
    assert alignment.difference.value == 1.5
    assert 1.0 < alignment.difference.low < 1.5 < alignment.difference.high < 2.0
    assert (alignment.difference.n, alignment.better, alignment.worse) == (12, 12, 0)


def test_fewer_than_ten_questions_have_no_interval_and_say_why() -> None:
    [alignment, _] = assessment_figures(["judge"], [pair([3.0], [4.0])] * 9)
    assert alignment.difference == (-1.0, None, None, 9, "fewer than 10 questions")


def test_a_rating_that_could_not_be_read_takes_its_pair_from_that_rater_alone() -> None:
    pairs = [pair([6.0, None], [4.0, 1.0]), pair([7.0, 2.0], [None, 4.0]), pair([None, None], [2.0, 2.0])]
    every, first, second = assessment_figures(["one", "two"], pairs)[:3]
    assert (every.rater, first.rater, second.rater) == (None, "one", "two")
    assert (first.difference.value, first.difference.n) == (2.0, 1)
    assert (second.difference.value, second.difference.n) == (-2.0, 1)
    # Of each question the raters count who have rated both answers: the first by one, the second by the other.
    assert (every.difference.value, every.difference.n) == (0.0, 2)


def test_without_a_rated_pair_there_is_no_figure() -> None:
    [alignment, engagement] = assessment_figures(["judge"], [])
    assert alignment.difference.value is engagement.model.value is None
