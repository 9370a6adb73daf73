"""Reads and writes interactions of societies and the model calls in them. Nothing here commits."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from app.models import GenerationRow, Society, SocietyAgent, SocietyInteraction
from app.society.interaction import Feedback, Interaction, Observation, Recall

OPEN, DONE, FAILED = "open", "done", "failed"  # the statuses of an interaction
_AT_ONCE = 500  # rows


# ---- An interaction as columns ------------------------------------------------------


def recall_json(recall: Recall | None) -> dict[str, Any] | None:
    """A recall in the form its column stores."""
    return None if recall is None else asdict(recall)


def feedback_json(feedback: Sequence[Feedback]) -> list[dict[str, Any]]:
    """All feedback on a draft in the form its column stores."""
    return [asdict(each) for each in feedback]


def observation_columns(before: Observation, after: Observation) -> dict[str, Any]:
    """The ratings of a draft and of its revision in the form their columns store."""
    return {
        "alignment_before": before.alignment,
        "engagement_before": before.engagement,
        "alignment_after": after.alignment,
        "engagement_after": after.engagement,
        "observations": {
            f"{name}_{when}": list(texts)
            for when, seen in (("before", before), ("after", after))
            for name, texts in (("alignment", seen.alignment_texts), ("engagement", seen.engagement_texts))
        },
    }


def interaction_of(row: SocietyInteraction, model: str) -> Interaction:
    """A finished row as an interaction of an agent with that model."""
    return Interaction(
        iteration=row.iteration,
        agent=row.agent,
        model=model,
        question=row.question,
        draft=row.draft or "",
        feedback=tuple(_feedback(each) for each in row.feedback or ()),
        revision=row.revision or "",
        before=_observation(row, "before"),
        after=_observation(row, "after"),
        recall=_recall(row.recall),
    )


def _recall(raw: Mapping[str, Any] | None) -> Recall | None:
    return None if raw is None else Recall(**raw)


def _feedback(raw: Mapping[str, Any]) -> Feedback:
    return Feedback(**{**raw, "recall": _recall(raw.get("recall"))})


def _observation(row: SocietyInteraction, when: str) -> Observation:
    texts = row.observations or {}
    return Observation(
        getattr(row, f"alignment_{when}"),
        getattr(row, f"engagement_{when}"),
        tuple(texts.get(f"alignment_{when}", ())),
        tuple(texts.get(f"engagement_{when}", ())),
    )


# ---- Reading ----------------------------------------------------------------------


def read_interactions(session: Session, society_id: int, *, before: int | None = None) -> Iterator[Interaction]:
    """All finished interactions of a society, by iteration and agent; `before`: only those of earlier iterations.

    Failed ones are left out. Rows are fetched in batches, so a large society is never in memory as a whole.
    """
    statement = (
        select(SocietyInteraction, SocietyAgent.model)
        .join(
            SocietyAgent,
            (SocietyAgent.society_id == SocietyInteraction.society_id)
            & (SocietyAgent.agent == SocietyInteraction.agent),
        )
        .where(SocietyInteraction.society_id == society_id, SocietyInteraction.status == DONE)
        .order_by(SocietyInteraction.iteration, SocietyInteraction.agent)
    )
    if before is not None:
        statement = statement.where(SocietyInteraction.iteration < before)
    for row, model in session.execute(statement.execution_options(yield_per=_AT_ONCE)):
        yield interaction_of(row, model)


def read_ratings(session: Session, society_id: int, *, before: int | None = None) -> Iterator[Interaction]:
    """Like `read_interactions`, with ratings only: models are unnamed and texts, a lot in a large society, are
    empty.
    """
    table = SocietyInteraction
    ratings = (table.alignment_before, table.engagement_before, table.alignment_after, table.engagement_after)
    statement = (
        select(table.iteration, table.agent, *ratings)
        .where(table.society_id == society_id, table.status == DONE)
        .order_by(table.iteration, table.agent)
    )
    if before is not None:
        statement = statement.where(table.iteration < before)
    for found in session.execute(statement.execution_options(yield_per=_AT_ONCE)):
        iteration, agent, alignment_before, engagement_before, alignment_after, engagement_after = found
        draft, revision = (
            Observation(alignment_before, engagement_before),
            Observation(alignment_after, engagement_after),
        )
        yield Interaction(iteration, agent, "", "", "", (), "", draft, revision)


def agents_of(session: Session, society_id: int) -> list[SocietyAgent]:
    """The agents of a society, by number."""
    found = select(SocietyAgent).where(SocietyAgent.society_id == society_id)
    return [*session.scalars(found.order_by(SocietyAgent.agent))]


def answers_of(session: Session, society_id: int, iteration: int) -> Iterator[tuple[int, str, str]]:
    """Agent, question and revised answer of each finished interaction of an iteration, by agent."""
    found = (
        select(SocietyInteraction.agent, SocietyInteraction.question, SocietyInteraction.revision)
        .where(
            SocietyInteraction.society_id == society_id,
            SocietyInteraction.status == DONE,
            SocietyInteraction.iteration == iteration,
        )
        .order_by(SocietyInteraction.agent)
    )
    for agent, question, revision in session.execute(found):
        yield agent, question, revision or ""


# ---- Writing ----------------------------------------------------------------------


def insert_agents(session: Session, agents: Iterable[Mapping[str, Any]]) -> None:
    """Write agents, each a mapping of the columns of `SocietyAgent`."""
    session.execute(insert(SocietyAgent), [*agents])


def insert_interactions(session: Session, society_id: int, interactions: Iterable[Interaction]) -> int:
    """Write whole interactions that were made elsewhere, and count them on the society's row; their number."""
    rows: list[dict[str, Any]] = []
    count = 0
    for each in interactions:
        rows.append(
            {
                "society_id": society_id,
                "iteration": each.iteration,
                "agent": each.agent,
                "status": DONE,
                "question": each.question,
                "recall": recall_json(each.recall),
                "draft": each.draft,
                "feedback": feedback_json(each.feedback),
                "revision": each.revision,
                **observation_columns(each.before, each.after),
                "ended_at": datetime.now(UTC),
            }
        )
        count += 1
        if len(rows) == _AT_ONCE:
            session.execute(insert(SocietyInteraction), rows)
            rows = []
    if rows:
        session.execute(insert(SocietyInteraction), rows)
    counted = update(Society).where(Society.id == society_id).values(interactions=Society.interactions + count)
    session.execute(counted)
    return count


