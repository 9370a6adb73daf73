"""System prompts and personas: all versions, and the form of a new one."""

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user
from sqlalchemy import select

from app.core.errors import AppError
from app.core.extensions import reading
from app.models import PromptRow
from app.registry.prompts import MOST_CHARACTERS, add_prompt
from app.web.admin.blueprint import blueprint
from app.web.form_writes import write_once


@blueprint.get("/models/prompts")
def prompt_list() -> ResponseReturnValue:
    """All prompts, the newest version of each first, and the form of another."""
    return _page()


@blueprint.post("/models/prompts")
def new_prompt() -> ResponseReturnValue:
    """Add a prompt or its next version; an error is shown above the form, which keeps what was entered."""
    name, text, creator = request.form.get("name", "").strip(), request.form.get("text", ""), current_user.name
    try:
        write_once(lambda session: add_prompt(session, name, text, creator).id)
    except AppError as error:
        return _page(error)
    return redirect(url_for("admin.prompt_list"), 303)


def _page(refused: AppError | None = None) -> ResponseReturnValue:
    newest_first = select(PromptRow).order_by(PromptRow.name, PromptRow.version.desc())
    with reading() as session:
        prompts = [(row.reference, row) for row in session.scalars(newest_first)]
        page = render_template("admin/prompts.html", prompts=prompts, refused=refused, most=MOST_CHARACTERS)
    return page, refused.status if refused else 200
