"""The page of transcripts: what is found, in which order, what is counted, and what an open wave does not tell."""

import html
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine

from app.core.extensions import writing
from app.models import Wave
from tests.enrolments import KnownWave, person, play
from tests.experimenter import signed_in
from tests.integration.test_search import NO_DEAL, talk
from tests.programs import Program, until
from tests.shell import Finished

PAGE = "/admin/matches/transcripts"


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return signed_in(app)


def hits(page: str) -> list[str]:
    """The ids of the matches of the list, in its order."""
    listed = page.partition('<ol class="hits')[2].partition("</ol>")[0]
    return [html.unescape(each) for each in re.findall(r'class="ref" href="[^"]*read=([\w-]{22})#read"', listed)]


def counts(page: str, facet: str) -> dict[str, int]:
    """The values of a facet with their counts."""
    part = page.partition(f'<ul class="plain" aria-labelledby="facet-{facet}">')[2].partition("</ul>")[0]
    found = re.findall(r'<span>([^<]*)</span><span class="count">(\d+)</span>', part)
    return {value.strip(): int(many) for value, many in found}


def test_the_words_are_marked_and_never_become_html(client: FlaskClient, engine: Engine) -> None:
    talk(engine, '[message] <img src=x onerror=alert(1)> "both" hats & <b>caps</b>')
    page = client.get(PAGE, query_string={"text": "img hats caps"}).text
    assert "&lt;<mark>img</mark> src=x onerror=alert(1)&gt;" in page
    assert "<mark>hats</mark> &amp; &lt;b&gt;<mark>caps</mark>&lt;/b&gt;" in page
    assert "<img src=x" not in page


def test_the_worst_come_first_and_the_next_is_read_beside_the_list(client: FlaskClient, engine: Engine) -> None:
    deal, lost = talk(engine, "[message] a", "[message] b"), talk(engine, "[message] c", "[message] d", moves=NO_DEAL)
    page = client.get(PAGE, query_string={"sort": "lower_score"}).text
    assert hits(page) == [lost, deal]
    onward = re.search(r'data-key="j" rel="next" href="([^"]+)"', page)
    assert onward
    page = client.get(html.unescape(onward[1])).text
    assert f'href="/admin/matches/{deal}"' in page
    assert 'data-key="k"' in page
    assert 'data-key="j"' not in page


def test_facets_count_what_could_be_chosen(client: FlaskClient, engine: Engine) -> None:
    talk(engine, "[message] straw", "[message] b"), talk(engine, "[message] straw", "[message] d", moves=NO_DEAL)
    talk(engine, "[message] caps")
    page = client.get(PAGE, query_string={"text": "straw", "reason": "deal"}).text
    assert (counts(page, "reason"), counts(page, "player")) == ({"deal": 1, "no deal": 1}, {"person": 1})


@pytest.mark.parametrize("query", ["sort=nonsense", "page=0", "figures=what", "game=chess", "read=nobody"])
def test_what_cannot_be_is_said_in_a_line(client: FlaskClient, engine: Engine, query: str) -> None:
    talk(engine, "[message] hats")
    answer = client.get(f"{PAGE}?{query}")
    assert answer.status_code in (400, 404)
    assert 'role="alert"' in answer.text


def test_a_wave_that_is_not_frozen_tells_neither_model_nor_score_nor_ending(
    client: FlaskClient, engine: Engine, known: KnownWave
) -> None:
    with writing(engine) as session:
        secret = play(session, person(session, known, "P-001"), 0)
    open_match = talk(engine, "[message] first", "[message] second", moves=NO_DEAL)
    page = client.get(PAGE, query_string={"sort": "-joint_score"}).text
    assert hits(page) == [open_match, secret]  # behind one that nobody won
    assert "casual" not in counts(page, "player")
    assert counts(page, "reason") == {"no deal": 1}
    reader = client.get(PAGE, query_string={"read": secret}).text
    assert "[propose] (1 books, 2 hats, 0 balls)" in reader  # its words are read all the same
    assert "casual" not in reader
    assert f'href="/admin/matches/{secret}"' not in reader
    roles = ({"player": "person", "role": each} for each in ("first", "second"))  # either tells whose the other one is
    for asked in ({"player": "casual"}, {"reason": "deal"}, {"figures": "lower_score>=0"}, *roles):
        assert secret not in hits(client.get(PAGE, query_string=asked).text)
    assert secret in hits(client.get(PAGE, query_string={"text": "propose hats", "figures": "moves>0"}).text)
    with writing(engine) as session:
        session.get_one(Wave, known.wave).frozen_at = datetime.now(UTC)
    page = client.get(PAGE, query_string={"sort": "-joint_score"}).text
    assert hits(page) == [secret, open_match]
    assert counts(page, "player")["casual"] == 1


