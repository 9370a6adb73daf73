"""The dated table of prices: a CSV file, which is never fetched. PRICES_FILE replaces it with another one.

A line applies to models whose name at the server matches `model`, at hosts that match `server`; * in them matches
anything. The first line that matches a model is used.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from typing import Any

from app.core.config import Settings
from app.core.csv_reader import CsvRow, read_csv
from app.core.errors import Invalid, Phrase, Verbatim
from app.core.validation import real_number
from app.players.api import options as api_options
from app.players.api.addresses import host_of
from app.registry.prices import PRICES

_COLUMNS = ("model", "server", "currency", "date", "source", *PRICES)
_NEEDED = ("model", "server", "currency", "date", "source", "price_in", "price_out")
_CURRENCY = "USD"
_MOST_BYTES = 5_000_000


@dataclass(frozen=True, slots=True)
class PriceLine:
    """A line of the table; `prices` are options of a model by name, in USD per million tokens."""

    model: str
    server: str
    date: date
    source: str  # address of the page that states it
    prices: Mapping[str, float]

    def fits(self, model: str, host: str) -> bool:
        """Whether it applies to this model at this host."""
        return fnmatchcase(model, self.model) and fnmatchcase(host, self.server)

    @property
    def said(self) -> Phrase:
        """The source of its prices, in words."""
        return Phrase("prices of %(date)s from %(source)s", date=self.date.isoformat(), source=Verbatim(self.source))


def load_price_table(settings: Settings) -> list[PriceLine]:
    """The lines of the table. Raises Invalid, in one line, if the file is missing or is not a price table."""
    path = settings.prices_file
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _invalid_prices_error(
            path, Phrase("a file that can be read"), Verbatim(error.strerror or "none")
        ) from None
    if len(content) > _MOST_BYTES:
        raise _invalid_prices_error(path, Phrase("at most %(most)s bytes", most=_MOST_BYTES), Verbatim(len(content)))
    return read_price_table(content, str(path))


def read_price_table(content: bytes, name: str) -> list[PriceLine]:
    """The lines of a table with this name. Raises Invalid."""
    table = read_csv(content, name, _COLUMNS)
    missing = [column for column in _NEEDED if column not in table.columns]
    unknown = [column for column in table.columns if column not in _COLUMNS]
    if missing or unknown:
        got = Phrase("none called %(names)s", names=", ".join(missing)) if missing else Verbatim(", ".join(unknown))
        raise _invalid_prices_error(name, Phrase("the columns %(names)s", names=", ".join(_COLUMNS)), got)
    return [_read_price_line(row, f"{name}:{row.line}") for row in table.rows]


def find_prices(table: Sequence[PriceLine], options: Mapping[str, Any]) -> PriceLine | None:
    """The line for a model with these options; None where there is none. Raises Invalid for bad options."""
    read = api_options.read_options(options)
    return next((line for line in table if line.fits(read.model, host_of(read.base_url))), None)


def _read_price_line(row: CsvRow, place: str) -> PriceLine:
    cells = row.cells
    for column in _NEEDED:
        if not cells[column]:
            raise _invalid_prices_error(
                place, Phrase("something in the column %(column)s", column=column), Phrase("nothing")
            )
    if cells["currency"] != _CURRENCY:
        raise _invalid_prices_error(place, Phrase("prices in %(currency)s", currency=_CURRENCY), cells["currency"])
    try:
        day = date.fromisoformat(cells["date"])
    except ValueError:
        raise _invalid_prices_error(place, Phrase("a date such as 2026-01-31"), cells["date"]) from None
    try:
        prices = {
            name: real_number(text, name, 0, api_options.HIGHEST_PRICE)
            for name in PRICES
            if (text := cells.get(name, ""))
        }
    except Invalid as error:
        raise error.at(Verbatim(place)) from None
    return PriceLine(cells["model"], cells["server"].lower(), day, cells["source"], prices)


def _invalid_prices_error(place: object, expected: Phrase, got: object) -> Invalid:
    return Invalid(
        "PRICES_FILE", expected=expected, got=got, subject=Verbatim(place),
        remedy=Phrase("fix the file, or name another in the setting PRICES_FILE"),
    )  # fmt: skip
