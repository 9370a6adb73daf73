"""The editor of designs: the files of a study as text, checked as they are typed, and saved as a new version."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.core.errors import AppError, Conflict, Invalid, NotFound, Phrase, either
from app.core.extensions import reading
from app.core.validation import KeyPath, whole_number
from app.models import Enrolment, Study, StudyVersion, Wave
from app.studies import store
from app.studies.arms import arms
from app.studies.cost import PersonCost, StudyCost, person_costs, study_cost
from app.studies.design import StudyDesign
from app.studies.loaded_design import LoadedDesign
from app.studies.quantities import CENT
from app.studies.warnings import Warned, warnings
from app.web.admin.blueprint import blueprint
from app.web.admin.studies import EXAMPLE_FOLDER, EXAMPLES
from app.web.admin.study_uploads import check_names, free_name, read_files
from app.web.admin.study_versions import FoundVersion, files_of, find_version, read_wave_size, same_cost, send_archive
from app.web.form_writes import write
from app.web.forms import one_of

_ACTIONS = ("check", "save", "download")
_PLACES = 100
_LARGEST = 2**31 - 1
_COPY = "-copy"
_LONGEST_NAME = 40
_STUDY = re.compile(r"^study\s*:\s*['\"]?([^\s'\"#]*)['\"]?", re.MULTILINE)
_REFUSED_AT = re.compile(r"(?P<file>[^\s:]+\.ya?ml):(?P<line>\d+): (?P<text>.*)", re.DOTALL)


class DraftFault(NamedTuple):
    """An error or a warning in a draft. `line` is the line of the study's file, counted from 1."""

    line: int | None
    text: str


class DraftStudy(NamedTuple):
    """The study that a draft belongs to: its newest version, and the number of people enrolled in any version."""

    study: Study
    newest: int
    people: int


class CheckedDraft(NamedTuple):
    """Result of checking a draft: its error, or its cost and warnings."""

    fault: DraftFault | None
    warned: Sequence[DraftFault] = ()
    design: StudyDesign | None = None
    arms: int = 0
    whole: StudyCost | None = None
    same_cost: PersonCost | None = None


# ---- Where a draft begins ----------------------------------------------------------


@blueprint.get("/studies/editor")
def new_draft() -> str:
    """An example as a new study, which is not listed before it is saved."""
    name = request.args.get("example", "")
    if name not in EXAMPLES:
        raise NotFound("example", expected=either(EXAMPLES), got=name)
    files = {path.name: path.read_text(encoding="utf-8") for path in sorted((EXAMPLE_FOLDER / name).iterdir())}
    with reading() as session:
        files = _files_under_unused_name(session, {f"{name}.yaml": files.pop(f"{name}.yaml"), **files})
    return _editor_page(files, _checked_draft(files))


@blueprint.get("/studies/<int:study_id>/edit")
def edit_study(study_id: int) -> str:
    """The version that the URL names, or the newest; with `copy`, as another study."""
    with reading() as session:
        found = find_version(session, study_id)
        files = files_of(found.version)
        if request.args.get("copy"):
            files = _files_under_unused_name(session, files)
    return _editor_page(files, _of_version(found, files))


def _files_under_unused_name(session: Session, files: Mapping[str, str]) -> dict[str, str]:
    """The files of a study under an unused name; the first file is the study's own."""
    (_, text), *others = files.items()
    found = _STUDY.search(text)
    base = (found[1] if found else "study")[: _LONGEST_NAME - len(_COPY) - 3] + _COPY
    taken = set(session.scalars(select(Study.name).where(Study.name.startswith(base, autoescape=True))))
    free = free_name(base, taken)
    return {f"{free}.yaml": _STUDY.sub(f"study: {free}", text, count=1), **dict(others)}


# ---- What is done with it ----------------------------------------------------------


@blueprint.post("/studies/editor")
def act_on_draft() -> ResponseReturnValue:
    """Check a draft, save it as a version, or download its files, depending on the pressed button."""
    action, files = request.form.get("action", ""), _sent_files()
    try:
        one_of("action", {"action": action}, _ACTIONS)
        check_names(files)
        if action == "download":
            return send_archive(_study_name(files), files)
    except Invalid as error:
        return _editor_page(files, CheckedDraft(DraftFault(None, error.message)), typed=True), error.status
    checked = _checked_draft(files)
    if action == "check" or checked.fault is not None:
        # A check that finds a fault has succeeded.
        return _editor_page(files, checked, typed=True), 200 if action == "check" else 400
    try:
        newest = whole_number(request.form.get("newest") or 0, "newest", 0, _LARGEST)
        loaded = _load_draft(files)
        study_id, number = write(lambda session: _save(session, loaded, newest))
    except AppError as error:
        return _editor_page(files, checked._replace(fault=DraftFault(None, error.message)), typed=True), error.status
    return redirect(url_for("admin.study_page", study_id=study_id, version=number), 303)


