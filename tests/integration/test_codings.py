"""Codings: codes are given and taken back, coders see each other's only when they are done, and agree by so much."""

import csv
import html
import io
import re
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, func, select

from app.accounts import create_user
from app.core.errors import Conflict, Invalid, NotFound
from app.core.extensions import reading, writing
from app.matches import codings
from app.matches.agreement import agreement, alpha_of
from app.matches.erasing import erase_texts
from app.matches.filter import MatchFilter
from app.models import CodedMatch, GivenCode, MatchRow
from tests.experimenter import signed_in
from tests.integration.test_search import talk
from tests.programs import Program
from tests.shell import Finished

CODES = "opens high: the first demand leaves little\n\nconcedes: asks for less <b>than</b> before"


def coded(engine: Engine, *match_ids: str) -> int:
    """A coding of these matches; its number."""
    with writing(engine) as session:
        coding = codings.create_coding(session, "Offers", CODES, "admin")
        codings.add_matches(session, coding, match_ids)
        return coding.id


def give(engine: Engine, number: int, coder: str, *given: tuple[str, int, int]) -> None:
    with writing(engine) as session:
        for match_id, seq, key in given:
            codings.toggle(session, codings.find_coding(session, number), coder, match_id, seq, key)


def finish(engine: Engine, number: int, coder: str) -> None:
    with writing(engine) as session:
        codings.finish(session, codings.find_coding(session, number), coder)


def codes_of_lines(page: str) -> list[str]:
    return re.findall(r"<li>([^<]*)</li>", "".join(re.findall(r'<ul class="coded plain".*?</ul>', page)))


def add_form(client: FlaskClient, **asked: str) -> dict[str, str]:
    """What the form of a search's page sends that adds its matches to a coding."""
    page = client.get("/admin/matches/transcripts", query_string=asked)
    form = re.search(r'action="/admin/matches/codings/add">.*?</form>', page.text, re.DOTALL)
    assert form
    fields = re.findall(r'name="([^"]+)"[^>]* value="([^"]*)"', form[0])
    return {name: html.unescape(value) for name, value in fields}


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return signed_in(app)


def test_a_code_is_given_by_a_button_taken_back_and_undone(client: FlaskClient, engine: Engine) -> None:
    match_id = talk(engine, "[message] all for me", "[message] no")
    made = client.post("/admin/matches/codings", data={"name": "Offers", "codes": CODES})
    address = made.headers["Location"]
    added = client.post("/admin/matches/codings/add", data={"coding": address.rpartition("/")[2], "text": '"for me"'})
    assert added.headers["Location"] == address
    for line, key in ((1, 2), (1, 1), (0, 2)):
        answer = client.post(f"{address}/codes", data={"match": match_id, "line": line, "key": key})
        assert answer.headers["Location"] == f"{address}?match={match_id}&line={line}#read"
    assert codes_of_lines(client.get(address).text) == ["opens high", "concedes", "concedes"]
    client.post(f"{address}/codes", data={"match": match_id, "line": 1, "key": 2})  # once more takes it back
    client.post(f"{address}/undo")
    page = client.get(f"{address}?match={match_id}&line=1").text
    assert codes_of_lines(page) == ["opens high"]
    assert re.search(r'data-key="1" aria-pressed="true"', page)
    assert "&lt;b&gt;than&lt;/b&gt;" in page


def test_the_page_of_a_search_has_its_matches_coded(client: FlaskClient, engine: Engine) -> None:
    talk(engine, "[message] hello", "[message] hello")
    found = {talk(engine, "[message] all for me", *["[message] no"] * more) for more in range(1, 5)}
    number = coded(engine)
    form = add_form(client, text='"for me"', figures="moves>1", sort="-moves")
    assert form["most"] == "4"
    client.post("/admin/matches/codings/add", data={**form, "coding": number, "most": 2, "drawn": ""})
    with reading(engine) as session:
        most_moves = select(MatchRow.id).where(MatchRow.id.in_(found)).order_by(MatchRow.ply.desc()).limit(2)
        longest = session.scalars(most_moves).all()
        assert codings.matches_of(session, number) == longest
        drawn = [codings.choose_matches(session, number, MatchFilter(text="for"), 1) for _ in range(9)]
    assert len(set(map(tuple, drawn))) == 1
    assert set(drawn[0]) < found - set(longest)
    client.post("/admin/matches/codings/add", data={**form, "coding": number})
    with reading(engine) as session:
        assert set(codings.matches_of(session, number)) == found


