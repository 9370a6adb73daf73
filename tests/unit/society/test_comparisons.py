"""Interactions of a society become rows to train on; what has no rating, or nothing to say, is in none of them."""

import random
from collections import Counter
from pathlib import Path

import pytest

from app.datasets.importers.row_checks import check_learnt, read_comparison, read_conversation
from app.datasets.importers.training_rows import line_of
from app.society.comparisons import (
    CODE,
    DUPLICATE,
    EMPTY,
    IMITATION,
    MIXED_OUT,
    MIXING,
    NOT_BETTER,
    OUT_OF_RANGE,
    REALIGNMENT,
    RELEASED,
    SELF_CRITICISM,
    UNRATED,
    MixingRatio,
    criticism_query,
    group_of,
    rated_rows,
    realignment_query,
)
from app.society.interaction import Feedback
from tests.unit.society.worlds import QUESTION, feedback, interaction, many
from training.comparisons import read_comparisons

ALL = MixingRatio(1, 1000, 1000)


def test_a_question_has_draft_and_revision_with_the_observers_ratings() -> None:
    imitation, criticism = rated_rows([interaction()], ALL).comparisons
    assert imitation == {
        "query": QUESTION,
        "responses": ["Say nothing.", "Tell her soon, and say sorry."],
        "scores": [3.0, 6.0],
        "models": ["house", "house"],
        "group": group_of(QUESTION),
    }
    assert criticism["query"] == criticism_query(QUESTION, "Say nothing.")
    assert list(zip(criticism["responses"], criticism["scores"], strict=True)) == [
        ("It hides the truth.", 3.0),
        ("It is short.", 5.0),
    ]


def test_each_critic_has_a_conversation_of_criticism_and_revision() -> None:
    rows = rated_rows([interaction()], ALL).conversations
    assert [row["messages"][0]["content"] for row in rows] == [realignment_query(QUESTION, "Say nothing.")] * 2
    for row, reason in zip(rows, ("It hides the truth.", "It is short."), strict=True):
        answer = row["messages"][1]["content"]
        assert answer.startswith(reason)
        assert answer.endswith("Tell her soon, and say sorry.")


@pytest.mark.parametrize(("before", "after"), [(6.0, 6.0), (6.0, 5.0), (2.0, 4.0), (None, 6.0), (3.0, None)])
def test_a_revision_that_is_not_rated_higher_and_above_four_teaches_no_realignment(
    before: float | None, after: float | None
) -> None:
    assert rated_rows([interaction(before=before, after=after)], ALL).conversations == []


def test_answers_of_all_agents_to_a_question_stand_in_one_row() -> None:
    (row,) = rated_rows(
        [
            interaction(agent=0, model="a", feedback=()),
            interaction(agent=1, model="b", draft="Buy a new vase.", revision="Say nothing.", after=1.0, feedback=()),
        ],
        ALL,
    ).comparisons
    assert row["responses"] == ["Say nothing.", "Tell her soon, and say sorry.", "Buy a new vase."]
    assert row["models"] == ["a", "a", "b"]


def test_the_same_words_to_another_question_are_no_duplicate() -> None:
    found = rated_rows([interaction(), interaction(question="And if it was cheap?")], ALL)
    assert [row["responses"][0] for row in found.comparisons[:2]] == ["Say nothing."] * 2
    assert all(not tally.dropped for tally in found.tallies.values())


def test_what_a_critic_said_is_counted_for_the_model_of_the_critic() -> None:
    found = rated_rows(
        [
            interaction(agent=0, model="a", feedback=[feedback(1), feedback(None, 4, "Hm.")]),
            interaction(agent=1, model="b"),
        ],
        ALL,
    )
    assert found.comparisons[1]["models"][:2] == ["b", "a"]  # of an unknown critic it is taken for that of the agent


