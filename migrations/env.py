"""Alembic's environment: the app's own engine and tables, in one transaction."""

from alembic import context
from flask import current_app

from app.extensions import db


def run() -> None:
    options = current_app.extensions["migrate"].configure_args
    with db.engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            # SQLite changes a table by making it anew, and dropping the old one would take along, by ON DELETE CASCADE,
            # whatever refers to its rows.
            connection.connection.driver_connection.execute("PRAGMA foreign_keys=OFF")
        context.configure(connection=connection, target_metadata=db.metadata, **options)
        with context.begin_transaction():
            context.run_migrations()
        connection.invalidate()  # its foreign keys are off


run()
