"""Signing in to the admin pages: with name and password, or by a link that works once.

A session is good for ADMIN_HOURS and for the password it began with, whatever its cookie says.
"""

import hashlib
import time
from datetime import UTC, datetime
from typing import Any

from flask import Blueprint, redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext, lazy_gettext, ngettext
from flask_limiter.util import get_remote_address
from flask_login import current_user, login_required, login_user, logout_user
from flask_wtf import FlaskForm
from sqlalchemy import select
from werkzeug.wrappers import Response

from app import accounts
from app.extensions import reading, writing
from app.models import User
from app.web import passwords
from app.web.extensions import limiter, login
from app.web.headers import never_stored
from app.web.language import own_path
from app.web.seats import settings

blueprint = Blueprint("auth", __name__)
blueprint.after_request(never_stored)

_WRONG = lazy_gettext("This name and this password do not go together. Please try again.")


# ---- The session -------------------------------------------------------------


@login.user_loader  # type: ignore[untyped-decorator]
def load_user(user_id: str) -> User | None:
    """The signed-in experimenter, for Flask-Login; None when the session is too old or the password has changed."""
    since, mark = session.get("signed_in", (0, ""))
    if not user_id.isdecimal() or time.time() - since > settings().ADMIN_HOURS * 3600:
        return None
    with reading() as database:
        user = database.get(User, int(user_id))
        if user is None or mark != _mark(user):
            return None
        database.expunge(user)
        return user


@login.unauthorized_handler  # type: ignore[untyped-decorator]
def _nobody() -> Response:
    here = request.full_path.rstrip("?") if request.method in ("GET", "HEAD") else None
    return redirect(url_for("auth.sign_in", next=here))


def begin_session(user: User, *, by_link: bool = False) -> None:
    """Sign in, in a new session; of the old one only the seats in games and the language are kept."""
    kept = {name: session[name] for name in ("seats", "language") if name in session}
    session.clear()
    session.update(kept)
    session.permanent = bool(kept)
    session["signed_in"] = [int(time.time()), _mark(user)]
    session["by_link"] = by_link
    login_user(user)


def _mark(user: User) -> str:
    """Changes with the password, so that a new one ends the sessions of the old."""
    return hashlib.sha256((user.password_hash or "").encode()).hexdigest()[:16]


# ---- Pages -------------------------------------------------------------------


def _name() -> str:
    return request.form.get("name", "").strip()[:80]


def _name_and_address() -> str:
    return f"{get_remote_address()} {_name().casefold()}"


def _until_when() -> str:
    """What a visitor reads who has guessed too often."""
    limit = limiter.current_limit
    seconds = max(1, limit.reset_at - int(time.time())) if limit else 300
    words = (
        ngettext(
            "That was a wrong password too often. Please try again in %(num)s second.",
            "That was a wrong password too often. Please try again in %(num)s seconds.",
            seconds,
        )
        if seconds < 100
        else ngettext(
            "That was a wrong password too often. Please try again in %(num)s minute.",
            "That was a wrong password too often. Please try again in %(num)s minutes.",
            -(-seconds // 60),
        )
    )
    return str(words)


_guesses: dict[str, Any] = {"methods": ["POST"], "error_message": _until_when}


@blueprint.get("/sign-in")
def sign_in() -> ResponseReturnValue:
    """Ask for name and password."""
    if current_user.is_authenticated:
        return redirect(_next())
    return render_template("sign-in.html", next=request.args.get("next", ""), name="", error=None)


@blueprint.post("/sign-in")
@limiter.limit(passwords.BY_ADDRESS, key_func=get_remote_address, scope="passwords from an address", **_guesses)
@limiter.limit(passwords.BY_NAME, key_func=_name_and_address, scope="passwords for a name", **_guesses)
def check_password() -> ResponseReturnValue:
    """Sign in with name and password."""
    name, password = _name(), request.form.get("password", "")
    with reading() as database:
        user = database.scalar(select(User).where(User.name == name))
        if user is not None:
            database.expunge(user)
    passwords.attempt(name.casefold())
    if not passwords.hashing(accounts.password_fits, user and user.password_hash, password) or user is None:
        page = render_template("sign-in.html", next=request.args.get("next", ""), name=name, error=_WRONG)
        return page, 401
    passwords.was_right(name.casefold())
    begin_session(user)
    return redirect(_next(), 303)


@blueprint.post("/sign-out")
@login_required  # type: ignore[untyped-decorator]
def sign_out() -> Response:
    """End the session; seats in games stay with the browser."""
    logout_user()
    session.pop("signed_in", None)
    return redirect(url_for("auth.sign_in"), 303)


@blueprint.get("/enter/<token>")
def enter(token: str) -> str:
    """Ask before spending the link, because mail programs and chats open links to preview them."""
    return render_template("enter.html", token=token, form=FlaskForm())


@blueprint.post("/enter/<token>")
def spend(token: str) -> Response:
    """Sign in, once."""
    with writing() as database:
        user = accounts.spend_link(database, token, datetime.now(UTC))
        database.expunge(user)
    begin_session(user, by_link=True)
    return redirect(url_for("admin.home"), 303)


@blueprint.get("/account")
@login_required  # type: ignore[untyped-decorator]
def account() -> ResponseReturnValue:
    """Who is signed in, and a form for another password."""
    return _account_page()


@blueprint.post("/account")
@login_required  # type: ignore[untyped-decorator]
@limiter.limit(passwords.BY_NAME, key_func=lambda: current_user.get_id(), scope="old passwords", **_guesses)
def change_password() -> ResponseReturnValue:
    """Set a password. The old one is asked for, except from who has just come by a link."""
    old, new, again = (request.form.get(field, "") for field in ("old", "new", "again"))
    if _asks_for_old() and not passwords.hashing(accounts.password_fits, current_user.password_hash, old):
        return _account_page(old=gettext("This is not the password until now.")), 401
    passwords.was_right()
    if new != again:
        return _account_page(again=gettext("The two are not the same. Please write the new password twice.")), 400
    # Looked at before the thread pool is asked, which writes down every error of what it runs.
    if not accounts.SHORTEST_PASSWORD <= len(new) <= accounts.LONGEST_PASSWORD:
        return _account_page(new=_too_short_or_long(new)), 400
    made = passwords.hashing(accounts.hash_password, new)
    with writing() as database:
        user = database.get_one(User, current_user.id)
        user.password_hash = made
        database.flush()
        database.expunge(user)
    begin_session(user)
    return redirect(url_for("auth.account", changed=1), 303)


def _too_short_or_long(password: str) -> str:
    return str(
        gettext(
            "Password: expected %(least)s to %(most)s characters, got %(length)s; a few words make a good one.",
            least=accounts.SHORTEST_PASSWORD,
            most=accounts.LONGEST_PASSWORD,
            length=len(password),
        )
    )


def _asks_for_old() -> bool:
    return current_user.password_hash is not None and not session.get("by_link")


def _account_page(**errors: str) -> str:
    changed = request.args.get("changed") == "1"
    return render_template("admin/account.html", asks_for_old=_asks_for_old(), errors=errors, changed=changed)


def _next() -> str:
    return own_path(request.args.get("next", "")) or url_for("admin.home")
