"""Studies: the list, the shipped examples, and uploading a study."""

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.config import ROOT
from app.core.errors import AppError, Invalid, either
from app.models import StudyVersion, Wave
from app.studies import store, waves
from app.studies.cost import most_a_place
from app.studies.design import StudyDesign
from app.studies.design_process import read_design
from app.studies.wave_file import LINK, WaveFile
from app.web.admin.blueprint import blueprint
from app.web.admin.lists import show_list
from app.web.admin.study_lists import STUDIES_PAGE
from app.web.admin.study_uploads import free_name, read_files, read_upload, study_file
from app.web.form_writes import write

EXAMPLES = ("two-models", "taboo-roles")
TRIAL, TRIAL_PLACES = "try", 10
EXAMPLE_FOLDER = ROOT / "data" / "studies"
blueprint.add_app_template_global(lambda: EXAMPLES, "example_studies")


@blueprint.get("/studies")
def studies() -> ResponseReturnValue:
    """All studies, most recently loaded first."""
    return show_list(STUDIES_PAGE)


@blueprint.post("/studies")
def try_study() -> ResponseReturnValue:
    """Load an example, and open a wave that anyone with its link can go through at once."""
    name, by = request.form.get("example", ""), current_user.name
    try:
        if name not in EXAMPLES:
            raise Invalid("example", expected=either(EXAMPLES), got=name)
        loaded = read_design(EXAMPLE_FOLDER / name / f"{name}.yaml")
        wave_id = write(lambda session: _trial(session, store.load(session, loaded)[0], loaded.design, by))
    except AppError as error:
        return show_list(STUDIES_PAGE, error)
    return redirect(url_for("admin.wave_page", wave_id=wave_id), 303)


def _trial(session: Session, version: StudyVersion, design: StudyDesign, by: str) -> int:
    """The open trial wave of a version; a new one if there is none."""
    names = set(session.scalars(select(Wave.name).where(Wave.study_id == version.study_id)))
    wanted = select(Wave).where(Wave.study_version_id == version.id, Wave.status == waves.OPEN)
    trial = session.scalar(wanted.where(Wave.name.like(f"{TRIAL}%")).order_by(Wave.id.desc()).limit(1))
    if trial is not None:
        return trial.id
    file = WaveFile.model_validate(
        {
            "wave": free_name(TRIAL, names),
            "of": f"{design.study}@{version.number}",
            "provider": {LINK: {}},
            "places": TRIAL_PLACES,
            "most_spent": str(most_a_place(design) * TRIAL_PLACES),
        }
    )
    wave = waves.open_wave(session, file, trial=True)
    waves.log_action(session, wave, "tried out", by)
    return wave.id


@blueprint.get("/studies/new")
def new_study() -> str:
    """The form for uploading."""
    return _upload_form()


@blueprint.post("/studies/new")
def upload_study() -> ResponseReturnValue:
    """Load the files of a study and show it, or say where they are wrong."""
    try:
        files = read_upload(request.files.getlist("files"))
        loaded = read_files(files, study_file(files))
        study_id, version = write(lambda session: _study_id_and_version(store.load(session, loaded)[0]))
    except AppError as error:
        return _upload_form(error), error.status
    return redirect(url_for("admin.study_page", study_id=study_id, version=version), 303)


def _study_id_and_version(version: StudyVersion) -> tuple[int, int]:
    return version.study_id, version.number


def _upload_form(refused: AppError | None = None) -> str:
    return render_template("admin/study-new.html", refused=refused)
