"""Training data from a society: its interactions as rated responses, and as supervised answers. Pure.

There are three types of rows. Imitation: a question, with drafts and revisions as responses, rated by the observers.
Self-criticism: a question and a draft, with the critics' comments as responses, rated as the critics rated the draft.
Realignment: a question and a draft, answered by criticism and a better revision; all answers of an interaction have the
same rating, so there is nothing to compare and they become conversations.

Source: Liu et al. 2023, arXiv 2305.16960. Unlike in the published code, duplicates are dropped within a query and not
across all queries, each critic keeps its own rating, and responses without a rating from 1 to 7 are in no row.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from app.games.base import JSON
from app.society.config import LARGEST_RATING
from app.society.interaction import Feedback, Interaction

IMITATION, SELF_CRITICISM, REALIGNMENT = "imitation", "self-criticism", "realignment"
ROW_TYPES = (IMITATION, SELF_CRITICISM, REALIGNMENT)
GOOD_FROM = 4  # a revision is worth learning if its rating rose and is above this

UNRATED, OUT_OF_RANGE, EMPTY, DUPLICATE = "without a rating", "rated outside 1 to 7", "empty", "said before"
NOT_BETTER, MIXED_OUT = "not better than the draft", "left out by the mixing ratio"
REASONS = (UNRATED, OUT_OF_RANGE, EMPTY, DUPLICATE, NOT_BETTER, MIXED_OUT)

_COMMENT = "Say how well this answer fits values that most people share, and why."
_IMPROVE = "First say how well this answer fits values that most people share. Then give a better answer."
_REVISED = "A better answer:"


class MixingRatio(NamedTuple):
    """The maximum numbers of rows of the other types relative to those of imitation, which are all kept."""

    imitation: float
    self_criticism: float
    realignment: float

    def most(self, row_type: str, imitation: int) -> int:
        """The maximum number of rows of a type other than imitation, for that many rows of imitation."""
        share = {SELF_CRITICISM: self.self_criticism, REALIGNMENT: self.realignment}[row_type]
        return int(imitation * share / self.imitation)


RELEASED, CODE = "released", "code"
MIXING: Mapping[str, MixingRatio] = {RELEASED: MixingRatio(5, 1, 1), CODE: MixingRatio(1, 0.1, 0.1)}


@dataclass(slots=True)
class RowTally:
    """Counts for a type of rows from one model: responses found, those in a row, and why others are not."""

    found: int = 0
    kept: int = 0
    ratings: float = 0.0  # the sum over the kept ones
    dropped: Counter[str] = field(default_factory=Counter)

    @property
    def dropped_share(self) -> float:
        """The share of responses found that are in no row."""
        return (self.found - self.kept) / self.found if self.found else 0.0

    @property
    def mean_rating(self) -> float | None:
        """The mean rating of the responses kept."""
        return self.ratings / self.kept if self.kept else None


@dataclass(frozen=True, slots=True)
class SocietyData:
    """Rows of imitation and self-criticism, those of realignment, and the counts by type of row and model.

    All have `query`, `responses`, `scores`, `models` and `group`; those of realignment have one response each.
    """

    comparisons: Sequence[JSON]
    realignment: Sequence[JSON]
    tallies: Mapping[tuple[str, str], RowTally]

    @property
    def conversations(self) -> Sequence[JSON]:
        """The rows of realignment as answers for supervised training."""
        return [_conversation_of_row(row) for row in self.realignment]


@dataclass(frozen=True, slots=True)
class _Response:
    text: str
    score: float
    model: str


@dataclass(frozen=True, slots=True)
class _Query:
    """A query of one type, with the question that it is about and its distinct responses."""

    question: str
    query: str
    responses: list[_Response]

    def comparison(self) -> JSON:
        return {
            "query": self.query,
            "responses": [each.text for each in self.responses],
            "scores": [each.score for each in self.responses],
            "models": [each.model for each in self.responses],
            "group": group_of(self.question),
        }

    def singles(self) -> Iterator["_Query"]:
        """A copy of the query for each of its responses, with only that response."""
        yield from (_Query(self.question, self.query, [each]) for each in self.responses)


def rated_rows(
    interactions: Iterable[Interaction], mixing: MixingRatio = MIXING[RELEASED], seed: int = 0
) -> SocietyData:
    """The rows of a society's interactions, the same for the same input. `seed` draws those the ratio drops."""
    every = list(interactions)
    found = _Collector({each.agent: each.model for each in every})
    for each in every:
        found.add(each)
    imitation = found.queries(IMITATION)
    rows: dict[str, list[_Query]] = {}
    for row_type in (SELF_CRITICISM, REALIGNMENT):
        queries = found.queries(row_type)
        if row_type == REALIGNMENT:
            queries = [single for each in queries for single in each.singles()]
        rows[row_type], left_out = _draw_queries(queries, mixing.most(row_type, len(imitation)), f"{row_type} {seed}")
        for each_left in left_out:
            found.leave_out(row_type, each_left)
    return SocietyData(
        comparisons=[each.comparison() for each in (*imitation, *rows[SELF_CRITICISM])],
        realignment=[each.comparison() for each in rows[REALIGNMENT]],
        tallies=found.tallies,
    )


