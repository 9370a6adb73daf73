"""Writes down what can be asked for: every command with its options, and every form with its fields.

    python -m tests.inventory FILE

tests/golden/inventory.json is what version 0.2 had; tests/integration/test_inventory.py asks whether all of it
is there.
Forms are those that an experimenter's and a visitor's pages have in an installation with one of everything, for every
game, method and example that a form can be opened for.
"""

import json
import re
import shutil
import sys
from collections import defaultdict
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path

import click

from app.cli.commands import LIST, load, load_below
from app.core.extensions import db
from app.factory import create_app
from app.games import GAMES
from app.schema import upgrade
from app.web.admin.studies import EXAMPLES
from tests.integration.test_authorisation import MODEL, ROUTES, House, address
from tests.stack import new_home
from training.methods import all_methods

Inventory = dict[str, dict[str, list[str]]]

# Forms that look otherwise for each of these.
VARIANTS: Mapping[str, tuple[str, ...]] = {
    "/admin/rounds/new": (*(f"game={name}" for name in GAMES), "like=1"),
    "/admin/campaigns/new": tuple(f"game={name}" for name in GAMES),
    "/admin/datasets/new": tuple(f"game={name}" for name in GAMES),
    "/admin/jobs/new": (*(f"method={name}" for name in all_methods()), "like=1"),
    "/admin/societies/new": ("", "like=1"),
    "/admin/assessments/new": ("", "like=1"),
    "/admin/alignments/new": ("", "like=1"),
    "/admin/studies/editor": tuple(f"example={name}" for name in EXAMPLES),
}
_NOT_ASKED = ("csrf_token", "request_key", "agreed")  # of a form's own making


class _Forms(HTMLParser):
    """The forms of a page: where each is sent, and what its fields are called."""

    def __init__(self) -> None:
        super().__init__()
        self.found = list[tuple[str, set[str]]]()
        self._open: set[str] | None = None
        self._by_id = dict[str, set[str]]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._open = set()
            self.found.append((given.get("method", "get").upper() + " " + given.get("action", ""), self._open))
            if "id" in given:
                self._by_id[given["id"]] = self._open
        elif tag in ("input", "select", "textarea", "button") and given.get("name"):
            fields = self._by_id.get(given["form"]) if "form" in given else self._open
            if fields is not None and given["name"] not in _NOT_ASKED:
                choice = tag == "button" or given.get("type") in ("radio", "submit")
                fields.add(f"{given['name']}={given['value']}" if choice else given["name"])

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = None


def commands() -> dict[str, list[str]]:
    """Every command of `flask` that is Parlor's, with its arguments and options."""
    found = dict[str, list[str]]()
    for name, said in json.loads(LIST.read_text(encoding="utf-8")).items():
        for below in said.get("commands", [""]) if name != "db" else ():  # Flask-Migrate's
            command = load_below(name, below) if below else load(name)
            found[f"{name} {below}".strip()] = sorted(each for option in command.params for each in _names(option))
    return found


def _names(parameter: click.Parameter) -> list[str]:
    if isinstance(parameter, click.Argument):
        return [(parameter.metavar or parameter.name or "").upper()]
    return [*parameter.opts, *parameter.secondary_opts]


def forms() -> dict[str, list[str]]:
    """Every form, by how and where it is sent, with its fields; what stands for a row's number or name is left out."""
    home = new_home()
    app = create_app(
        {"PARLOR_HOME": home, "READING_WORDS_PER_MINUTE": 0, "GUEST_MATCHES_PER_MINUTE": 0, "GUEST_CONFIG": True}
    )
    upgrade(app)
    found = defaultdict[str, set[str]](set)
    try:
        house = House(app)
        models = [MODEL, "scripted-agent", "scripted-observer", "scripted", "local"]
        for line, row in ROUTES.items():
            method, path, _ = address(house, line)
            if method != "GET":
                continue
            for query in VARIANTS.get(path, ("",)):
                for who in ("admin", "participant"):
                    answer = house.visit(who, "GET", f"{path}?{query}", row)
                    if answer.status_code != 200 or answer.mimetype != "text/html":
                        continue
                    parser = _Forms()
                    parser.feed(answer.text)
                    for target, fields in parser.found:
                        found[_rule(target, path)] |= {_without_names(each, models) for each in fields}
    finally:
        with app.app_context():
            db.engine.dispose()
        shutil.rmtree(home, ignore_errors=True)
    return {target: sorted(fields) for target, fields in sorted(found.items()) if fields}


def _rule(target: str, path: str) -> str:
    """How and where a form is sent, without what is of this installation alone."""
    method, _, action = target.partition(" ")
    action = re.sub(r"\?.*", "", action or path)
    action = re.sub(r"/\d+(?=/|$)", "/N", action)
    action = re.sub(r"/(play|matches|s/me|s/preview|enter|s/me/back)/[^/]{12,}", r"/\1/…", action)
    return f"{method} {action}"


def _without_names(field: str, models: list[str]) -> str:
    name, mark, value = field.partition("=")
    for each in models:
        name = re.sub(rf"(?<= ){re.escape(each)}$", "MODEL", name)
    return f"{name}={value}" if mark and len(value) < 30 and not value.isdigit() else name


def inventory() -> Inventory:
    """Commands and forms."""
    return {"commands": commands(), "forms": forms()}


def main() -> None:
    text = json.dumps(inventory(), indent=1, ensure_ascii=False, sort_keys=True)
    Path(sys.argv[1]).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
