"""Signing in to the admin pages, for now by a link that works once."""

import hashlib
import secrets
from datetime import UTC, datetime, timedelta

from flask import Blueprint, Flask, redirect, render_template, url_for
from flask_login import login_user
from flask_wtf import FlaskForm
from sqlalchemy import select, update
from werkzeug.wrappers import Response

from app.errors import NotAllowed
from app.extensions import login, reading, writing
from app.models import LoginLink, User

blueprint = Blueprint("auth", __name__)
LINK_HOURS = 24
_SPENT = "This link has been used or is too old. Start Parlor again, it prints a new one."


def new_admin_link(app: Flask) -> str:
    """Make a link that signs an experimenter in once, and give its address."""
    token = secrets.token_urlsafe(24)
    now = datetime.now(UTC)
    with app.app_context(), writing() as session:
        user = session.scalar(select(User).where(User.name == "admin"))
        if user is None:
            user = User(name="admin", created_at=now)
            session.add(user)
            session.flush()
        session.add(LoginLink(token_hash=_hash(token), user_id=user.id, expires_at=now + timedelta(hours=LINK_HOURS)))
    return f"{app.config['SETTINGS'].public_url}/enter/{token}"


@login.user_loader  # type: ignore[untyped-decorator]
def load_user(user_id: str) -> User | None:
    """The signed-in experimenter, for Flask-Login."""
    with reading() as session:
        user = session.get(User, int(user_id)) if user_id.isdecimal() else None
        if user is not None:
            session.expunge(user)
        return user


@login.unauthorized_handler  # type: ignore[untyped-decorator]
def _nobody() -> None:
    raise NotAllowed("Please sign in first, with the link that Parlor printed when it started.")


@blueprint.get("/enter/<token>")
def enter(token: str) -> str:
    """Ask before spending the link, because mail programs and chats open links to preview them."""
    return render_template("enter.html", token=token, form=FlaskForm())


@blueprint.post("/enter/<token>")
def spend(token: str) -> Response:
    """Sign in, once."""
    now = datetime.now(UTC)
    with writing() as session:
        link = session.get(LoginLink, _hash(token))
        unspent = update(LoginLink).where(
            LoginLink.token_hash == _hash(token), LoginLink.used_at.is_(None), LoginLink.expires_at > now
        )
        spent: int = session.execute(unspent.values(used_at=now)).rowcount  # type: ignore[attr-defined]
        if link is None or spent == 0:
            raise NotAllowed(_SPENT)
        user = session.get_one(User, link.user_id)
        session.expunge(user)
    login_user(user)
    return redirect(url_for("admin.home"), 303)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
