"""Experimenters: their passwords, single-use sign-in links and sessions. Nothing here commits."""

import hashlib
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import NamedTuple
from zoneinfo import available_timezones

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session
from werkzeug.security import check_password_hash, generate_password_hash

from app.core.errors import Conflict, Invalid, NotAllowed, NotFound, Phrase, check_name
from app.core.lists import NOWHERE, ListColumn, Listing, attribute, computed, of_other
from app.models import LoginLink, User, UserSession


class UserListItem(NamedTuple):
    """An experimenter in a list."""

    row: User


FIRST_USER = "admin"
UTC_ZONE = "UTC"
_REGIONS = frozenset(
    ("Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")
)  # the other names in the tz database are older aliases of these zones
LINK_LIFE = timedelta(hours=24)
START_LINK_LIFE = timedelta(minutes=30)  # for the link printed at every start, which stays on screens or in logs
SHORTEST_PASSWORD, LONGEST_PASSWORD = 10, 200  # characters
# Source: OWASP Password Storage Cheat Sheet, scrypt with N = 2^15, r = 8, p = 3 (32 MiB).
_METHOD = "scrypt:32768:8:3"
_NOBODY = f"{_METHOD}$nobody${'0' * 128}"  # the hash of no password; comparing with it takes as long as with a real one
_SPENT = Phrase("This link has been used or is too old. `flask user link NAME` prints a new one.")


LIST: Listing[User] = Listing(
    name="users",
    table=User,
    columns=(
        attribute(User.name, Phrase("Name")),
        attribute(User.id, Phrase("Number"), "user_id", numeric=True, seen=NOWHERE),
        ListColumn(
            "password",
            Phrase("Password"),
            lambda each: each.row.password_hash is not None,
            sort=User.password_hash.is_not(None),
        ),
        computed(
            "signed_in",
            Phrase("Signed in"),  # number of browsers
            of_other(func.count(UserSession.token_hash), UserSession.user_id == User.id),
            numeric=True,
        ),
        attribute(User.created_at, Phrase("Added, UTC"), numeric=True),
    ),
    items=lambda _session, rows: [UserListItem(row) for row in rows],
    descending=False,
)


def check_new_name(session: Session, name: str) -> None:
    """Raises Invalid for an invalid name, Conflict for one that is taken."""
    check_name("name", name)
    if session.scalar(select(User.id).where(User.name == name)) is not None:
        raise Conflict(
            "name",
            expected=Phrase("one that is not taken"),
            got=name,
            remedy=Phrase("`flask user link` signs that user in"),
        )


def create_user(session: Session, name: str, password: str | None, now: datetime) -> User:
    """Add an experimenter, who signs in with links if there is no password. Raises Invalid, Conflict."""
    check_new_name(session, name)
    user = User(name=name, created_at=now, password_hash=None if password is None else hash_password(password))
    session.add(user)
    session.flush()
    return user


def find_user(session: Session, name: str) -> User:
    """The experimenter of that name. Raises NotFound, which names the others."""
    users = {user.name: user for user in session.scalars(select(User).order_by(User.name))}
    if name not in users:
        known = ", ".join(users) or "nobody yet"
        raise NotFound("name", expected=Phrase("one of the experimenters (%(known)s)", known=known), got=name)
    return users[name]


def remove_user(session: Session, name: str) -> None:
    """Remove an experimenter and the sign-in links. Raises NotFound, and Conflict for the only one."""
    user = find_user(session, name)
    if session.scalar(select(func.count()).select_from(User)) == 1:
        raise Conflict(
            "name",
            expected=Phrase("one of several experimenters"),
            got=Phrase("%(name)s, the only one", name=name),
            remedy=Phrase("add another one first"),
        )
    session.delete(user)
    session.flush()


def time_zones() -> list[str]:
    """The zones that `set_time_zone` takes: UTC and the zones of the tz database that are named after a place."""
    return [UTC_ZONE, *sorted(each for each in available_timezones() if each.partition("/")[0] in _REGIONS)]


