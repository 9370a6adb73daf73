"""The admin pages: for signed-in experimenters alone, and the same CSVs as on the command line."""

import csv
import io
import re
import string
from datetime import UTC, datetime, timedelta

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, update

from app.core.csv_tables import to_csv
from app.core.extensions import reading, writing
from app.job_kinds import JOB_KINDS
from app.matches import export, live
from app.matches.failures import LATELY
from app.matches.overview import QUIET
from app.matches.stored import StoredMatch, StoredSeat
from app.models import GenerationRow, LanguageModel, Lease, MatchRow
from app.registry import PERSON, add_api_model, find_model, partners
from app.web.admin.job_pages import job_address
from tests.experimenter import signed_in
from tests.model_requests import keep_result

DOWNLOADS = ["/admin/export/matches.csv", "/admin/export/moves.csv", "/admin/export/events.csv",
             "/admin/export/generations.csv", "/admin/export/codebook.csv"]  # fmt: skip


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    """A browser in which an experimenter is signed in."""
    return signed_in(app)


def begin(engine: Engine, text: str | None = None) -> StoredMatch:
    with writing(engine) as session:
        seats = StoredSeat(PERSON), StoredSeat.of(find_model(session, "taboo", "scripted"))
        record = live.create(session, "taboo", {"word": "cat"}, seats, seed=1, source="live", instant=True)
        if text is not None:
            live.submit(session, live.MoveSubmission(record.id, 0, text), instant=True)
    return record


def part(page: str, heading: str) -> str:
    """The section of a page under a heading."""
    return page.partition(f'aria-labelledby="{heading}"')[2].partition("</section>")[0]


def marked(page: str, line: str) -> list[tuple[str, str]]:
    """What the links of a line of the navigation say of themselves: address, and what aria-current says or nothing."""
    found = page.partition(f'<nav class="{line}"')[2].partition("</nav>")[0]
    return re.findall(r'<a href="([^"]+)"(?: aria-current="(\w+)")?>', found)


def test_every_list_of_jobs_is_in_the_navigation_or_below_one_of_its_sections(app: Flask, client: FlaskClient) -> None:
    sections = [address for address, _ in marked(client.get("/admin/").text, "admin-nav")]
    lists = {address for section in sections for address, _ in marked(client.get(section).text, "section-nav")}
    with app.test_request_context():
        wanted = [job_address(kind) for kind in JOB_KINDS]
    assert [address for address in wanted if address not in {*sections, *lists}] == []
    assert len(sections) < len({*sections, *lists})


@pytest.mark.parametrize(
    ("path", "section", "below"),
    [
        ("/admin/", ("/admin/", "page"), ("/admin/", "page")),
        ("/admin/matches", ("/admin/matches", "page"), ("/admin/matches", "page")),
        ("/admin/spend/removed", ("/admin/", "true"), ("/admin/spend/storage", "true")),
        ("/admin/matches/transcripts", ("/admin/matches", "true"), ("/admin/matches/transcripts", "page")),
        ("/admin/studies", ("/admin/studies", "page"), ("/admin/studies", "page")),
        ("/admin/studies/new", ("/admin/studies", "true"), ("/admin/studies", "true")),
        ("/admin/rehearsals", ("/admin/studies", "true"), ("/admin/rehearsals", "page")),
        ("/admin/benchmarks/new", ("/admin/models", "true"), ("/admin/benchmarks", "true")),
    ],
)
def test_the_navigation_marks_where_one_is(
    client: FlaskClient, path: str, section: tuple[str, str], below: tuple[str, str]
) -> None:
    page = client.get(path).text
    assert [each for each in marked(page, "admin-nav") if each[1]] == [section]
    assert [each for each in marked(page, "section-nav") if each[1]] == [below]


