"""`flask KIND list|show|cancel|resume` for every kind of job. The other commands of a kind are in a file of their
own.
"""

import signal
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType, MappingProxyType
from typing import Any, Generic, TypeVar

import click
from sqlalchemy import ColumnElement
from sqlalchemy.orm import Session

from app.cli.base import WHOLE, CommandFailed, Group, Interrupted, ensure_database, json_option, print_json, settings
from app.cli.lists import list_options, print_list
from app.cli.spec_options import budget_options, read_budget, refusals_of_budget
from app.cli.tables import aligned, table_lines
from app.cli.tags import add_tag_commands, tag_option, whole
from app.core import write_priority
from app.core.extensions import db, reading, writing
from app.core.lists import Listing
from app.job_kinds import JOB_KINDS
from app.jobs import states
from app.jobs.creation import JobCreation, JobRequest
from app.jobs.event_loop import running_loop
from app.jobs.kind import JobKind, R
from app.jobs.listing import list_of
from app.jobs.page import page_of
from app.jobs.spec import JobSpec
from app.jobs.tags import has_tag
from app.matches.turns import WorkerContext

S = TypeVar("S", bound=JobSpec)
NO_FILES: Mapping[str, Any] = MappingProxyType({})
_ENDED = (states.DONE, states.FAILED, states.CANCELLED)

Described = dict[str, Any]
Decorator = Callable[[Any], Any]

queue_option = click.option("--queue", is_flag=True, help="Hand it to the workers and return at once.")


class JobCommands(Generic[R]):
    """The commands of a kind of job. A kind with its own texts or commands has a subclass."""

    help = ""
    none_yet = "None yet."
    resume_help = "Resume a job that failed, was cancelled or interrupted."
    cancel_help = "Cancel a job. It keeps its results and can be resumed."
    show_help = "Show a job: its settings and its progress."
    list_help = "List the jobs, the latest first."
    resume_options: Sequence[Decorator] = ()  # extra options of a subclass's `resume`, `cancel` and `show`
    cancel_options: Sequence[Decorator] = ()
    show_options: Sequence[Decorator] = ()

    def __init__(self, kind: JobKind[R]) -> None:
        self.kind = kind

    # ---- What a kind may override ------------------------------------------------

    whole: Listing[R] | None = None  # for JSON: the list of all jobs, if lines of the usual list group several

    def described(self, session: Session, rows: Sequence[R]) -> list[Described]:
        """Jobs as JSON; the number of SQL statements does not grow with the number of jobs."""
        return page_of(self.kind).described(session, rows)

    def stopped(self, described: Described) -> str:  # noqa: ARG002 - a kind may say so
        """The progress of a cancelled job, appended to its status."""
        return ""

    def end_outside(self, number: int) -> None:
        """Do what only a process like this one can do to cancel a job that no worker will end."""

    def goes_on(self, number: int) -> str:
        """How to resume a job, as the end of a line."""
        return f"`flask {self.kind.name} resume {number}` goes on"

    def run_here(self, number: int, as_json: bool) -> None:
        """Run a job in this process, and print its result. Raises CommandFailed and Interrupted."""
        run_job_here(self.kind, number)
        self.report(number, as_json)

    def report(self, number: int, as_json: bool) -> None:
        """Print the result of a job that was run here. Raises CommandFailed and Interrupted."""
        described = self.read(number)
        if as_json and described["status"] in _ENDED:
            print_json(described)
        self.refuse_unfinished(number)
        if not as_json:
            click.echo(f"{self.title(number)} is done.")
            self.print_tables(number)

    def refuse_unfinished(self, number: int) -> None:
        """Raises CommandFailed for a job that stopped, and Interrupted for one that is not over."""
        described = self.read(number)
        if described["status"] not in _ENDED:
            raise Interrupted(f"Interrupted {self.kind.subject(number)}; {self.goes_on(number)}.")
        if described["status"] != states.DONE:
            why = described["error"] or f"it is {described['status']}"
            raise CommandFailed(f"{self.kind.subject(number)} stopped: {why}; {self.goes_on(number)}")

    def resume(self, number: int, queue: bool, as_json: bool, **budget: Any) -> None:
        """Resume a job, here or on the workers, with a higher budget if one is given."""
        raised = read_budget(budget)
        with refusals_of_budget(), writing() as session:
            self.kind.resume(session, number, queued=queue, budget=raised)
        self.go_on(number, queue, as_json)

    def cancel(self, number: int, as_json: bool) -> None:
        """Cancel a job, and print its progress."""
        with writing() as session:
            self.kind.cancel(session, number)
        self.end_outside(number)
        self.report_cancelled(number, as_json)

    def report_cancelled(self, number: int, as_json: bool) -> None:
        """Print the progress of a cancelled job."""
        described = self.read(number)
        if as_json:
            print_json(described)
        else:
            status = described["status"] + self.stopped(described)
            click.echo(f"{self.title(number)} is {status}; {self.goes_on(number)}.")

    def print_one(self, number: int, as_json: bool) -> None:
        """Print a job."""
        if as_json:
            print_json(self.read(number))
            return
        with reading() as session:
            shown = page_of(self.kind).printed(session, self.kind.get(session, number))
        click.echo("\n".join(aligned([(name.replace("_", " "), value) for name, value in shown.items()])))
        self.print_tables(number)

    # ---- What all kinds have -----------------------------------------------------

    def title(self, number: int) -> str:
        """The name of a job at the beginning of a line."""
        return str(self.kind.subject(number)).capitalize()

    def read(self, number: int) -> Described:
        """A job as JSON. Raises NotFound."""
        with reading() as session:
            return self.described(session, [self.kind.get(session, number)])[0]

    def print_tables(self, number: int) -> None:
        """Print the non-empty tables of a job, each with a heading."""
        with reading() as session:
            [item] = page_of(self.kind).items_of(session, [self.kind.get(session, number)])
            for section in page_of(self.kind).sections:
                if section.table is not None and (lines := section.table.lines(session, [item])[0]):
                    click.echo("\n".join(["", *table_lines(section.table, lines)]))

    def go_on(self, number: int, queue: bool, as_json: bool) -> None:
        """Run a waiting job here, or hand it to the workers."""
        if not queue:
            self.run_here(number, as_json)
            return
        with reading() as session:
            workers = self.kind.queue_of(session, number)
        self.kind.enqueue(settings().broker_url, number, queue=workers)
        if as_json:
            print_json({list_of(self.kind).columns[1].name: number, "queued": True})
        else:
            where = f"`flask {self.kind.name} show {number}` says how far it is"
            click.echo(f"{self.title(number)} waits for a worker; {where}.")

    def _resume_options(self) -> Sequence[Decorator]:
        return (*self.resume_options, *(budget_options() if self.kind.spends else ()))

    def print_list(self, tag: str | None, **given: Any) -> None:
        """Print the list of jobs of the kind, or of those with a tag."""
        command = f"flask {self.kind.name} list" + (f" --tag {tag}" if tag else "")

        def where(_session: Session) -> list[ColumnElement[bool]]:
            return [has_tag(self.kind.table.id, self.kind.name, tag)] if tag else []

        none = "None has this tag." if tag else self.none_yet
        listing = list_of(self.kind)
        print_list(listing, command, none, described=self.described, whole=self.whole, where=where, **given)

    def group(self) -> Group:
        """The commands as a group of `flask`."""
        name = self.kind.name
        group = Group(name, help=self.help or f"List, show, cancel and resume {self.kind.plural}.")
        argument = click.argument("number", metavar=name.upper(), type=WHOLE)
        commands: tuple[tuple[str, Callable[..., None], str, Sequence[Decorator]], ...] = (
            ("list", self.print_list, self.list_help, (tag_option, list_options)),
            ("show", self.print_one, self.show_help, (argument, *self.show_options, json_option)),
            ("cancel", self.cancel, self.cancel_help, (argument, *self.cancel_options, json_option)),
            ("resume", self.resume, self.resume_help, (argument, queue_option, *self._resume_options(), json_option)),
        )
        for command, method, text, options in commands:
            group.add_command(_command_for_method(group, command, method, text, options))
        add_tag_commands(group, name, lambda session, called: int(self.kind.get(session, whole(called)).id))
        return group


