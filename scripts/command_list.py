"""Writes what `flask --help` lists into app/cli/commands.json: `python -m scripts.command_list`.

The words are those of the commands themselves. tests/unit/cli/test_command_list.py asks whether the file is up to date.
"""

import json
import tomllib
from typing import Any

import click

from app.cli.commands import FILES, LIST, load
from app.core.config import ROOT


def command_list() -> dict[str, Any]:
    """Every command by its name: what it does, and for a group the same of each of its commands."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = {name: _described(load(name)) for name in sorted(project["entry-points"]["flask.commands"])}
    for name in FILES:
        group, _, below = name.partition(" ")
        if below:
            found[group]["commands"][below] = _line(load(name))
    return {
        name: {**said, **({"commands": dict(sorted(said["commands"].items()))} if "commands" in said else {})}
        for name, said in found.items()
    }


def _described(command: click.Command) -> dict[str, Any]:
    if not isinstance(command, click.Group):
        return {"help": _line(command)}
    below = {name: _line(each) for name, each in sorted(command.commands.items())}
    return {"help": (command.help or "").strip(), "commands": below}


def _line(command: click.Command) -> str:
    return command.get_short_help_str(limit=1000)


def main() -> None:
    text = json.dumps(command_list(), indent=1, ensure_ascii=False)
    LIST.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