def test_what_cannot_be_coded_is_said_above_the_search(client: FlaskClient, engine: Engine) -> None:
    match_id = talk(engine, "[message] all for me", "[message] no")
    number = coded(engine, match_id)
    form = add_form(client, text='"for me"')
    for more, reason in (({}, "got none"), ({"most": "501"}, "from 1 to 500"), ({"coding": "9"}, "got 9")):
        page = client.post("/admin/matches/codings/add", data={**form, "coding": number, **more})
        assert page.status_code in (400, 404, 422)
        assert reason in html.unescape(re.search(r'role="alert">(.*?)</p>', page.text)[1])  # type: ignore[index]
        assert match_id[:8] in page.text
    with writing(engine) as session, pytest.raises(Conflict, match="at most 500"):
        codings.add_matches(session, codings.find_coding(session, number), [str(n) for n in range(500)])


@pytest.mark.parametrize("codes", ["", ": help", "\n".join(map(str, range(9))), "same: a\nsame: b", "x" * 41, "a\x00b"])
def test_codes_that_cannot_be_are_refused_and_nothing_is_made(client: FlaskClient, codes: str) -> None:
    answer = client.post("/admin/matches/codings", data={"name": "Offers", "codes": codes})
    assert (answer.status_code, "There are none yet." in answer.text) == (400, True)
    with pytest.raises(Invalid, match="codes: expected"):
        codings.read_codes(codes)


def test_coders_see_each_other_only_when_both_are_done(
    client: FlaskClient, engine: Engine, flask: Callable[..., Finished]
) -> None:
    match_id = talk(engine, "[message] all for me", "[message] no")
    number = coded(engine, match_id)
    give(engine, number, "other", (match_id, 2, 2))
    give(engine, number, "admin", (match_id, 1, 1))
    give(engine, number, "passer-by", (match_id, 1, 1), (match_id, 1, 1))  # given and taken back
    finish(engine, number, "other")
    address = f"/admin/matches/codings/{number}"
    assert codes_of_lines(client.get(address).text) == ["opens high"]  # admin still codes
    assert "other" not in client.get(f"{address}.csv").text
    refused = flask("export", "codings", "Offers")
    assert (refused.exit_code, "expected one whose coders are all done, got 'admin'" in refused.stderr) == (2, True)
    client.post(f"{address}/done")
    assert codes_of_lines(client.get(address).text) == ["opens high", "concedes (other)"]
    rows = list(csv.DictReader(io.StringIO(client.get(f"{address}.csv").text)))
    assert [(row["seq"], row["coder"], row["key"], row["code"]) for row in rows] == [
        ("1", "admin", "1", "opens high"), ("2", "other", "2", "concedes"),
    ]  # fmt: skip
    assert list(csv.DictReader(io.StringIO(flask("export", "codings", "Offers").stdout))) == rows
    assert client.post(f"{address}/codes", data={"match": match_id, "line": 1, "key": 2}).status_code == 409
    with writing(engine) as session, pytest.raises(Conflict, match="nobody has finished"):
        codings.add_matches(session, codings.find_coding(session, number), [match_id])


def test_agreement_is_told_with_its_units(client: FlaskClient, engine: Engine) -> None:
    match_id = talk(engine, "[message] a", "[message] b")  # four lines
    number = coded(engine, match_id)
    give(engine, number, "admin", (match_id, 1, 1), (match_id, 2, 1))
    give(engine, number, "other", (match_id, 1, 1), (match_id, 0, 1))
    for coder in ("admin", "other"):
        finish(engine, number, coder)
    with reading(engine) as session:
        found = agreement(session, number, ["admin", "other"])
    assert [(each.code.key, each.unit, each.units, each.given, each.differ) for each in found] == [
        (1, "lines", 4, (2, 1), 1), (1, "matches", 1, (0, 1), 1), (2, "lines", 4, (0, 0), 0),
    ]  # fmt: skip
    # Of 8 ratings 3 are given: 1 - (8 - 1) * 2 / (2 * 3 * 5).
    assert [each.alpha for each in found] == [pytest.approx(1 - 7 * 2 / 30), 0.0, None]
    page = client.get(f"/admin/matches/codings/{number}").text
    assert ">0.53<" in page
    assert "nothing varies" in page


