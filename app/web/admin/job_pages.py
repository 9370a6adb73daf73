"""Pages of jobs of every kind: the list, one job as it runs, and what its buttons do.

A kind that has pages of its own registers them here; the pages of all others are made of what its JobKind says.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from flask import abort, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext
from flask_login import current_user
from sqlalchemy.orm import Session

from app.core.errors import AppError, Conflict, Invalid, Phrase
from app.core.extensions import reading
from app.core.validation import whole_number
from app.job_kinds import JOB_KINDS
from app.jobs import states
from app.jobs.kind import LARGEST, JobKind, R, Requester
from app.jobs.listing import job_figures, job_items, list_of
from app.web.admin.blueprint import blueprint
from app.web.admin.lists import ListPage, add_address, add_list, register_list, show_list
from app.web.form_writes import write
from app.web.seats import settings


@dataclass(frozen=True, slots=True)
class JobPages:
    """The pages of a kind. `render` is a job's page by its number, with why the pressed button did nothing."""

    title: Any  # of its list and in the navigation: text or lazy text
    path: str  # of its list, below that of all admin pages
    number: str  # what rules call the number of a job, which follows `path`
    render: Callable[[int, AppError | None], str]
    below: str = ""  # the path of the section whose second line has its list; empty: it is a section of its own


_OWN: dict[str, JobPages] = {}


def register_pages(kind: JobKind[Any], pages: JobPages, **around: Any) -> None:
    """Have a kind shown on pages of its own: its list, and the page of a job, which takes POST from its buttons.

    `around`: what is around the list, as fields of ListPage.
    """

    def act(**number: int) -> ResponseReturnValue:
        return _act(kind, number[pages.number])

    _OWN[kind.name] = pages
    blueprint.add_url_rule(f"/{pages.path}/<int:{pages.number}>", f"act_on_{kind.name}", act, methods=["POST"])
    add_list(list_page(kind, pages, **around))


def pages_of(kind: JobKind[Any]) -> JobPages:
    """The pages of a kind: its own, or those that every kind has."""
    own = _OWN.get(kind.name)
    if own is not None:
        return own
    title, path = gettext(kind.plural.capitalize()), f"other-jobs/{kind.plural}"
    return JobPages(title, path, "job", lambda number, refused: _job_page(kind, number, refused))


@blueprint.app_template_global()
def job_address(kind: JobKind[Any], number: int | None = None) -> str:
    """The address of a kind's list, or of one job."""
    address = url_for("admin.home") + pages_of(kind).path
    return address if number is None else f"{address}/{number}"


@blueprint.app_template_global()
def job_name(kind: JobKind[Any], number: int) -> str:
    """What a job is called, in the language of the page."""
    name = kind.subject(number).render(gettext)
    return name[:1].upper() + name[1:]


def job_actions(kind: JobKind[Any], row: Any, state: str) -> dict[str, Any]:
    """What a page offers to do with a job in that state, for the buttons of its template."""
    return {
        "act": job_address(kind, row.id),
        "live": row.status in states.LIVE,
        "can_cancel": kind.may_cancel(row),
        "can_resume": kind.may_resume(row, state),
    }


def requester() -> Requester:
    """Who is signed in, to be read before anything is handed to the thread that writes."""
    return Requester(current_user.id, current_user.name)


def read_compared(session: Session, kind: JobKind[R], name: str, most: int) -> list[R]:
    """The jobs of a kind to be compared, whose numbers the address has under a name. Raises NotFound and Invalid."""
    given = request.args.getlist(name)[: most + 1]
    numbers = dict.fromkeys(whole_number(text, name, 1, LARGEST) for text in given)
    if not 2 <= len(numbers) <= most:
        raise Invalid(
            name,
            expected=Phrase("2 to %(most)s different ones to compare", most=most),
            got=len(numbers),
            remedy=Phrase("tick them in the list"),
        )
    return [kind.get(session, number) for number in numbers]


def list_page(kind: JobKind[Any], pages: JobPages, **fields: Any) -> ListPage:
    """The page of a kind's list; `fields` are those of ListPage."""
    add_address(kind.name, partial(job_address, kind))
    return ListPage(
        list_of(kind),
        pages.title,
        pages.path,
        is_live=lambda item: any(row.status in states.LIVE for row in getattr(item, "rows", (item.row,))),
        subject=kind.subject,
        **fields,
    )


def _act(kind: JobKind[Any], number: int) -> ResponseReturnValue:
    """Do what the pressed button says: cancel or resume a job of any kind."""
    action = request.form.get("action")
    try:
        if action == "cancel":
            write(lambda session: kind.cancel(session, number))
        elif action == "resume":
            queue = write(lambda session: kind.queue_of(session, kind.resume(session, number, queued=True).id))
            kind.enqueue(settings().broker_url, number, queue=queue)
        else:
            raise Invalid("action", expected=Phrase("cancel or resume"), got=action)
    except (Invalid, Conflict) as error:
        return pages_of(kind).render(number, error), error.status
    return redirect(job_address(kind, number), 303)


# ---- The pages of a kind that has none of its own ---------------------------------


@blueprint.get("/other-jobs/<jobs>")
def job_list(jobs: str) -> ResponseReturnValue:
    """A page of all jobs of a kind, the latest first."""
    kind = _find(jobs)

    page = list_page(kind, pages_of(kind))
    register_list(page)
    return show_list(page)


@blueprint.get("/other-jobs/<jobs>/<int:job>")
def job_of_kind(jobs: str, job: int) -> str:
    """One job of a kind: how far it is, what it says of itself, and what can be done with it."""
    return _job_page(_find(jobs), job, None)


@blueprint.post("/other-jobs/<jobs>/<int:job>")
def act_on_job_of_kind(jobs: str, job: int) -> ResponseReturnValue:
    """Do what the pressed button says."""
    return _act(_find(jobs), job)


def _find(jobs: str) -> JobKind[Any]:
    """The kind of that plural, if it has no pages of its own; else nothing is found."""
    kind = next((kind for kind in JOB_KINDS if kind.plural == jobs and kind.name not in _OWN), None)
    return kind or abort(404)


def _job_page(kind: JobKind[Any], number: int, refused: AppError | None) -> str:
    with reading() as session:
        row = kind.get(session, number)
        [item] = job_items(session, kind, [row])
        return render_template(
            "admin/any-job.html",
            kind=kind,
            title=pages_of(kind).title,
            name=job_name(kind, number),
            item=item,
            job=row,
            figures=job_figures(item),
            facts=kind.facts(row),
            refused=refused,
            **job_actions(kind, row, item.state),
        )
