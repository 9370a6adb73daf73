"""Freeing disk space: what can be removed and what depends on it, what was removed, and how to restore it."""

import re
from collections.abc import Callable, Mapping

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import lazy_gettext
from sqlalchemy import Engine

from app.cleanup.contents import DATASET, KINDS, MODEL
from app.cleanup.listing import REMOVALS, CleanupFilter, candidates, named, state_of
from app.cleanup.remove import RemovalPreview, preview, refuse_kept, removal_in_force, remove, together
from app.cleanup.restore import delete_archive, get_removal, restore
from app.core.config import Settings
from app.core.disk import MB
from app.core.errors import AppError, Conflict, Invalid, Phrase
from app.core.extensions import db, reading
from app.core.validation import whole_number
from app.job_kinds import JOB_KINDS
from app.jobs.kind import LARGEST
from app.models import Removal
from app.spend.storage import KINDS as PLACES
from app.spend.storage import read_storage
from app.web.admin.blueprint import blueprint
from app.web.admin.job_pages import pages_of, requester
from app.web.admin.lists import ListPage, add_address, add_list
from app.web.seats import settings
from app.web.threads import in_thread, in_worker_thread

_MOST_DAYS, _MOST_MB = 36_500, 10**9
_AT_ONCE = 100  # items in a form
add_address("removal", lambda number: url_for("admin.removal", number=number))
add_list(
    ListPage(
        REMOVALS,
        lazy_gettext("Removed to free disk space"),
        "spend/removed",
        about=lazy_gettext(
            "Nothing has been removed. What is removed on the page Storage is listed here and can be put back."
        ),
    )
)


@blueprint.get("/spend/storage")
def storage() -> ResponseReturnValue:
    """What is stored on disk, and which of it can be removed."""
    return _storage_page()


@blueprint.post("/spend/storage")
def clean_up() -> ResponseReturnValue:
    """Remove the chosen things, after one confirmation."""
    form = request.form
    chosen = form.getlist("thing")
    try:
        if form.get("action") not in ("check", "remove"):
            raise Invalid("action", expected=Phrase("check or remove"), got=form.get("action"))
        if not 1 <= len(chosen) <= _AT_ONCE:
            expected = Phrase("1 to %(most)s that are ticked", most=_AT_ONCE)
            raise Invalid("thing", expected=expected, got=len(chosen))
        things = [_thing(text) for text in chosen]
        found = in_thread(db.engine, _previews(settings(), things))
        for each in found:
            refuse_kept(each)
        if form["action"] == "check":
            size = sum(each.size for each in found)
            return render_template("admin/storage-confirm.html", found=found, kinds=KINDS, size=size, hours=_hours())
        archive, by, known = form.get("archive") == "1", requester().name, settings()

        def act(own: Engine) -> None:
            for each in found:
                remove(known, own, each.kind, each.number, by, archive_files=archive)

        in_thread(db.engine, act)
    except AppError as error:
        return _storage_page(error)
    return redirect(url_for("admin.spend/removed"), 303)


@blueprint.get("/spend/removed/<int:number>")
def removal(number: int) -> ResponseReturnValue:
    """What was removed, when and by whom, and how to restore it."""
    return _removal_page(number)


@blueprint.post("/spend/removed/<int:number>")
def act_on_removal(number: int) -> ResponseReturnValue:
    """Restore what was removed, or delete its archive permanently."""
    action, by, known = request.form.get("action"), requester().name, settings()
    try:
        if action == "undo":
            in_thread(db.engine, lambda own: restore(known, own, number, by).id)
        elif action == "delete-archive":
            in_thread(db.engine, lambda own: delete_archive(known, own, number))
        else:
            raise Invalid("action", expected=Phrase("undo or delete-archive"), got=action)
    except (Invalid, Conflict) as error:
        return _removal_page(number, error)
    return redirect(url_for("admin.removal", number=number), 303)


@blueprint.before_request
def _show_removal() -> ResponseReturnValue | None:
    """Answer the pages of a removed job with 410 and its removal."""
    given, path = request.view_args or {}, request.path.removeprefix(url_for("admin.home"))
    for kind in JOB_KINDS if given else ():
        pages = pages_of(kind)
        number = given.get(pages.number)
        if number is not None and re.match(rf"{re.escape(pages.path)}/{number}(\b|$)", path):
            with reading() as session:
                found = removal_in_force(session, kind.name, number)
                return None if found is None else (_rendered(found), 410)
    return None


@blueprint.app_template_global()
def removal_of(kind: str, number: int) -> Removal | None:
    """The active removal of a model or dataset, for a note on its pages."""
    with reading() as session:
        return removal_in_force(session, kind, number)


def _hours() -> float:
    return settings().UNDO_HOURS


def _thing(text: str) -> tuple[str, int]:
    kind, _, number = text.partition(":")
    return kind, whole_number(number, "thing", 1, LARGEST)


def _previews(known: Settings, things: list[tuple[str, int]]) -> Callable[[Engine], list[RemovalPreview]]:
    def read(own: Engine) -> list[RemovalPreview]:
        with reading(own) as session:
            return together(preview(session, known.home, kind, number) for kind, number in things)

    return read


def _storage_page(refused: AppError | None = None) -> ResponseReturnValue:
    given: Mapping[str, str] = {name: request.args.get(name, "") for name in ("kind", "days", "mb")}
    try:
        choice = CleanupFilter(
            given["kind"] or None,
            whole_number(given["days"], "days", 0, _MOST_DAYS) if given["days"] else 0,
            (whole_number(given["mb"], "mb", 0, _MOST_MB) if given["mb"] else 0) * MB,
        ).check()
    except Invalid as error:
        refused, choice = refused or error, CleanupFilter()
    known = settings()
    found = in_worker_thread(db.engine, lambda session: candidates(session, known.home, choice))
    found = sorted(
        together(found), key=lambda each: -each.size
    )  # items kept only by others of these can be ticked with them
    kept = in_worker_thread(db.engine, lambda session: read_storage(session, known))
    page = render_template(
        "admin/storage.html", given=given, kinds=KINDS, found=found, storage=kept, places=PLACES, refused=refused,
        hours=_hours(),
    )  # fmt: skip
    return page, 200 if refused is None else refused.status


def _removal_page(number: int, refused: AppError | None = None) -> ResponseReturnValue:
    with reading() as session:
        page = _rendered(get_removal(session, number), refused)
    return page, 200 if refused is None else refused.status


def _rendered(found: Removal, refused: AppError | None = None) -> str:
    may_open = found.kind in (MODEL, DATASET) or not found.in_force
    return render_template(
        "admin/removal.html", removal=found, what=named(found), state=state_of(found), kinds=KINDS, may_open=may_open,
        refused=refused,
    )  # fmt: skip
