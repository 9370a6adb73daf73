"""The page that starts a job of a kind: it stores the request and calls a worker.

Each kind registers a subclass of JobForm with what is specific to it.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, NoReturn

from flask import url_for
from sqlalchemy.orm import Session

from app.core.errors import Invalid, Phrase
from app.core.validation import whole_number
from app.games.base import JSON
from app.jobs.kind import LARGEST, JobKind, R
from app.jobs.page import page_of
from app.web.admin.blueprint import blueprint
from app.web.admin.job_pages import job_address, named_job, pages_of, requester
from app.web.admin.spec_page import Asked as Asked
from app.web.admin.spec_page import FormWords as FormWords
from app.web.admin.spec_page import Link, S, SpecPage
from app.web.form_writes import write_once
from app.web.new_jobs import create, enqueue, prepared


class JobForm(SpecPage[S], Generic[R, S]):
    """The form that starts jobs of a kind."""

    kind: JobKind[R]
    path: ClassVar[str] = ""  # the path of its pages, if not named after the kind

    # ---- What a kind says ----------------------------------------------------------

    def address(self, numbers: Sequence[int]) -> str:
        """The page that shows the new jobs."""
        return job_address(self.kind, numbers[0])

    def files_of(self, row: R) -> JSON:  # noqa: ARG002 - most kinds take no files
        """The texts that a job was given, by field."""
        return {}

    def spec_of(self, session: Session, row: R) -> JSON:  # noqa: ARG002 - a kind may have to look
        """The spec of a job as JSON. Raises Invalid for one that has none."""
        stored: JSON | None = row.spec
        return self.refuse_imported(row) if stored is None else self.spec.of_json(stored).to_json()

    def refuse_imported(self, row: R) -> NoReturn:
        """Raises Invalid."""
        expected, got = Phrase("one that was run here"), Phrase("one that was imported")
        raise Invalid("like", expected=expected, got=got, subject=self.kind.subject(row.id))

    # ---- The page ------------------------------------------------------------------

    def listed(self) -> Link:
        return Link(pages_of(self.kind).title, job_address(self.kind))

    def action(self) -> str:
        return url_for(f"admin.start_{self.kind.name}")

    def earlier(self, session: Session, number: str) -> tuple[Link, JSON, JSON]:
        row = self.kind.get(session, whole_number(number, "like", 1, LARGEST))
        [item] = page_of(self.kind).items_of(session, [row])
        link = Link(named_job(self.kind, item), job_address(self.kind, row.id))
        return link, self.spec_of(session, row), self.files_of(row)

    def make(self, asked: Asked[S]) -> str:
        by, request = requester(), prepared(self.kind, asked.spec, asked.files)
        numbers: Sequence[int] = write_once(lambda session: create(session, self.kind, request, by))
        enqueue(self.kind, numbers)
        return self.address(numbers)


def register_form(form: JobForm[Any, Any]) -> None:
    """Add the page that starts jobs of a kind, below its list."""
    name, rule = form.kind.name, f"/{form.path or form.kind.plural}/new"
    blueprint.add_url_rule(rule, f"new_{name}", form.begin, methods=["GET"])
    blueprint.add_url_rule(rule, f"start_{name}", form.start, methods=["POST"])
