"""Matches for tests on a running Parlor, in which nothing is left to chance, and models to play them."""

import subprocess
import sys
from typing import Any

from app.config import load_settings
from app.web import tickets
from tests.participant import Table, start
from tests.stack import ROOT, Stack

COUNTS = (1, 2, 2)  # books, hats, balls
YOURS = (10, 0, 0)  # the person wants the book alone
THEIRS = (0, 3, 2)  # and the partner everything else
ASKED = "I would like the book. You can have all the hats and balls."


def negotiation(stack: Stack, *, first: str = "you", server: str = "", **fields: Any) -> Table:
    """A negotiation that ends well if both say what they want. `first`: you or partner.

    Values and first mover go by seat, and the person's seat is drawn: it is started anew until the person has seat 0.
    """
    config = {"counts": COUNTS, "values": (YOURS, THEIRS), "first": 0 if first == "you" else 1}
    config |= fields.pop("config", {})
    while True:
        table = start(server or stack.url, "negotiation", config=config, **fields)
        if seat_of(stack, table) == 0:
            return table


def taboo(stack: Stack, role: str, word: str = "lemon", *, server: str = "", **fields: Any) -> Table:
    """A game of taboo with the person in that role."""
    config = {"word": word} | fields.pop("config", {})
    return start(server or stack.url, "taboo", config=config, role=role, **fields)


def seat_of(stack: Stack, table: Table) -> int:
    """The seat that a ticket is for, which only the server can tell."""
    return tickets.check(load_settings({"PARLOR_HOME": stack.home}), table.ticket, table.match)


def add_model(stack: Stack, base_url: str, name: str, remote: str, label: str, *more: str) -> None:
    """Register an API model as an experimenter does. `more`: further options of `flask model add-api`."""
    command = [sys.executable, "-m", "flask", "model", "add-api", name, "--model", remote, "--base-url", base_url]
    command += ["--key-env", "", "--label", label, *more]
    done = subprocess.run(command, cwd=ROOT, env=stack.env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
