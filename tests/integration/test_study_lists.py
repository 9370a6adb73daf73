"""Lists of studies, versions, waves, people, batches, reports and experimenters: sorted, page by page, and as files."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine

from app import accounts
from app.core.extensions import reading, writing
from app.core.lists import Listing
from app.models import Payment, PaymentBatch
from app.studies.listing import STUDIES, VERSIONS, WAVES
from app.studies.monitor.inbox import REPORTS
from app.studies.monitor.pay import BATCHES
from app.studies.monitor.people import PEOPLE
from app.studies.reports import close_report, keep_report
from tests.enrolments import START, enrol, finish, load_example
from tests.experimenter import signed_in
from tests.integration.test_admin_studies import wave_of
from tests.integration.test_lists import pages_of

MAIN = "two-models:main"


@pytest.fixture
def studied(engine: Engine, tmp_path: Path) -> Engine:
    """Two studies, one of them in two versions, with waves, people of all kinds, reports, pay and experimenters."""
    with writing(engine) as session:
        version = load_example(session, tmp_path / "first")
        waves = [wave_of(session, version.id, name) for name in ("main", "later", "last")]
        load_example(session, tmp_path / "again", **{"minutes: 25": "minutes: 30"})
        load_example(session, tmp_path / "other", "taboo-roles")
        waves[1].status, waves[2].frozen_at = "paused", START
        for number in range(5):
            way = enrol(session, waves[0], f"P{number}", version, arm=0 if number % 2 else None)
            if number < 3:
                keep_report(session, way, ("broken", "other", "stuck")[number], f"Words {number}")
            if number:
                finish(session, way, "technical" if number % 2 else "quiz_failed")
                batch = PaymentBatch(
                    wave_id=waves[0].id, number=number, format="csv", status="drafted", created_at=START
                )
                batch.uploaded_at = START + timedelta(days=1) if number % 2 else None
                session.add(batch)
                session.flush()
                session.add(
                    Payment(
                        enrolment_id=way.enrolment.id, batch_id=batch.id, key="base", amount=Decimal(10 * number),
                        currency="USD", created_at=START,
                    )
                )  # fmt: skip
        for name in ("ann", "ben"):
            accounts.create_user(session, name, None, datetime.now(UTC))
    with writing(engine) as session:
        first = REPORTS.read(session, REPORTS.order("report")).rows[0]
        close_report(session, first.id, "ann")
    return engine


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return signed_in(app)


def test_every_order_has_each_line_once_and_is_the_same_page_by_page(studied: Engine) -> None:
    counts = {"studies": 2, "versions": 3, "waves": 3, "people": 5, "batches": 4, "reports": 3, "users": 2}
    listings: tuple[Listing[Any], ...] = (STUDIES, VERSIONS, WAVES, PEOPLE, BATCHES, REPORTS, accounts.LIST)
    for listing in listings:
        sortable = [column.name for column in listing.columns if column.sort is not None]
        assert len(sortable) >= min(6, len(listing.columns) - 2), listing.name
        for sort in ("", *sortable, *(f"-{name}" for name in sortable)):
            with reading(studied) as session:
                whole = [row.id for row in listing.read(session, listing.order(sort)).rows]
            assert [number for page in pages_of(studied, listing, sort) for number in page] == whole, (
                listing.name,
                sort,
            )
            assert len(whole) == len(set(whole)) >= counts[listing.name], listing.name


def test_people_are_sorted_by_what_they_are_paid_and_by_their_code(studied: Engine, app: Flask) -> None:
    def codes(sort: str) -> list[str]:
        told = app.test_cli_runner().invoke(args=["study", "people", MAIN, "--json", "--sort", sort]).stdout
        return [each["participant"] for each in json.loads(told)]

    assert codes("-pay") == ["P4", "P3", "P2", "P1", "P0"]  # who is owed nothing yet comes last
    assert codes("participant") == ["P0", "P1", "P2", "P3", "P4"]


def test_pages_commands_and_files_have_the_same_lines(studied: Engine, app: Flask, client: FlaskClient) -> None:
    for address, command in (
        ("/admin/studies?format=csv", "list"),
        ("/admin/studies?waves-format=csv", "waves"),
        ("/admin/studies/1?versions-format=csv", "versions two-models"),
        ("/admin/studies/1?waves-format=csv", "waves two-models"),
        ("/admin/studies/waves/1?format=csv", f"people {MAIN}"),
        ("/admin/studies/reports?wave=1&format=csv", f"reports {MAIN}"),
    ):
        file = client.get(address)
        assert file.mimetype == "text/csv", address
        told = app.test_cli_runner().invoke(args=["study", *command.split(), "--csv"])
        assert told.stdout == file.text, address
        assert file.text.count("\n") > 2, address
    batches = json.loads(client.get("/admin/studies/waves/1/pay?format=json&sort=-amount").text)
    assert [(each["batch"], each["amount"]) for each in batches] == [
        (4, "40.00"),
        (3, "30.00"),
        (2, "20.00"),
        (1, "10.00"),
    ]


def test_a_file_of_people_has_what_is_chosen_alone(studied: Engine, client: FlaskClient) -> None:
    here = json.loads(client.get("/admin/studies/waves/1?where=here&format=json").text)
    assert [(each["participant"], each["ending"], each["where"]) for each in here] == [("P0", "", "consent")]
    assert client.get("/admin/studies/waves/1?where=nowhere&format=json").status_code == 400


def test_the_reports_of_one_person_are_listed_on_demand(studied: Engine, client: FlaskClient) -> None:
    page = client.get("/admin/studies/reports?person=p1").text
    assert ("Words 1" in page, "Words 2" in page) == (True, False)


def test_experimenters_are_listed(studied: Engine, app: Flask, client: FlaskClient) -> None:
    client.get("/admin/")
    told = app.test_cli_runner().invoke(args=["user", "list", "--json", "--sort", "-signed_in"]).stdout
    first, *others = json.loads(told)
    assert (first["signed_in"], first["password"]) == (1, False)
    assert {"ann", "ben"} <= {each["name"] for each in others}