def test_alpha_is_that_of_the_published_example() -> None:
    # Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, section A: binary data, two observers.
    first, second = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    assert alpha_of([first, second]) == pytest.approx(0.095, abs=0.0005)


def test_deleted_words_take_their_codes_with_them(engine: Engine) -> None:
    gone, stays = talk(engine, "[message] a", "[message] b"), talk(engine, "[message] a", "[message] b")
    number = coded(engine, gone, stays)
    give(engine, number, "admin", (gone, 1, 1), (gone, 2, 1), (stays, 1, 1))
    with writing(engine) as session:
        erase_texts(session, gone, [0])
    with reading(engine) as session:
        assert session.scalars(select(GivenCode.match_id)).all() == [stays]
        assert session.scalar(select(func.count()).select_from(CodedMatch)) == 1


def test_what_the_coding_does_not_have_is_refused(engine: Engine) -> None:
    match_id, other = talk(engine, "[message] a", "[message] b"), talk(engine, "[message] a")
    number = coded(engine, match_id)
    for wrong in ((other, 1, 1), (match_id, 99, 1), (match_id, 1, 3), ("\x00", 1, 1)):
        with pytest.raises(NotFound):
            give(engine, number, "admin", wrong)


def test_what_a_removed_account_left_is_ended_by_others(
    client: FlaskClient, app: Flask, engine: Engine, flask: Callable[..., Finished]
) -> None:
    match_id = talk(engine, "[message] all for me", "[message] no")
    number = coded(engine, match_id)
    give(engine, number, "admin", (match_id, 1, 1))
    finish(engine, number, "admin")
    for name in ("bea", "carl"):
        with writing(engine) as session:
            create_user(session, name, None, datetime.now(UTC))
        give(engine, number, name, (match_id, 1, 2))
    program, address = Program(app, "read"), f"/admin/matches/codings/{number}"
    form = {"coder": "bea", "action": "close"}
    assert client.post(f"{address}/left", data=form).status_code == 409  # who has an account ends it alone
    for name in ("bea", "carl"):
        assert flask("user", "remove", name, "--yes").exit_code == 0
    refused = flask("export", "codings", "Offers")
    assert refused.exit_code == 2
    assert f"`flask match end-coder {number} CODER` ends what bea, carl left" in refused.stderr
    assert program.get(f"/codings/{number}")["given"] is None
    assert "Left unfinished" in client.get(address).text
    assert client.post(f"{address}/left", data={"coder": "nobody", "action": "drop"}).status_code == 404
    assert client.post(f"{address}/left", data=form).status_code == 303
    ended = flask("match", "end-coder", str(number), "carl", "--drop")
    assert ended.stdout == "Dropped 1 code of carl.\n"
    assert "Left unfinished" not in client.get(address).text
    rows = [*csv.DictReader(io.StringIO(flask("export", "codings", "Offers").stdout))]
    assert [(row["coder"], row["key"]) for row in rows] == [("admin", "1"), ("bea", "2")]
    shown = program.get(f"/codings/{number}")
    assert [(each["coder"], each["seq"], each["key"]) for each in shown["given"]] == [("admin", 1, 1), ("bea", 1, 2)]
    assert (shown["matches"], [each["name"] for each in shown["codes"]]) == ([match_id], ["opens high", "concedes"])
    [listed] = program.get("/codings")["items"]
    assert (listed["name"], listed["matches"], listed["coders"]) == ("Offers", 1, ["admin (done)", "bea (done)"])
    assert "Offers" in client.get("/admin/matches/codings?format=csv").text
    assert "Offers" in flask("match", "codings").stdout
