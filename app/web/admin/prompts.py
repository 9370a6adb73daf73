"""System prompts and personas: the list of all versions, and the form of a new one."""

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import lazy_gettext
from flask_login import current_user

from app.core.errors import AppError
from app.core.extensions import reading
from app.registry.prompts import LIST, MOST_CHARACTERS, add_prompt
from app.web.admin.blueprint import blueprint
from app.web.admin.lists import ListPage, add_address, read_list, register_list
from app.web.form_writes import write_once

_PAGE = ListPage(
    LIST,
    lazy_gettext("System prompts"),
    "models/prompts",
    intro=lazy_gettext(
        "What models are told in addition to the rules, such as a persona. Rounds, evaluations and conditions of "
        "studies name one; partners never see it. A version never changes: new wording makes the next version."
    ),
    command="flask prompt add NAME --text TEXT",
    template="admin/prompts.html",
)
register_list(_PAGE)
add_address("matches of prompt", lambda named: url_for("admin.matches", prompt=named))


@blueprint.get("/models/prompts")
def prompt_list() -> ResponseReturnValue:
    """All versions of prompts, and the form of another."""
    return _prompts_page()


@blueprint.post("/models/prompts")
def new_prompt() -> ResponseReturnValue:
    """Add a prompt or its next version; an error is shown above the form, which keeps what was entered."""
    name, text, creator = request.form.get("name", "").strip(), request.form.get("text", ""), current_user.name
    try:
        write_once(lambda session: add_prompt(session, name, text, creator).id)
    except AppError as error:
        return _prompts_page(error)
    return redirect(url_for("admin.prompt_list"), 303)


def _prompts_page(refused: AppError | None = None) -> ResponseReturnValue:
    with reading() as session:
        view = read_list(session, _PAGE)
        page = render_template(_PAGE.template, page=_PAGE, view=view, refused=refused, most=MOST_CHARACTERS)
    shown = refused or view.refused
    return page, 200 if shown is None else shown.status
