"""Bringing a database to what this code expects: its tables, and the models that every installation has."""

from flask import Flask
from flask_migrate import upgrade as alembic_upgrade
from sqlalchemy import inspect

from app.extensions import db, writing
from app.registry import ensure_baselines


def upgrade(app: Flask) -> None:
    """Create or migrate the database. Safe to repeat."""
    with app.app_context():
        alembic_upgrade()
        with writing() as session:
            ensure_baselines(session)


def ensure(app: Flask) -> None:
    """Create the database of an empty PARLOR_HOME, for a command that is the first to touch it."""
    with app.app_context():
        fresh = not inspect(db.engine).has_table("match")
    if fresh:
        upgrade(app)
