"""`flask model prices`: the price table, and how the prices of the registered models differ from it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from app.cli.base import Command, ensure_database, json_option, print_json, settings
from app.cli.tables import aligned
from app.core.errors import Invalid
from app.core.extensions import reading
from app.models import LanguageModel
from app.registry import list_models
from app.registry.price_table import PriceLine, find_prices, load_price_table
from app.registry.prices import own_prices, price_words

SAME, DIFFERS, UNSET, UNLISTED, UNKNOWN = "same", "differs", "unset", "unlisted", "unknown"
_HEADS = ("model", "server", "date", "prices of a million tokens", "source")


@click.command(cls=Command)
@json_option
def prices(as_json: bool) -> None:
    """List the table of prices, and the models whose own differ or are unknown.

    Nothing fetches the table: the setting PRICES_FILE names the file.
    """
    ensure_database()
    table = load_price_table(settings())
    with reading() as session:
        models = [_price_comparison(row, table) for row in list_models(session, archived=False) if row.kind == "api"]
    if as_json:
        lines = [{**_price_line_json(line), "model": line.model, "server": line.server} for line in table]
        print_json({"file": str(settings().prices_file), "prices": lines, "models": models})
        return
    for text in _in_words(table, models):
        click.echo(text)


def _price_comparison(row: LanguageModel, table: Sequence[PriceLine]) -> dict[str, Any]:
    """The prices of a model beside those in the table, None if it has none; `state` says how they differ."""
    own = own_prices(row)
    try:
        line = find_prices(table, row.options)
    except Invalid:  # options that releases no longer accept
        line = None
    if line is None:
        state = UNLISTED if own else UNKNOWN
    elif not own:
        state = UNSET
    else:
        state = SAME if own == line.prices else DIFFERS
    return {"name": row.name, "state": state, "prices": own, "table": None if line is None else _price_line_json(line)}


def _price_line_json(line: PriceLine) -> dict[str, Any]:
    return {"date": line.date.isoformat(), "source": line.source, "prices": dict(line.prices)}


def _in_words(table: Sequence[PriceLine], models: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    path = settings().prices_file
    if not table:
        yield f"No prices are in {path}: docs/models.md says how to add some."
    else:
        yield f"Prices in US dollars, {path}:"
        cells = [
            (each.model, each.server, each.date.isoformat(), price_words(each.prices), each.source) for each in table
        ]
        yield from aligned([_HEADS, *cells])
    yield "Models behind an API:" if models else "No model behind an API is registered."
    if models:
        yield from aligned([(each["name"], _state_in_words(each)) for each in models])


def _state_in_words(model: Mapping[str, Any]) -> str:
    own, listed = price_words(model["prices"]), model["table"]
    if listed is None:
        return f"{own}, not in the table" if own else "no prices, and none in the table"
    said = f"prices of {listed['date']} from {listed['source']}"
    if model["state"] == SAME:
        return f"{own}, {said}"
    return f"{own or 'no prices'}; the table has {price_words(listed['prices'])}, {said}"
