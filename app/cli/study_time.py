"""`flask study extra-time`: give one person more time. `app/cli/study.py` adds it to its group."""

from decimal import Decimal
from urllib.parse import urlencode

import click
from sqlalchemy.orm import Session

from app.cli.base import Command, ensure_database, json_option, print_result, settings
from app.core.errors import Conflict, Invalid, Verbatim
from app.core.extensions import writing
from app.models import Study
from app.studies import extra_time, waves
from app.studies.payments import find_progress_by_code
from app.studies.wave_file import PERSON_ID, person_path

_BY = "command line"


@click.command("extra-time", cls=Command)
@click.argument("reference", metavar="STUDY:WAVE")
@click.argument("factor", metavar="FACTOR")
@click.argument("person", metavar="[PARTICIPANT]", default="")
@click.option("--id", "external_id", metavar="ID", help="The recruiter's id of somebody who has not come yet.")
@json_option
def give_time(reference: str, factor: str, person: str, external_id: str | None, as_json: bool) -> None:
    """Give one person FACTOR times as long (1.5, 2) for matches that begin from now on, and for being away.

    PARTICIPANT is the code of a participant of the wave. For somebody who has not come yet, a personal link is printed,
    which gives them the time when they come by it; it is for the person with --id alone, where the recruiter has ids.
    """
    exact = extra_time.read_factor(factor)
    if person and external_id is not None:
        raise Invalid("--id", expected="none with the code of a participant", got=external_id)
    ensure_database()
    with writing() as session:
        told = _given(session, reference, person, exact) if person else _link(session, reference, external_id, exact)
    line = f"{person} has {exact} times as long from the next match on." if person else told["link"]
    print_result(as_json, {"wave": reference, "factor": str(exact), **told}, line)


def _given(session: Session, reference: str, person: str, factor: Decimal) -> dict[str, str]:
    progress = find_progress_by_code(session, waves.find_wave(session, reference), person)
    extra_time.give(session, progress, factor, _BY)
    return {"participant": person}


def _link(session: Session, reference: str, external_id: str | None, factor: Decimal) -> dict[str, str]:
    wave = waves.find_wave(session, reference)
    waves.check_not_frozen(wave)
    file = waves.settings_of(wave)
    if file.provider.is_gone:
        raise Conflict("wave", expected="one whose recruiter sends people", got=Verbatim(file.provider.name))
    if file.provider.is_signed:
        expected = "a participant's code, as only links that the recruiter has signed let people into this wave"
        raise Invalid("--id", expected=expected, got=Verbatim(str(external_id)))
    if file.provider.has_ids != (external_id is not None):
        expected = "the recruiter's id of the person" if file.provider.has_ids else "none, as people have no ids"
        raise Invalid("--id", expected=expected, got=Verbatim("none") if external_id is None else external_id)
    form = PERSON_ID.get(file.provider.name)
    if form is not None and form.fullmatch(str(external_id)) is None:
        raise Invalid("--id", expected="the recruiter's id of a person, 24 hexadecimal digits", got=str(external_id))
    path = person_path(session.get_one(Study, wave.study_id).name, file, external_id)
    link = extra_time.TimeLink(wave.id, external_id, factor)
    token = urlencode({extra_time.PARAMETER: extra_time.time_token(settings().secret_key, link)})
    return {"link": f"{settings().public_url}{path}{'&' if '?' in path else '?'}{token}"}
