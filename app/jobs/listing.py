"""Jobs of any kind in lists and on pages: the common columns, their progress, and figures for an open page.

No query here is made per job.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from typing import Any, TypeVar, cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import Phrase, Verbatim
from app.core.lists import COMMANDS, NOWHERE, Done, English, ListColumn, Listing, Reference, State, attribute, job_cell
from app.jobs import states
from app.jobs.kind import JobKind
from app.jobs.tags import tag_columns

R = TypeVar("R", bound=Any)


@dataclass(frozen=True)
class JobListItem:
    """A job in a list: its displayed status, and its progress: `done` out of `of`, if that is known.

    A kind that lists more about its jobs has a subclass, built from `vars` of this.
    """

    row: Any
    state: str
    done: int
    of: int | None

    @property
    def percent(self) -> int:
        return 100 * self.done // max(1, self.of or 0)


def failed_jobs(session: Session, kind: JobKind[R], since: datetime, most: int) -> list[R]:
    """The jobs that have failed since then, the latest first."""
    table = kind.table
    failed = select(table).where(table.status == states.FAILED, table.ended_at >= since)
    return [*session.scalars(failed.order_by(table.ended_at.desc()).limit(most))]


def job_items(session: Session, kind: JobKind[R], rows: Sequence[R]) -> list[JobListItem]:
    """Jobs as list items."""
    found, progress = kind.states_of(session, rows), kind.progress_of(session, rows)
    return [JobListItem(row, found[row.id], *progress[row.id]) for row in rows]


def job_figures(item: JobListItem) -> dict[str, Any]:
    """The figures that change while a job runs, by name; a page that follows it reloads whenever `at` changes."""
    return {
        "status": item.state,
        "done": item.done,
        "of": item.of,
        "percent": item.percent,
        "error": item.row.error,
        "at": f"{item.state} {item.percent // 5}",
    }


def job_facts(kind: JobKind[R], item: JobListItem, number: str = "") -> dict[str, Any]:
    """The facts of every job, as JSON; its number is named `number`, or after its kind."""
    row = item.row
    times = {name: getattr(row, name) for name in ("created_at", "started_at", "ended_at")}
    return {
        number or f"{kind.name}_id": row.id,
        **kind.facts(row),
        **{name: value for name, value in job_figures(item).items() if name != "at"},
        "queued": row.queued,
        "requested_by": row.requested_by,
        **({"budget_usd": row.budget_usd, "budget_tokens": row.budget_tokens} if kind.spends else {}),
        **{name: at and at.isoformat(timespec="seconds") for name, at in times.items()},
    }


# Totals of model calls, for kinds that count them on their rows; `cost` is known if prices are.
CALLS = {
    "calls": Phrase("Calls"), "failed_calls": Phrase("Calls without an answer"), "prompt_tokens": Phrase("Tokens in"),
    "completion_tokens": Phrase("Tokens out"), "estimated_tokens": Phrase("Tokens, estimated"),
    "cost": Phrase("Cost so far"),
}  # fmt: skip

# ---- Lists -------------------------------------------------------------------------

MARKS = {
    states.RUNNING: "good", states.FAILED: "bad", states.INTERRUPTED: "warn", states.CANCELLING: "warn",
    states.WAITING: "open", states.CANCELLED: "open",
    states.REMOVED: "open",
}  # fmt: skip


def list_of(kind: JobKind[R]) -> Listing[R]:
    """The list of a kind: the declared one, or the default with the common columns."""
    if kind.listing:
        module, _, name = kind.listing.partition(":")
        declared: Listing[R] = getattr(import_module(module), name)
        return declared
    return Listing(
        name=kind.plural,
        table=kind.table,
        columns=job_columns(kind, title=Phrase("Job"), done=Phrase("Done")),
        items=lambda session, rows: job_items(session, kind, rows),
    )


def called(kind: JobKind[Any], item: Any) -> str | Phrase:
    """A job's title in its list: its name, or its number if it has none."""
    name = list_of(kind).columns[0].value
    found: str | Phrase = kind.subject(item.row.id) if name is None else name(item).name
    return found


def named(kind: JobKind[Any], item: Any) -> Phrase:
    """A job by its name followed by its number, or by its number alone."""
    return cast(Phrase, job_reference(kind, item).words)


def job_reference(kind: JobKind[Any], item: Any) -> Reference:
    """A job as a cell of another list or page; `item` is an item of its own list."""
    return job_cell(kind.name, item.row.id, called(kind, item), kind.subject(item.row.id))


def job_columns(
    kind: JobKind[Any],
    *further: ListColumn,
    title: Phrase,
    done: Phrase,
    name: Callable[[Any], str] | None = None,
    sort: Any = None,
    id_name: str = "",
    sort_done: Any = None,
    state: Callable[[Any], State] = lambda each: State(each.state, MARKS.get(each.state, "")),
    notes: Callable[[Any], Sequence[Any]] = lambda _each: (),
    subject: Callable[[Any], Phrase] | None = None,
    leads_to: Callable[[Any], str] | None = None,
) -> Sequence[ListColumn]:
    """The columns of a kind's list, whose items have a row, a state, and progress.

    title: the heading of the first column, which has the names. done: what is counted. name: of an item, if not the
    name among its facts; a job without one is listed by its number, as is `subject`. further: columns of the kind's
    own. notes: further notes on pages below the state. leads_to: the kind of thing a name links to, if not the job.
    """
    table = kind.table

    def called(each: Any) -> str | Phrase:
        found = kind.facts(each.row).get("name") if name is None else name(each)
        return found or numbered(each)

    def numbered(each: Any) -> Phrase:
        return kind.subject(each.row.id) if subject is None else subject(each)

    def below(each: Any) -> list[Any]:
        by = each.row.requested_by
        own = [numbered(each)] if isinstance(called(each), str) else []
        return [*own, *([Phrase("requested by %(name)s", name=Verbatim(by))] if by else [])]

    return (
        ListColumn(
            "name",
            title,
            lambda each: Reference(kind.name if leads_to is None else leads_to(each), each.row.id, called(each)),
            sort=getattr(table, "name", None) if sort is None else sort,
            notes=below,
        ),
        attribute(table.id, Phrase("Number"), id_name or f"{kind.name}_id", numeric=True, seen=COMMANDS),
        ListColumn(
            "status",
            Phrase("Status"),
            state,
            sort=table.status,
            notes=lambda each: [*([English(each.row.error)] if each.row.error else []), *notes(each)],
        ),
        ListColumn("done", done, lambda each: Done(each.done, each.of), sort=sort_done, type="number"),
        ListColumn("of", Phrase("Of"), lambda each: each.of, numeric=True, seen=NOWHERE),
        *further,
        attribute(table.started_at, Phrase("Began, UTC"), numeric=True, none=Phrase("not yet")),
        attribute(table.created_at, Phrase("Requested, UTC"), numeric=True, seen=NOWHERE),
        attribute(table.ended_at, Phrase("Ended, UTC"), numeric=True, seen=NOWHERE),
        attribute(table.requested_by, Phrase("Requested by"), seen=NOWHERE),
        ListColumn("error", Phrase("Error"), lambda each: each.row.error and English(each.row.error), seen=NOWHERE),
        *tag_columns(kind.name),
    )
