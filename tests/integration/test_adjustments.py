"""Adjustments: once for each form, under the spend cap or with a reason, in plain amounts, and reversed once."""

import re
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient
from flask_babel import refresh
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from app.core.errors import Conflict, Invalid, NotFound
from app.core.extensions import reading, writing
from app.models import Payment, StudyEvent, Wave
from app.studies import batches, payments, places
from app.studies.due import due
from app.studies.pay_doubts import pay_doubts
from app.studies.progress import StudyProgress
from tests.enrolments import KnownWave, enrol, finish, load_example, open_wave, person, play
from tests.experimenter import signed_in
from tests.integration.test_cli_dataset import flask as run
from tests.stack import PATIENCE
from tests.study_pages import text_of
from tests.waves import arrive

WAVE = "two-models:main"


@pytest.fixture
def wave(app: Flask, engine: Engine, tmp_path: Path) -> int:
    """A wave with a cap of 40, in which P1 completed it; the number of the wave."""
    with writing(engine) as session:
        version = load_example(session, tmp_path)
        found = open_wave(session, version)
        terms = {"prolific": {"study_id": "66f0c1", "fee": "0.5"}}
        found.settings = {**found.settings, "of": "two-models", "provider": terms, "codes": {"completed": "C"},
                          "most_spent": "40.00"}  # fmt: skip
        progress = enrol(session, found, "P1", version)
        play(session, progress, 0)
        payments.record_owed(session, finish(session, progress))
        return found.id


def form_of(page: str, action: str) -> dict[str, str]:
    """The hidden fields of the first form with that button."""
    form = next(each for each in re.findall(r"<form.*?</form>", page, re.DOTALL) if f'value="{action}"' in each)
    fields = {"action": action}
    for field in re.findall(r'<input type="hidden"[^>]*>', form):
        name, value = (re.search(rf'{part}="([^"]*)"', field) for part in ("name", "value"))
        assert name is not None
        fields[name[1]] = "" if value is None else value[1]
    return fields


def adjust_form(client: FlaskClient, wave: int, **fields: str) -> dict[str, str]:
    page = client.get(f"/admin/studies/waves/{wave}/pay").text
    return {**form_of(page, "adjust"), "person": "P1", "amount": "1.50", "reason": "The page did not load", **fields}


def sums(engine: Engine) -> list[Decimal]:
    with reading(engine) as session:
        rows = select(Payment.amount).where(Payment.key.not_in(("base", "bonus"))).order_by(Payment.id)
        return list(session.scalars(rows))


def send(app: Flask, wave: int, form: Mapping[str, str]) -> int:
    return signed_in(app).post(f"/admin/studies/waves/{wave}/pay", data=form).status_code


def test_a_form_that_is_sent_three_times_adjusts_once(app: Flask, engine: Engine, wave: int) -> None:
    client = signed_in(app)
    form = adjust_form(client, wave)
    for _ in range(3):
        assert client.post(f"/admin/studies/waves/{wave}/pay", data=form).status_code == 303
    assert sums(engine) == [Decimal("1.50")]
    again = adjust_form(client, wave)  # the page as it is now: somebody wants it once more
    client.post(f"/admin/studies/waves/{wave}/pay", data=again)
    assert sums(engine) == [Decimal("1.50"), Decimal("1.50")]
    for number in range(3):  # without a key, as a program sends it
        bare = {"action": "adjust", "person": "P1", "amount": "0.10", "reason": "more"}
        assert client.post(f"/admin/studies/waves/{wave}/pay", data=bare).status_code == 303, number
    assert sums(engine)[2:] == [Decimal("0.10")]


def test_a_page_of_a_person_adjusts_once_as_well(app: Flask, engine: Engine, wave: int) -> None:
    client = signed_in(app)
    with reading(engine) as session:
        number = payments.find_progress_by_code(session, session.get_one(Wave, wave), "P1").enrolment.id
    here = f"/admin/studies/waves/{wave}/people/{number}"
    form = {**form_of(client.get(here).text, "adjust"), "amount": "0.25", "reason": "late"}
    for _ in range(3):
        assert client.post(here, data=form).status_code == 303
    assert sums(engine) == [Decimal("0.25")]


