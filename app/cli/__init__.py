"""The commands of `flask`, one file a group. Each parses, calls a service in one transaction, and prints."""

from flask import Flask

from app.cli.doctor import doctor
from app.cli.export import export
from app.cli.judge import judge
from app.cli.model import model
from app.cli.play import play
from app.cli.user import user


def register(app: Flask) -> None:
    """Put every command on the app; `flask --help` lists them."""
    for command in (play, model, export, judge, user, doctor):
        app.cli.add_command(command)
