"""`flask study open`, and the commands that act on waves."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from sqlalchemy import ColumnElement
from sqlalchemy.orm import Session

from app.cli.base import Command, CommandFailed, ensure_database, print_json, print_result
from app.cli.lists import list_options, print_list
from app.core.errors import FieldError, Invalid, Verbatim
from app.core.extensions import db, reading, transact, writing
from app.models import Study, StudyVersion, Wave
from app.studies import assignment, store, wave_terms, waves
from app.studies.design_files import load_design
from app.studies.listing import WAVES
from app.studies.monitor.people import PEOPLE
from app.studies.monitor.people import conditions as people_conditions
from app.studies.submissions import read_statuses, take_statuses
from app.studies.visits import NO_CODE, OTHER_CODE, done_elsewhere
from app.studies.wave_file import link_path, wave_warnings
from app.studies.wave_reader import LoadedWave, load_wave

_WAVE = click.argument("reference", metavar="STUDY:WAVE")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
_SUFFIXES = (".yaml", ".yml")


@click.command("open", cls=Command)
@click.argument("sources", metavar="[STUDY[@VERSION]|STUDYFILE] WAVEFILE", nargs=-1, required=True)
@_JSON
def open_wave(sources: tuple[str, ...], as_json: bool) -> None:
    """Open a wave of a loaded study for people. The file of a study before it is loaded first, if it is not yet.

    From then on people can come in by the wave's link, until all places are taken.
    """
    if len(sources) > 2:
        got = Verbatim(f"{len(sources)} arguments")
        raise Invalid("wavefile", expected="the file of a wave, after one study at most", got=got)
    loaded = load_wave(Path(sources[-1]))
    ensure_database()
    with writing() as session:
        if len(sources) == 2:
            loaded = _with_version(session, loaded, sources[0])
        try:
            wave = waves.open_wave(session, loaded.file)
        except FieldError as error:
            raise loaded.placed(error) from None
        version = session.get_one(StudyVersion, wave.study_version_id)
        warned = list(wave_warnings(store.design_of(version), loaded.file))
        described = {
            **_wave_json(session, wave),
            "link": link_path(session.get_one(Study, wave.study_id).name, loaded.file),
            "warnings": [{"key": ".".join(map(str, each.path)), "text": each.text} for each in warned],
        }
    if as_json:
        print_json(described)
        return
    for each in warned:
        click.echo(f"Warning: {'.'.join(map(str, each.path))}: {each.text}.")
    click.echo(f"Opened {described['wave']} of version {described['version']}: {described['link']}")


@click.command("waves", cls=Command)
@click.argument("study", metavar="[STUDY]", default="")
@list_options
def list_waves(study: str, **given: Any) -> None:
    """Show the waves of a study, or of all of them, the latest first."""

    def where(session: Session) -> list[ColumnElement[bool]]:
        return [Wave.study_id == store.find_version(session, study).study_id] if study else []

    print_list(
        WAVES, f"flask study waves {study}".strip(), "No waves yet: flask study open WAVEFILE", where=where, **given
    )


@click.command("people", cls=Command)
@_WAVE
@list_options
def list_people(reference: str, **given: Any) -> None:
    """Show the people of a wave, the latest first: where each is, since when, and what each is paid."""

    def where(session: Session) -> list[ColumnElement[bool]]:
        return people_conditions(waves.find_wave(session, reference).id, {})

    print_list(PEOPLE, f"flask study people {reference}", "Nobody has come yet.", where=where, **given)


def _with_version(session: Session, loaded: LoadedWave, source: str) -> LoadedWave:
    """The wave with the version that was asked for. Raises Invalid for a version of another study."""
    path = Path(source)
    if path.suffix in _SUFFIXES:
        version, _ = store.load(session, load_design(path))
    else:
        version = store.find_version(session, source)
    name = session.get_one(Study, version.study_id).name
    study, mark, number = loaded.file.of.partition("@")
    if name != study or (mark and int(number) != version.number):
        error = Invalid("of", expected=f"{name} or {name}@{version.number}", got=loaded.file.of)
        raise loaded.placed(error) from None
    return loaded._replace(file=loaded.file.model_copy(update={"of": f"{name}@{version.number}"}))


def _changing(name: str, act: Callable[[Session, Wave], None], done: str, told: str) -> click.Command:
    """A command that acts on a wave; `told` is its help."""

    @_WAVE
    @_JSON
    def command(reference: str, as_json: bool) -> None:
        ensure_database()
        with writing() as session:
            wave = waves.find_wave(session, reference)
            act(session, wave)
            described = _wave_json(session, wave)
        print_result(as_json, described, f"{done} {described['wave']}.")

    command.__doc__ = told
    return click.command(name, cls=Command)(command)


pause = _changing("pause", waves.pause, "Paused", "Pause enrolment; people already in the wave continue.")
reopen = _changing("reopen", waves.reopen, "Reopened", "Reopen a paused wave for enrolment.")
close = _changing("close", waves.close, "Closed", "Close enrolment; people already in the wave finish and are paid.")
freeze = _changing("freeze", waves.freeze, "Froze", "Freeze a closed wave for good, once nobody is active in it.")


@click.command("change", cls=Command)
@_WAVE
@click.option("--places", type=int, metavar="N", help="How many people take part at most.")
@click.option("--most-spent", metavar="AMOUNT", help="The spend cap, with the fee.")
@click.option("--closes", metavar="TIME", help='When it closes by itself, in UTC: "2026-12-01 18:00", or never.')
@_JSON
def change(reference: str, places: int | None, most_spent: str | None, closes: str | None, as_json: bool) -> None:
    """Change the places, the spend cap or the closing time of a wave that is open or paused."""
    given = {wave_terms.PLACES: places, wave_terms.CAP: most_spent, wave_terms.CLOSES: closes}
    terms: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if not terms:
        raise Invalid(None, expected="--places, --most-spent or --closes", got=Verbatim("none of them"))
    if closes == "never":
        terms[wave_terms.CLOSES] = None
    ensure_database()
    with writing() as session:
        wave = waves.find_wave(session, reference)
        wave_terms.change_terms(session, wave, terms, "flask study change")
        file = waves.settings_of(wave)
        described = {
            **_wave_json(session, wave), "places": file.places, "most_spent": str(file.most_spent),
            "closes": file.closes,
        }  # fmt: skip
    until = "" if file.closes is None else f", closes at {file.closes} UTC"
    line = f"{described['wave']}: {file.places} places, at most {file.most_spent}{until}."
    print_result(as_json, described, line)


@click.command("submissions", cls=Command)
@_WAVE
@click.argument("path", metavar="FILE", type=Path)
@_JSON
def submissions(reference: str, path: Path, as_json: bool) -> None:
    """Import the statuses of people's visits, from the table that the recruiter lets you download.

    Who returned a visit or let it time out has ended, and gives the place to another person.
    """
    visits = read_statuses(path)
    ensure_database()
    # Retried if people active at the same moment come first.
    found = transact(db.engine)(
        lambda session: take_statuses(session, waves.find_wave(session, reference), visits, whole=True)
    )
    with reading() as session:
        under_way = done_elsewhere(session, waves.find_wave(session, reference))
    if as_json:
        here = [{"participant": each.code, "handed_in": each.handed_in} for each in under_way]
        print_json({"wave": reference, **found._asdict(), "under_way": here})
        return
    said = ", ".join(f"{number} {status.replace('_', ' ')}" for status, number in sorted(found.statuses.items()))
    click.echo(f"{reference}: {said or 'none'}; {found.changed} changed, {found.unknown} not of this wave.")
    if found.other_people:
        click.echo(f"By the table the visits of these are other people's: {', '.join(found.other_people)}.")
    if found.other_codes:
        click.echo(f"Handed in with the code of another ending: {', '.join(found.other_codes)}.")
    for each in under_way:
        given = {None: "", NO_CODE: " without a code", OTHER_CODE: " with an unknown code"}.get(
            each.handed_in, f" with the code of {each.handed_in}"
        )
        status = each.status.replace("_", " ")
        click.echo(f"Look at {each.code}: under way here, and {status} at the recruiter{given}.")


@click.command("replay", cls=Command)
@_WAVE
@_JSON
def replay(reference: str, as_json: bool) -> None:
    """Draw all arms of a wave again, from the seed and its log. Exit code 1: one of them differs."""
    ensure_database()
    with reading() as session:
        found = assignment.replay(session, waves.find_wave(session, reference))
    wrong = [each.enrolment_id for each in found if not each.agrees]
    same = f"{len(found) - len(wrong)} of {len(found)} assignments are what the seed and the log say"
    print_result(as_json, {"wave": reference, "assignments": len(found), "differ": wrong}, f"{reference}: {same}.")
    if wrong:
        raise CommandFailed(f"{reference}: the arms of {len(wrong)} people are not what the seed and the log say")


def _wave_json(session: Session, wave: Wave) -> dict[str, Any]:
    study = session.get_one(Study, wave.study_id).name
    version = session.get_one(StudyVersion, wave.study_version_id).number
    frozen = wave.frozen_at is not None
    return {"wave": f"{study}:{wave.name}", "version": version, "status": wave.status, "frozen": frozen}
