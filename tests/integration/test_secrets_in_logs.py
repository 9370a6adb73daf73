"""What opens a door is not in the log: private links, links to sign in, previews, codes of other surveys."""

import traceback
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError
from structlog.testing import CapturingLogger

from app.core.extensions import db, open_engine
from app.web import auth, errors
from app.web.study import entry, participant, survey_return

SECRET = "Zk-dhI0Qy0o4C5FzG7q"
AWAY = OperationalError("SELECT 1", {}, Exception("connection refused"))


@pytest.mark.parametrize("error", [RuntimeError("a fault"), AWAY])
@pytest.mark.parametrize(
    ("module", "name", "address"),
    [
        (participant, "find_progress_by_token", "/s/me/{}"),
        (participant, "find_progress_by_token", "/s/me/{}/agreed"),
        (participant, "find_progress_by_token", "/s/me/{}/leave"),
        (survey_return, "_unsealed", "/s/me/back/{}"),
        (entry.previews, "read_preview", "/s/preview/{}"),
        (auth, "FlaskForm", "/enter/{}"),
    ],
)
def test_an_address_in_the_log_leads_nowhere(
    app: Flask, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, address: str, error: Exception
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(module, name, fail)
    logged = CapturingLogger()
    monkeypatch.setattr(errors, "log", logged)
    assert app.test_client().get(address.format(SECRET)).status_code in (500, 503)
    (call,) = logged.calls
    assert SECRET not in str(call)
    assert call.kwargs["path"].startswith(address.partition("{")[0])


@pytest.mark.parametrize("own", [False, True], ids=["the app's", "a worker's"])
def test_a_statement_in_a_traceback_goes_without_its_values(app: Flask, own: bool) -> None:
    engine: Engine = open_engine(db.engine.url) if own else db.engine
    with pytest.raises(Exception, match="enrolment_of_nobody") as error, engine.connect() as connection:
        connection.execute(text("SELECT * FROM enrolment_of_nobody WHERE token = :token"), {"token": SECRET})
    told = "".join(traceback.format_exception(error.value))
    assert "WHERE token = " in told
    assert SECRET not in told
    if own:
        engine.dispose()
