"""The link of a wave, as the recruiter writes it: the wave that it leads to, the visitor, and who signed that."""

from typing import NamedTuple, cast

from flask import request

from app.core.extensions import reading
from app.studies import extra_time
from app.studies.access_token import PARAMETER, Doubt, LinkIds, NotSigned, check_token, key_id
from app.studies.amounts import APPROVING
from app.studies.design import StudyDesign
from app.studies.store import design_of_wave
from app.studies.wave_file import PARAMETERS, PERSON_ID, PLAIN_ID, WaveFile
from app.studies.waves import find_wave, settings_of
from app.web.seats import settings
from app.web.study.signing_keys import signing_keys

_REQUESTED = "parlor.requested_wave"
_LONGEST = 200  # characters in a recruiter's id


class RequestedWave(NamedTuple):
    """A wave as it was when its link was opened."""

    id: int
    status: str
    of_bots: bool
    file: WaveFile
    design: StudyDesign


def requested_wave(study: str, wave: str, *, anew: bool = False) -> RequestedWave:
    """The wave of the link that was opened, read once in a request unless `anew`. Raises NotFound."""
    if anew or _REQUESTED not in request.environ:
        with reading() as session:
            row = find_wave(session, f"{study}:{wave}")
            design = design_of_wave(session, row)
            request.environ[_REQUESTED] = RequestedWave(row.id, row.status, row.rehearsal, settings_of(row), design)
    return cast(RequestedWave, request.environ[_REQUESTED])


def link_ids(file: WaveFile) -> LinkIds:
    """The ids in the URL; none at all if one of them is impossible.

    Visitors to a study at Prolific always state which study, and at Prolific and Connect which visit: a link without
    that was cut off or changed, unless Parlor made it for one person.
    """
    recruiter = file.provider.name
    names = PARAMETERS.get(recruiter, (_link_parameter(file) or "", "", ""))
    given = [[each.strip() for each in request.args.getlist(name)] if name else [] for name in names]
    # A placeholder that was not filled in would turn everyone with such a link into one person. If a recruiter appends
    # its parameters itself, the values before them are such placeholders.
    filled = [[each for each in values if not each.startswith("{{")] for values in given]
    found = LinkIds(*(values[-1] if values else "" for values in filled))
    fits = all(len(each) <= _LONGEST and each.isprintable() for each in found)
    if recruiter in APPROVING:  # its files accept no other ids, and one such id would keep everybody from being paid
        fits = fits and all(PLAIN_ID.fullmatch(each) for each in found if each)
    if recruiter in PERSON_ID and PERSON_ID[recruiter].fullmatch(found.person) is None:
        fits = False
    unfilled = any(values and not own for values, own in zip(given, filled, strict=True))
    lacks_study = file.provider.prolific is not None and not found.study
    lacks_visit = recruiter in APPROVING and not found.visit and extra_time.PARAMETER not in request.args
    return LinkIds() if unfilled or lacks_study or lacks_visit or not fits else found


def is_of_another_study(file: WaveFile) -> bool:
    """Whether the recruiter sent the visitor for another of its studies than that of the wave."""
    given, stated = link_ids(file).study, file.provider.study
    return bool(given) and stated is not None and given != stated


def is_open_link(file: WaveFile) -> bool:
    """Whether the link is the same for everybody, so that each browser counts as a person."""
    return not file.provider.has_ids


def has_token() -> bool:
    """Whether the link says anything that the recruiter may have signed."""
    return bool(_token())


def doubt_of(file: WaveFile) -> Doubt | None:
    """Why the link does not prove who the visitor is; None if the recruiter signed its ids. May fetch the recruiter's
    keys.
    """
    terms = file.provider.prolific
    token = _token()
    try:
        key = signing_keys(settings().PROLIFIC_KEYS_URL).find(key_id(token))
        check_token(token, key, link_ids(file), None if terms is None else terms.audience)
    except NotSigned as error:
        return error.doubt
    return None


def _token() -> str:
    given = [each.strip() for each in request.args.getlist(PARAMETER)]
    return given[-1] if given else ""


def _link_parameter(file: WaveFile) -> str | None:
    link = file.provider.link
    return None if link is None else link.id_parameter
