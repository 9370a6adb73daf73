"""The page of a report: its downloads are what `flask report` writes, and it says why there is none yet."""

import io
import re
import zipfile
from collections.abc import Callable
from html import unescape

from flask import Flask
from sqlalchemy import Engine

from tests.campaigns import add_local, campaign_of
from tests.experimenter import signed_in
from tests.integration.test_result_reports import SOCIETY
from tests.recipes import carry_on, make_run
from tests.shell import Finished


def without_date(page: str) -> str:
    return re.sub(r"on \d+ \w+ \d{4}, \d\d:\d\d UTC", "on DATE", page)


def test_what_a_button_downloads_is_what_the_command_writes(
    app: Flask, engine: Engine, flask: Callable[..., Finished]
) -> None:
    assert flask(*SOCIETY).exit_code == 0
    client = signed_in(app)
    job = client.get("/admin/societies/1").text
    [address] = re.findall(r'href="(/admin/report\?[^"]+)">Report<', job)
    page = client.get(address)
    assert page.status_code == 200
    assert "(society 1)</h1>" in page.text
    assert "flask report --society 1" in page.text
    links = re.findall(r'href="(/admin/report\.[^"]+)"', page.text)
    assert links == ["/admin/report.zip?society=1", "/admin/report.html?society=1"]
    archive, alone = (client.get(each) for each in links)
    assert (archive.mimetype, alone.mimetype) == ("application/zip", "text/html")
    assert 'filename="report-society-1.zip"' in archive.headers["Content-Disposition"]
    assert 'filename="report-society-1.html"' in alone.headers["Content-Disposition"]
    written = app.config["SETTINGS"].home / "written.html"
    assert flask("report", "--society", "1", "--out", written).exit_code == 0
    assert without_date(alone.text) == without_date(written.read_text(encoding="utf-8"))
    with zipfile.ZipFile(io.BytesIO(archive.data)) as found:
        inside = found.read("report-society-1/report.html").decode()
        assert "report-society-1/figures/ratings-1.pdf" in found.namelist()
    assert without_date(inside) == without_date(alone.text)


def test_a_report_that_cannot_be_made_yet_is_refused_on_its_page(app: Flask, engine: Engine) -> None:
    add_local(engine, "base")
    number = campaign_of(engine, "base")
    client = signed_in(app)
    assert f'href="/admin/report?campaign={number}">Report<' in client.get(f"/admin/campaigns/{number}").text
    refused = client.get(f"/admin/report.zip?campaign={number}")
    assert refused.status_code == 409
    assert "expected one whose base was evaluated, got none so far; wait for its first evaluation" in refused.text
    assert "Content-Disposition" not in refused.headers
    page = client.get(f"/admin/report?campaign={number}&control=7").text
    assert f'href="/admin/report.zip?campaign={number}&amp;control=7"' in page
    assert f"flask report --campaign {number} --control 7<" in page
    odd = client.get(f"/admin/report?campaign={number}&control=it's;").text
    assert unescape(odd).count(f"""flask report --campaign {number} --control 'it'"'"'s;'<""") == 1
    assert re.search(r'name="control" value="7"', page)
    assert 'name="control"' not in client.get("/admin/report?tournament=negotiation").text
    for address, status in (
        ("/admin/report", 400),
        ("/admin/report?society=1&recipe=2", 400),
        ("/admin/report?society=7", 404),
        ("/admin/report?society=x", 404),
        ("/admin/report?study=none", 404),
        ("/admin/report.pdf?society=1", 404),
        ("/admin/report.html?tournament=chess", 400),
        ("/admin/report.html?tournament=negotiation", 409),
    ):
        assert client.get(address).status_code == status, address


def test_the_leaderboard_and_recipes_lead_to_their_reports(app: Flask, engine: Engine) -> None:
    number = make_run(engine)
    carry_on(engine, app.config["SETTINGS"], number)
    client = signed_in(app)
    for page, address in (
        (f"/admin/recipes/{number}", f"/admin/report?recipe={number}"),
        ("/admin/models/leaderboard", "/admin/report?tournament=negotiation:0"),
    ):
        [link] = re.findall(r'href="(/admin/report\?[^"]+)">Report<', client.get(page).text)
        assert link == address
        assert client.get(link).status_code == 200
        found = client.get(link.replace("report?", "report.html?"))
        assert found.status_code == 200
        assert "How to reproduce it" in found.text
