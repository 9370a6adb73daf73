"""One agent of a society: its memory, the questions it was asked with its answers, and what others said about them."""

from flask import render_template, request
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.core.errors import Invalid
from app.core.extensions import reading
from app.core.validation import whole_number
from app.games.base import JSON
from app.jobs.kind import LARGEST
from app.society.agent_records import (
    find_agent,
    first_memories,
    interaction_at,
    page_of_interactions,
    position_of_agent,
)
from app.society.job import SOCIETY
from app.web.admin.blueprint import blueprint


@blueprint.get("/societies/<int:society_id>/agents/<int:agent>")
def society_agent(society_id: int, agent: int) -> ResponseReturnValue:
    """An agent with its memory, and a page of its interactions, beginning at the iteration `from`, counted from 1."""
    refused = None
    try:
        first = whole_number(request.args.get("from", "1"), "from", 1, LARGEST) - 1
    except Invalid as error:
        first, refused = 0, error
    with reading() as session:
        common = _common(session, society_id, agent)
        found, later = page_of_interactions(session, society_id, agent, first)
        page = render_template(
            "admin/society-agent.html",
            **common,
            memories=first_memories(common["society"], common["agent"]),
            found=[] if refused else found,
            first=first,
            later=None if refused else later,
            refused=refused,
        )
    return page, 400 if refused else 200


@blueprint.get("/societies/<int:society_id>/agents/<int:agent>/<int:iteration>")
def society_interaction(society_id: int, agent: int, iteration: int) -> str:
    """The part of a society's page that shows an agent in an iteration, counted from 1."""
    with reading() as session:
        return render_template(
            "admin/society-chosen.html",
            **_common(session, society_id, agent),
            iteration=iteration,
            interaction=interaction_at(session, society_id, agent, iteration - 1),
        )


def _common(session: Session, society_id: int, agent: int) -> JSON:
    row = SOCIETY.get(session, society_id)
    return {
        "society": row,
        "agent": find_agent(session, row, agent),
        "place": position_of_agent(row, agent),
        "place_of": lambda number: position_of_agent(row, number),
    }