@pytest.mark.parametrize("path", ["/admin/", *DOWNLOADS, "/admin/export/users.csv", "/admin/no/such/page"])
def test_nobody_else_gets_in(app: Flask, path: str) -> None:
    response = app.test_client().get(path)
    assert (response.status_code, response.location) == (302, f"/sign-in?next={path}")
    assert b"match_id" not in response.data


def test_who_plays_is_no_experimenter(app: Flask) -> None:
    guest = app.test_client()
    guest.post("/start/taboo", data={"role": "attacker"})
    for path in ("/admin/", "/admin/models/1", "/account"):
        assert guest.get(path).location == f"/sign-in?next={path}"
    assert guest.post("/admin/models/1", data={"action": "people-off"}).location == "/sign-in"
    with reading() as session:
        assert find_model(session, "taboo", "scripted").offered_to_people


def test_an_address_that_is_not_there_leads_back_to_the_overview(client: FlaskClient) -> None:
    answer = client.get("/admin/no/such/page")
    assert answer.status_code == 404
    assert "There is nothing at this address." in answer.text
    assert "Go to the overview" in answer.text


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/admin/models/1", {"action": "people-off"}),
        ("/admin/models/new", {"name": "mine", "games": "taboo", "model": "m"}),
        ("/account", {"new": "quite a long password", "again": "quite a long password"}),
        ("/sign-out", {}),
    ],
)
@pytest.mark.parametrize("token", [{}, {"csrf_token": "an old one"}], ids=["none", "stale"])
def test_a_form_that_was_open_too_long_changes_nothing_and_says_what_to_do(
    app: Flask, client: FlaskClient, path: str, form: dict[str, str], token: dict[str, str]
) -> None:
    app.config["WTF_CSRF_ENABLED"] = True
    answer = client.post(path, data={**form, **token})
    assert answer.status_code == 400
    assert "The page was open for too long." in answer.text
    with reading() as session:
        assert [model.name for model in partners(session)] == ["scripted"]
    assert "Set a password" in client.get("/account").text  # still signed in, and still without one


def test_an_empty_installation_shows_an_overview_without_matches(client: FlaskClient) -> None:
    page = client.get("/admin/").text
    assert "No match has been played yet." in page
    assert "No match is being played now." in page
    assert "House partner" in page


def test_live_and_latest_matches_are_shown_with_players_and_outcome(client: FlaskClient, engine: Engine) -> None:
    playing, over, quiet = begin(engine, "a pet"), begin(engine, "cat"), begin(engine, "a pet")
    with writing(engine) as session:
        long_ago = datetime.now(UTC) - 2 * QUIET
        session.execute(update(MatchRow).where(MatchRow.id == quiet.id).values(moved_at=long_ago))
    page = client.get("/admin/").text
    live_part, latest = part(page, "live"), part(page, "latest")
    assert [record.id in live_part for record in (playing, over, quiet)] == [True, False, False]
    assert all(record.id in latest for record in (playing, over, quiet))
    assert "attacker breaks the rules" in latest
    assert "1 left open" in page
    assert "scripted, defender" in live_part


# ---- Last failures -----------------------------------------------------------


def api_model(engine: Engine, name: str) -> LanguageModel:
    with writing(engine) as session:
        options = {"base_url": "http://127.0.0.1:9/v1", "model": "stub", "key_env": "", "retries": 0}
        row = add_api_model(session, name, None, ["taboo"], options)
        session.expunge(row)
    return row


def break_off(engine: Engine, fault: str, detail: str, model: LanguageModel | None = None) -> str:
    """A match that ends so, with its model in seat 1."""
    with writing(engine) as session:
        seats = StoredSeat(PERSON), StoredSeat.of(model or find_model(session, "taboo", "scripted"))
        record = live.create(session, "taboo", {"word": "cat"}, seats, seed=1, source="live", instant=False)
        live.abort(session, record, fault, 1, detail)
    return record.id


