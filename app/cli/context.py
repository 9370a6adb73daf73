"""What a command runs in: the settings and the database, and no page."""

from flask import Flask

from app import schema
from app.core import logs
from app.core.config import load_settings


def command_app() -> Flask:
    """An app with the settings and the database alone. Raises Invalid, in one line, for a setting that cannot be."""
    logs.set_up()
    return schema.bare_app(load_settings())
