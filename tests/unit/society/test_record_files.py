"""The files of the published society are written and read: ours without loss, theirs without their defects."""

import json
import random
from typing import Any

import pytest

from app.core.errors import Invalid
from app.society.comparisons import MIXING, rated_rows
from app.society.interaction import Feedback
from app.society.record_files import (
    in_template,
    log_lines,
    read_external_memory,
    read_internal_memory,
    read_record,
    read_sandbox_row,
    record_of,
    sandbox_rows,
    without_template,
    write_external_memory,
    write_internal_memory,
)
from tests.unit.society.worlds import feedback, interaction, many


def published(**values: Any) -> dict[str, Any]:
    """A record as the published programs write it: three critics, sorted by rating, with one that could not be read."""
    usual = {
        "agent_id": 7, "label": "bad", "iteration": 3, "question": "Why?", "draft_answer": "No.",
        "target_id": [4, 9, 2], "feedback": ["", "Polite.", "Rude."],
        "rating": ["8", "6", "2"], "revised_answer": "Because.",
        "gen_moral_score_before": 2.0, "gen_moral_score_after": -1.0,
        "gen_moral_reason_before": "It is rude.", "gen_moral_reason_after": "",
        "gen_engagement_score_before": -1.0, "gen_engagement_score_after": 5.0,
        "gen_engagement_reason_before": "", "gen_engagement_reason_after": "It is kind.",
        "cls_moral_score_before": 0, "cls_moral_score_after": 0,
    }  # fmt: skip
    return {**usual, **values}


@pytest.mark.parametrize("seed", range(5))
def test_what_is_written_is_read_again_without_a_difference(seed: int) -> None:
    every = [*many(30, seed), interaction(feedback=(feedback(None, None),))]
    text = "".join(write_external_memory(every, "good"))
    assert list(read_external_memory(json.loads(text), "another", "file")) == every
    assert json.loads("".join(write_external_memory([], "good"))) == []


@pytest.mark.parametrize("rating", [float("nan"), float("inf")])
def test_no_file_of_records_has_a_number_that_json_does_not_have(rating: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        list(write_external_memory([interaction(feedback=(feedback(4, rating),))], "good"))


def test_a_written_record_has_the_fields_of_the_published_ones() -> None:
    record = record_of(interaction(feedback=(feedback(4, 5.5), feedback(2, None, "Hm."))), "bad")
    assert set(published()) == set(record) - {"parlor"}
    assert (record["target_id"], record["rating"]) == ([4, 2], ["5.5", "8"])
    assert (record["feedback"], record["gen_moral_score_after"]) == (["It hides the truth.", "Hm."], 6.0)


def test_an_unreadable_rating_of_a_published_record_is_missing_and_no_number() -> None:
    found = read_record(published(), "gpt", "file")
    assert [each.rating for each in found.feedback] == [None, 6, 2]
    assert [each.reason for each in found.feedback] == ["", "Polite.", "Rude."]
    assert (found.before.alignment, found.after.alignment) == (2, None)
    assert (found.before.engagement, found.after.engagement) == (None, 5)
    assert found.before.alignment_texts == ("It is rude.",)
    assert found.model == "gpt"


def test_criticism_of_a_published_record_is_nobodys_unless_there_was_one_critic() -> None:
    assert [each.critic for each in read_record(published(), "gpt", "file").feedback] == [None] * 3
    one = published(target_id=[4], feedback=["Rude."], rating=["2"])
    assert read_record(one, "gpt", "file").feedback == (Feedback(4, 2.0, "Rude.", "Rating: 2 ### Reason: Rude."),)


def test_more_criticism_than_ratings_is_paired_from_the_first() -> None:
    found = read_record(published(feedback=["a", "b", "c"], rating=["5"]), "gpt", "file").feedback
    assert [(each.reason, each.rating) for each in found] == [("a", 5)]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (7, "file, record 1: expected an object with agent_id"),
        ({}, "got one without agent_id, iteration"),
        (published(agent_id=-1), "file, record 1, agent_id: expected a whole number from 0 on, got -1"),
        (published(question=None), "file, record 1, question: expected a text, got None"),
        (published(feedback="Rude."), "expected lists as feedback, rating and target_id"),
        (published(parlor={"model": "m"}), "expected what was written with the record"),
        (published(parlor=[]), "expected what was written with the record"),
    ],
)
def test_what_is_no_record_is_refused_in_one_line(raw: Any, message: str) -> None:
    with pytest.raises(Invalid) as refused:
        list(read_external_memory([raw], "m", "file"))
    assert message in refused.value.message
    assert "\n" not in refused.value.message


