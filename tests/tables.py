"""Matches for tests on a running Parlor, in which nothing is left to chance, and models to play them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, create_engine, select

from app.core.config import Settings, load_settings
from app.core.extensions import writing
from app.games.base import JSON
from app.matches import live
from app.matches.clocks import NO_CLOCKS, Clocks
from app.matches.stored import StoredSeat
from app.models import EventRow
from app.registry import add_api_model
from app.web import tickets
from tests.participant import Table, start
from tests.stack import Stack

COUNTS = (1, 2, 2)  # books, hats, balls
YOURS = (10, 0, 0)  # the person wants the book alone
THEIRS = (0, 3, 2)  # and the partner everything else
MOVES = ("message", "proposal", "declaration")
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
    return tickets.check(settings_of(stack), table.ticket, table.match)


def settings_of(stack: Stack) -> Settings:
    """The settings of a running Parlor, as far as its folder, its key and its database go."""
    return load_settings({"PARLOR_HOME": stack.home, "DATABASE_URL": stack.env["DATABASE_URL"]})


@contextmanager
def database(stack: Stack) -> Iterator[Engine]:
    """The database of a running Parlor."""
    engine = create_engine(settings_of(stack).database_url)
    try:
        yield engine
    finally:
        engine.dispose()


def add_model(stack: Stack, base_url: str, name: str, remote: str, label: str, **more: Any) -> None:
    """Register an API model of both games that people are offered. `more`: further options of the model."""
    options = {"model": remote, "base_url": base_url, "key_env": "", "retries": 0, **more}
    with database(stack) as engine, writing(engine) as session:
        add_api_model(session, name, label, ["negotiation", "taboo"], options).offered_to_people = True


def moves_of(stack: Stack, match: str) -> list[str]:
    """The texts of a match's accepted moves, as its log has them."""
    rows = select(EventRow.body).where(EventRow.match_id == match, EventRow.kind.in_(MOVES)).order_by(EventRow.seq)
    with database(stack) as engine, engine.connect() as connection:
        return [body["text"] for body in connection.scalars(rows)]


def two_people(stack: Stack, game: str, config: JSON, clocks: Clocks = NO_CLOCKS) -> tuple[Table, Table]:
    """A match of two people: the table as either of them has it, by seat."""
    with database(stack) as engine, writing(engine) as session:
        people = StoredSeat("person"), StoredSeat("person")
        record = live.create(session, game, config, people, seed=1, source="live", instant=True, clocks=clocks)
    settings = settings_of(stack)
    passes = [tickets.issue(settings, record.id, seat) for seat in (0, 1)]
    first, second = (
        Table(stack.url, record.id, ticket, f"{stack.url}/play/{record.id}?ticket={ticket}") for ticket in passes
    )
    return first, second
