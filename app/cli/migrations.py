"""`flask db`: Flask-Migrate's commands on the database in the settings; an upgrade also adds the shipped models."""

from typing import Any

import click
from flask.cli import ScriptInfo
from flask_migrate.cli import db as commands

from app.cli.groups import BaseGroup
from app.schema import add_shipped_models, allow_migrations


class _Migrations(BaseGroup):
    """See the module."""

    def invoke(self, ctx: click.Context) -> Any:
        app = ctx.ensure_object(ScriptInfo).load_app()
        allow_migrations(app)
        result = super().invoke(ctx)
        if ctx.invoked_subcommand == "upgrade":
            add_shipped_models(app)
        return result


migrations = _Migrations(
    "db", commands=commands.commands, params=commands.params, callback=commands.callback, help=commands.help
)
