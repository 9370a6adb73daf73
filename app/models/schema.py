"""Bringing a database to the schema that this code expects."""

from flask import Flask
from flask_migrate import upgrade as alembic_upgrade
from sqlalchemy import inspect

from app.extensions import db


def upgrade(app: Flask) -> None:
    """Create or migrate the database. Safe to repeat; a schema that is already right costs one query."""
    with app.app_context():
        alembic_upgrade()


def ensure(app: Flask) -> None:
    """Create the database of an empty PARLOR_HOME, for a command that is the first to touch it."""
    with app.app_context():
        if not inspect(db.engine).has_table("match"):
            alembic_upgrade()