def _sent_files() -> dict[str, str]:
    """The files of a draft by name, the study's own first. Forms send CRLF line endings."""
    names, texts = request.form.getlist("name"), request.form.getlist("text")
    files = {name: text.replace("\r\n", "\n") for name, text in zip(names, texts, strict=False)}
    return files or {"study.yaml": ""}


def _save(session: Session, loaded: LoadedDesign, newest: int) -> tuple[int, int]:
    """Store a draft as a version. Raises Conflict if another one was saved since the draft was begun."""
    version, is_new = store.load(session, loaded)
    if is_new and version.number > newest + 1:
        raise Conflict(
            "study",
            expected=Phrase("a draft of the newest version, which is %(number)s", number=version.number - 1),
            got=Phrase("one that was begun before"),
            remedy=Phrase("download the draft, open that version and take over what you changed"),
        )
    return version.study_id, version.number


# ---- Checking ----------------------------------------------------------------------


def _load_draft(files: Mapping[str, str]) -> LoadedDesign:
    """The design in the files. Raises RefusedFiles."""
    return read_files({name: text.encode() for name, text in files.items()}, next(iter(files)))


def _checked_draft(files: Mapping[str, str]) -> CheckedDraft:
    """The design in the files with its cost, or the first error in them."""
    try:
        loaded = _load_draft(files)
        with reading() as session:
            store.pinned_models(session, loaded.design)
    except AppError as error:
        return CheckedDraft(_fault(error.message, next(iter(files.values()))))
    return _costed(loaded.design, loaded.warned, files)


def _of_version(found: FoundVersion, files: Mapping[str, str]) -> CheckedDraft:
    """The same for a stored version, which is known to be valid."""
    texts = found.version.design["texts"]
    return _costed(found.design, warnings(found.design, texts), files)


def _costed(design: StudyDesign, warned: Any, files: Mapping[str, str]) -> CheckedDraft:
    text = next(iter(files.values()))
    think: list[Warned] = list(warned)
    planned = arms(design)
    try:
        places, fee = read_wave_size(request.values)
    except Invalid:
        places, fee = _PLACES, Decimal(0)
    return CheckedDraft(
        None,
        [DraftFault(line_of(text, each.path), f"{'.'.join(map(str, each.path))}: {each.text}") for each in think],
        design,
        len(planned),
        study_cost(design, places, fee),
        same_cost(planned, person_costs(design)),
    )


def _fault(message: str, text: str) -> DraftFault:
    """An error message with the line that it names."""
    found = _REFUSED_AT.fullmatch(message)
    if found is not None:
        return DraftFault(int(found["line"]), found["text"])
    key = re.match(r"[\w.]+(?=:)", message)
    return DraftFault(line_of(text, key[0].split(".")) if key else None, message)


def line_of(text: str, path: KeyPath | Sequence[str]) -> int | None:
    """The line of a key in a study's file, or of its nearest ancestor; None if there is neither."""
    found, depth = None, 0
    for number, line in enumerate(text.splitlines(), 1):
        if depth and not line[:1].isspace() and line.strip():
            break
        if depth < len(path) and re.match(rf"\s*(?:-\s+)*['\"]?{re.escape(str(path[depth]))}['\"]?\s*:", line):
            if depth == 0 and line[:1].isspace():
                continue
            found, depth = number, depth + 1
    return found


# ---- The page ----------------------------------------------------------------------


def _study_name(files: Mapping[str, str]) -> str:
    """The name of the study in its file, or the file's name if it gives none."""
    name, text = next(iter(files.items()))
    found = _STUDY.search(text)
    return found[1] if found and re.fullmatch(r"[a-z0-9-]+", found[1]) else Path(name).stem


def _editor_page(files: Mapping[str, str], checked: CheckedDraft, *, typed: bool = False) -> str:
    with reading() as session:
        (main, text), *others = files.items()
        return render_template(
            "admin/study-editor.html",
            main=main,
            text=text,
            others=others,
            of=_draft_study(session, _study_name(files)),
            name=_study_name(files),
            checked=checked,
            typed=typed,
            given={"places": request.values.get("places", str(_PLACES)), "fee": request.values.get("fee", "0")},
            newest=request.form.get("newest", ""),
            cent=CENT,
        )


def _draft_study(session: Session, name: str) -> DraftStudy | None:
    """The study with that name; None if saving would create it."""
    study = session.scalar(select(Study).where(Study.name == name))
    if study is None:
        return None
    versions = select(StudyVersion.id).where(StudyVersion.study_id == study.id)
    people = (
        select(func.count(Enrolment.id))
        .join(Wave, Wave.id == Enrolment.wave_id)
        .where(Enrolment.study_version_id.in_(versions), Wave.rehearsal.is_(False))
    )
    newest = store.newest_version(session, study.id)
    return DraftStudy(study, newest.number if newest else 0, session.scalar(people) or 0)
