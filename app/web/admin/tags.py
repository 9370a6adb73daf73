"""Tags and notes on pages: the part of a page that shows and changes them, and the filter of lists by a tag."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flask import redirect, request
from flask.typing import ResponseReturnValue
from flask_babel import gettext
from flask_login import current_user
from sqlalchemy import ColumnElement
from sqlalchemy.orm import Session

from app.core.errors import Invalid, NotFound, either
from app.core.extensions import reading
from app.core.lists import Reference
from app.core.validation import whole_number
from app.datasets.store import get_dataset
from app.job_kinds import JOB_KINDS
from app.jobs import tags as service
from app.registry import get_model_by_number
from app.web.admin.blueprint import blueprint
from app.web.admin.lists import ListFilter, cell_address
from app.web.form_writes import write

_LARGEST = 2**31 - 1
_ACTIONS = ("tag", "untag", "note", "unnote")
_TAG = "tag"  # the filter's field

Filters = Callable[[Session], Sequence[ListFilter]]
Conditions = Callable[[Session, Mapping[str, str]], Sequence[ColumnElement[bool]]]


@blueprint.app_template_global()
def tags_and_notes(kind: str, number: int) -> tuple[Sequence[str], Sequence[service.TakenNote], Sequence[str]]:
    """The tags and notes of one item, and the tags that others of its kind have."""
    with reading() as session:
        return (
            service.tags_of(session, kind, [number]).get(number, []),
            service.notes_of(session, kind, [number]).get(number, []),
            service.known_tags(session, kind),
        )


@blueprint.post("/tags/<kind>/<int:number>")
def change_tags(kind: str, number: int) -> ResponseReturnValue:
    """Add or remove a tag or a note, depending on the pressed button."""
    action, value, by = request.form.get("action", ""), request.form.get("value", ""), current_user.name
    if action not in _ACTIONS:
        raise Invalid("action", expected=either(_ACTIONS), got=action)

    def change(session: Session) -> None:
        _check_item_exists(session, kind, number)
        if action == "tag":
            names = [name for part in value.split(",") if (name := part.strip())]
            service.add_tags(session, kind, number, names, by)
        elif action == "untag":
            service.remove_tags(session, kind, number, [value])
        elif action == "note":
            service.add_note(session, kind, number, value, by)
        else:
            service.remove_note(session, kind, number, whole_number(value, "note", 1, _LARGEST))

    write(change)
    # A fragment inside the folded part unfolds it.
    return redirect(f"{cell_address(Reference(kind, number, ''))}#new-tag", 303)


def tag_filter(
    kind: str,
    key: Any,
    filters: Filters = lambda _session: (),
    where: Conditions = lambda _session, _given: (),
) -> dict[str, Any]:
    """The fields `filters` and `where` of a ListPage, with a tag in addition to the other filters.

    The field is not shown as long as nothing of the kind has a tag.
    """

    def with_tag(session: Session) -> list[ListFilter]:
        names = service.known_tags(session, kind)
        field = ListFilter(_TAG, gettext("Tag"), {name: name for name in names}, seldom=not names)
        return [*filters(session), field]

    def conditions(session: Session, given: Mapping[str, str]) -> list[ColumnElement[bool]]:
        tag = given.get(_TAG)
        return [*where(session, given), *([service.has_tag(key, kind, tag)] if tag else [])]

    return {"filters": with_tag, "where": conditions}


def _check_item_exists(session: Session, kind: str, number: int) -> None:
    """Raises NotFound for an item that does not exist."""
    if kind == service.DATASET:
        get_dataset(session, number)
    elif kind == service.MODEL:
        get_model_by_number(session, number)
    else:
        known = {each.name: each for each in JOB_KINDS}
        if kind not in known:
            raise NotFound("kind", expected=either([*known, service.MODEL, service.DATASET]), got=kind)
        known[kind].get(session, number)
