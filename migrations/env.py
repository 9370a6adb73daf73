"""Alembic's environment: the app's own engine and tables, in one transaction."""

from alembic import context
from flask import current_app

from app.extensions import db


def run() -> None:
    options = current_app.extensions["migrate"].configure_args
    with db.engine.connect() as connection:
        context.configure(connection=connection, target_metadata=db.metadata, **options)
        with context.begin_transaction():
            context.run_migrations()


run()