def prepared(creation: JobCreation[S], spec: S, files: Mapping[str, Any] = NO_FILES) -> JobRequest[S]:
    """The request for jobs, with everything that must be known before it is stored. Raises AppError."""
    with reading() as session:
        return creation.prepared(session, JobRequest(spec, files, settings().home))


def create(creation: JobCreation[S], request: JobRequest[S], *, queued: bool) -> list[int]:
    """Store a request, for workers if it is `queued`, and return the numbers of the jobs. Raises AppError."""
    with writing() as session:
        return [row.id for row in creation.create(session, request, queued=queued, requester=None)]


def commands_of(name: str) -> Group | None:
    """The standard commands of a kind of job without a file of its own; None if there is no such kind."""
    return next((JobCommands(kind).group() for kind in JOB_KINDS if kind.name == name), None)


def _command_for_method(
    group: Group, name: str, method: Callable[..., None], text: str, options: Sequence[Decorator]
) -> click.Command:
    """A command that makes sure of the database and then calls a method."""

    def call(**given: Any) -> None:
        ensure_database()
        method(**given)

    for option in reversed(options):
        call = option(call)
    made: click.Command = group.command(name, help=text)(call)
    return made


def run_job_here(kind: JobKind[Any], number: int) -> bool:
    """Run a job in this process as a worker would. True after Ctrl-C."""
    write_priority.give_way()
    with stop_on_signals() as stop, running_loop() as loop:
        owner = uuid.uuid4().hex
        context = WorkerContext(db.engine, settings(), owner, stop, loop=loop, notify=lambda _match, _typing: None)
        kind.load_runner()(context, number)
    return stop.is_set()


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """An event that is set when Ctrl-C or SIGTERM comes; a second Ctrl-C ends the program."""
    stop = threading.Event()

    def ask(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
