"""Pages of jobs of every kind: the list, one job as it runs, and the actions of its buttons.

A kind with its own pages registers them here; the pages of all others are made from their JobKind.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

from flask import abort, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext
from flask_login import current_user
from sqlalchemy.orm import Session

from app.core.errors import AppError, Conflict, Invalid, Phrase
from app.core.extensions import reading
from app.core.lists import ListColumn
from app.core.validation import whole_number
from app.job_kinds import JOB_KINDS
from app.jobs import states
from app.jobs.kind import LARGEST, JobKind, R, Requester
from app.jobs.listing import called, list_of, named
from app.jobs.page import ASKED, Section, is_on_pages, page_of
from app.jobs.spec import JobBudget, fields_of
from app.jobs.spending import BudgetReached, stopped_by_budget
from app.web.admin.blueprint import blueprint
from app.web.admin.lists import (
    ListLine,
    ListPage,
    ListView,
    add_address,
    add_list,
    capital_phrase,
    register_list,
    show_list,
)
from app.web.admin.tags import tag_filter
from app.web.form_writes import write
from app.web.seats import settings


@dataclass(frozen=True, slots=True)
class JobPages:
    """The pages of a kind; its JobPage declares what a page shows.

    title: of its list and in the navigation, as text or lazy text. path: of its list, below that of all admin pages.
    number: the name of the job number in URL rules, where it follows `path`; the endpoint is named after it. below: the
    path of the section whose second line has its list; empty: it is a section of its own. template: for a page with
    parts of its own; `fields` reads what they show of an item. render: for a kind that makes its page itself: takes a
    job's number and why the pressed button did nothing.
    """

    title: Any
    path: str
    number: str
    render: Callable[[int, AppError | None], str] | None = None
    below: str = ""
    template: str = "admin/job-page.html"
    fields: Callable[[Session, Any], Mapping[str, Any]] = lambda _session, _item: {}


class _Section(NamedTuple):
    """A section of a page in the form its template takes."""

    section: Section
    facts: Sequence[tuple[ListColumn, Any]]
    lines: ListView | None


_OWN: dict[str, JobPages] = {}


def register_pages(kind: JobKind[Any], pages: JobPages, **around: Any) -> None:
    """Give a kind pages of its own: its list, and the page of a job, which accepts POST from its buttons.

    `around`: what surrounds the list, as fields of ListPage.
    """

    def act(**number: int) -> ResponseReturnValue:
        return _cancel_or_resume_job(kind, number[pages.number])

    def show(**number: int) -> str:
        return render_job(kind, number[pages.number])

    _OWN[kind.name] = pages
    if pages.render is None:
        endpoint = f"{pages.number.removesuffix('_id')}_page"
        blueprint.add_url_rule(f"/{pages.path}/<int:{pages.number}>", endpoint, show)
    blueprint.add_url_rule(f"/{pages.path}/<int:{pages.number}>", f"act_on_{kind.name}", act, methods=["POST"])
    add_list(list_page(kind, pages, **around))


def pages_of(kind: JobKind[Any]) -> JobPages:
    """The pages of a kind: its own, or else the default ones."""
    own = _OWN.get(kind.name)
    if own is not None:
        return own
    title, path = gettext(kind.plural.capitalize()), f"other-jobs/{kind.plural}"
    return JobPages(title, path, "job")


@blueprint.app_template_global()
def job_address(kind: JobKind[Any], number: int | None = None) -> str:
    """The address of a kind's list, or of one job."""
    address = url_for("admin.home") + pages_of(kind).path
    return address if number is None else f"{address}/{number}"


@blueprint.app_template_global()
def job_name(kind: JobKind[Any], number: int) -> str:
    """The display name of a job, in the language of the page."""
    name = kind.subject(number).render(gettext)
    return name[:1].upper() + name[1:]


def headed(kind: JobKind[Any], item: Any) -> dict[str, str]:
    """The heading of a job's page: its name, and its numbered name if that is different."""
    name, numbered = called(kind, item), job_name(kind, item.row.id)
    return {"name": name, "numbered": numbered} if isinstance(name, str) else {"name": numbered, "numbered": ""}


def named_job(kind: JobKind[Any], item: Any) -> str:
    """A job's name followed by its number, or its number alone, in the language of the page."""
    return capital_phrase(named(kind, item))


def job_actions(kind: JobKind[Any], row: Any, state: str) -> dict[str, Any]:
    """The actions that a page offers for a job in that state, for the buttons of its template."""
    return {
        "act": job_address(kind, row.id),
        "compare": url_for("admin.compare", jobs=kind.plural, run=row.id),
        "live": row.status in states.LIVE,
        "can_cancel": kind.may_cancel(row),
        "can_resume": kind.may_resume(row, state),
        "budgets": budget_fields(kind, row),
        "stopped_by_budget": stopped_by_budget(row),
    }


def budget_fields(kind: JobKind[Any], row: Any) -> list[tuple[str, str, str]]:
    """The fields that raise the budget of a job with one when it is resumed: name, title, current value."""
    has_one = row.budget_usd or row.budget_tokens or stopped_by_budget(row)
    if not kind.may_spend(row) or not has_one:
        return []
    fields, budget = fields_of(JobBudget), {name: getattr(row, f"budget_{name}") for name in JobBudget.model_fields}
    shown = {name: f"{Decimal(f'{most:.15g}').normalize():f}" if most else "" for name, most in budget.items()}
    return [(f"budget_{name}", fields[name]["title"], shown[name]) for name in fields]


