from collections.abc import Sequence

import numpy as np
import pytest

from app.society.embedders.base import EmbedderFailed, Vectors, unit_rows
from app.society.interaction import Recall
from app.society.memory import AgentMemory, QuestionVectors


class AngleEmbedder:
    """Embeds a text that is a number of degrees as that direction; what is none has a row of zeros."""

    name = "angles"
    threshold = 0.3  # about 45 degrees

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        angles = [np.radians(float(text)) if text.isdigit() else None for text in texts]
        rows = [[0, 0] if angle is None else [np.cos(angle), np.sin(angle)] for angle in angles]
        return unit_rows(rows, len(texts), self.name)


@pytest.fixture
def vectors() -> QuestionVectors:
    return QuestionVectors(AngleEmbedder())


def recalled(memory: AgentMemory, question: str, iteration: int = 0) -> tuple[str, str] | None:
    found = memory.recall(question, iteration)
    return None if found is None else (found.question, found.answer)


def test_the_nearest_question_is_recalled_with_its_answer_and_distance(vectors: QuestionVectors) -> None:
    memory = AgentMemory(vectors, pairs=[("0", "east"), ("30", "north-east"), ("180", "west")])
    found = memory.recall("25", 0)
    assert found is not None
    assert str(found.distance) == "0.00381"  # short enough to be stored and shown
    assert found == Recall("30", "north-east", pytest.approx(1 - np.cos(np.radians(5)), abs=1e-5))


def test_nothing_is_recalled_that_is_not_nearer_than_the_threshold(vectors: QuestionVectors) -> None:
    pairs = [("0", "east")]
    assert recalled(AgentMemory(vectors, pairs=pairs), "60") is None
    assert recalled(AgentMemory(vectors, 0.6, pairs), "60") == ("0", "east")
    assert recalled(AgentMemory(vectors, 0.5, pairs), "60") is None  # exactly as far
    assert recalled(AgentMemory(vectors), "60") is None


def test_a_remembered_question_keeps_its_first_answer(vectors: QuestionVectors) -> None:
    memory = AgentMemory(vectors, pairs=[("0", "first")])
    memory.remember("0", "second", 0)
    memory.remember("90", "third", 1)
    memory.remember("90", "fourth", 5)
    assert memory.answers() == {"0": "first", "90": "third"}
    assert recalled(memory, "90", 9) == ("90", "third")


def test_what_is_remembered_in_an_iteration_is_recalled_from_the_next_one_on(vectors: QuestionVectors) -> None:
    memory = AgentMemory(vectors, pairs=[("0", "old")])
    memory.remember("20", "new", 3)
    assert recalled(memory, "20", 3) == ("0", "old")
    assert recalled(memory, "20", 4) == ("20", "new")


def test_recall_is_the_same_in_whatever_order_answers_came_in(vectors: QuestionVectors) -> None:
    given = [("0", "a", 0), ("10", "b", 1), ("0", "c", 2), ("40", "d", 3), ("10", "e", 0)]
    memories = [AgentMemory(vectors), AgentMemory(QuestionVectors(AngleEmbedder()))]
    for memory, order in zip(memories, (given, given[::-1]), strict=True):
        for question, answer, iteration in order:
            memory.remember(question, answer, iteration)
    asked = [(str(angle), iteration) for angle in range(0, 90, 7) for iteration in range(6)]
    found = [[memory.recall(*each) for each in asked] for memory in memories]
    assert found[0] == found[1]
    assert memories[0].answers()["10"] == "e"


def test_of_questions_at_one_distance_the_one_remembered_first_is_recalled(vectors: QuestionVectors) -> None:
    memory = AgentMemory(vectors)
    memory.remember("20", "later", 2)
    memory.remember("0", "sooner", 1)
    assert recalled(memory, "10", 3) == ("0", "sooner")


def test_a_text_without_a_vector_recalls_nothing_and_is_never_recalled(vectors: QuestionVectors) -> None:
    memory = AgentMemory(vectors, 2, [("nowhere", "?"), ("0", "east")])
    assert recalled(memory, "somewhere") is None
    assert recalled(memory, "nowhere") is None
    assert recalled(memory, "90") == ("0", "east")


def test_each_question_is_embedded_once_for_all_agents() -> None:
    embedder = AngleEmbedder()
    vectors = QuestionVectors(embedder)
    memories = [AgentMemory(vectors, pairs=[("0", "a"), (str(agent), "b")]) for agent in range(1, 4)]
    vectors.add(["50", "60", "50"])
    for memory in memories:
        memory.recall("50", 0)
        memory.remember("60", "c", 0)
        memory.recall("60", 1)
    assert sorted(embedder.asked) == sorted({"0", "1", "2", "3", "50", "60"})


def test_vectors_of_another_length_than_those_before_are_refused_in_one_line() -> None:
    class ChangedEmbedder(AngleEmbedder):
        def embed(self, texts: Sequence[str]) -> Vectors:
            width = 3 if self.asked else 2
            self.asked += texts
            return np.ones((len(texts), width), dtype=np.float32)

    vectors = QuestionVectors(ChangedEmbedder())
    vectors.add(["0", "30"])
    with pytest.raises(EmbedderFailed, match=r"^angles: expected vectors of 2 numbers as before, got some of 3$"):
        vectors.add(["60"])
    assert len(vectors.distances("30")) == 2


def test_distances_are_those_of_all_questions_though_some_came_later(vectors: QuestionVectors) -> None:
    memory = AgentMemory(vectors, pairs=[("90", "north")])
    assert recalled(memory, "0") is None
    memory.remember("1", "east", 0)
    assert recalled(memory, "0", 1) == ("1", "east")