def call(engine: Engine, match: str, model: LanguageModel, error: str | None) -> None:
    with writing(engine) as session:
        session.add(
            GenerationRow(
                match_id=match, seat=1, ply=1, attempt=0, language_model_id=model.id, model="stub", prompt=[],
                sampling={}, latency=1.0, retries=0, error=error, at=datetime.now(UTC),
            )
        )  # fmt: skip


def failures(client: FlaskClient) -> list[tuple[str, ...]]:
    """The rows of the list: what happened, how often, why, and where the links lead."""
    rows = part(client.get("/admin/").text, "failures").split("<tr ")[2:]
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]
    return [
        (*(re.sub("<[^>]+>", "", each) for each in (what, times, why)), *re.findall(r'href="([^"]+)"', model + match))
        for what, times, why, model, match, _ in cells
    ]


def test_nothing_that_went_wrong_is_an_empty_list(client: FlaskClient, engine: Engine) -> None:
    begin(engine, "cat")
    assert "Nothing has gone wrong" in part(client.get("/admin/").text, "failures")


def test_an_outcome_has_one_name_on_all_pages(client: FlaskClient, engine: Engine) -> None:
    match = break_off(engine, "us", "5 workers died at this turn")
    for path, says in {"": "1 aborted", "matches": "aborted</span>", f"matches/{match}": "Aborted, our fault"}.items():
        page = client.get(f"/admin/{path}").text
        assert says in page, path
        assert "roken off" not in page, path
    heads = [
        re.findall(r'<th scope="col"[^>]*>(?:<a[^>]*>)?(State|Ended as)<', client.get(f"/admin/{path}").text)
        for path in ("", "matches")
    ]
    assert heads == [["State"], ["State"]]


def test_failures_are_told_newest_first_with_whose_fault_and_links(client: FlaskClient, engine: Engine) -> None:
    model = api_model(engine, "weak")
    first = break_off(engine, "model", "no answer within 60 s", model)
    second = break_off(engine, "us", "5 workers died at this turn")
    keep_result(engine, model.id, ok=False, error="expected an answer, got HTTP 401")
    match, page = "/admin/matches/{}".format, f"/admin/models/{model.id}"
    assert failures(client) == [
        ("A test call failed", "1", "expected an answer, got HTTP 401", page),
        ("Match aborted, our fault", "1", "5 workers died at this turn", "/admin/models/1", match(second)),
        ("Match aborted, the model’s fault", "1", "no answer within 60 s", page, match(first)),
    ]


def test_a_call_without_an_answer_is_told_once(client: FlaskClient, engine: Engine) -> None:
    model = api_model(engine, "weak")
    broken = break_off(engine, "model", "got HTTP 500", model)
    call(engine, broken, model, "got HTTP 500")
    going_on = begin(engine, "a pet").id
    call(engine, going_on, model, "got HTTP 503")
    call(engine, going_on, model, None)
    assert [row[:3] for row in failures(client)] == [
        ("A call brought no answer", "1", "got HTTP 503"),
        ("Match aborted, the model’s fault", "1", "got HTTP 500"),
    ]


def test_what_is_long_ago_or_went_well_is_no_failure_and_the_list_has_an_end(
    client: FlaskClient, engine: Engine
) -> None:
    fine, once = api_model(engine, "fine"), api_model(engine, "once")
    keep_result(engine, fine.id, ok=True, refused=None, text="hello")
    keep_result(engine, once.id, 2 * LATELY, ok=False, error="long ago")
    old = break_off(engine, "us", "long ago")
    with writing(engine) as session:
        session.execute(update(MatchRow).where(MatchRow.id == old).values(started_at=datetime.now(UTC) - 2 * LATELY))
    assert failures(client) == []
    for letter in string.ascii_lowercase:
        break_off(engine, "us", f"reason {letter} of many, " + "very long " * 50)
    told = failures(client)
    assert len(told) == 20
    assert told[0][2].startswith("reason z of many")
    assert all(len(why) < 230 for _, _, why, *_ in told)


