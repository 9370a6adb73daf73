"""Reports of results as downloads: what `flask report` writes, made separately from the pages that people play on."""

import shlex
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

from flask import Response, render_template, request, url_for
from flask.typing import ResponseReturnValue
from gevent.lock import BoundedSemaphore
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.alignments.job import ALIGNMENT
from app.analysis.figure_files import draw_each_in_process
from app.campaigns.job import CAMPAIGN
from app.core.commit import program_commit
from app.core.errors import AppError, Invalid, NotFound, Phrase, Verbatim, either
from app.core.extensions import db, reading
from app.core.zip_files import zipped
from app.jobs.kind import JobKind
from app.jobs.page import page_of
from app.models import Study
from app.recipes.job import RECIPE
from app.reports.files import files_of, html_of
from app.reports.origins import ReportContext
from app.reports.subjects import SUBJECTS, build_report
from app.society.job import SOCIETY
from app.web.admin.blueprint import blueprint
from app.web.admin.job_pages import job_address, named_job
from app.web.admin.lists import add_address
from app.web.seats import settings
from app.web.threads import in_worker_thread

PAGE, ARCHIVE = "html", "zip"
_TYPES = {PAGE: "text/html; charset=utf-8", ARCHIVE: "application/zip"}
_KINDS: dict[str, JobKind[Any]] = {kind.name: kind for kind in (RECIPE, CAMPAIGN, ALIGNMENT, SOCIETY)}
_one_at_a_time = BoundedSemaphore(1)  # each draws its figures in a separate process


class _Subject(NamedTuple):
    """The subject of the report that the URL asks for: a key of SUBJECTS, which one of these, and its control."""

    name: str
    reference: str
    control: str | None

    @property
    def address(self) -> dict[str, str]:
        """The URL parameters that name this subject."""
        beside = {} if self.control is None else {"control": self.control}
        return {self.name: self.reference, **beside}

    @property
    def command(self) -> str:
        """The command that writes the same report."""
        beside = [] if self.control is None else ["--control", self.control]
        return shlex.join(["flask", "report", f"--{self.name}", self.reference, *beside])


@blueprint.get("/report")
def report() -> ResponseReturnValue:
    """The contents of a report, and its downloads. One parameter names the subject, as the command's options do."""
    return _show(_subject())


@blueprint.get("/report.<form>")
def report_file(form: str) -> ResponseReturnValue:
    """The report as one page or as an archive; if it cannot be made yet, the page of downloads says why. Raises
    NotFound.
    """
    if form not in _TYPES:
        raise NotFound("format", expected=either(_TYPES), got=form)
    subject = _subject()
    context = ReportContext(settings().home, program_commit(), subject.control)
    try:
        with _one_at_a_time:
            found = in_worker_thread(db.engine, build_report, subject.name, subject.reference, context)
            now = datetime.now(UTC)
            if form == PAGE:
                content = html_of(found, draw_each_in_process, now)
            else:
                content = zipped(found.name, files_of(found, draw_each_in_process, now))
    except AppError as error:
        return _show(subject, error), error.status
    named = {"Content-Disposition": f'attachment; filename="{found.name}.{form}"'}
    return Response(content, mimetype=_TYPES[form].partition(";")[0], headers=named)


def _subject() -> _Subject:
    """The subject that the URL names. Raises Invalid."""
    control = request.args.get("control", "").strip() or None
    chosen = [_Subject(name, given, control) for name, given in request.args.items() if name in SUBJECTS and given]
    if len(chosen) != 1:
        expected, got = Phrase("one of the parameters %(names)s", names=Verbatim(", ".join(SUBJECTS))), str(len(chosen))
        raise Invalid("report", expected=expected, got=Verbatim(got))
    return chosen[0]


def _show(subject: _Subject, refused: AppError | None = None) -> str:
    with reading() as session:
        title, back = _subject_title_and_address(session, subject)
    return render_template(
        "admin/report.html",
        subject=subject,
        has_control=SUBJECTS[subject.name].has_control,
        title=title,
        back=back,
        refused=refused,
    )


def _subject_title_and_address(session: Session, subject: _Subject) -> tuple[Phrase | Verbatim, str]:
    """The subject of the report in words, and the page that leads to it. Raises NotFound."""
    name, reference, _ = subject
    if name in _KINDS:
        kind = _KINDS[name]
        row = kind.get(session, int(reference) if reference.isdecimal() and len(reference) < 10 else 0)
        [item] = page_of(kind).items_of(session, [row])
        return Verbatim(named_job(kind, item)), job_address(kind, row.id)
    if name == "study":
        study = session.scalar(select(Study).where(Study.name == reference.partition(":")[0]))
        if study is None:
            raise NotFound("study", expected=Phrase("a study that was loaded"), got=reference)
        return Phrase("study %(name)s", name=Verbatim(reference)), url_for("admin.study_page", study_id=study.id)
    return Phrase("tournament %(name)s", name=Verbatim(reference)), url_for("admin.leaderboard")


def _address(name: str, number: int) -> str:
    values: dict[str, Any] = {name: number}
    return url_for("admin.report", **values)


for _name in _KINDS:
    add_address(f"{_name} report", partial(_address, _name))