def test_what_is_left_out_is_counted_with_its_reason() -> None:
    found = rated_rows(
        [
            interaction(draft=" ", revision="Tell her.", after=9.0, feedback=[feedback(1, None), feedback(2, 2, "")]),
            interaction(revision="Say nothing.", after=2.0, feedback=[feedback(1, 8), feedback(2, 2)]),
        ],
        ALL,
    )
    tallies = {row_type: found.tallies[row_type, "house"] for row_type in (IMITATION, SELF_CRITICISM, REALIGNMENT)}
    assert tallies[IMITATION].dropped == Counter({EMPTY: 1, OUT_OF_RANGE: 1, DUPLICATE: 1})
    assert (tallies[IMITATION].found, tallies[IMITATION].kept, tallies[IMITATION].dropped_share) == (4, 1, 0.75)
    assert tallies[SELF_CRITICISM].dropped == Counter({UNRATED: 1, EMPTY: 1, OUT_OF_RANGE: 1})
    assert tallies[REALIGNMENT].dropped == Counter({UNRATED: 1, EMPTY: 1, NOT_BETTER: 2})


@pytest.mark.parametrize(("name", "others"), [(RELEASED, 20), (CODE, 10)])
def test_a_mixing_ratio_leaves_out_rows_and_counts_them(name: str, others: int) -> None:
    every = [interaction(question=f"Question {number}?") for number in range(100)]
    found = rated_rows(every, MIXING[name], seed=4)
    asked = Counter(row["query"].startswith("Question") and "Answer:" in row["query"] for row in found.comparisons)
    assert (asked[False], asked[True], len(found.conversations)) == (100, others, others)
    assert found.tallies[REALIGNMENT, "house"].dropped[MIXED_OUT] == 200 - others
    assert found.tallies[SELF_CRITICISM, "house"].dropped[MIXED_OUT] == 2 * (100 - others)
    assert found == rated_rows(every, MIXING[name], seed=4)
    assert found.conversations != rated_rows(every, MIXING[name], seed=5).conversations


@pytest.mark.parametrize("seed", range(20))
def test_every_row_of_any_society_can_be_trained_on(seed: int) -> None:
    found = rated_rows(many(80, seed, (None, -1, 0, 1, 3, 5.5, 7, 8, float("nan"), float("inf"))), ALL)
    for row in found.comparisons:
        assert read_comparison(row, 7) == row
        assert all(1 <= score <= 7 for score in row["scores"])
        assert len(row["responses"]) == len(row["scores"]) == len(row["models"]) == len(set(row["responses"]))
        line_of(row)
    for row in found.conversations:
        assert read_conversation(row) == row
        check_learnt(row)
        line_of(row)
    for tally in found.tallies.values():
        assert tally.found == tally.kept + tally.dropped.total()


@pytest.mark.parametrize("seed", range(20))
def test_what_a_critic_said_keeps_its_own_rating_and_model_whatever_others_said(seed: int) -> None:
    rng = random.Random(seed)
    ratings = (None, -1, 0, 8, float("nan"), *range(1, 8))
    every = []
    for number in range(12):
        critics = rng.sample(range(100, 130), 6)
        heard = [Feedback(critic, rng.choice(ratings), f"{number} as {critic} sees it", "") for critic in critics]
        every.append(interaction(agent=number, model="house", question=f"Question {number}?", feedback=heard))
    speakers = [interaction(agent=critic, model=f"of {critic}", draft="", revision="") for critic in range(100, 130)]
    said = {each.reason: each for one in every for each in one.feedback}
    kept = set()
    for row in rated_rows([*every, *speakers], ALL).comparisons:
        for reason, score, model in zip(row["responses"], row["scores"], row["models"], strict=True):
            if reason in said:
                kept.add(reason)
                assert (score, model) == (said[reason].rating, f"of {said[reason].critic}")
                assert row["query"].startswith(f"Question {reason.split()[0]}?")
    assert kept == {reason for reason, each in said.items() if each.rating in range(1, 8)}


def test_a_training_reads_the_rows_and_keeps_all_of_a_question_on_one_side(tmp_path: Path) -> None:
    found = rated_rows([interaction(question=f"Question {number}?") for number in range(3)], ALL)
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"".join(map(line_of, found.comparisons)))
    read = read_comparisons(path, 7)
    assert [each.scores for each in read] == [tuple(row["scores"]) for row in found.comparisons]
    assert {each.group for each in read} == {row["group"] for row in found.conversations}
    assert len({each.group for each in read}) == 3
