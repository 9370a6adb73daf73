"""`flask study`: designs of human experiments, from a file to a version that people can take part in."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
from sqlalchemy import ColumnElement
from sqlalchemy.orm import Session

from app.cli.base import (
    Group,
    RepeatableOption,
    counted,
    ensure_database,
    is_pair,
    print_json,
    print_result,
    read_pairs,
)
from app.cli.lists import list_options, print_list
from app.cli.study_assignments import assignments
from app.cli.study_bots import bots
from app.cli.study_data import export_data
from app.cli.study_forget import forget
from app.cli.study_pay import pay
from app.cli.study_reports import reports
from app.cli.study_time import give_time
from app.cli.study_waves import (
    change,
    close,
    freeze,
    list_people,
    list_waves,
    open_wave,
    pause,
    reopen,
    replay,
    submissions,
)
from app.core.errors import Invalid, NotFound, Verbatim
from app.core.extensions import reading, writing
from app.core.typed_numbers import read_amount
from app.models import StudyVersion
from app.studies import placeholders, store
from app.studies.arms import arms, conditions, matches_a_person
from app.studies.cost import person_costs, points_of, study_cost
from app.studies.design import FORMS, SLUG, StudyDesign
from app.studies.design_files import load_design, write_design
from app.studies.listing import STUDIES, VERSIONS
from app.studies.loaded_design import LoadedDesign

_FILE = click.argument("path", metavar="FILE", type=Path)
_STUDY = click.argument("reference", metavar="STUDY[@VERSION]")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
_OUT = click.option("--out", required=True, type=Path, metavar="FOLDER", help="A folder that is not there yet.")

_MOST = Decimal(1_000_000)  # places, or a share
_PLACES = 6  # decimals of a share, and of points

study = Group("study", help="Human experiments: check, load, copy and price their designs, and open waves of them.")
for command in (
    bots, assignments, open_wave, list_waves, list_people, change, pause, reopen, close, freeze, replay, submissions,
    forget, pay, reports, give_time, export_data,
):  # fmt: skip
    study.add_command(command)


@study.command()
@_FILE
@_JSON
def validate(path: Path, as_json: bool) -> None:
    """Check the file of a study and the files that it names, and show its arms and warnings.

    Exit code 0: it can be loaded, and what to think about is listed; 2: one line says what is wrong, and where.
    """
    loaded = load_design(path)
    if as_json:
        print_json(_design_json(loaded))
        return
    design = loaded.design
    for arm in arms(design):
        blocks = [" ".join("/".join(condition.values()) for condition in block) for block in arm.blocks]
        click.echo(f"{arm.name}: {' | '.join(blocks)}")
    for warned in loaded.warned:
        click.echo(f"Warning: {'.'.join(map(str, warned.path))}: {warned.text}.")
    count = len(arms(design))
    click.echo(
        f"{design.study}: {counted(count, 'arm')}, {matches_a_person(design)} matches a person, sha256 {loaded.sha256}"
    )


@study.command()
@_FILE
@_JSON
def load(path: Path, as_json: bool) -> None:
    """Store the file of a study as its newest version; loading the same file again changes nothing.

    Its models are pinned: what is changed in the registry later does not touch this version.
    """
    loaded = load_design(path)
    ensure_database()
    with writing() as session:
        version, new = store.load(session, loaded)
        described = {"study": loaded.design.study, "version": version.number, "new": new, "sha256": version.sha256}
    said, reference = "Loaded" if new else "Already loaded as", f"{described['study']}@{described['version']}"
    print_result(as_json, described, f"{said} {reference}, sha256 {described['sha256']}.")
    for each in placeholders.in_design(loaded.design, loaded.texts):
        click.echo(f"Fill in {each}: no wave opens before.", err=True)


@study.command("list")
@list_options
def list_(**given: Any) -> None:
    """Show the studies, the one that was loaded last first."""
    print_list(STUDIES, "flask study list", "No studies yet: flask study load FILE", **given)


@study.command()
@click.argument("name", metavar="STUDY")
@list_options
def versions(name: str, **given: Any) -> None:
    """Show the versions of a study, the newest first."""

    def where(session: Session) -> list[ColumnElement[bool]]:
        return [StudyVersion.study_id == store.find_version(session, name).study_id]

    print_list(VERSIONS, f"flask study versions {name}", "", where=where, **given)


@study.command()
@_STUDY
@_OUT
def export(reference: str, out: Path) -> None:
    """Write a loaded study, as it was written, with all of its files into a folder, from which it loads as it is."""
    version = _find_study_version(reference)
    click.echo(str(write_design(out, store.written_design(version), version.design["texts"])))


@study.command()
@_STUDY
@click.argument("name", metavar="NEW")
@_OUT
def duplicate(reference: str, name: str, out: Path) -> None:
    """Write a loaded study under another name into a folder, to change it there and to load it."""
    version = _find_study_version(reference)
    if re.fullmatch(SLUG, name) is None:
        raise Invalid("new", expected=FORMS[SLUG], got=name)
    with reading() as session:
        try:
            store.find_version(session, name)
        except NotFound:
            pass
        else:
            raise Invalid("new", expected="a name that no study has", got=name)
    click.echo(str(write_design(out, {**store.written_design(version), "study": name}, version.design["texts"])))


@study.command()
@click.argument("source", metavar="FILE|STUDY")
@click.option("--places", default="100", show_default=True, metavar="N", help="People who complete it.")
@click.option("--fee", default="0", show_default=True, metavar="SHARE", help="The recruiter's share on top: 0.333.")
@click.option(
    "--mean-points",
    cls=RepeatableOption,
    belongs=is_pair,
    metavar="LABEL=POINTS",
    help="Mean points of a match against that level of the model. [default: half of the most]",
)
@_JSON
def cost(source: str, places: str, fee: str, mean_points: Sequence[str], as_json: bool) -> None:
    """Print the expected and the most pay of a person, and the cost of all places with the recruiter's fee."""
    design = _design(source)
    count = _read_amount(places, "--places")
    means = _mean_points_by_label(design, read_pairs(mean_points, "--mean-points"))
    if count < 1 or count != int(count):
        raise Invalid("--places", expected="a whole number from 1", got=places)
    people, whole = person_costs(design, means), study_cost(design, int(count), _read_amount(fee, "--fee"), means)
    if as_json:
        print_json(
            {
                "currency": design.pay.currency,
                "arms": {
                    name: {key: str(value) for key, value in each._asdict().items()} for name, each in people.items()
                },
                **{key: str(value) for key, value in whole._asdict().items()},
            }
        )
        return
    for name, each in people.items():
        click.echo(f"{name}: {each.base} base, {each.expected} bonus expected, {each.most} at most")
    click.echo(
        f"{whole.places} places: {whole.expected} {design.pay.currency} expected, {whole.most} at most;"
        f" the base is {whole.hourly_base} an hour in {design.minutes} minutes."
    )


