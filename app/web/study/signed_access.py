"""Whether a recruiter signed the link by which somebody comes."""

from flask import request

from app.studies.access_token import PARAMETER, Doubt, NotSigned, SignedIds, check_token, key_id
from app.studies.wave_file import WaveFile
from app.web.seats import settings
from app.web.study.link_ids import link_ids
from app.web.study.signing_keys import signing_keys


def has_token() -> bool:
    """Whether the link says anything that the recruiter may have signed."""
    return bool(_token())


def doubt_of(file: WaveFile) -> Doubt | None:
    """Why the link does not show who comes; None where the recruiter signed its ids. May fetch the recruiter's keys."""
    terms = file.provider.prolific
    token = _token()
    try:
        key = signing_keys(settings().PROLIFIC_KEYS_URL).find(key_id(token))
        check_token(token, key, SignedIds(*link_ids(file)), None if terms is None else terms.audience)
    except NotSigned as error:
        return error.doubt
    return None


def _token() -> str:
    given = [each.strip() for each in request.args.getlist(PARAMETER)]
    return given[-1] if given else ""