def test_failures_with_one_cause_are_told_once_with_how_often(client: FlaskClient, engine: Engine) -> None:
    weak, other = api_model(engine, "weak"), api_model(engine, "other")
    for seconds in (60, 61.5, 60):
        break_off(engine, "model", f"no answer within {seconds} s", weak)
    latest = break_off(engine, "model", "no answer within 59 s", weak)
    break_off(engine, "model", "no answer within 60 s", other)
    told = [(times, why, links[-1]) for _, times, why, *links in failures(client)]
    assert told[1] == ("4", "no answer within 59 s", f"/admin/matches/{latest}")
    assert [times for times, *_ in told] == ["1", "4"]


def test_a_loop_that_does_not_run_is_said(client: FlaskClient, engine: Engine) -> None:
    assert "Upkeep is not running." in client.get("/admin/").text
    with writing(engine) as session:
        session.add(Lease(name="upkeep", owner="it", until=datetime.now(UTC) + timedelta(minutes=1)))
    assert "Upkeep is not running." not in client.get("/admin/").text


def test_every_link_of_the_overview_leads_somewhere(client: FlaskClient, engine: Engine) -> None:
    begin(engine)
    page = client.get("/admin/").text
    links = {piece.partition('"')[0].replace("&amp;", "&") for piece in page.split('href="')[1:]} - {"#main"}
    assert len(links) > 8
    assert {link: client.get(link).status_code for link in links} == dict.fromkeys(links, 200)


def test_nothing_of_the_page_is_inline_and_nothing_is_kept(client: FlaskClient) -> None:
    response = client.get("/admin/")
    assert " style=" not in response.text
    assert re.findall(r"<script(?! type=\"module\" src=)|</script>\s*[^\s<]", response.text) == []
    assert "'unsafe" not in response.headers["Content-Security-Policy"]
    assert response.headers["Cache-Control"] == "no-store"


def test_what_is_in_a_game_never_becomes_html(client: FlaskClient, engine: Engine) -> None:
    begin(engine)
    with writing(engine) as session:
        session.execute(update(MatchRow).values(status="over", reason="<script>alert(1)</script>"))
    assert "<script>" not in client.get("/admin/").text


@pytest.mark.parametrize("name", ["matches", "moves"])
def test_a_download_is_what_the_command_line_writes(client: FlaskClient, engine: Engine, name: str) -> None:
    begin(engine, "=a pet")
    table = export.TABLES[name]
    with reading(engine) as session:
        expected = b"".join(to_csv(table.columns, export.rows(session, table)))
        guarded = b"".join(to_csv(table.columns, export.rows(session, table), guard=True, bom=True))
    response = client.get(f"/admin/export/{name}.csv")
    assert response.data == expected
    assert response.mimetype == "text/csv"
    assert response.headers["Content-Disposition"] == f'attachment; filename="{name}.csv"'
    assert client.get(f"/admin/export/{name}.csv?guard=1&bom=1").data == guarded


def test_one_game_can_be_downloaded_and_an_unknown_one_is_not_found(client: FlaskClient, engine: Engine) -> None:
    begin(engine)
    assert len(_rows(client.get("/admin/export/matches.csv?game=taboo").text)) == 1
    assert _rows(client.get("/admin/export/matches.csv?game=negotiation").text) == []
    assert client.get("/admin/export/matches.csv?game=chess").status_code == 404
    assert client.get("/admin/export/matches.csv?since=yesterday").status_code == 400
    assert client.get("/admin/export/matches.csv?player=nobody").status_code == 404
    assert client.get("/admin/export/users.csv").status_code == 404


def test_a_download_that_is_given_up_gives_its_connection_back(client: FlaskClient, engine: Engine) -> None:
    begin(engine, "a pet")
    response = client.get("/admin/export/moves.csv", buffered=False)
    response.close()
    assert engine.pool.checkedout() == 0  # type: ignore[attr-defined]


def _rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))
