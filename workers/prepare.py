"""Brings the database up to date and prints a one-time admin link: what the supervisor runs first.

A process of its own, so that the supervisor stays small and carries no part of the application.
"""

import sys

from flask import Flask
from sqlalchemy.exc import OperationalError

from app.config import Settings
from app.errors import AppError, Invalid
from app.factory import create_app
from app.schema import upgrade
from app.web.auth import new_admin_link


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
            f"{setting}: expected a database that can be used, got: {reason}; mend it and start again"
        ) from None


def main() -> int:
    """Print the link. 0: done; 2: a setting has to change, and one line on stderr says which."""
    try:
        print(prepare(create_app()))
    except AppError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
