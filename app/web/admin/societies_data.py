"""Building training data from a society: the available rows of each type, the form, and the building."""

from collections.abc import Mapping
from pathlib import Path

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy import Engine

from app.core.errors import AppError, Invalid, check_name, either
from app.core.extensions import db, reading
from app.matches.lobby import read_seed
from app.society import dataset as service
from app.society import listing
from app.society.comparisons import MIXING, REASONS, RELEASED
from app.society.dataset import SocietyDatasets
from app.society.job import SOCIETY
from app.web.admin.blueprint import blueprint
from app.web.admin.societies_figures import check_size, data_of
from app.web.form_writes import write
from app.web.forms import RefusedField, one_of
from app.web.seats import settings
from app.web.threads import in_thread

_DEFAULTS = {"mixing": RELEASED, "seed": "0", "name": ""}


@blueprint.get("/societies/<int:society_id>/data")
def society_data(society_id: int) -> ResponseReturnValue:
    """The data that a society would give at a mixing ratio, which the URL may name, and the form."""
    form = {**_DEFAULTS, "mixing": request.args.get("mixing", RELEASED)}
    if form["mixing"] not in MIXING:
        wrong = Invalid("mixing", expected=either(MIXING), got=form["mixing"])
        return _data_form(society_id, {**form, "mixing": RELEASED}, wrong), 400
    return _data_form(society_id, form)


@blueprint.post("/societies/<int:society_id>/data")
def cut_society(society_id: int) -> ResponseReturnValue:
    """Build the datasets and show the one of comparisons, or say why they cannot be built."""
    form = {name: request.form.get(name, "").strip() for name in _DEFAULTS}
    try:
        mixing, seed = one_of("mixing", form, tuple(MIXING)), read_seed(form["seed"] or "0")
        with reading() as session:
            row = SOCIETY.get(session, society_id)
            check_size(row, "data")
            name = form["name"] or service.default_name(row)
        check_name("name", name)
        home = settings().home
        found = in_thread(db.engine, lambda own: _built(own, home, society_id, mixing, seed))
        number, _ = service.register_both(write, found, name)
    except AppError as error:
        return _data_form(society_id, form, error), error.status
    return redirect(url_for("admin.dataset_page", dataset_id=number), 303)


def _built(engine: Engine, home: Path, number: int, mixing: str, seed: int) -> SocietyDatasets:
    with reading(engine) as session:
        return service.build(session, home, number, mixing, seed)


def _data_form(society_id: int, form: Mapping[str, str], error: AppError | None = None) -> str:
    with reading() as session:
        row = SOCIETY.get(session, society_id)
        too_large = None
        try:
            found = data_of(row, form["mixing"] if form["mixing"] in MIXING else RELEASED)
        except Invalid as refusal:
            found, too_large = [], refusal
        return render_template(
            "admin/society-data.html",
            society=row,
            form=form,
            mixings=MIXING,
            usual_name=service.default_name(row),
            figures=found,
            reasons=[reason for reason in REASONS if any(each.tally.dropped[reason] for each in found)],
            too_large=too_large,
            datasets=listing.datasets_of(session, society_id),
            refused=None if error is None else RefusedField(error.field or "mixing", error),
        )
