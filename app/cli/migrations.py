"""`flask db`: Flask-Migrate's commands, on the database of the settings."""

from typing import Any

import click
from flask.cli import ScriptInfo
from flask_migrate.cli import db as commands

from app.cli.groups import BaseGroup
from app.schema import allow_migrations


class _Migrations(BaseGroup):
    """See the module."""

    def invoke(self, ctx: click.Context) -> Any:
        allow_migrations(ctx.ensure_object(ScriptInfo).load_app())
        return super().invoke(ctx)


migrations = _Migrations(
    "db", commands=commands.commands, params=commands.params, callback=commands.callback, help=commands.help
)
