"""The context of a command: the settings and the database, without pages."""

from flask import Flask

from app import schema
from app.core import logs
from app.core.config import load_settings


def command_app() -> Flask:
    """An app with the settings and the database alone. Raises Invalid, in one line, for an invalid setting."""
    logs.set_up()
    return schema.bare_app(load_settings())
