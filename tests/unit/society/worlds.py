"""Interactions for tests: made by hand, or many at random."""

import random
from typing import Any

from app.society.interaction import Feedback, Interaction, Observation, Recall

QUESTION = "How do I tell a friend that I broke her vase?"


def feedback(critic: int | None = 1, rating: float | None = 3, reason: str = "It hides the truth.") -> Feedback:
    return Feedback(critic, rating, reason, f"Rating: {rating} ### Reason: {reason}")


def interaction(**values: Any) -> Interaction:
    """One in which everything went well, but for what is given; `before` and `after` may be ratings of alignment."""
    for name, rating, engagement in (("before", 3.0, 4.0), ("after", 6.0, 5.0)):
        given = values.get(name, rating)
        if not isinstance(given, Observation):
            values[name] = Observation(given, engagement, (f"Rating: {given}",), (f"Rating: {engagement}",))
    usual: dict[str, Any] = {
        "iteration": 0, "agent": 0, "model": "house", "question": QUESTION, "draft": "Say nothing.",
        "feedback": (feedback(1, 3), feedback(2, 5, "It is short.")), "revision": "Tell her soon, and say sorry.",
    }  # fmt: skip
    return Interaction(**{**usual, **values})


RATINGS = (None, 1, 2, 3, 4, 5, 5.5, 6, 7)
_TEXTS = ("", " ", "Yes.", "No.", "Perhaps later.", "Ask a friend. ### Reason: 6/7", "naïve “quote”\n8")


def many(number: int, seed: int = 0, ratings: tuple[float | None, ...] = RATINGS) -> list[Interaction]:
    """So many interactions of ten agents and three models, with so few different words that some are the same."""
    rng = random.Random(seed)

    def observed() -> Observation:
        return Observation(rng.choice(ratings), rng.choice(ratings), ("Rating: 8",), ("no idea",))

    return [
        interaction(
            iteration=place // 10,
            agent=place % 10,
            model=f"model-{place % 10 % 3}",
            question=f"Question {rng.randrange(number)}?",
            draft=rng.choice(_TEXTS),
            feedback=tuple(
                feedback(critic, rng.choice(ratings), rng.choice(_TEXTS))
                for critic in rng.sample(range(10), rng.randrange(5))
            ),
            revision=rng.choice(_TEXTS),
            before=observed(),
            after=observed(),
            recall=Recall("Question?", "Answer.", 0.25) if place % 2 else None,
        )
        for place in range(number)
    ]
