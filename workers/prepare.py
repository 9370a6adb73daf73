"""Brings the database up to date and prints a one-time admin link: what the supervisor runs first.

A process of its own, so that the supervisor opens no connection; and without the pages, which would take longer to load
than all else that it does.
"""

import sys
from datetime import UTC, datetime

from flask import Flask
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from app import accounts, logs
from app.config import Settings, load_settings
from app.errors import AppError, Invalid, Verbatim
from app.extensions import writing
from app.models import User
from app.schema import bare_app, upgrade


def prepare(app: Flask) -> str:
    """Migrate, and make the link. Raises Invalid when the database cannot be used."""
    settings: Settings = app.config["SETTINGS"]
    try:
        upgrade(app)
        return new_admin_link(app)
    except OperationalError as error:
        setting = "DATABASE_URL" if settings.DATABASE_URL else "PARLOR_HOME"
        reason = " ".join(str(error.orig).split())
        raise Invalid(
            setting,
            expected="a database that can be used",
            got=Verbatim(reason),
            remedy="mend it and start again",
        ) from None


def new_admin_link(app: Flask) -> str:
    """Make a link that signs the first experimenter in, once and soon, and give its address; earlier ones are void."""
    now = datetime.now(UTC)
    with app.app_context(), writing() as session:
        user = session.scalar(select(User).where(User.name == accounts.FIRST_USER))
        user = user or accounts.create_user(session, accounts.FIRST_USER, None, now)
        path = accounts.new_link(session, user, now, accounts.START_LINK_LIFE)
    return f"{app.config['SETTINGS'].public_url}{path}"


def main() -> int:
    """Print the link. 0: done; 2: a setting has to change, and one line on stderr says which."""
    try:
        logs.set_up()
        print(prepare(bare_app(load_settings())))
    except AppError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
