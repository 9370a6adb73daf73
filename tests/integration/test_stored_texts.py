"""Why something stopped, as workers store it in English, on German pages."""

import errno
import re
from datetime import UTC, datetime

import pytest
from flask import Flask
from flask_babel import refresh
from sqlalchemy import Engine

from app.core.errors import Invalid, Phrase
from app.core.extensions import writing
from app.core.internal_errors import internal_error, unexplained
from app.jobs.kind import fail
from app.jobs.spec import JobBudget
from app.jobs.spending import Spent, reached
from app.models import RoundRow
from app.players.api.connection_errors import system_error
from app.registry.spending import InstallationSpending
from app.web.stored_texts import stored_text
from tests.experimenter import signed_in
from tests.rounds import add_models, make_round

BUDGET = reached(JobBudget(usd=5, tokens=None), Spent(usd=5.25))
TOKENS = reached(JobBudget(usd=None, tokens=900), Spent(tokens=950, estimated=10))
AT_MODEL = "chat-8b at http://127.0.0.1:9/v1"
REFUSED = f"expected a connection to 127.0.0.1:9, got {system_error(ConnectionRefusedError(errno.ECONNREFUSED, 'x'))}"


@pytest.mark.parametrize(
    ("english", "german"),
    [
        (BUDGET, "Budget von $5.00 erreicht: $5.25 ausgegeben; setzen Sie mit einem höheren fort"),
        (TOKENS, "davon 10 geschätzt; setzen Sie mit einem höheren fort"),
        (f"round 3: {BUDGET}", "Durchgang 3: Budget von $5.00 erreicht"),
        (
            InstallationSpending(10, "month", datetime(2026, 11, 1, tzinfo=UTC), 11).line,
            "Monatsbudget dieser Installation von $10.00 erreicht: $11.00 ausgegeben seit 2026-11-01, UTC",
        ),
        (
            f"{AT_MODEL}: {REFUSED} (retries: 4)",
            f"{AT_MODEL}: erwartet: eine Verbindung zu 127.0.0.1:9, erhalten: Verbindung abgelehnt (weitere Versuche: ",
        ),
        (f"no answer for 600 s: {AT_MODEL}: {REFUSED}", f"seit 600 s keine Antwort: {AT_MODEL}: "),
        (unexplained("the training", 9, ""), "das Training endete ohne Meldung mit dem Exit-Code 9"),
        (internal_error("a test", RuntimeError("x")), "; mehr steht unter dieser Kennung im Protokoll"),
        (str(Invalid("dataset", expected=Phrase("one of the answers"), got=Phrase("none"))), "eine der Antworten"),
    ],
    ids=lambda text: str(text)[:9],  # all workers of pytest are to name them alike, and a reference is drawn
)  # fmt: skip
def test_what_workers_store_is_german_on_german_pages(app: Flask, english: str, german: str) -> None:
    with app.test_request_context(headers={"Accept-Language": "de"}):
        refresh()  # of the tests' app context, which remembers a language
        said = str(stored_text(english))
    assert german in said
    assert 'lang="en"' not in said
    with app.test_request_context(headers={"Accept-Language": "en"}):
        refresh()
        assert english in str(stored_text(english)).replace("&#39;", "'")


def test_what_is_half_english_stays_whole_english_and_says_so(app: Flask) -> None:
    text = "expected rows with a move to learn from, got nothing that anybody could read"
    with app.test_request_context(headers={"Accept-Language": "de"}):
        refresh()  # of the tests' app context, which remembers a language
        assert stored_text(text) == f'<span lang="en">{text}</span>'
        assert "<script>" not in stored_text("<script>alert(1)</script> was answered by the server")


def test_the_pages_of_a_stopped_round_and_the_overview_say_why_in_german(app: Flask, engine: Engine) -> None:
    add_models(engine, "http://127.0.0.1:9/v1", "haggler")
    number = make_round(engine, "haggler")
    with writing(engine) as session:
        fail(session.get_one(RoundRow, number), str(BUDGET))
    browser = signed_in(app)
    for address in (f"/admin/rounds/{number}", "/admin/rounds", "/admin/", f"/admin/compare/rounds?run={number}"):
        page = browser.get(address, headers={"Accept-Language": "de"}).text
        assert "Budget von $5.00 erreicht" in page, address
        assert not re.search(r"budget of \$", page), address
