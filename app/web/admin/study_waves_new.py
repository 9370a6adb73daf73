"""Opening a wave of a study from a form, which is checked in the same way as the file of a wave."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user
from pydantic import ValidationError
from sqlalchemy.orm import Session

from app.core.errors import AppError, Invalid, Phrase, Verbatim
from app.core.extensions import reading
from app.studies import waves
from app.studies.cost import most_a_place, study_cost
from app.studies.design import expected_form
from app.studies.endings import COMPLETED, EndingName
from app.studies.wave_file import WaveFile
from app.web.admin.blueprint import blueprint
from app.web.admin.study_versions import FoundVersion, find_version
from app.web.form_writes import write_once
from app.web.forms import RefusedField, typed_amount, typed_minute, typed_whole

_PLACES = 100
# The recruiter's name for a study's id, and its usual share on top.
IDS: Mapping[str, str | None] = {
    "prolific": "study_id", "connect": "project_id", "link": "id_parameter",
}  # fmt: skip
# The endings for which people may get a code for the recruiter.
CODES: tuple[EndingName, ...] = (
    COMPLETED, "quiz_failed", "technical", "withdrawn", "declined", "inactive", "ineligible", "full", "closed",
    "partner_left",
)  # fmt: skip
_FIELDS = (
    "wave", "recruiter", "recruiter_id", "signed", "return_to", "fee", "minimum_per_hour", "places", "closes",
    "pause_after", "not_if_took_part_in", "most_spent", *(f"code_{name}" for name in CODES),
)  # fmt: skip


@blueprint.get("/studies/<int:study_id>/waves/new")
def new_wave(study_id: int) -> str:
    """The form, with a cap high enough for all places."""
    with reading() as session:
        found = find_version(session, study_id)
    form = {**dict.fromkeys(_FIELDS, ""), "wave": "main", "recruiter": "prolific", "places": str(_PLACES)}
    form["most_spent"] = str(study_cost(found.design, _PLACES, Decimal("0.4")).most)
    return _wave_form(found, form)


@blueprint.post("/studies/<int:study_id>/waves/new")
def open_wave(study_id: int) -> ResponseReturnValue:
    """Open the wave and show it, or say why it cannot be opened."""
    form = {name: request.form.get(name, "").strip() for name in _FIELDS}
    with reading() as session:
        found = find_version(session, study_id)
    by = current_user.name
    try:
        file = read_wave_form(form, f"{found.study.name}@{found.version.number}")
        wave_id = write_once(lambda session: _open_and_note_wave(session, file, by))
    except AppError as error:
        return _wave_form(found, form, error), error.status
    return redirect(url_for("admin.wave_page", wave_id=wave_id), 303)


def _open_and_note_wave(session: Session, file: WaveFile, by: str) -> int:
    wave = waves.open_wave(session, file)
    waves.log_action(session, wave, "opened on a page", by)
    return wave.id


def read_wave_form(form: Mapping[str, str], of: str) -> WaveFile:
    """The wave file that a form represents. Raises Invalid for the first invalid field."""
    recruiter = form["recruiter"]
    terms: dict[str, Any] = {name: _read_form_amount(form, name) for name in ("fee", "minimum_per_hour") if form[name]}
    if form["recruiter_id"] and IDS.get(recruiter):
        terms[str(IDS[recruiter])] = form["recruiter_id"]
    if form["signed"]:
        terms["signed"] = True  # only Prolific signs links
    if form["return_to"]:
        terms["return_to"] = form["return_to"]  # only a link of one's own has it
    written: dict[str, Any] = {
        "wave": form["wave"],
        "of": of,
        "provider": {recruiter: terms},
        "most_spent": _read_form_amount(form, "most_spent"),
        "places": typed_whole(form["places"], "places"),
    }
    if form["pause_after"]:
        written["start"] = {"first": typed_whole(form["pause_after"], "pause_after"), "then": "pause"}
    if form["closes"]:
        written["closes"] = typed_minute(form["closes"])
    if codes := {name: code for name in CODES if (code := form[f"code_{name}"])}:
        written["codes"] = codes
    if taken := form["not_if_took_part_in"].replace(",", " ").split():
        written["not_if_took_part_in"] = taken
    try:
        return WaveFile.model_validate_json(json.dumps(written))
    except ValidationError as error:
        raise _first_fault(error, form) from None


def _read_form_amount(form: Mapping[str, str], name: str) -> str:
    places = 4 if name == "fee" else 2  # a fee is a share
    return f"{typed_amount(form[name], name, places=places).normalize():f}"


def _first_fault(error: ValidationError, form: Mapping[str, str]) -> Invalid:
    """The first error in a form, at its field."""
    first = error.errors()[0]
    # A fault in several keys together has no location; its type is the key that it concerns.
    field = _field_of([str(part) for part in first["loc"]] or [first["type"]])
    missing = first["type"] == "missing"
    expected = "a value" if missing else expected_form(first).removesuffix(", in quotes")  # as in a file
    subject = Phrase("Codes") if field.startswith("code_") else None
    return Invalid(field, expected=expected, got=Verbatim("none") if missing else form.get(field, ""), subject=subject)


def _field_of(path: list[str]) -> str:
    """The form field for a path in the file."""
    if path[0] == "provider":
        last = path[-1]
        if last in ("fee", "minimum_per_hour", "return_to", "signed"):
            return last
        return "recruiter_id" if last in IDS.values() else "recruiter"
    if path[0] == "codes":
        return f"code_{path[1]}" if len(path) > 1 and path[1] in CODES else f"code_{COMPLETED}"
    return "pause_after" if path[0] == "start" else path[0]


def _wave_form(found: FoundVersion, form: Mapping[str, str], refused: AppError | None = None) -> str:
    return render_template(
        "admin/wave-new.html",
        **found._asdict(),
        form=form,
        most=most_a_place(found.design),
        codes=CODES,
        refused=None if refused is None else RefusedField(_field_of([refused.field or "wave"]), refused),
    )
