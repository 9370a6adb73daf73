"""The table of prices on the form of a new model, on a model's page, and in commands."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import select

from app.core.extensions import db, reading
from app.models import LanguageModel
from tests.experimenter import signed_in
from tests.shell import Finished

HEAD = "model,server,currency,date,source,price_in,price_out,price_cached"
LINES = (HEAD, "vendor-1,api.example.com,USD,2026-11-20,https://example.com/prices,0.25,2,0.025")
ADD = ("model", "add-api", "mine", "--model", "vendor-1", "--base-url", "https://api.example.com/v1", "--key-env", "")
FORM = {"name": "mine", "model": "vendor-1", "base_url": "https://api.example.com/v1", "key_env": "", "games": "taboo"}
SAID = "prices of 2026-11-20 from https://example.com/prices"

Run = Callable[..., Finished]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "prices.csv"
    path.write_text("\n".join(LINES))
    return path


@pytest.fixture
def app(make_app: Callable[..., Flask], file: Path) -> Iterator[Flask]:
    app = make_app(PRICES_FILE=str(file))
    with app.app_context():
        yield app


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return signed_in(app)


def stored_options() -> dict[str, Any] | None:
    with reading(db.engine) as session:
        return session.scalar(select(LanguageModel.options).where(LanguageModel.name == "mine"))


def test_a_command_takes_prices_that_are_not_given_from_the_table_and_says_of_when(flask: Run) -> None:
    added = flask(*ADD)
    assert f"$0.25 in, $2 out, $0.025 cached: {SAID}" in added.stdout
    options = stored_options() or {}
    assert [options.get(name) for name in ("price_in", "price_out", "price_cached")] == [0.25, 2, 0.025]


@pytest.mark.parametrize("given", [("--price-in", "3", "--price-out", "5"), ("--price-in", "none")])
def test_prices_that_are_given_are_kept(flask: Run, given: tuple[str, ...]) -> None:
    added = flask(*ADD, *given)
    assert (added.exit_code, "2026-11-20" in added.stdout) == (0, False)
    assert "price_cached" not in (stored_options() or {})


def test_the_list_says_which_models_differ_from_the_table_and_which_have_no_prices(flask: Run) -> None:
    elsewhere = ("--model", "vendor-1", "--base-url", "https://elsewhere.example.net/v1", "--key-env", "")
    flask(*ADD)
    flask("model", "add-api", "other", *ADD[3:], "--price-in", "3", "--price-out", "5")
    flask("model", "add-api", "away", *elsewhere)
    lines = flask("model", "prices").stdout.splitlines()
    assert lines[2].split() == [
        "vendor-1", "api.example.com", "2026-11-20", "$0.25", "in,", "$2", "out,", "$0.025", "cached",
        "https://example.com/prices",
    ]  # fmt: skip
    assert [line.split(maxsplit=1) for line in lines[4:]] == [
        ["mine", f"$0.25 in, $2 out, $0.025 cached, {SAID}"],
        ["other", f"$3 in, $5 out; the table has $0.25 in, $2 out, $0.025 cached, {SAID}"],
        ["away", "no prices, and none in the table"],
    ]
    found = json.loads(flask("model", "prices", "--json").stdout)
    assert {each["name"]: each["state"] for each in found["models"]} == {
        "mine": "same", "other": "differs", "away": "unknown",
    }  # fmt: skip


def test_a_bad_table_is_one_line(flask: Run, file: Path) -> None:
    file.write_text("\n".join(LINES).replace("USD", "EUR"))
    for command in (("model", "prices"), ADD):
        refused = flask(*command)
        assert refused.exit_code == 2
        line = "expected prices in USD, got 'EUR'; fix the file, or name another in the setting PRICES_FILE"
        assert refused.stderr.splitlines() == [f"Error: {file}:2: {line}"]
    assert stored_options() is None


def test_a_button_of_the_form_fills_in_the_prices_and_adds_nothing(client: FlaskClient) -> None:
    assert "Fill in prices from the table" in client.get("/admin/models/new").text
    page = client.post("/admin/models/new", data={**FORM, "price_out": "77", "action": "fill-prices"}).text
    assert f"P{SAID[1:]}." in page
    for name, price in (("price_in", "0.25"), ("price_out", "2"), ("price_cached", "0.025"), ("model", "vendor-1")):
        assert f'name="{name}" type="text" value="{price}"' in page
    assert stored_options() is None
    other = client.post("/admin/models/new", data={**FORM, "model": "vendor-2", "action": "fill-prices"}).text
    assert "The table of prices has no line for this model at this address." in other


def test_the_page_of_a_model_says_of_when_its_prices_are_or_that_the_table_has_others(
    client: FlaskClient, flask: Run
) -> None:
    flask(*ADD)
    with reading(db.engine) as session:
        number = session.scalar(select(LanguageModel.id).where(LanguageModel.name == "mine"))
    page = client.get(f"/admin/models/{number}").text
    assert "$0.25 in, $2 out, $0.025 cached" in page
    assert f"P{SAID[1:]}" in page
    flask("model", "edit", "mine", "--price-in", "0.5")
    assert f"The table has other ones: {SAID}" in client.get(f"/admin/models/{number}").text


def test_a_bad_table_is_said_on_the_form_and_breaks_no_page(client: FlaskClient, file: Path) -> None:
    file.unlink()
    assert client.get("/admin/models/new").status_code == 200
    refused = client.post("/admin/models/new", data={**FORM, "action": "fill-prices"})
    assert refused.status_code == 400
    assert "expected a file that can be read" in refused.text
