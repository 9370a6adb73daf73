"""Brings the database up to date and prints a one-time admin link: the first thing that the supervisor runs.

It is a separate process, so that the supervisor opens no connection; and it does not load the pages, which would take
longer than everything else it does.
"""

import os
import re
import sys
import traceback
from datetime import UTC, datetime

from flask import Flask
from sqlalchemy import make_url, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from app import accounts
from app.core import logs
from app.core.config import load_settings
from app.core.errors import AppError, Invalid, Verbatim
from app.core.extensions import is_locked, open_engine, reason_of, writing
from app.matches.arrival import forget_numbers_of_another_server
from app.models import User
from app.schema import bare_app, upgrade

_PASSING = ("57P03", "57P01", "53300", "55P03", "40001", "40P01")  # it starts or stops, is crowded, or locked
_PATIENCE = 5  # seconds that a server may take to say whether it is there
_CROWDED = re.compile("too many clients|too many connections|connection slots")
_NEVER = re.compile("does not support SSL|certificate")  # permanent errors of a reachable server


class Later(AppError):
    """The database cannot be used now, but may be usable later."""


def prepare(app: Flask) -> str:
    """Migrate the database and make the link.

    Raises Invalid when the database cannot be used, Later when it may be usable later.
    """
    setting = app.config["SETTINGS"].database_setting
    try:
        upgrade(app)
        with app.app_context(), writing() as session:
            forget_numbers_of_another_server(session)
        return new_admin_link(app)
    except OperationalError as error:
        reason = " ".join(str(error.orig).split())
        if is_locked(error) or _passes(error, app.config["SETTINGS"].database_url):
            raise Later(f"{setting}: the database cannot be used yet: {reason}") from None
        raise Invalid(
            setting,
            expected="a database that can be used",
            got=Verbatim(reason),
            remedy="mend it and start again",
        ) from None
    except (AppError, MemoryError):
        raise
    except Exception as error:  # any error of a migration: another try would end the same way
        traceback.print_exc()  # the whole of it: the supervisor keeps it in logs/prepare.log
        raise Invalid(
            setting,
            expected="a database that can be brought up to date",
            got=Verbatim(f"{type(error).__name__}: {reason_of(error)}"),
            remedy="nothing was changed; put back a backup, or start the version that made it",
        ) from None


def _passes(error: OperationalError, url: str) -> bool:
    """Whether PostgreSQL may become usable. When it rejects a connection, it gives a reason but no code."""
    if make_url(url).get_backend_name() != "postgresql":
        return False
    if state := getattr(error.orig, "sqlstate", None):
        return state in _PASSING
    if not _is_there(url):  # unreachable, name not yet known, starting or stopping
        return _NEVER.search(str(error.orig)) is None
    try:
        open_engine(url, poolclass=NullPool).connect().close()
    except OperationalError as again:
        return _CROWDED.search(str(again.orig)) is not None
    return True  # now available


def _is_there(url: str) -> bool:
    """Whether the PostgreSQL server accepts connections, regardless of the login."""
    from psycopg import pq  # only here: SQLite needs none of it

    asked = make_url(url).set(drivername="postgresql")
    asked = asked.set(query={"connect_timeout": str(_PATIENCE), **asked.query})
    return pq.PGconn.ping(asked.render_as_string(hide_password=False).encode()) == pq.Ping.OK


def new_admin_link(app: Flask) -> str:
    """Make a short-lived, one-time sign-in link for the first experimenter and return its address; earlier ones are
    void.
    """
    now = datetime.now(UTC)
    with app.app_context(), writing() as session:
        user = session.scalar(select(User).where(User.name == accounts.FIRST_USER))
        user = user or accounts.create_user(session, accounts.FIRST_USER, None, now)
        path = accounts.new_link(session, user, now, accounts.START_LINK_LIFE)
    return f"{app.config['SETTINGS'].public_url}{path}"


def main() -> int:
    """Print the link. 0: done; 2: a setting has to change, and the last line on stderr says which; 75: try again."""
    try:
        logs.set_up()
        print(prepare(bare_app(load_settings())))
    except AppError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return os.EX_TEMPFAIL if isinstance(error, Later) else 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