def test_no_list_page_file_or_program_is_told_more_of_an_open_wave(
    client: FlaskClient, app: Flask, engine: Engine, known: KnownWave, flask: Callable[..., Finished]
) -> None:
    with writing(engine) as session:
        secret = play(session, person(session, known, "P-001"), 0)
    open_match = talk(engine, "[message] first", "[message] second", moves=NO_DEAL)
    program = Program(app, "read")
    until(program, None, 2)

    def told() -> dict[str, str]:
        """What each way tells of the secret match."""
        listed = client.get("/admin/matches").text
        row = listed.partition(f'id="line-{secret}"')[2].partition("</tr>")[0]
        files = {
            name: [line for line in client.get(f"/admin/export/{name}.csv").text.splitlines() if secret in line]
            for name in ("matches", "moves", "events", "generations")
        }
        shell = {name: [line for line in flask("export", name).stdout.splitlines() if secret in line] for name in files}
        assert shell == files
        return {
            "list": row,
            "home": client.get("/admin/").text.partition('id="latest-list"')[2],
            "file": client.get("/admin/matches?format=csv").text,
            "page": client.get(f"/admin/matches/{secret}", follow_redirects=True).text,
            "api": json.dumps(next(each for each in program.get("/matches")["items"] if each["match_id"] == secret)),
            "log": json.dumps(program.get(f"/matches/{secret}")),
            "command": flask("match", "list", "--csv").stdout,
            **{name: "\n".join(lines) for name, lines in files.items()},
        }

    hidden = told()
    assert hidden["generations"] == ""
    for way, text in hidden.items():
        assert "casual" not in text, way
        assert not re.search(r"\bdeal\b(?! or no deal)", text.replace("no deal", "")), way
    assert "[propose] (1 books, 2 hats, 0 balls)" in hidden["moves"]
    assert "[propose] (1 books, 2 hats, 0 balls)" in hidden["page"]
    shown = json.loads(hidden["api"])
    assert (shown["utility_0"], shown["winner"], shown["reason"], shown["player_0"]) == (None, None, None, None)
    for asked in ("player=casual", "reason=deal", "sort=scores", "sort=-players", "figures=lower_score>=0"):
        assert secret not in client.get(f"/admin/matches?{asked}").text, asked
    for asked in ("player=casual", "reason=deal"):
        assert program.get(f"/matches?{asked}")["items"] == [], asked
        assert secret not in client.get(f"/admin/export/moves.csv?{asked}").text, asked
    assert open_match in client.get("/admin/matches?sort=scores").text
    analysed = "/admin/matches/analysis.csv?source=live&all=1", "/admin/matches/analysis.csv?study=two-models"
    assert "casual" not in "".join(client.get(address).text for address in analysed)
    refused = client.get("/admin/export/inspect.json")
    assert (refused.status_code, "no matches from unfrozen waves, got 1" in refused.text) == (409, True)

    with writing(engine) as session:
        session.get_one(Wave, known.wave).frozen_at = datetime.now(UTC)
    for way, text in told().items():
        assert "casual" in text or way in ("generations", "home"), way
    assert json.loads(told()["api"])["reason"] == "deal"
    assert all("casual" in client.get(address).text for address in analysed)
    assert secret in client.get("/admin/export/inspect.json").text