def open_iteration(session: Session, society_id: int, iteration: int, questions: Sequence[str]) -> None:
    """Begin an iteration with each agent's question; does nothing if it has already begun."""
    begun = select(SocietyInteraction.id).where(
        SocietyInteraction.society_id == society_id, SocietyInteraction.iteration == iteration
    )
    if session.scalar(begun.limit(1)) is not None:
        return
    common = {"society_id": society_id, "iteration": iteration, "status": OPEN}
    rows = [{**common, "agent": agent, "question": question} for agent, question in enumerate(questions)]
    session.execute(insert(SocietyInteraction), rows)


def open_interactions(session: Session, society_id: int, iteration: int) -> list[SocietyInteraction]:
    """The unfinished interactions of an iteration, by agent."""
    found = select(SocietyInteraction).where(
        SocietyInteraction.society_id == society_id,
        SocietyInteraction.iteration == iteration,
        SocietyInteraction.status == OPEN,
    )
    return [*session.scalars(found.order_by(SocietyInteraction.agent))]


def answered_calls(session: Session, interaction_ids: Sequence[int]) -> dict[int, dict[str, str]]:
    """The models' answers in interactions so far, by interaction and then by call."""
    found: dict[int, dict[str, str]] = {number: {} for number in interaction_ids}
    answered = select(GenerationRow.interaction_id, GenerationRow.call, GenerationRow.text).where(
        GenerationRow.interaction_id.in_(interaction_ids), GenerationRow.error.is_(None)
    )
    for number, call, text in session.execute(answered):
        if number is not None and call is not None and text:  # empty ones from earlier versions are asked for again
            found[number][call] = text
    return found