def group_of(question: str) -> str:
    """The group of all rows about a question, so that none is held out while others are trained on."""
    return f"question-{hashlib.sha256(question.encode('utf-8', 'replace')).hexdigest()[:16]}"


def criticism_query(question: str, draft: str) -> str:
    """The query of a row of self-criticism."""
    return f"{question}\n\nAnswer: {draft}\n\n{_COMMENT}"


def realignment_query(question: str, draft: str) -> str:
    """The query of a row of realignment."""
    return f"{question}\n\nAnswer: {draft}\n\n{_IMPROVE}"


def realignment_answer(reason: str, revision: str) -> str:
    """The answer of a row of realignment: a critic's comment, and the revision."""
    return f"{reason}\n\n{_REVISED} {revision}"


def _conversation_of_row(row: JSON) -> JSON:
    (answer,) = row["responses"]
    asked, learnt = {"role": "user", "content": row["query"]}, {"role": "assistant", "content": answer}
    return {"messages": [asked, learnt], "group": row["group"]}


class _Collector:
    """Queries in order of first appearance, and the counts made while collecting them."""

    def __init__(self, models: Mapping[int, str]) -> None:
        self._models = models  # by agent
        self._queries: dict[str, dict[str, _Query]] = {each: {} for each in ROW_TYPES}
        self._seen: set[tuple[str, str, str]] = set()
        self.tallies: dict[tuple[str, str], RowTally] = {}

    def queries(self, row_type: str) -> list[_Query]:
        return list(self._queries[row_type].values())

    def add(self, each: Interaction) -> None:
        """Add an interaction."""
        for text, rating in ((each.draft, each.before.alignment), (each.revision, each.after.alignment)):
            self._take_text(IMITATION, each.question, each.question, text, rating, each.model)
        for feedback in each.feedback:
            query, model = criticism_query(each.question, each.draft), self._critic(each, feedback)
            self._take_text(SELF_CRITICISM, each.question, query, feedback.reason, feedback.rating, model)
        self._realign(each)

    def leave_out(self, row_type: str, query: _Query) -> None:
        """Count the responses of a query that was dropped from the rows after all."""
        for each in query.responses:
            tally = self._tally(row_type, each.model)
            tally.kept -= 1
            tally.ratings -= each.score
            tally.dropped[MIXED_OUT] += 1

    def _realign(self, each: Interaction) -> None:
        before, after = each.before.alignment, each.after.alignment
        better = after is not None and before is not None and after > before and after > GOOD_FROM
        for feedback in each.feedback:
            if feedback.rating is None or after is None or before is None:
                self._drop(REALIGNMENT, each.model, UNRATED)
            elif not better:
                self._drop(REALIGNMENT, each.model, NOT_BETTER)
            elif not feedback.reason.strip() or not each.revision.strip():
                self._drop(REALIGNMENT, each.model, EMPTY)
            else:
                answer = realignment_answer(feedback.reason, each.revision)
                query = realignment_query(each.question, each.draft)
                self._take_text(REALIGNMENT, each.question, query, answer, after, each.model)

    def _critic(self, each: Interaction, feedback: Feedback) -> str:
        """The critic's model; that of the agent where the critic is not known."""
        return each.model if feedback.critic is None else self._models.get(feedback.critic, each.model)

    def _take_text(self, row_type: str, question: str, query: str, text: str, rating: float | None, model: str) -> None:
        key = row_type, query, text
        if rating is None:
            self._drop(row_type, model, UNRATED)
        elif not 1 <= rating <= LARGEST_RATING:
            self._drop(row_type, model, OUT_OF_RANGE)
        elif not text.strip() or not question.strip():
            self._drop(row_type, model, EMPTY)
        elif key in self._seen:
            self._drop(row_type, model, DUPLICATE)
        else:
            self._seen.add(key)
            found = self._queries[row_type].setdefault(query, _Query(question, query, []))
            found.responses.append(_Response(text, float(rating), model))
            tally = self._tally(row_type, model)
            tally.found += 1
            tally.kept += 1
            tally.ratings += rating

    def _drop(self, row_type: str, model: str, reason: str) -> None:
        tally = self._tally(row_type, model)
        tally.found += 1
        tally.dropped[reason] += 1

    def _tally(self, row_type: str, model: str) -> RowTally:
        return self.tallies.setdefault((row_type, model), RowTally())


def _draw_queries(queries: Sequence[_Query], most: int, seed: str) -> tuple[list[_Query], list[_Query]]:
    """At most `most` of the queries, in order, and the remaining ones."""
    if len(queries) <= most:
        return list(queries), []
    kept = set(random.Random(seed).sample(range(len(queries)), most))
    chosen = [each for place, each in enumerate(queries) if place in kept]
    return chosen, [each for place, each in enumerate(queries) if place not in kept]
