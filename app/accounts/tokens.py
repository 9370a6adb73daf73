"""Tokens with which programs use the API on an experimenter's behalf: created, shown once, found, revoked.

Only their hashes are stored. Nothing here commits.
"""

import secrets
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sqlalchemy import bindparam, case, or_, select, update
from sqlalchemy.orm import Session

from app.accounts import hash_token
from app.core.errors import Conflict, FieldError, Invalid, NotFound, Phrase, Verbatim, check_name, either
from app.core.lists import (
    COMMANDS,
    NOWHERE,
    Code,
    ListColumn,
    Listing,
    State,
    attribute,
    computed,
    of_other,
    start_of_json,
)
from app.core.validation import whole_number
from app.models import ApiRequest, ApiToken, User

READ, RUN, PEOPLE = "read", "run", "people"
SCOPES = {
    READ: Phrase("view everything except participants’ identities"),
    RUN: Phrase("create, cancel and resume jobs"),
    PEOPLE: Phrase("see participants’ ids, including those of their recruiter, and what each did"),
}
PREFIX = "parlor_"  # lets people and secret scanners recognise a token
USUAL_DAYS, MOST_DAYS = 90, 366
_BYTES = 32  # random bytes per token
_USE_NOTED = timedelta(minutes=1)  # uses closer together than this are recorded once
VALID, EXPIRED, REVOKED = "valid", "expired", "revoked"


class BadToken(FieldError):
    """A request without a valid token."""

    code = "not_signed_in"
    status = 401


class MissingScope(FieldError):
    """The token lacks the scope for this."""

    code = "not_allowed"
    status = 403


class TokenListItem(NamedTuple):
    """A token in a list, with its state: VALID, EXPIRED or REVOKED."""

    row: ApiToken
    state: str


class RequestListItem(NamedTuple):
    """A change that was made with a token, in a list."""

    row: ApiRequest


class TokenHolder(NamedTuple):
    """The experimenter whom a token stands for, and its scopes."""

    token_id: int
    token: str  # its name
    user_id: int
    user: str  # the experimenter's name
    scopes: frozenset[str]
    used_at: datetime | None


def state_of(row: ApiToken, now: datetime) -> str:
    """The state of a token: VALID, EXPIRED or REVOKED."""
    return REVOKED if row.revoked_at is not None else EXPIRED if row.expires_at <= now else VALID


def create(
    session: Session, user: User, name: str, scopes: Collection[str], days: int | str | None, now: datetime
) -> tuple[ApiToken, str]:
    """A new token of an experimenter, valid for `days`: its row and the token itself, which is shown only once.

    Raises Invalid for invalid input, and Conflict for the name of another token that is in use.
    """
    check_name("name", name)
    if not scopes:
        raise Invalid("scope", expected=either(SCOPES), got=Phrase("none"))
    if (unknown := next((each for each in scopes if each not in SCOPES), None)) is not None:
        raise Invalid("scope", expected=either(SCOPES), got=unknown)
    life = timedelta(days=whole_number(days or USUAL_DAYS, "days", 1, MOST_DAYS))
    same = select(ApiToken.id).where(ApiToken.user_id == user.id, ApiToken.name == name, ApiToken.revoked_at.is_(None))
    if session.scalar(same) is not None:
        remedy = Phrase("revoke that one first, or take another name")
        raise Conflict("name", expected=Phrase("one that no other token has"), got=name, remedy=remedy)
    secret = PREFIX + secrets.token_urlsafe(_BYTES)
    row = ApiToken(
        user_id=user.id,
        name=name,
        token_hash=hash_token(secret),
        scopes=[each for each in SCOPES if each in scopes],
        created_at=now,
        expires_at=now + life,
    )
    session.add(row)
    session.flush()
    return row, secret


def revoke(session: Session, number: int, now: datetime, user_id: int | None = None) -> ApiToken:
    """Revoke a token, of `user_id` if that is given. Raises NotFound, Conflict if it is revoked already."""
    row = session.get(ApiToken, number) if 0 < number < 2**31 else None
    if row is None or user_id not in (None, row.user_id):
        remedy = Phrase("`flask token list` shows them")
        raise NotFound("token", expected=Phrase("the number of one that exists"), got=number, remedy=remedy)
    if row.revoked_at is not None:
        raise Conflict("token", expected=Phrase("one that is not revoked"), got=Phrase("one that is"))
    row.revoked_at = now
    session.flush()
    return row


