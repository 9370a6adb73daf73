"""What one agent of a society was asked, answered and told, and whose drafts it criticised."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import NotFound, Phrase
from app.models import Society, SocietyAgent, SocietyInteraction
from app.society import store

PAGE = 10  # interactions on a page


@dataclass(frozen=True, slots=True)
class AgentPlace:
    """The position of an agent: row and column of the grid, from 1, as shown to people."""

    agent: int
    row: int
    column: int


@dataclass(frozen=True, slots=True)
class AgentInteraction:
    """An interaction of an agent, and the agents whose drafts it criticised in that iteration."""

    row: SocietyInteraction
    criticised: Sequence[int]

    @property
    def ratings(self) -> Sequence[float]:
        """The ratings by its critics that could be parsed."""
        return [each["rating"] for each in self.row.feedback or () if each["rating"] is not None]

    @property
    def mean_rating(self) -> float | None:
        """The mean of these ratings, which the agent was told."""
        return sum(self.ratings) / len(self.ratings) if self.ratings else None

    def texts(self, name: str, when: str) -> Sequence[str]:
        """The observers' texts about an aspect of the draft, or of the revision."""
        return (self.row.observations or {}).get(f"{name}_{when}", ())


def position_of_agent(row: Society, agent: int) -> AgentPlace:
    """The position of an agent of a society."""
    across = int(row.config["size"])
    return AgentPlace(agent, agent // across + 1, agent % across + 1)


def find_agent(session: Session, row: Society, agent: int) -> SocietyAgent:
    """An agent of a society. Raises NotFound."""
    found = session.get(SocietyAgent, (row.id, agent))
    if found is None:
        raise NotFound(
            "agent",
            expected=Phrase("one of society %(number)s", number=row.id),
            got=agent,
            remedy=Phrase("they are numbered from 0"),
        )
    return found


def first_memories(row: Society, agent: SocietyAgent) -> list[tuple[str, str]]:
    """Questions and answers that an agent remembers at the start; none where it was imported without them."""
    pairs = row.priors.get(agent.label, [])
    return [(pairs[place][0], pairs[place][1]) for place in agent.first_memories]


def interaction_at(session: Session, society_id: int, agent: int, iteration: int) -> AgentInteraction | None:
    """An agent's interaction of an iteration, from 0; None before that has begun."""
    table = SocietyInteraction
    found = select(table).where(table.society_id == society_id, table.agent == agent, table.iteration == iteration)
    row = session.scalars(found).one_or_none()
    if row is None:
        return None
    return AgentInteraction(row, criticised_by(session, society_id, [iteration], agent).get(iteration, ()))


def page_of_interactions(
    session: Session, society_id: int, agent: int, first: int = 0
) -> tuple[list[AgentInteraction], int | None]:
    """Interactions of an agent from iteration `first` on, and the iteration that begins the next page, if any."""
    table = SocietyInteraction
    found = (
        select(table)
        .where(table.society_id == society_id, table.agent == agent, table.iteration >= first)
        .where(table.status != store.OPEN)
        .order_by(table.iteration)
        .limit(PAGE + 1)
    )
    rows = [*session.scalars(found)]
    shown = rows[:PAGE]
    criticised = criticised_by(session, society_id, [row.iteration for row in shown], agent)
    later = rows[PAGE].iteration if len(rows) > PAGE else None
    return [AgentInteraction(row, criticised.get(row.iteration, ())) for row in shown], later


def criticised_by(
    session: Session, society_id: int, iterations: Sequence[int], critic: int
) -> Mapping[int, Sequence[int]]:
    """The agents whose drafts an agent has criticised, by iteration."""
    table = SocietyInteraction
    found = (
        select(table.iteration, table.agent, table.feedback)
        .where(table.society_id == society_id, table.iteration.in_(iterations))
        .order_by(table.iteration, table.agent)
    )
    criticised: dict[int, list[int]] = {}
    for iteration, agent, feedback in session.execute(found):
        given: Sequence[Mapping[str, Any]] = feedback or ()
        if any(each["critic"] == critic for each in given):
            criticised.setdefault(iteration, []).append(agent)
    return criticised
