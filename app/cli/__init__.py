"""The commands of `flask`, one file a group. Each parses, calls a service in one transaction, and prints."""

from importlib import import_module

import click
from flask import Flask
from flask.cli import AppGroup

from app.job_kinds import JOB_KINDS

# Every command with the file that it is in, and its name there. A kind of jobs without a file has the commands of all.
_COMMANDS = {
    "play": "play:play",
    "round": "round:rounds",
    "analyze": "analyze:analyze",
    "dataset": "dataset:dataset",
    "training": "training:training",
    "train": "training:train",  # `flask training run`
    "job": "training:training",
    "campaign": "campaign:campaign",
    "benchmark": "benchmark:benchmark",
    "society": "society:society",
    "assessment": "assessment:assessment",
    "alignment": "alignment:alignment",
    "match": "match:match",
    "model": "model:model",
    "export": "export:export",
    "import": "imports:imports",
    "backup": "backup:backup",
    "restore": "backup:restore",
    "judge": "judge:judge",
    "study": "study:study",
    "user": "user:user",
    "doctor": "doctor:doctor",
}


class _Commands(AppGroup):
    """Loads a command when it is asked for: the web process has none of them, and `flask user` needs no charts."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *_COMMANDS, *(kind.name for kind in JOB_KINDS)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _COMMANDS and cmd_name not in self.commands:
            file, _, name = _COMMANDS[cmd_name].partition(":")
            self.add_command(getattr(import_module(f"{__name__}.{file}"), name), cmd_name)
        elif cmd_name not in self.commands and (kind := {each.name: each for each in JOB_KINDS}.get(cmd_name)):
            self.add_command(import_module(f"{__name__}.jobs").JobCommands(kind).group())
        return super().get_command(ctx, cmd_name)


def register(app: Flask) -> None:
    """Put every command on the app; `flask --help` lists them."""
    app.cli = _Commands(app.name)
