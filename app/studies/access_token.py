"""The token a recruiter signs for a visit: a JWT in the link, whose ids must match those of the link. Pure.

Prolific signs with RS256 and names in the claim `prolific` the person, the visit and its study, under
the names of the link's parameters. Its public keys are a JSON Web Key Set (RFC 7517), each with its id
(`kid`).
Source: docs.prolific.com, *Retrieve JSON Web Key Set*, and public programs that read such tokens
(docs/studies.md).
"""

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt.algorithms import RSAAlgorithm

PARAMETER = "prolific_token"  # in a link
LEEWAY = 60  # seconds that clocks may differ
LEAST_BITS = 2048  # of a key; shorter ones can be broken
_ALGORITHM = "RS256"  # and no other: by choice, one could sign with `none`, or with the public key as a password
_CLAIMED = ("PROLIFIC_PID", "SESSION_ID", "STUDY_ID")  # in the claim `prolific`
_LONGEST = 4000  # characters
_MOST_KEYS = 100

# Why a signed link is not accepted: it has no token; the token has expired; it is for another person, visit or study;
# it is not signed like this by the recruiter; unknown, as the recruiter's keys could not be fetched.
Doubt = Literal["missing", "expired", "other", "invalid", "unknown"]
Keys = Mapping[str, RSAPublicKey]


class LinkIds(NamedTuple):
    """The ids in a link: of the person, of the visit, and of the recruiter's study. Empty if the link has none."""

    person: str = ""
    visit: str = ""
    study: str = ""


class NotSigned(Exception):
    """A token that does not prove who the visitor is."""

    def __init__(self, doubt: Doubt) -> None:
        super().__init__(doubt)
        self.doubt: Doubt = doubt


def read_keys(document: bytes) -> dict[str, RSAPublicKey]:
    """The public keys of a key set that can verify signatures, by id. Raises ValueError if it has none."""
    written = json.loads(document)
    listed = written.get("keys") if isinstance(written, dict) else None
    found = {}
    for each in listed[:_MOST_KEYS] if isinstance(listed, list) else ():
        if (
            isinstance(each, dict)
            and isinstance(name := each.get("kid"), str)
            and (key := _usable_public_key(each)) is not None
        ):
            found[name] = key
    if not found:
        raise ValueError("expected a key set with an RSA key of 2048 bits or more, and its kid")
    return found


def key_id(token: str) -> str:
    """The id of the key that a token claims to be signed with. Raises NotSigned."""
    if not token:
        raise NotSigned("missing")
    try:
        header = jwt.get_unverified_header(token) if len(token) <= _LONGEST else {}
    except (jwt.PyJWTError, ValueError, RecursionError):
        header = {}
    name = header.get("kid")
    if header.get("alg") != _ALGORITHM or not isinstance(name, str):
        raise NotSigned("invalid")
    return name


def check_token(token: str, key: RSAPublicKey, ids: LinkIds, audience: str | None = None) -> None:
    """Raises NotSigned unless `key` signed the token, it has not expired, and it names the ids of the link.

    audience: the site that the token must be for (`aud`), as an address or a domain; None: any.
    """
    try:
        claims = jwt.decode(
            token,
            key,
            algorithms=[_ALGORITHM],
            leeway=LEEWAY,
            options={"require": ["exp"], "verify_aud": False, "verify_sub": False, "verify_jti": False},
        )
    except jwt.ExpiredSignatureError:
        raise NotSigned("expired") from None
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError):
        raise NotSigned("invalid") from None
    if audience is not None and not _is_for(claims.get("aud"), audience):
        raise NotSigned("invalid")
    if not _is_of(claims.get("prolific"), ids):
        raise NotSigned("other")


def _usable_public_key(written: Mapping[str, Any]) -> RSAPublicKey | None:
    """One key of a set; None if it is for another use."""
    if (
        written.get("kty") != "RSA"
        or written.get("use", "sig") != "sig"
        or written.get("alg", _ALGORITHM) != _ALGORITHM
    ):
        return None
    try:
        key = RSAAlgorithm.from_jwk(dict(written))
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    return key if isinstance(key, RSAPublicKey) and key.key_size >= LEAST_BITS else None


def _is_of(claim: Any, ids: LinkIds) -> bool:
    if not isinstance(claim, dict):
        return False
    person, *others = (claim.get(name) for name in _CLAIMED)
    # People's ids are compared without case; a missing id is nobody's.
    same_person = isinstance(person, str) and bool(person) and person.lower() == ids.person.lower()
    return same_person and all(ids[1:]) and others == [*ids[1:]]


def _is_for(claim: Any, audience: str) -> bool:
    """Whether a token is for a site: a domain by Prolific's docs, but also a whole address in actual tokens."""
    named = claim if isinstance(claim, list) else [claim]
    return any(isinstance(each, str) and _site(each) == _site(audience) for each in named)


def _site(address: str) -> str:
    """Host and port of an address, or of a domain, which is one without a scheme."""
    try:
        return urlsplit(address if "://" in address else f"//{address}").netloc.lower()
    except ValueError:
        return address