def test_two_tabs_that_are_sent_at_once_adjust_once(app: Flask, engine: Engine, wave: int) -> None:
    tabs = [(client, adjust_form(client, wave)) for client in (signed_in(app) for _ in range(4))]
    together = threading.Barrier(len(tabs), timeout=PATIENCE)

    def send_one(tab: tuple[FlaskClient, Mapping[str, str]]) -> int:
        client, form = tab
        together.wait()
        return client.post(f"/admin/studies/waves/{wave}/pay", data=form).status_code

    with ThreadPoolExecutor(len(tabs)) as pool:
        assert set(pool.map(send_one, tabs)) == {303}
    assert sums(engine) == [Decimal("1.50")]


def test_a_draft_that_is_sent_twice_is_one_batch(app: Flask, engine: Engine, wave: int) -> None:
    client = signed_in(app)
    form = form_of(client.get(f"/admin/studies/waves/{wave}/pay").text, "draft")
    assert [client.post(f"/admin/studies/waves/{wave}/pay", data=form).status_code for _ in range(2)] == [303, 303]
    with reading(engine) as session:
        assert len(batches.batches_of(session, session.get_one(Wave, wave))) == 1


@pytest.mark.parametrize(
    "amount", ["1e3", "1_000", "nan", "inf", "-inf", "١٢", "１２", "−0.25", "1.505", "1.5.0", "0x10", "1/2", "", "0"]
)
def test_an_amount_is_a_plain_decimal(app: Flask, engine: Engine, wave: int, amount: str) -> None:
    client = signed_in(app)
    answer = client.post(f"/admin/studies/waves/{wave}/pay", data=adjust_form(client, wave, amount=amount))
    assert answer.status_code == 400
    assert "Amount: expected an amount" in text_of(answer)
    assert sums(engine) == []
    done = run(app, "study", "pay", WAVE, "adjust", "P1", "--amount", amount or "x", "--reason", "x")
    assert done.exit_code == 2
    assert sums(engine) == []


def test_separators_are_those_of_the_page(app: Flask, engine: Engine, wave: int) -> None:
    client = signed_in(app)
    cents = adjust_form(client, wave, amount="2,50")
    assert client.post(f"/admin/studies/waves/{wave}/pay", data=cents).status_code == 303
    assert sums(engine) == [Decimal("2.50")]
    unclear = adjust_form(client, wave, amount="1.000")
    assert client.post(f"/admin/studies/waves/{wave}/pay", data=unclear).status_code == 400
    client.post("/language", data={"language": "de"})
    refresh()  # the requests of a test share its context, in which the language is kept
    form = adjust_form(client, wave, amount="1.000", over_cap="abgesprochen")
    answer = client.post(f"/admin/studies/waves/{wave}/pay", data=form)
    assert answer.status_code == 303, text_of(answer)
    assert sums(engine) == [Decimal("2.50"), Decimal("1000.00")]


def test_the_cap_is_gone_over_only_with_a_typed_reason(app: Flask, engine: Engine, wave: int) -> None:
    client = signed_in(app)
    form = adjust_form(client, wave, amount="30")
    refused = client.post(f"/admin/studies/waves/{wave}/pay", data=form)
    assert refused.status_code == 400
    assert "spend cap of 40.00" in text_of(refused)
    assert 'name="over_cap"' in refused.text
    assert sums(engine) == []
    told = run(app, "study", "pay", WAVE, "adjust", "P1", "--amount", "30", "--reason", "x")
    assert (told.exit_code, "spend cap of 40.00" in told.stderr) == (2, True)
    assert send(app, wave, {**form, "over_cap": "the board agreed"}) == 303
    assert sums(engine) == [Decimal("30.00")]
    with reading(engine) as session:
        (kept,) = session.scalars(
            select(StudyEvent.body).where(StudyEvent.kind == "adjustment").order_by(StudyEvent.id)
        )
    assert kept["over_cap"] == "the board agreed"


