"""Pages and files are compressed for who asks for it, what is a stream of events is not, and CSRF tokens are masked."""

import gzip
import re
from collections.abc import Callable

from flask import Flask
from sqlalchemy import Engine

from tests.experimenter import signed_in
from tests.integration.test_search import talk

ASKS = {"Accept-Encoding": "br, gzip"}
TOKEN = re.compile(r'name="csrf_token" value="([^"]+)"')


def test_pages_and_tables_are_the_same_compressed_and_not(app: Flask, engine: Engine) -> None:
    talk(engine, "[message] hats")
    client = signed_in(app)
    for address in ("/admin/matches/analysis.csv", "/admin/export/moves.csv", "/static/css/admin-work.css"):
        plain, packed = client.get(address), client.get(address, headers=ASKS)
        assert packed.headers["Content-Encoding"] == "gzip"
        assert "Content-Encoding" not in plain.headers
        assert gzip.decompress(packed.data) == plain.data
        assert "Accept-Encoding" in packed.headers["Vary"]
        assert "Accept-Encoding" in plain.headers["Vary"]
        refused = client.get(address, headers={"Accept-Encoding": "gzip;q=0"})
        assert "Content-Encoding" not in refused.headers
    assert 3 * len(client.get("/admin/codebook", headers=ASKS).data) < len(client.get("/admin/codebook").data)


def test_the_size_of_the_same_file_is_another_each_time(app: Flask) -> None:
    client = app.test_client()
    sizes = {len(client.get("/static/css/admin-work.css", headers=ASKS).data) for _ in range(30)}
    assert len(sizes) > 5


def test_a_file_that_a_browser_has_is_not_sent_again(app: Flask) -> None:
    client = app.test_client()
    first = client.get("/static/css/admin-work.css", headers=ASKS)
    again = client.get("/static/css/admin-work.css", headers={**ASKS, "If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")


def test_events_and_what_is_small_or_compressed_already_stay_as_they_are(app: Flask) -> None:
    @app.get("/stream")
    def stream() -> object:
        return app.response_class(iter([b"data: 1\n\n"]), mimetype="text/event-stream")

    client = app.test_client()
    for address in ("/stream", "/healthz"):
        assert "Content-Encoding" not in client.get(address, headers=ASKS).headers


def test_a_form_is_taken_with_a_token_that_is_another_each_time(make_app: Callable[..., Flask]) -> None:
    app = make_app()
    client = signed_in(app)
    app.config["WTF_CSRF_ENABLED"] = True
    tokens = [TOKEN.findall(client.get("/admin/matches/codings").text)[0] for _ in range(2)]
    assert tokens[0] != tokens[1]
    form = {"name": "mine", "codes": "concedes: asks for less"}
    for token, status in ((tokens[0][:-8] + "AAAAAAAA", 400), ("", 400), (tokens[0], 303)):
        answer = client.post("/admin/matches/codings", data={**form, "csrf_token": token})
        assert answer.status_code == status, answer.text
