"""Signing in to the admin pages: with name and password, or with a single-use link.

A session is a row of the database, valid for ADMIN_HOURS: signing out ends it, and a new password ends all others. The
cookie holds its token.
"""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from flask import Blueprint, redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue
from flask_babel import lazy_gettext, ngettext
from flask_limiter.util import get_remote_address
from flask_login import current_user, login_required, login_user, logout_user
from flask_wtf import FlaskForm
from sqlalchemy import select
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response

from app import accounts
from app.core.extensions import reading
from app.models import User
from app.web import passwords
from app.web.extensions import limiter, login
from app.web.form_writes import write
from app.web.headers import never_stored
from app.web.language import own_path
from app.web.seats import settings

blueprint = Blueprint("auth", __name__)
blueprint.after_request(never_stored)

_WRONG = lazy_gettext("This name and password do not match. Please try again.")


# ---- The session -------------------------------------------------------------


@login.user_loader  # type: ignore[untyped-decorator]
def load_user(user_id: str) -> User | None:
    """The signed-in experimenter, for Flask-Login; None if the session has expired or was ended."""
    if (token := session_token()) is None:
        return None
    with reading() as database:
        user = accounts.user_of_session(database, token, datetime.now(UTC), session_life())
        if user is None or user.get_id() != user_id:
            return None
        database.expunge(user)
        return user


def session_token() -> str | None:
    """The token in this browser's cookie, possibly of a session that has ended."""
    token = session.get("token")
    return token if isinstance(token, str) else None


def session_life() -> timedelta:
    return timedelta(hours=settings().ADMIN_HOURS)


@login.unauthorized_handler  # type: ignore[untyped-decorator]
def _redirect_to_sign_in() -> Response:
    here = request.full_path.rstrip("?") if request.method in ("GET", "HEAD") else None
    return redirect(url_for("auth.sign_in", next=here))


def enter_session(user: User, token: str, *, by_link: bool = False) -> None:
    """Sign this browser in; only the seats in games and the language are kept from its old cookie."""
    kept = {name: session[name] for name in ("seats", "language") if name in session}
    session.clear()
    session.update(kept)
    session.permanent = bool(kept)
    session["token"] = token
    session["by_link"] = by_link
    login_user(user)


# ---- Pages -------------------------------------------------------------------


def _typed_name() -> str:
    return request.form.get("name", "").strip()[:80]


def _name_and_address() -> str:
    return f"{get_remote_address()} {_typed_name().casefold()}"


def _until_when() -> str:
    """The message for a visitor who has guessed too often."""
    limit = limiter.current_limit
    seconds = max(1, limit.reset_at - int(time.time())) if limit else 300
    words = (
        ngettext(
            "Too many wrong passwords. Please try again in %(num)s second.",
            "Too many wrong passwords. Please try again in %(num)s seconds.",
            seconds,
        )
        if seconds < 100
        else ngettext(
            "Too many wrong passwords. Please try again in %(num)s minute.",
            "Too many wrong passwords. Please try again in %(num)s minutes.",
            -(-seconds // 60),
        )
    )
    return str(words)


PASSWORD_LIMITS: dict[str, Any] = {"methods": ["POST"], "error_message": _until_when}


@blueprint.get("/sign-in")
def sign_in() -> ResponseReturnValue:
    """Ask for name and password."""
    if current_user.is_authenticated:
        return redirect(_next_page())
    return render_template("sign-in.html", next=request.args.get("next", ""), name="", error=None)


@blueprint.post("/sign-in")
@limiter.limit(passwords.BY_ADDRESS, key_func=get_remote_address, scope="passwords from an address", **PASSWORD_LIMITS)
@limiter.limit(passwords.BY_NAME, key_func=_name_and_address, scope="passwords for a name", **PASSWORD_LIMITS)
def check_password() -> ResponseReturnValue:
    """Sign in with name and password."""
    name, password = _typed_name(), request.form.get("password", "")
    with reading() as database:
        user = database.scalar(select(User).where(User.name == name))
        if user is not None:
            database.expunge(user)
    passwords.attempt(name.casefold())
    if not passwords.hashing(accounts.password_fits, user and user.password_hash, password) or user is None:
        page = render_template("sign-in.html", next=request.args.get("next", ""), name=name, error=_WRONG)
        return page, 401
    passwords.was_right(name.casefold())
    number, now, life = user.id, datetime.now(UTC), session_life()
    enter_session(user, write(lambda database: accounts.begin_session(database, number, now, life)))
    return redirect(_next_page(), 303)


@blueprint.post("/sign-out")
@login_required  # type: ignore[untyped-decorator]
def sign_out() -> Response:
    """End the session, including any copies of its cookie; seats in games stay with the browser."""
    if (token := session_token()) is not None:
        write(lambda database: accounts.end_session(database, token))
    logout_user()
    session.pop("token", None)
    return redirect(url_for("auth.sign_in"), 303)


@blueprint.get("/enter/<token>")
def enter(token: str) -> str:
    """Ask before consuming the link, because mail programs and chats open links to preview them."""
    return render_template("enter.html", token=token, form=FlaskForm())


@blueprint.post("/enter/<token>")
def spend(token: str) -> Response:
    """Sign in by consuming the link."""
    life = session_life()
    enter_session(*write(lambda database: _spent(database, token, life)), by_link=True)
    return redirect(url_for("admin.home"), 303)


def _spent(database: Session, link: str, life: timedelta) -> tuple[User, str]:
    """Consume a sign-in link; returns its user, and the token of a new session."""
    now = datetime.now(UTC)
    user = accounts.use_link(database, link, now)
    token = accounts.begin_session(database, user.id, now, life)
    database.expunge(user)
    return user, token


def _next_page() -> str:
    return own_path(request.args.get("next", "")) or url_for("admin.home")
