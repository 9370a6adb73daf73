"""The table of prices: how its lines are read, and which one is a model's."""

from datetime import date

import pytest

from app.core.config import ROOT
from app.core.errors import Invalid
from app.registry.price_table import find_prices, read_price_table

HEAD = "model,server,currency,date,source,price_in,price_out,price_cached,price_cache_write,price_reasoning"
SMALL = "vendor-small*,api.example.com,USD,2026-11-20,https://example.com/prices,0.25,2,0.025,,"
ANY = "*,*.example.org,USD,2026-10-01,https://example.org/p,1,4,,1.25,2"


def table(*lines: str, head: str = HEAD) -> bytes:
    return "\n".join([head, *lines]).encode()


def test_a_line_has_prices_a_date_and_a_source() -> None:
    small, _ = read_price_table(table(SMALL, ANY), "prices.csv")
    assert small.prices == {"price_in": 0.25, "price_out": 2, "price_cached": 0.025}
    assert (small.date, small.source) == (date(2026, 11, 20), "https://example.com/prices")
    assert str(small.said) == "prices of 2026-11-20 from https://example.com/prices"


@pytest.mark.parametrize(
    ("model", "base_url", "price"),
    [
        ("vendor-small-2", "https://api.example.com/v1", 0.25),
        ("vendor-small-2", "https://API.Example.com:8443/v1", 0.25),
        ("vendor-large", "https://api.example.com/v1", None),
        ("vendor-small-2", "https://eu.example.org/v1", 1),
        ("vendor-small-2", "https://api.example.com.evil.net/v1", None),
    ],
)
def test_a_model_has_the_first_line_for_its_name_and_host(model: str, base_url: str, price: float | None) -> None:
    dearer = SMALL.replace("0.25", "9")
    found = find_prices(read_price_table(table(SMALL, dearer, ANY), "x"), {"model": model, "base_url": base_url})
    assert (None if found is None else found.prices["price_in"]) == price


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (table(SMALL.replace("USD", "EUR")), "p.csv:2: expected prices in USD, got 'EUR'"),
        (table(ANY, SMALL.replace("2026-11-20", "last week")), "p.csv:3: expected a date such as 2026-01-31"),
        (table(SMALL.replace("0.25", "-1")), "p.csv:2: price_in: expected a number from 0"),
        (table(SMALL.replace("0.25", "nan")), "p.csv:2: price_in: expected a number from 0"),
        (table(SMALL.replace("0.25", "")), "p.csv:2: expected something in the column price_in, got nothing"),
        (table(SMALL.replace("https://example.com/prices", "")), "expected something in the column source"),
        (table(head="model,price"), "p.csv: expected the columns model, server, currency"),
        (table(head=f"{HEAD},note"), "p.csv: expected the columns model, server, currency"),
        (b"PK\x03\x04", "p.csv: expected a CSV table, got a workbook"),
    ],
)
def test_a_bad_table_is_refused_in_one_line_that_says_where(content: bytes, line: str) -> None:
    with pytest.raises(Invalid) as refused:
        read_price_table(content, "p.csv")
    assert line in refused.value.message
    assert "\n" not in refused.value.message


def test_the_shipped_table_can_be_read() -> None:
    read_price_table((ROOT / "data/prices.csv").read_bytes(), "data/prices.csv")
