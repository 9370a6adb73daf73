"""Alembic's environment: the app's own engine and tables, in one transaction."""

from alembic import context
from flask import current_app
from sqlalchemy import Float

from app.core.extensions import db
from app.models.types import Amount, JsonColumn, UtcDateTime


def run() -> None:
    options = current_app.extensions["migrate"].configure_args
    options = {
        **options,
        "render_item": rendered,
        "process_revision_directives": number,
        "compare_type": is_changed,
        "include_name": is_of_models,
    }
    with db.engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            # SQLite changes a table by making it anew, and dropping the old one would take along, by ON DELETE CASCADE,
            # whatever refers to its rows.
            connection.connection.driver_connection.execute("PRAGMA foreign_keys=OFF")
        context.configure(connection=connection, target_metadata=db.metadata, **options)
        with context.begin_transaction():
            context.run_migrations()
        connection.invalidate()  # its foreign keys are off


WRITTEN = {
    UtcDateTime: "sa.DateTime()",
    Amount: "sa.String(length=24)",
    JsonColumn: "sa.JSON().with_variant(sa.dialects.postgresql.JSONB(), 'postgresql')",
}


def rendered(kind, value, _context):
    """What `flask db migrate` writes of a type of the app's own: a migration imports nothing of the app."""
    return WRITTEN.get(type(value), False) if kind == "type" else False


def is_of_models(name, _kind, _parents):
    """Whether the models know of it: indexes of full texts and of computed scores are migrations' own."""
    own = ("match_text_index", "ix_match_text_words", "ix_match_joint_score", "ix_match_lower_score")
    return name is None or not name.startswith(own)


def is_changed(migration, _column, _table_column, found, wanted):
    """Whether a column has another type: SQLite keeps FLOAT and DOUBLE alike. None leaves it to Alembic."""
    both = isinstance(found, Float) and isinstance(wanted, Float)
    return False if both and migration.dialect.name == "sqlite" else None


def number(migration, _revision, directives):
    """A new migration has the number after the last one's."""
    for each in directives:
        each.rev_id = f"{int(migration.script.get_current_head() or 0) + 1:04}"


run()