def test_a_reversed_adjustment_gives_the_cap_back(app: Flask, engine: Engine, wave: int) -> None:
    with writing(engine) as session:
        found = session.get_one(Wave, wave)
        payments.adjust(session, progress_of(session, wave), Decimal(1000), "a slip", over_cap="not looked at")
        assert arrive(session, found, "next").enrolment.ending == "full"
    with writing(engine) as session:
        payments.reverse(session, progress_of(session, wave), 1, "a slip")
        found = session.get_one(Wave, wave)
        assert arrive(session, found, "another").enrolment.ending is None


def progress_of(session: Session, wave: int, code: str = "P1") -> StudyProgress:
    return payments.find_progress_by_code(session, session.get_one(Wave, wave), code)


def test_an_adjustment_is_reversed_once_by_a_row_of_its_own(app: Flask, engine: Engine, wave: int) -> None:
    client = signed_in(app)
    client.post(f"/admin/studies/waves/{wave}/pay", data=adjust_form(client, wave))
    form = {**form_of(client.get(f"/admin/studies/waves/{wave}/pay").text, "reverse"), "reason": "another person"}
    assert [client.post(f"/admin/studies/waves/{wave}/pay", data=form).status_code for _ in range(2)] == [303, 303]
    assert sums(engine) == [Decimal("1.50"), Decimal("-1.50")]
    page = client.get(f"/admin/studies/waves/{wave}/pay")
    assert "reversal of adjustment 1" in text_of(page)
    assert 'value="reverse"' not in page.text
    done = run(app, "study", "pay", WAVE, "reverse", "P1", "--adjustment", "1", "--reason", "once more")
    assert done.exit_code == 2
    assert "expected one that was not reversed" in done.stderr
    with pytest.raises(NotFound), writing(engine) as session:
        payments.reverse(session, progress_of(session, wave), 2, "none")


def test_money_that_was_sent_is_not_back_by_a_reversal(engine: Engine, known: KnownWave) -> None:
    with writing(engine) as session:
        found = session.get_one(Wave, known.wave)
        progress = person(session, known, "P1")
        finish(session, progress, "quiz_failed")  # owed 1.00
        payments.adjust(session, progress, Decimal(3), "generous")
        (batch,) = batches.draft(session, found)
        with pytest.raises(Conflict, match="take that draft back first"):
            payments.reverse(session, progress, 1, "a slip")
        batches.mark(session, batch, "uploaded")
        before = places.committed_before_fee(session, found)
        payments.reverse(session, progress, 1, "a slip")
        assert places.committed_before_fee(session, found) == before  # the cap does not get it back either
        assert due(session, found) == []
        assert [(each.kind, each.amount) for each in pay_doubts(session, found)] == [("overpaid", Decimal("3.00"))]
        payments.adjust(session, progress, Decimal(5), "for the interview")
        (owed,) = due(session, found)
        assert owed.amount == Decimal("2.00")  # 5.00 less what was paid too much
        assert pay_doubts(session, found) == []


def test_what_was_taken_away_since_keeps_a_reversal_from_going_below_nothing(engine: Engine, known: KnownWave) -> None:
    with writing(engine) as session:
        progress = person(session, known, "P1")
        finish(session, progress, "declined")
        payments.adjust(session, progress, Decimal(2), "thanks")
        payments.adjust(session, progress, Decimal(-2), "paid by hand")
        with pytest.raises(Invalid, match="reverse the deductions made since"):
            payments.reverse(session, progress, 1, "a slip")
        payments.reverse(session, progress, 2, "not paid by hand")
        payments.reverse(session, progress, 1, "a slip")
        assert sum(row.amount for row in payments.payments_of(session, progress.enrolment.id)) == 0