def holder_of(session: Session, secret: str, now: datetime) -> TokenHolder:
    """The holder of a token. Raises BadToken if it is malformed, unknown, expired or revoked."""
    if not secret.startswith(PREFIX):
        raise _bad_token(f"Bearer and a token, which begins with {PREFIX}", "another text")
    found = session.execute(select(ApiToken, User).join(User).where(ApiToken.token_hash == hash_token(secret))).first()
    if found is None:
        raise _bad_token("a token that exists", "another one")
    row, user = found
    if (state := state_of(row, now)) != VALID:
        since = row.revoked_at or row.expires_at
        raise _bad_token("a valid token", f"{row.name}, {state} on {since:%Y-%m-%d}")
    return TokenHolder(row.id, row.name, user.id, user.name, frozenset(row.scopes), row.used_at)


def refuse_without(holder: TokenHolder, scope: str) -> None:
    """Raises MissingScope for a token that lacks the scope."""
    if scope not in holder.scopes:
        had = ", ".join(each for each in SCOPES if each in holder.scopes)
        remedy = "make a token with it on the account page"
        raise MissingScope("scope", expected=Verbatim(scope), got=Verbatim(f"{holder.token} with {had}"), remedy=remedy)


def _bad_token(expected: str, got: str) -> BadToken:
    return BadToken("Authorization", expected=expected, got=Verbatim(got), remedy="the account page makes tokens")


def should_record_use(holder: TokenHolder, now: datetime) -> bool:
    """Whether the last recorded use of a token is long enough ago to record another."""
    return holder.used_at is None or holder.used_at <= now - _USE_NOTED


def note_use(session: Session, token_id: int, now: datetime) -> None:
    """Record when a token was last used."""
    before = or_(ApiToken.used_at.is_(None), ApiToken.used_at <= now - _USE_NOTED)
    session.execute(update(ApiToken).where(ApiToken.id == token_id, before).values(used_at=now))


# ---- The list ------------------------------------------------------------------

_STATES = {
    VALID: State(VALID, "good", Phrase("valid")),
    EXPIRED: State(EXPIRED, "warn", Phrase("expired")),
    REVOKED: State(REVOKED, "bad", Phrase("revoked")),
}


_STATE_NOW = case(
    (ApiToken.revoked_at.is_not(None), REVOKED),
    (
        ApiToken.expires_at <= bindparam("now", callable_=lambda: datetime.now(UTC), type_=ApiToken.expires_at.type),
        EXPIRED,
    ),
    else_=VALID,
)


def _token_list_items(_session: Session, rows: Sequence[ApiToken]) -> list[TokenListItem]:
    now = datetime.now(UTC)
    return [TokenListItem(row, state_of(row, now)) for row in rows]


LIST: Listing[ApiToken] = Listing(
    name="tokens",
    table=ApiToken,
    columns=(
        attribute(ApiToken.name, Phrase("Name")),
        attribute(ApiToken.id, Phrase("Number"), "token_id", numeric=True, seen=COMMANDS),
        computed("user", Phrase("Experimenter"), of_other(User.name, User.id == ApiToken.user_id), seen=COMMANDS),
        ListColumn("state", Phrase("State"), lambda each: _STATES[each.state], sort=_STATE_NOW),
        ListColumn(
            "scopes", Phrase("Scopes"), lambda each: [*map(Code, each.row.scopes)], sort=start_of_json(ApiToken.scopes)
        ),
        attribute(ApiToken.used_at, Phrase("Last used, UTC"), numeric=True, none=Phrase("never")),
        attribute(ApiToken.expires_at, Phrase("Expires, UTC"), numeric=True),
        attribute(ApiToken.created_at, Phrase("Created, UTC"), numeric=True, seen=NOWHERE),
    ),
    items=_token_list_items,
)

CHANGES: Listing[ApiRequest] = Listing(
    name="token-changes",
    table=ApiRequest,
    columns=(
        attribute(ApiRequest.at, Phrase("When, UTC"), numeric=True),
        attribute(ApiRequest.id, Phrase("Number"), "request_id", numeric=True, seen=NOWHERE),
        attribute(ApiRequest.user_name, Phrase("Experimenter"), "user"),
        attribute(ApiRequest.token_name, Phrase("Token"), "token"),
        attribute(ApiRequest.method, Phrase("Method")),
        attribute(ApiRequest.path, Phrase("Address")),
        attribute(ApiRequest.subject, Phrase("What it changed")),
    ),
    items=lambda _session, rows: [RequestListItem(row) for row in rows],
)
