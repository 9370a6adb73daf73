"""The account page: password, time zone, notices, and the tokens of the experimenter's programs."""

from datetime import UTC, datetime, timedelta
from typing import Any

from flask import redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext, lazy_gettext
from flask_login import current_user, login_required
from sqlalchemy.orm import Session

from app import accounts
from app.accounts import tokens
from app.core.errors import AppError
from app.core.extensions import reading
from app.models import ApiToken, User
from app.notices.causes import KINDS
from app.notices.listing import STATES
from app.notices.outbox import add_test, last_notices
from app.notices.recipients import set_notices
from app.web import passwords
from app.web.admin.lists import ListPage, read_list, register_list
from app.web.auth import PASSWORD_LIMITS, blueprint, enter_session, session_life
from app.web.extensions import limiter
from app.web.form_writes import write
from app.web.seats import settings

_TOKENS = ListPage(
    tokens.LIST,
    lazy_gettext("API tokens"),
    endpoint="auth.account",
    fixed={"_anchor": "tokens"},
    where=lambda _session, _given: [ApiToken.user_id == current_user.id],
)
register_list(_TOKENS)


@blueprint.get("/account")
@login_required  # type: ignore[untyped-decorator]
def account() -> ResponseReturnValue:
    """The signed-in user, and a form for changing the password."""
    return _account_page()


@blueprint.post("/account")
@login_required  # type: ignore[untyped-decorator]
@limiter.limit(passwords.BY_NAME, key_func=lambda: current_user.get_id(), scope="old passwords", **PASSWORD_LIMITS)
def change_password() -> ResponseReturnValue:
    """Set a password. The old one is required, except from a user who has just come by a link."""
    old, new, again = (request.form.get(field, "") for field in ("old", "new", "again"))
    if _asks_for_old() and not passwords.hashing(accounts.password_fits, current_user.password_hash, old):
        return _account_page(old=gettext("This is not the current password.")), 401
    passwords.was_right()
    if new != again:
        return _account_page(again=gettext("The two passwords differ. Please enter the new password twice.")), 400
    # Checked before the thread pool is used, which logs every error of its work.
    if not accounts.SHORTEST_PASSWORD <= len(new) <= accounts.LONGEST_PASSWORD:
        return _account_page(new=_too_short_or_long(new)), 400
    made = passwords.hashing(accounts.hash_password, new)
    user_id, life = current_user.id, session_life()
    enter_session(*write(lambda database: _with_password(database, user_id, made, life)))
    return redirect(url_for("auth.account", changed=1), 303)


@blueprint.post("/account/time-zone")
@login_required  # type: ignore[untyped-decorator]
def choose_time_zone() -> ResponseReturnValue:
    """Choose the time zone in which pages show times."""
    user_id, zone = current_user.id, request.form.get("time_zone", "")
    try:
        write(lambda database: accounts.set_time_zone(database.get_one(User, user_id), zone))
    except AppError as error:
        return _account_page(time_zone=error), error.status
    return redirect(url_for("auth.account", zone=1, _anchor="time-zone"), 303)


@blueprint.post("/account/notices")
@login_required  # type: ignore[untyped-decorator]
def choose_notices() -> ResponseReturnValue:
    """Choose the experimenter's notices by mail, or have a test sent to the saved address."""
    user_id, known = current_user.id, settings()
    mail, kinds = request.form.get("notice_mail", "").strip(), request.form.getlist("notice_kinds")
    test = request.form.get("action") == "test"

    def change(database: Session) -> None:
        user = database.get_one(User, user_id)
        if test:
            add_test(database, user, known)
        else:
            set_notices(user, mail, kinds)

    try:
        write(change)
    except AppError as error:
        return _account_page(notices=error), error.status
    return redirect(url_for("auth.account", notices="test" if test else "saved", _anchor="notices"), 303)


@blueprint.post("/account/tokens")
@login_required  # type: ignore[untyped-decorator]
def make_token() -> ResponseReturnValue:
    """Create a token, and show it: it is never shown again."""
    user_id, name, days = current_user.id, request.form.get("token_name", "").strip(), request.form.get("days", "")
    scopes = request.form.getlist("scope")

    def make(database: Session) -> str:
        user = database.get_one(User, user_id)
        return tokens.create(database, user, name, scopes, days.strip(), datetime.now(UTC))[1]

    try:
        secret = write(make)
    except AppError as error:
        return _account_page(token=error), error.status
    return _account_page(made=secret)


@blueprint.post("/account/tokens/<int:number>")
@login_required  # type: ignore[untyped-decorator]
def revoke_token(number: int) -> ResponseReturnValue:
    """Revoke one of the experimenter's own tokens."""
    user_id = current_user.id
    write(lambda database: tokens.revoke(database, number, datetime.now(UTC), user_id).id)
    return redirect(url_for("auth.account"), 303)


def _account_page(*, made: str | None = None, **errors: Any) -> str:
    """The page; `made` is a new token. `errors`: by field, and as `token` for a token."""
    with reading() as database:
        listed = read_list(database, _TOKENS)
        if listed.refused is not None:
            raise listed.refused
        return render_template(
            "admin/account.html",
            asks_for_old=_asks_for_old(),
            errors=errors,
            changed=request.args.get("changed") == "1",
            zone_changed=request.args.get("zone") == "1",
            zones=accounts.time_zones(),
            notices_changed=request.args.get("notices"),
            notice_kinds=KINDS,
            has_mail=bool(settings().SMTP_HOST),
            last_notices=last_notices(database, current_user.id),
            notice_states=STATES,
            made=made,
            tokens=listed,
            scopes=tokens.SCOPES,
            usual_days=tokens.USUAL_DAYS,
            most_days=tokens.MOST_DAYS,
        )


def _with_password(database: Session, user_id: int, password_hash: str, life: timedelta) -> tuple[User, str]:
    """Set a password, which ends all sessions; returns the user, and the token of a new session."""
    user = database.get_one(User, user_id)
    user.password_hash = password_hash
    accounts.end_sessions(database, user_id)
    token = accounts.begin_session(database, user_id, datetime.now(UTC), life)
    database.flush()
    database.expunge(user)
    return user, token


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