def render_job(kind: JobKind[Any], number: int, refused: AppError | None = None) -> str:
    """The page of one job; `refused` says why the pressed button did nothing. Raises NotFound."""
    pages, page = pages_of(kind), page_of(kind)
    if pages.render is not None:
        return pages.render(number, refused)
    with reading() as session:
        row = kind.get(session, number)
        [item] = page.items_of(session, [row])
        return render_template(
            pages.template,
            kind=kind,
            page=page,
            title=pages.title,
            **headed(kind, item),
            item=item,
            job=row,
            figures=page.figures_of(session, [row])[number],
            rows=_rows_of_sections(session, page.sections, item),
            given={} if kind.page else kind.facts(row),
            refused=refused,
            **job_actions(kind, row, item.state),
            **pages.fields(session, item),
        )


def _rows_of_sections(session: Session, sections: Sequence[Section], item: Any) -> list[list[_Section]]:
    """The sections that have something to show on pages, grouped into rows of those beside each other."""
    rows: list[list[_Section]] = []
    for each in (_section(session, section, item) for section in sections):
        shown = each.section.fragment or each.section.counts or each.section.name == ASKED
        if shown or each.facts or each.lines:
            rows = [*rows[:-1], [*rows[-1], each]] if each.section.beside else [*rows, [each]]
    return rows


def facts_on_page(session: Session, section: Section, item: Any) -> list[tuple[ListColumn, Any]]:
    """The facts that a section shows on pages, each with its cell."""
    return [(each, each.cells(session, [item])[0]) for each in section.facts if is_on_pages(each)]


def _section(session: Session, section: Section, item: Any) -> _Section:
    facts = facts_on_page(session, section, item)
    if section.table is None or section.fragment:
        return _Section(section, facts, None)
    columns = [each for each in section.table.columns if is_on_pages(each)]
    if not columns:
        return _Section(section, facts, None)
    [lines] = section.table.lines(session, [item])
    cells = section.table.cells(lines, columns)
    return _Section(section, facts, ListView(columns, [*map(ListLine, lines, cells)]))


def requester() -> Requester:
    """The signed-in user, to be read before work is handed to the writing thread."""
    return Requester(current_user.id, current_user.name)


def read_compared(session: Session, kind: JobKind[R], name: str, most: int) -> list[R]:
    """The jobs of a kind to compare, whose numbers are in the URL under a name. Raises NotFound and Invalid."""
    return [kind.get(session, number) for number in compared_numbers(name, most)]


def compared_numbers(name: str, most: int, least: int = 2) -> list[int]:
    """The numbers of the jobs to compare, which are in the URL under a name. Raises Invalid."""
    given = [text for text in request.args.getlist(name) if text][: most + 1]
    numbers = dict.fromkeys(whole_number(text, name, 1, LARGEST) for text in given)
    if not least <= len(numbers) <= most:
        raise Invalid(
            name,
            expected=Phrase("%(least)s to %(most)s different ones to compare", least=least, most=most),
            got=len(numbers),
            remedy=Phrase("tick them in the list"),
        )
    return [*numbers]


def list_page(kind: JobKind[Any], pages: JobPages, **fields: Any) -> ListPage:
    """The page of a kind's list; `fields` are those of ListPage."""
    add_address(kind.name, partial(job_address, kind))
    filtered = {name: fields[name] for name in ("filters", "where") if name in fields}
    fields |= tag_filter(kind.name, kind.table.id, **filtered)
    return ListPage(
        list_of(kind),
        pages.title,
        pages.path,
        is_live=lambda item: any(row.status in states.LIVE for row in getattr(item, "rows", (item.row,))),
        called=partial(named, kind),
        **{"compare": "admin.compare", "compared": {"jobs": kind.plural}, "ticked": "run", **fields},
    )


def _cancel_or_resume_job(kind: JobKind[Any], number: int) -> ResponseReturnValue:
    """Carry out the pressed button's action: cancel or resume a job of any kind."""
    action = request.form.get("action")
    try:
        if action == "cancel":
            write(lambda session: kind.cancel(session, number))
        elif action == "resume":
            budget = JobBudget.read({name: request.form.get(f"budget_{name}") for name in JobBudget.model_fields})

            def resume(session: Session) -> str:
                return kind.queue_of(session, kind.resume(session, number, queued=True, budget=budget).id)

            queue = write(resume)
            kind.enqueue(settings().broker_url, number, queue=queue)
        else:
            raise Invalid("action", expected=Phrase("cancel or resume"), got=action)
    except (Invalid, Conflict, BudgetReached) as error:
        return render_job(kind, number, error), error.status
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
    """One job of a kind: its progress, its facts, and the available actions."""
    return render_job(_find(jobs), job)


@blueprint.post("/other-jobs/<jobs>/<int:job>")
def act_on_job_of_kind(jobs: str, job: int) -> ResponseReturnValue:
    """Carry out the pressed button's action."""
    return _cancel_or_resume_job(_find(jobs), job)


def _find(jobs: str) -> JobKind[Any]:
    """The kind with that plural, if it has no pages of its own; otherwise 404."""
    kind = next((kind for kind in JOB_KINDS if kind.plural == jobs and kind.name not in _OWN), None)
    return kind or abort(404)