def _find_study_version(reference: str) -> StudyVersion:
    ensure_database()
    with reading() as session:
        found = store.find_version(session, reference)
        session.expunge(found)
        return found


def _design(source: str) -> StudyDesign:
    """The design in a file, or that of a loaded study."""
    path = Path(source)
    if path.suffix in (".yaml", ".yml") or path.is_file():
        return load_design(path).design
    return store.design_of(_find_study_version(source))


def _mean_points_by_label(design: StudyDesign, pairs: Mapping[str, Any]) -> Mapping[str, Decimal]:
    """The mean points of a match by the label of its model. Raises Invalid for a mean that no match can reach."""
    if unknown := set(pairs) - set(design.levels("model")):
        raise Invalid(
            "--mean-points", expected=f"labels of models ({', '.join(design.levels('model'))})", got=min(unknown)
        )
    spans = [(condition["model"], points_of(design, condition)) for condition in conditions(design)]
    return {
        label: _read_amount(
            value,
            "--mean-points",
            min(span.least for model, span in spans if model == label),
            max(span.most for model, span in spans if model == label),
        )
        for label, value in pairs.items()
    }


def _read_amount(text: Any, option: str, least: Decimal = Decimal(0), most: Decimal = _MOST) -> Decimal:
    try:
        found = read_amount(str(text), option, places=_PLACES, signed=True).normalize()
    except Invalid:
        found = None
    if found is None or not least <= found <= most:
        raise Invalid(option, expected=f"a number from {least} to {most}", got=Verbatim(repr(text)))
    return found


def _design_json(loaded: LoadedDesign) -> Mapping[str, Any]:
    return {
        "study": loaded.design.study,
        "sha256": loaded.sha256,
        "arms": {arm.name: arm.blocks for arm in arms(loaded.design)},
        "matches": matches_a_person(loaded.design),
        "material": len(loaded.material),
        "warnings": [{"key": ".".join(map(str, each.path)), "text": each.text} for each in loaded.warned],
    }
