"""The commands of `flask`, and where they are.

Flask finds them by the entry points in pyproject.toml, each of which names an attribute of this module. It lists them
from `commands.json`, which `python -m scripts.command_list` writes: a command is loaded only when it is run, and no
page is loaded for it.
"""

import json
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import click
from flask import Flask
from flask.cli import AppGroup, ScriptInfo

from app.cli.groups import BaseGroup, LazyCommand, LazyGroup

# Maps commands to files where the names differ, or where a group's command has its own file, so that the others run
# without it. A kind of job without a file has the commands of all kinds.
FILES = {
    "round": "round:rounds",
    "train": "training:train",  # `flask training run`
    "job": "training:training",
    "model add-local": "local_model:add_local",
    "model show": "model_show:show",
    "model serve": "model_serve:serve",
    "model leaderboard": "leaderboard:leaderboard",
    "publication": "publishing:publication",
    "model card": "publishing:model_card_command",
    "dataset card": "publishing:dataset_card_command",
    "model push": "publishing:push_model",
    "dataset push": "publishing:push_dataset",
    "model pull": "publishing:pull_model",
    "dataset pull": "publishing:pull_dataset",
    "model permit": "permissions:permit_model",
    "dataset permit": "permissions:permit_dataset",
    "model compare": "model_compare:compare",
    "model lineage": "lineage:lineage",
    "model test": "model_calls:test",
    "model list-remote": "model_calls:list_remote",
    "model verify-sampling": "model_calls:verify_sampling",
    "model ask": "model_ask:ask",
    "model edit": "model_changes:edit",
    "model prices": "model_prices:prices",
    "model clone": "model_changes:clone",
    "model archive": "model_changes:archive",
    "model restore": "model_changes:restore",
    "model remove": "model_changes:remove",
    "import": "imports:imports",
    "restore": "backup:restore",
    "db": "migrations:migrations",
}
LIST = Path(__file__).with_name("commands.json")
_WHOLE = ("db",)  # groups that run code of their own before their commands
_ALONE = ("storage",)  # groups that do something without a command
_OF_PAGES = ("run", "shell", "routes")  # Flask's own commands, which need all of the web app


def load(name: str) -> click.Command:
    """A command or group by its name, with all that it needs."""
    file, _, attribute = FILES.get(name, f"{name}:{name}").partition(":")
    found: click.Command = getattr(import_module(f"app.cli.{file}"), attribute)
    return found


def listed(name: str) -> click.Command:
    """A command or group that shows its help line in lists, and is loaded when it is run."""
    said = _load_list()[name]
    if "commands" not in said:
        return LazyCommand(name, said["help"], lambda: load(name))
    if name in (*_WHOLE, *_ALONE):
        group: click.Group = LazyGroup(name, said["help"], lambda: load(name), alone=name in _ALONE)
    else:
        group = BaseGroup(name, help=said["help"])
    for each, line in said["commands"].items():
        group.add_command(LazyCommand(each, line, partial(load_below, name, each)))
    return group


def load_below(group: str, name: str) -> click.Command:
    """A command of a group."""
    if f"{group} {name}" in FILES:
        return load(f"{group} {name}")
    return cast(click.Group, load(group)).commands[name]


class Commands(AppGroup):
    """All commands; a kind of job that is not in the list gets its commands from the kind."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *_load_list()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _load_list():
            return listed(cmd_name)
        return super().get_command(ctx, cmd_name) or import_module("app.cli.jobs").commands_of(cmd_name)


@cache
def _load_list() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(LIST.read_text(encoding="utf-8"))
    return found


def _app() -> Flask:
    """The app in whose context a command runs: settings and a database, which is all that commands need."""
    context = click.get_current_context()
    if context.info_name in _OF_PAGES:
        return import_module("app.factory").create_app()  # type: ignore[no-any-return]
    if context.parent is None:  # Flask only asks for command names
        app = Flask("parlor")
        app.cli = Commands(app.name)
        return app
    return import_module("app.cli.context").command_app()  # type: ignore[no-any-return]


def __getattr__(name: str) -> click.Command:
    """The command that an entry point names, for which Flask then builds no web app."""
    if name not in _load_list():
        raise AttributeError(name)
    context = click.get_current_context(silent=True)
    if context is not None:
        script = context.ensure_object(ScriptInfo)
        if script.create_app is None and script.app_import_path is None:
            script.create_app = _app
    return listed(name)
