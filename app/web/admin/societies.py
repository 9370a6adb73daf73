"""Societies: the list, one society as it runs, its ratings by agent, its charts, and its records as files."""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from flask import Response, jsonify, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import lazy_gettext
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.core.errors import NotFound, Phrase, Verbatim
from app.core.extensions import db, reading
from app.core.validation import whole_number
from app.games.base import JSON
from app.jobs.kind import LARGEST
from app.jobs.listing import JobListItem
from app.models import Society
from app.society import folders, listing
from app.society.agent_records import find_agent, interaction_at, position_of_agent
from app.society.config import SocietyConfig
from app.society.grid import iterations_begun
from app.society.job import SOCIETY
from app.society.store import agents_of
from app.web.admin.blueprint import blueprint
from app.web.admin.figures import spec_answer
from app.web.admin.job_pages import JobPages, register_pages
from app.web.admin.lists import add_address
from app.web.admin.societies_figures import charts_of, check_size, grid_of
from app.web.admin.societies_words import SHOWS, cell_of
from app.web.downloads import download, pieces_of
from app.web.threads import in_thread

# ---- One society ---------------------------------------------------------------------


@blueprint.get("/societies/<int:society_id>/grid.json")
def society_grid(society_id: int) -> ResponseReturnValue:
    """The ratings by agent of an iteration, counted from 0, and of the iterations around it."""
    with reading() as session:
        row = SOCIETY.get(session, society_id)
    return jsonify(grid_of(row, whole_number(request.args.get("iteration", "0"), "iteration", 0, LARGEST)))


@blueprint.get("/societies/<int:society_id>/charts/<name>.json")
def society_chart(society_id: int, name: str) -> ResponseReturnValue:
    """A chart of a society as a Vega-Lite spec, in the colours of `theme`: light or dark."""
    with reading() as session:
        found = {chart.name: chart for chart in charts_of(SOCIETY.get(session, society_id))}
    if name not in found:
        raise NotFound("chart", expected=Verbatim(", ".join(found)) if found else Phrase("none yet"), got=name)
    return spec_answer(found[name])


@blueprint.get("/societies/<int:society_id>/records.zip")
def society_records(society_id: int) -> Response:
    """Memories, log and rated responses in the format of the published programs, as `flask society export` writes
    them.
    """
    with reading() as session:
        check_size(SOCIETY.get(session, society_id), "export")
    file = in_thread(db.engine, lambda own: _archive(own, society_id))
    return download(pieces_of(file), f"society-{society_id}.zip", "application/zip")


def _society_page_fields(session: Session, item: JobListItem) -> Mapping[str, Any]:
    row: Society = item.row
    begun = iterations_begun(session, row.id)
    iteration, agent = _chosen_agent(row, begun)
    return {
        "society": row,
        "config": SocietyConfig.model_validate(row.config),
        "begun": begun,
        "iteration": iteration,
        "place": position_of_agent(row, agent),
        "agent": find_agent(session, row, agent),
        "interaction": interaction_at(session, row.id, agent, iteration - 1),
        **_shown_grid_fields(session, row, iteration),
        "charts": charts_of(row),
        "failures": listing.last_failures(session, row.id),
        "datasets": listing.datasets_of(session, row.id),
        "place_of": lambda number: position_of_agent(row, number),
    }


add_address("society data", lambda number: url_for("admin.society_data", society_id=number))
register_pages(
    SOCIETY,
    JobPages(
        lazy_gettext("Societies"), "societies", "society_id", template="admin/society.html", fields=_society_page_fields
    ),
    new=[("admin.new_society", lazy_gettext("New society"))],
    about=lazy_gettext(
        "In a society, agents on a grid answer questions, criticise each other’s answers and revise their own;"
        " observers rate both. This gives data to train on. There are none yet."
    ),
    first=lazy_gettext("Start the first society"),
)


def _chosen_agent(row: Society, begun: int) -> tuple[int, int]:
    """The iteration, counted from 1, and the agent that the URL names; by default the latest and the first."""
    agents = int(row.config["size"]) ** 2
    iteration = whole_number(request.args.get("iteration", str(max(1, begun))), "iteration", 1, LARGEST)
    return min(iteration, max(1, begun)), whole_number(request.args.get("agent", "0"), "agent", 0, agents - 1)


def _shown_grid_fields(session: Session, row: Society, iteration: int) -> JSON:
    """The initial grid of an iteration on the page: rows of agents, each with its cell."""
    found = grid_of(row, iteration - 1)
    ratings = found["ratings"][SHOWS[0]]
    at = iteration - 1 - found["first"]
    size = int(row.config["size"])
    cells = [
        (agent, cell_of(ratings[at][agent.agent] if at < len(ratings) else None))
        for agent in agents_of(session, row.id)
    ]
    return {"grid": [cells[start : start + size] for start in range(0, len(cells), size)]}


# ---- Records -------------------------------------------------------------------------


def _archive(engine: Engine, number: int) -> BinaryIO:
    """The archive as an open file that is already unlinked."""
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / f"society-{number}"
        with reading(engine) as session:
            folders.write_folder(session, number, files)
        return Path(shutil.make_archive(str(files), "zip", folder, files.name)).open("rb")