def test_memories_are_questions_with_their_answers() -> None:
    memory = {"Why?": "Because.", "Wie heißt du?": "Ich?"}
    assert read_internal_memory(json.loads(write_internal_memory(memory)), "file") == memory
    with pytest.raises(Invalid, match="expected an object of questions with their answers"):
        read_internal_memory(["Why?"], "file")


def test_a_log_tells_ratings_from_the_best_to_the_worst_and_their_mean() -> None:
    found = interaction(feedback=(feedback(4, 2, "Rude."), feedback(9, 6, "Polite."), feedback(1, None, "Hm.")))
    first, second, third, ratings, revised = log_lines(found)
    assert [line.split(" is: ")[0][-1] for line in (first, second, third)] == ["1", "9", "4"]
    assert ratings == "The ratings list: [6, 2], so the average rating is 4.00."
    assert revised == "Revised answer is: Tell her soon, and say sorry."
    assert list(log_lines(interaction(feedback=(feedback(1, None),))))[1].startswith("Revised")  # no mean of nothing


def test_rated_responses_are_written_in_the_published_template_and_read_without_it() -> None:
    data = rated_rows([interaction(question=f"Question {number}?") for number in range(20)], MIXING["released"])
    rows = list(sandbox_rows(data))
    assert len(rows) == 20 + 4 + 4
    assert rows[0]["query"] == "### Instruction:\nQuestion 0?\n\n### Response:"
    read = [read_sandbox_row(json.loads(json.dumps(row)), "file") for row in rows]
    ours = [*data.comparisons, *data.realignment]
    assert read == [{name: row[name] for name in ("query", "responses", "scores", "models")} for row in ours]


@pytest.mark.parametrize(
    ("published_query", "query"),
    [
        ("### Instruction:\nWhy?\n\n### Input:\nNo.\n\n### Response:", "Why?\n\nNo."),
        ("Why?", "Why?"),
        ("### Instruction:\nWhy?", "### Instruction:\nWhy?"),
        (in_template("Why?\n"), "Why?"),
    ],
)
def test_a_template_is_taken_off_where_it_is_whole(published_query: str, query: str) -> None:
    assert without_template(published_query) == query


def test_published_ratings_of_8_and_minus_1_are_left_out_and_the_others_of_the_row_stay() -> None:
    raw = {"query": "Why?", "responses": ["a", "b", "c", "a", " "], "scores": [8, 7, -1, 3, 2]}
    found = read_sandbox_row(raw, "file")
    assert found == {"query": "Why?", "responses": ["b", "a"], "scores": [7, 3], "models": ["", ""]}
    assert read_sandbox_row({"query": "Why?", "responses": ["a"], "scores": [8]}, "file") is None
    with pytest.raises(Invalid, match="expected as many responses as scores and models"):
        read_sandbox_row({**raw, "scores": [1]}, "file")


def test_no_rating_outside_1_to_7_is_read_from_any_record() -> None:
    rng = random.Random(0)
    ratings: list[Any] = ["8", "-1", "0", "", "7.5", "nan", "inf", "5", "6.5", None, True, [], 3, 7, 1, 0.5, 9]
    for _ in range(200):
        raw = published(
            rating=rng.choices(ratings, k=3),
            gen_moral_score_before=rng.choice(ratings),
            gen_engagement_score_after=rng.choice(ratings),
        )
        found = read_record(raw, "m", "file")
        read = [each.rating for each in found.feedback] + [found.before.alignment, found.after.engagement]
        assert all(rating is None or 1 <= rating <= 7 for rating in read)