def set_time_zone(user: User, zone: str) -> None:
    """Set the time zone of an experimenter's pages. Raises Invalid for a zone that is not in `time_zones`."""
    if zone not in time_zones():
        raise Invalid("time_zone", expected=Phrase("a time zone such as Europe/Berlin"), got=zone)
    user.time_zone = None if zone == UTC_ZONE else zone


# ---- Passwords ---------------------------------------------------------------


def hash_password(password: str) -> str:
    """The hash stored for a password. Takes 0.1 s, on purpose. Raises Invalid, which does not repeat it."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise Invalid(
            "password",
            expected=Phrase(
                "%(shortest)s to %(longest)s characters",
                shortest=SHORTEST_PASSWORD,
                longest=LONGEST_PASSWORD,
            ),
            got=len(password),
            remedy=Phrase("a few words in a row make a good one"),
        )
    return generate_password_hash(password, method=_METHOD)


def password_fits(password_hash: str | None, password: str) -> bool:
    """Whether the password matches the hash. Takes just as long when there is no hash."""
    return check_password_hash(password_hash or _NOBODY, password[: LONGEST_PASSWORD + 1])


def new_password() -> str:
    """A password of 120 random bits, without characters that look alike."""
    letters = "abcdefghjkmnpqrstuvwxyz23456789"
    return "-".join("".join(secrets.choice(letters) for _ in range(6)) for _ in range(4))


# ---- Links -------------------------------------------------------------------


def new_link(session: Session, user: User, now: datetime, life: timedelta = LINK_LIFE) -> str:
    """A path that signs the experimenter in once, valid for `life`. Voids an earlier unused link."""
    session.execute(delete(LoginLink).where(LoginLink.user_id == user.id, LoginLink.used_at.is_(None)))
    token = secrets.token_urlsafe(24)
    session.add(LoginLink(token_hash=hash_token(token), user_id=user.id, expires_at=now + life))
    return f"/enter/{token}"


def use_link(session: Session, token: str, now: datetime) -> User:
    """Consume a sign-in link and return its experimenter. Raises NotAllowed if it is used, expired or unknown."""
    link = session.get(LoginLink, hash_token(token))
    unspent = update(LoginLink).where(
        LoginLink.token_hash == hash_token(token), LoginLink.used_at.is_(None), LoginLink.expires_at > now
    )
    spent: int = session.execute(unspent.values(used_at=now)).rowcount  # type: ignore[attr-defined]
    if link is None or spent == 0:
        raise NotAllowed(_SPENT)
    return session.get_one(User, link.user_id)


# ---- Sessions ----------------------------------------------------------------


def begin_session(session: Session, user_id: int, now: datetime, life: timedelta) -> str:
    """The token of a new session, valid for `life`. Also deletes the expired sessions of all experimenters."""
    session.execute(delete(UserSession).where(UserSession.began_at <= now - life))
    token = secrets.token_urlsafe(24)
    session.add(UserSession(token_hash=hash_token(token), user_id=user_id, began_at=now))
    session.flush()
    return token


def user_of_session(session: Session, token: str, now: datetime, life: timedelta) -> User | None:
    """The experimenter signed in with a token; None when the session has expired or was ended."""
    found = select(User).join(UserSession, UserSession.user_id == User.id)
    return session.scalar(found.where(UserSession.token_hash == hash_token(token), UserSession.began_at > now - life))


def open_sessions(session: Session, hashes: Collection[str], now: datetime, life: timedelta) -> set[str]:
    """Those of `hashes`, which are token hashes, whose sessions have neither expired nor been ended."""
    found = select(UserSession.token_hash).where(UserSession.token_hash.in_(hashes), UserSession.began_at > now - life)
    return set(session.scalars(found))


def end_session(session: Session, token: str) -> None:
    """Sign one browser out."""
    session.execute(delete(UserSession).where(UserSession.token_hash == hash_token(token)))


def end_sessions(session: Session, user_id: int) -> None:
    """Sign an experimenter out everywhere."""
    session.execute(delete(UserSession).where(UserSession.user_id == user_id))


def hash_token(token: str) -> str:
    """The hash under which a token is stored."""
    return hashlib.sha256(token.encode()).hexdigest()
