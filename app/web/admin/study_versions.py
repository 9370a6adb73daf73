"""A version of a study: its arms, cost, waves and files, and all of its texts on one printable page."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from flask import Response, render_template, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import AppError, Invalid, NotFound, Phrase
from app.core.extensions import reading
from app.core.validation import whole_number
from app.core.zip_files import zipped
from app.models import Arm, Study, StudyVersion
from app.studies import store
from app.studies.arms import PlannedArm, arms, matches_a_person
from app.studies.cost import PersonCost, person_costs, study_cost
from app.studies.design import StudyDesign
from app.studies.design_process import write_design_files
from app.studies.monitor.waves import models_by_label
from app.studies.previews import preview_token, preview_walks
from app.studies.quantities import CENT
from app.studies.warnings import warnings
from app.web.admin.blueprint import blueprint
from app.web.admin.spending_note import used_up_for
from app.web.admin.study_lists import lists_of_study
from app.web.forms import typed_amount
from app.web.seats import settings
from app.web.translations import game_titles

_MOST_FEE = 5
_MOST_PLACES = 100_000


class FoundVersion(NamedTuple):
    """A version of a study with its design."""

    study: Study
    version: StudyVersion
    design: StudyDesign


@blueprint.get("/studies/<int:study_id>")
def study_page(study_id: int) -> ResponseReturnValue:
    """The version that the URL names, or the newest: its arms, warnings, cost and waves."""
    with reading() as session:
        found = find_version(session, study_id)
        refused: AppError | None = None
        try:
            places, fee = read_wave_size(request.args)
        except Invalid as error:
            (places, fee), refused = (100, Decimal(0)), error
        planned, costs = arms(found.design), person_costs(found.design)
        models = models_by_label(session, found.version, found.design)
        page = render_template(
            "admin/study.html",
            **found._asdict(),
            title=game_titles().get(found.design.game, found.design.game),
            **lists_of_study(session, found.version),
            arms=planned,
            cost_of=costs,
            same_cost=same_cost(planned, costs),
            previews=_previews(session, found.version),
            cent=CENT,
            matches=matches_a_person(found.design),
            models=models,
            used_up=used_up_for(models.values()),
            warned=list(warnings(found.design, found.version.design["texts"])),
            whole=study_cost(found.design, places, fee),
            given={"places": request.args.get("places", places), "fee": request.args.get("fee", fee)},
            texts=found.version.design["texts"],
            refused=refused,
        )
    return page, 400 if refused else 200


def find_version(session: Session, study_id: int) -> FoundVersion:
    """The version of a study that the URL names as `version`, by default the newest. Raises NotFound."""
    study = session.get(Study, study_id)
    if study is None:
        raise NotFound("study", expected=Phrase("one that exists"), got=study_id)
    number = request.args.get("version", "")
    version = store.find_version(session, f"{study.name}@{number}" if number else study.name)
    return FoundVersion(study, version, store.design_of(version))


def _previews(session: Session, version: StudyVersion) -> Mapping[str, str]:
    """The signed links for walking through an arm, by the arm's name."""
    rows = session.execute(select(Arm.name, Arm.id).where(Arm.study_version_id == version.id))
    secret, walks = settings().secret_key, preview_walks(session, version.id)
    return {
        name: url_for("study.preview", signed=preview_token(secret, version.id, number, walks.get(number, 0)))
        for name, number in rows
    }


def same_cost(planned: Sequence[PlannedArm], costs: Mapping[str, PersonCost]) -> PersonCost | None:
    """The cost of a person if it is the same in all arms."""
    found = {costs[arm.name] for arm in planned}
    return next(iter(found)) if len(found) == 1 else None


def read_wave_size(given: Mapping[str, str]) -> tuple[int, Decimal]:
    """The number of places to show the cost for, and the recruiter's fee, as they were entered. Raises Invalid."""
    places = whole_number(given.get("places") or 100, "places", 1, _MOST_PLACES)
    text = given.get("fee") or "0"
    try:
        fee = typed_amount(text, "fee", places=4)
    except Invalid:
        fee = Decimal(-1)
    if not 0 <= fee <= _MOST_FEE:
        raise Invalid("fee", expected=Phrase("a share such as 0.333"), got=text)
    return places, fee


# ---- What can be taken away --------------------------------------------------------


@blueprint.get("/studies/<int:study_id>/files.zip")
def study_files(study_id: int) -> Response:
    """The study as it was written, with what it extends, and all of its files, as an archive that can be loaded
    again.
    """
    with reading() as session:
        found = find_version(session, study_id)
        name = f"{found.study.name}-{found.version.number}"
    return send_archive(name, files_of(found.version))


def files_of(version: StudyVersion) -> dict[str, str]:
    """A version as files, the study's own first."""
    texts = tuple(sorted(version.design["texts"].items()))
    return {**_study_file(version.design["design"], texts), **dict(texts)}


@lru_cache(maxsize=16)
def _study_file(design: str, texts: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """The file of a study, cached because writing it takes a process and a version never changes."""
    written = json.loads(design)
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "study"
        write_design_files(folder, written, dict(texts))
        name = f"{written['study']}.yaml"
        return {name: (folder / name).read_text(encoding="utf-8")}


def send_archive(name: str, files: Mapping[str, str]) -> Response:
    """Files as an archive to be downloaded, in a folder of that name."""
    packed = zipped(name, {each: text.encode() for each, text in sorted(files.items())})
    response = Response(packed, mimetype="application/zip")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.zip"'
    return response
