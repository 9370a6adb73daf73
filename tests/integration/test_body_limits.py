"""How long bodies may be: forms with files, what a proxy is to let through, and what becomes of forms that are long."""

import io
import re
from collections.abc import Callable

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Rule

from app.core.config import ROOT
from app.web.admin.job_form import JobForm
from app.web.admin.spec_form import takes_files
from app.web.body_limits import SMALL, TEXTS, body_limits
from tests.experimenter import signed_in

UNNAMED = {  # forms of which the template does not say where they go
    "admin/wave.html": ["admin.act_on_wave"],
    "admin/job-form.html": [
        *(f"admin.start_{each.kind.name}" for each in JobForm.__subclasses__() if takes_files(each.spec)),
        "admin.import_dataset",
    ],
}
UNITS = {"k": 1000, "m": 1_000_000}


def example(rule: Rule) -> str:
    """An address of a route."""
    return re.sub(r"<int:\w+>", "7", re.sub(r"<(?!int:)[^>]+>", "x", rule.rule))


def test_every_form_that_takes_files_may_be_longer_than_others(app: Flask) -> None:
    limits = body_limits(app.config["SETTINGS"])
    found: set[str] = set()
    for path in (ROOT / "templates").rglob("*.html"):
        name = str(path.relative_to(ROOT / "templates"))
        for form in re.findall(r"<form[^>]*multipart/form-data[^>]*>", path.read_text(encoding="utf-8")):
            target = re.search(r"url_for\('([\w.]+)'", form)
            found |= {target[1]} if target else {*UNNAMED[name]}
    assert len(found) >= 8
    assert found - set(limits) == set()
    assert set(limits) <= {rule.endpoint for rule in app.url_map.iter_rules()}


def test_the_proxy_of_the_docs_lets_through_what_a_route_takes_and_no_more_elsewhere(app: Flask) -> None:
    limits = body_limits(app.config["SETTINGS"])
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    default = re.search(r"^    client_max_body_size (\d+)([km]);", text, re.MULTILINE)
    locations = re.findall(r"location (=|~|) ?(\S+) \{ client_max_body_size (\d+)([km]);", text)
    assert default is not None

    def let_through(address: str) -> int:
        for kind, place, size, unit in locations:
            fits = re.search(place, address) if kind == "~" else address == place if kind else address.startswith(place)
            if fits:
                return int(size) * UNITS[unit]
        return int(default[1]) * UNITS[default[2]]

    for rule in app.url_map.iter_rules():
        most = limits[rule.endpoint].most if rule.endpoint in limits else SMALL
        assert let_through(example(rule)) >= most, rule
        if rule.endpoint not in limits and not rule.rule.startswith("/s/me/"):
            assert "POST" not in (rule.methods or ()) or let_through(example(rule)) == SMALL, rule


@pytest.mark.parametrize("text", ["word " * 60_000, "ä" * 200_000, "語" * 200_000])
def test_a_text_of_as_many_characters_as_a_form_takes_is_read(make_app: Callable[..., Flask], text: str) -> None:
    client: FlaskClient = signed_in(make_app(WTF_CSRF_ENABLED=False))
    answer = client.post("/admin/societies/new", data={"questions": "upload", "questions_text": text})
    assert answer.status_code not in (302, 413)
    file = (io.BytesIO(text.encode()), "mine.txt")
    answer = client.post("/admin/societies/new", data={"questions": "upload", "questions_file": file})
    assert answer.status_code not in (302, 413)
    refused = client.post("/admin/societies/new", data={"questions_text": "x" * (TEXTS + 1)})
    assert (refused.status_code, "at most 2 MB" in refused.text) == (413, True)


def test_an_address_of_nothing_is_limited_as_any_other(app: Flask) -> None:
    client = app.test_client()
    for path in ("/nowhere", "/static/nothing", "/admin/nothing", "/%ff", "//", "/socket.io/"):
        assert client.post(path, data=b"x" * (SMALL + 1)).status_code == 413, path
    with pytest.raises(HTTPException):
        app.url_map.bind("localhost").match("/nowhere", method="POST")
