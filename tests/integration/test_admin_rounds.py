"""Rounds on the admin pages: listed, launched, followed, compared."""

import csv
import html
import io
import json
import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from flask_babel import refresh
from sqlalchemy import Engine, func, select, update

from app.core.config import Settings
from app.core.extensions import reading, writing
from app.matches import live
from app.matches.stored import StoredSeat
from app.models import MatchRow, RoundMaterial, RoundRow
from app.registry import PERSON, add_api_model, add_scripted_model, find_model
from app.registry.changes import edit_model
from app.rounds import lifecycle, transcripts
from app.rounds.job import RoundKind
from app.web.admin import lists
from tests.experimenter import labelled, leafed_through, signed_in
from tests.rounds import make_round, play, round_form, row_of
from tests.stub_openai import StubServer

CONTEXT = "1 4 2 2 1 2\n1 0 2 1 1 8\n"


@pytest.fixture
def settings(app: Flask) -> Settings:
    return app.config["SETTINGS"]  # type: ignore[no-any-return]


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return signed_in(app)


@pytest.fixture
def enqueued(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rounds that workers were told of."""
    numbers: list[int] = []
    monkeypatch.setattr(RoundKind, "enqueue", lambda _self, _url, number, *_times, **_queue: numbers.append(number))
    return numbers


@pytest.fixture
def played(engine: Engine, settings: Settings) -> Callable[..., int]:
    """Makes a round and plays it; gives its number."""

    def make(**wish: Any) -> int:
        number = make_round(engine, "scripted", **wish)
        play(engine, settings, number)
        return number

    return make


def rounds_in(page: str) -> list[int]:
    return [int(number) for number in re.findall(r'name="round" value="(\d+)"', page)]


def form(game: str = "negotiation", **fields: Any) -> dict[str, Any]:
    """The launch form as a browser sends it when nothing was changed."""
    return {**round_form(game), **fields}


def counted(engine: Engine) -> int:
    with reading(engine) as session:
        return session.scalar(select(func.count()).select_from(RoundRow)) or 0


# ---- The list ----------------------------------------------------------------


def test_an_empty_list_leads_to_the_first_round(client: FlaskClient) -> None:
    page = client.get("/admin/rounds").text
    assert "There are none yet." in page
    assert 'href="/admin/rounds/new"' in page
    assert "Filters" not in page


def test_rounds_are_listed_with_their_score_and_filtered(client: FlaskClient, played: Callable[..., int]) -> None:
    deal, taboo = played(matches=6), played(game="taboo", matches=4)
    page = client.get("/admin/rounds").text
    assert rounds_in(page) == [taboo, deal]
    assert "6 of 6" in re.sub(r"<[^>]+>", "", page)
    assert rounds_in(client.get("/admin/rounds?game=taboo&status=done&model=scripted").text) == [taboo]
    assert "Nothing found." in client.get("/admin/rounds?status=failed").text


def test_a_round_whose_matches_were_all_aborted_says_so(
    client: FlaskClient, engine: Engine, played: Callable[..., int]
) -> None:
    whole, half = played(matches=2), played(matches=2)
    with writing(engine) as session:
        for number, aborted in ((whole, 2), (half, 1)):
            session.execute(update(RoundRow).where(RoundRow.id == number).values(aborted=aborted))
    said = {number: client.get(f"/admin/rounds/{number}").text.count("done, all aborted") for number in (whole, half)}
    assert said == {whole: 1, half: 0}
    for path in ("/admin/rounds", f"/admin/rounds/compare?round={whole}&round={half}"):
        assert client.get(path).text.count("done, all aborted") == 1


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("status=lost", "status: expected waiting or running"),
        ("game=chess", "game: expected negotiation or taboo"),
        ("model=nobody", "model: expected one of scripted"),
        ("before=soon", "before: expected what the link to the next page holds"),
    ],
)
def test_a_filter_that_cannot_be_is_said_in_a_line(client: FlaskClient, query: str, says: str) -> None:
    answer = client.get(f"/admin/rounds?{query}")
    assert (answer.status_code, says in answer.text) == (400, True)


def test_pages_of_the_list_hold_every_round_once(
    client: FlaskClient, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "PAGE", 3)
    made = [make_round(engine, "scripted", matches=2) for _ in range(7)]
    found = [number for page in leafed_through(client, "/admin/rounds?game=negotiation") for number in rounds_in(page)]
    assert found == sorted(made, reverse=True)


# ---- Launching ---------------------------------------------------------------


def test_a_round_is_launched_for_the_workers(client: FlaskClient, engine: Engine, enqueued: list[int]) -> None:
    answer = client.post("/admin/rounds/new", data=form(objective="coop", seed="41", swap_seats="1", name="Mine"))
    assert (answer.status_code, answer.location) == (303, "/admin/rounds/1")
    row = row_of(engine, 1)
    assert (row.status, row.queued, row.matches, row.seed, row.swap_seats, row.name) == (
        "waiting", True, 100, 41, True, "Mine",
    )  # fmt: skip
    assert row.config == {"objective": "coop", "limit": 50, "lenient": True}
    assert row.sampling == {}  # as `flask round run` has it: each model's own
    assert enqueued == [1]


def test_a_round_of_taboo_plays_each_word_once_if_no_number_is_given(
    app: Flask, client: FlaskClient, engine: Engine, enqueued: list[int]
) -> None:
    app.config["SETTINGS"] = app.config["SETTINGS"].model_copy(update={"CONFIRM_MATCHES": 0})
    assert client.post("/admin/rounds/new", data=form("taboo", matches="", max_turns="3")).status_code == 303
    row = row_of(engine, 1)
    with reading(engine) as session:
        kept = session.get_one(RoundMaterial, 1)
    assert row.matches == len(kept.items) > 1000
    assert (row.config["max_turns"], row.pick) == (3, "shuffled")
    assert row.sampling == {}


def test_a_cross_play_is_a_round_of_each_pair(client: FlaskClient, engine: Engine, enqueued: list[int]) -> None:
    other_model(engine)
    answer = client.post("/admin/rounds/new", data=form(cross_play="1", models=["scripted", "other"]))
    assert answer.location == "/admin/rounds/matrix/1"
    assert enqueued == [1, 2, 3]
    page = client.get(answer.location).text
    assert page.count("none yet") == 4


def other_model(engine: Engine, **options: Any) -> None:
    full = {"model": "m", "base_url": "http://x", "key_env": "", **options}
    with writing(engine) as session:
        add_api_model(session, "other", None, ["negotiation"], full)


def test_a_cross_play_is_one_row_of_the_list_with_one_stop(
    client: FlaskClient, engine: Engine, enqueued: list[int]
) -> None:
    other_model(engine)
    alone = make_round(engine, "scripted", matches=4)
    where = client.post("/admin/rounds/new", data=form(cross_play="1", models=["scripted", "other"])).location
    assert where == "/admin/rounds/matrix/2"
    for path in ("/admin/rounds", "/admin/rounds?model=other", "/admin/rounds?status=waiting", "/admin/"):
        page = client.get(path).text
        assert page.count('href="/admin/rounds/matrix/2"') == 1, path
        assert not set(rounds_in(page)) & {2, 3, 4}, path
        assert "0 of 300" in re.sub(r"<[^>]+>", "", page), path
        assert (f"/admin/rounds/{alone}" in page) == ("model=other" not in path), path
    assert "3 rounds" in client.get("/admin/rounds").text
    assert client.post(where, data={"action": "cancel"}).location == where
    assert {row_of(engine, number).status for number in (2, 3, 4)} == {"cancelled"}
    assert row_of(engine, alone).status == "waiting"
    again = client.post(where, data={"action": "cancel"})
    assert (again.status_code, "got one whose rounds are over" in again.text) == (409, True)
    enqueued.clear()
    assert client.post(where, data={"action": "resume"}).location == where
    assert {row_of(engine, number).status for number in (2, 3, 4)} == {"waiting"}
    assert enqueued == [2, 3, 4]


def test_nothing_is_ticked_for_a_cross_play_until_somebody_does(client: FlaskClient) -> None:
    page = client.get("/admin/rounds/new").text
    assert 'name="models" value="scripted"' in page
    assert not re.search(r'name="models"[^>]*checked', page)


@pytest.mark.parametrize(
    ("limits", "asks"),
    [
        ({"CONFIRM_MATCHES": 299, "CONFIRM_COST": 0}, "more than 299 matches"),
        ({"CONFIRM_MATCHES": 0, "CONFIRM_COST": 0.5}, "more than $0.5000"),
        ({"CONFIRM_MATCHES": 300, "CONFIRM_COST": 0}, None),
        ({"CONFIRM_MATCHES": 0, "CONFIRM_COST": 0}, None),
    ],
)
def test_what_is_much_is_asked_for_once_more(
    app: Flask, client: FlaskClient, engine: Engine, enqueued: list[int], limits: dict[str, float], asks: str | None
) -> None:
    app.config["SETTINGS"] = app.config["SETTINGS"].model_copy(update=limits)
    other_model(engine, price_in=1, price_out=2)
    file = (io.BytesIO(CONTEXT.encode()), "mine.txt")
    wanted = form(cross_play="1", models=["scripted", "other"], contexts_file=file, contexts="upload", name="All & one")
    first = client.post("/admin/rounds/new", data=wanted, content_type="multipart/form-data")
    if asks is None:
        assert first.status_code == 303
        return
    assert (first.status_code, asks in first.text, enqueued) == (200, True, [])
    assert ("these are 300" in first.text) == (limits["CONFIRM_MATCHES"] > 0)
    assert first.text.count('name="models" value="scripted" checked') == 1
    assert CONTEXT.strip() in first.text
    (agreed,) = re.findall(r'<input type="hidden" name="agreed" value="([^"]+)">', first.text)
    again = {**wanted, "contexts_text": CONTEXT, "contexts_name": "mine.txt", "agreed": agreed}
    del again["contexts_file"]
    more = client.post("/admin/rounds/new", data={**again, "matches": "200"})
    assert (more.status_code, asks in more.text, enqueued) == (200, True, [])
    assert client.post("/admin/rounds/new", data={**again, "action": "start"}).location == "/admin/rounds/matrix/1"
    assert enqueued == [1, 2, 3]
    with reading(engine) as session:
        assert session.get_one(RoundMaterial, 1).source == "mine.txt"
    assert row_of(engine, 1).name == "All & one"


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-8-sig", "UTF-16"])
def test_contexts_come_from_a_file(client: FlaskClient, engine: Engine, enqueued: list[int], encoding: str) -> None:
    file = (io.BytesIO(CONTEXT.encode(encoding)), "mine.txt")
    answer = client.post("/admin/rounds/new", data=form(contexts_file=file), content_type="multipart/form-data")
    assert answer.status_code == 303
    with reading(engine) as session:
        kept = session.get_one(RoundMaterial, 1)
    assert (kept.source, kept.items) == ("mine.txt", [[[1, 2, 1], [4, 2, 2], [0, 1, 8]]])
    like = client.get("/admin/rounds/new?like=1").text
    assert 'value="again" checked' in like
    again = client.post("/admin/rounds/new", data=form(contexts="again", like="1"))
    assert again.location == "/admin/rounds/2"
    with reading(engine) as session:
        assert session.get_one(RoundMaterial, 2).items == kept.items


def test_contexts_come_from_the_servers_file(
    make_app: Callable[..., Flask], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "contexts.txt").write_text(CONTEXT)
    app = make_app(CONTEXTS_FILE=str(tmp_path / "contexts.txt"))
    monkeypatch.setattr(RoundKind, "enqueue", lambda *_, **_queue: None)
    client = signed_in(app)
    assert "contexts.txt" in client.get("/admin/rounds/new").text
    assert client.post("/admin/rounds/new", data=form(contexts="server")).status_code == 303


BAD: list[tuple[str, dict[str, Any], str, str]] = [
    ("negotiation", {"matches": "many"}, "matches", "matches: expected a whole number from 1"),
    ("negotiation", {"matches": "7", "swap_seats": "1"}, "matches", "matches: expected an even number"),
    ("negotiation", {"objective": "greed"}, "objective", "objective: expected self or coop or comp or lambda"),
    ("negotiation", {"objective": "lambda", "lam": "2"}, "lam", "lam: expected a number from -1 to 1"),
    ("negotiation", {"limit": "0"}, "limit", "limit: expected a whole number from 1 to 1000"),
    ("negotiation", {"model_0": "nobody"}, "model_0", "models: expected one that plays"),
    ("negotiation", {"model_1": ""}, "model_1", "model_1: expected a model, got none"),
    ("negotiation", {"cross_play": "1", "models": ["scripted"]}, "models", "expected 2 to 20"),
    ("negotiation", {"temperature": "hot"}, "temperature", "temperature: expected a number from 0"),
    ("negotiation", {"top_k": "-1"}, "top_k", "top_k: expected a whole number"),
    ("negotiation", {"max_tokens": "0"}, "max_tokens", "max_tokens: expected a whole number"),
    ("negotiation", {"seed": "-4"}, "seed", "seed: expected a whole number from 0"),
    ("negotiation", {"seed": "9" * 30}, "seed", "seed: expected a whole number from 0"),
    ("negotiation", {"name": "x" * 121}, "name", "name: expected at most 120 characters"),
    ("negotiation", {"contexts": "server"}, "contexts", "contexts: expected a file in the setting CONTEXTS_FILE"),
    ("negotiation", {"contexts": "upload"}, "contexts", "contexts: expected a file or lines of text"),
    ("negotiation", {"contexts": "upload", "contexts_text": "1 2 3"}, "contexts", "line 1: expected six whole numbers"),
    ("negotiation", {"contexts": "upload", "contexts_text": "x" * 400_001}, "contexts", "expected at most 400000"),
    ("negotiation", {"contexts": "again", "like": "77"}, "round", "round: expected the number of one that exists"),
    ("taboo", {"words": "upload", "words_text": "cat\ncat"}, "words", "line 2: expected each word once"),
    ("taboo", {"words": "upload", "words_text": "a cat"}, "words", "line 1: "),
    ("taboo", {"max_turns": "x"}, "max_turns", "max_turns: expected a whole number"),
    ("taboo", {"rule": "kind"}, "rule", "rule: expected strict or released"),
    ("taboo", {"pick": "none"}, "pick", "expected in-order or shuffled or random"),
]


@pytest.mark.parametrize(("game", "fields", "field", "says"), BAD, ids=lambda each: str(each)[:40])
@pytest.mark.parametrize("action", ["start", "estimate"])
def test_a_form_that_cannot_be_comes_back_filled_in_with_one_line(
    client: FlaskClient, engine: Engine, enqueued: list[int], action: str, game: str, fields: dict[str, Any],
    field: str, says: str,
) -> None:  # fmt: skip
    if "swap_seats" in fields:
        action = "start"  # what only the start looks at
    answer = client.post("/admin/rounds/new", data=form(game, **{"name": "Kept", **fields, "action": action}))
    assert answer.status_code in (400, 404)
    lines = re.findall(r'<p lang="en" class="(?:error|note note-bad)"[^>]*>(.*?)</p>', answer.text)
    assert labelled(says) in html.unescape(re.sub("</?code>", "`", lines[0]))
    assert len(set(lines)) == 1
    assert fields.get("name", "Kept") in answer.text
    if "contexts_text" in fields:
        assert fields["contexts_text"] in answer.text
    assert (counted(engine), enqueued) == (0, [])


def test_a_preview_of_what_cannot_be_says_why_without_being_refused(
    client: FlaskClient, engine: Engine, enqueued: list[int]
) -> None:
    answer = client.post("/admin/rounds/new", data=form(matches="0", action="preview"))
    assert answer.status_code == 200
    assert "Matches: expected a whole number from 1" in html.unescape(answer.text)
    assert client.post("/admin/rounds/new", data=form(action="preview")).status_code == 200
    assert (counted(engine), enqueued) == (0, [])


@pytest.mark.parametrize(("path", "status"), [("game=chess", 404), ("like=9", 404), ("like=x", 400)])
def test_a_form_of_what_is_not_there_is_not_found(client: FlaskClient, path: str, status: int) -> None:
    assert client.get(f"/admin/rounds/new?{path}").status_code == status


def test_a_round_is_duplicated_with_all_that_it_was_played_with(client: FlaskClient, engine: Engine) -> None:
    number = make_round(
        engine, "scripted", matches=8, seed=5, config={"objective": 0.25, "limit": 9}, swap_seats=True,
        sampling={"temperature": 0, "max_tokens": 40},
    )  # fmt: skip
    page = client.get(f"/admin/rounds/new?like={number}").text
    named = f'<a href="/admin/rounds/{number}">scripted and scripted (round {number})</a>'
    assert f"Filled in as it was for {named}." in page
    for kept in (
        'name="matches" type="text" value="8"', 'name="lam" type="text" value="0.25"', 'value="lambda" selected',
        'name="limit" type="text" value="9"', 'name="swap_seats" value="1" checked',
        'name="temperature" type="text" value="0"',
        'name="max_tokens" type="text" value="40"', 'name="seed" type="text" value="5"',
    ):  # fmt: skip
        assert kept in page


def test_an_estimate_says_what_it_is_based_on(
    client: FlaskClient, engine: Engine, settings: Settings, stub: StubServer, enqueued: list[int]
) -> None:
    options = {"model": "stub-negotiator", "base_url": stub.url, "key_env": "", "retries": 0}
    with writing(engine) as session:
        add_api_model(session, "stub", None, ["negotiation"], options)
    asked = form(model_0="stub", model_1="stub", matches="200", action="estimate")
    before = client.post("/admin/rounds/new", data=asked)
    assert "has not played this game yet, so typical figures are used" in before.text
    assert "no prices known" in before.text
    number = make_round(engine, "stub", matches=6)
    play(engine, settings, number)
    row = row_of(engine, number)
    after = client.post("/admin/rounds/new", data=asked).text
    assert "as in its last 6 matches of this game" in after
    assert f"{round(200 * row.calls / 6):,}" in after
    assert f"{round(200 * row.prompt_tokens / 6):,}" in after
    assert (counted(engine), enqueued) == (1, [])


# ---- One round ---------------------------------------------------------------


def said(page: str) -> str:
    """What a page says, without its markup."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))


def test_a_round_is_shown_with_its_result_its_charts_and_its_transcripts(
    client: FlaskClient, played: Callable[..., int]
) -> None:
    number = played(matches=12, seed=41)
    address = f"/admin/rounds/{number}"
    summary = client.get(address).text
    assert re.search(r"Agreement in [\d.]+ % of the matches \( ?[\d.]+ to [\d.]+ %, n = 12 ?\)", said(summary))
    assert "Pareto-optimal, of deals" in summary
    assert summary.count('aria-current="page">Summary') == 1
    assert "Cancel" not in summary
    assert "Resume" not in summary
    charts = client.get(f"{address}?tab=charts").text
    specs = re.findall(r'data-spec-url="([^"?]+)', charts)
    assert len(specs) >= 3
    assert len(re.findall(r'download="[a-z0-9-]+\.csv" href="data:text/csv;charset=utf-8,', charts)) == len(specs)
    for spec in specs:
        answer = client.get(spec, query_string={"theme": "dark"})
        assert answer.json is not None
        assert "vega-lite" in answer.json["$schema"]
        assert "title" not in answer.json
    assert client.get(specs[0], query_string={"theme": "pink"}).status_code == 400
    assert client.get(f"/admin/rounds/{number}/charts/none.json").status_code == 404
    assert "12 of 12 matches" in said(client.get(f"{address}?tab=log").text)
    assert "generated from the seed" not in client.get(f"{address}?tab=settings").text  # it has contexts of its own
    assert "matches.csv" in client.get(f"{address}?tab=settings").text
    assert client.get(f"{address}?tab=figures").status_code == 400


def test_charts_speak_the_language_of_the_page_and_never_that_of_the_last_reader(
    client: FlaskClient, played: Callable[..., int]
) -> None:
    number = played(matches=12, seed=41)
    german = {"Accept-Language": "de"}
    for headers, title, outcome, sign in (
        (german, "Ausgänge, mit 95-%-Intervallen", "Einigung", ","),
        ({}, "Outcomes, with 95 % intervals", "deal", "."),
        (german, "Ausgänge, mit 95-%-Intervallen", "Einigung", ","),
    ):
        refresh()  # the fixtures' context remembers the language of the request before
        page = client.get(f"/admin/rounds/{number}?tab=charts", headers=headers).text
        assert f'<figcaption><h2 id="chart-outcomes-{number}">{title}</h2>' in page
        answer = client.get(f"/admin/rounds/{number}/charts/outcomes-{number}.json", headers=headers)
        spec = answer.json or {}
        assert "Accept-Language" in answer.headers["Vary"]
        assert spec["config"]["locale"]["number"]["decimal"] == sign
        assert outcome in [each["reason"] for each in spec["data"]["values"]]


def test_the_score_of_a_round_is_the_mean_over_both_seats_and_how_most_matches_ended_their_share(
    client: FlaskClient, engine: Engine, played: Callable[..., int]
) -> None:
    talks, guesses = played(matches=12), played(game="taboo", matches=12)
    with reading(engine) as session:
        over = {
            each: session.scalars(select(MatchRow).where(MatchRow.round_id == each)).all() for each in (talks, guesses)
        }
    scores = [score or 0 for each in over[talks] for score in (each.utility_0, each.utility_1)]
    mean = f"{sum(scores) / len(scores):.2f}"
    [(_, most)] = Counter(each.reason for each in over[guesses]).most_common(1)
    lines = dict(re.findall(r'id="line-(\d+)"(.*?)</tr>', client.get("/admin/rounds").text, re.DOTALL))
    assert re.search(rf">{mean}<", lines[str(talks)])
    assert f"{100 * most / 12:.0f} % of them" in lines[str(guesses)]
    assert f"and a seat scores {mean} points" in said(client.get(f"/admin/rounds/{talks}").text)
    together = played(matches=12, config={"objective": "coop"})
    with reading(engine) as session:
        reached = session.scalars(select(MatchRow.utility_0).where(MatchRow.round_id == together)).all()
    both = f"Both seats reach {sum(each or 0 for each in reached) / 12:.2f} points together in a match"
    assert both in said(client.get(f"/admin/rounds/{together}").text)


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        ({"matches": 24, "swap_seats": True}, r"(between|than) .* 12 seeds"),
        ({"matches": 24}, "whose seats|this round did not swap them. casual always had the first seat."),
        ({"matches": 8, "swap_seats": True}, "over 4 seeds: too few to tell"),
        ({"matches": 8, "game": "taboo"}, r"Attackers win .* casual attacked in every match."),
        ({"matches": 8, "config": {"objective": "coop"}}, r"Both seats reach [\d.]+ points together in a match"),
    ],
)
def test_a_round_of_two_models_begins_with_each_and_their_difference(
    client: FlaskClient, engine: Engine, settings: Settings, wish: dict[str, Any], says: str
) -> None:
    with writing(engine) as session:
        add_scripted_model(session, "casual", None, {"manner": "casual"})
    number = make_round(engine, "casual", "scripted", **wish)
    play(engine, settings, number)
    page = client.get(f"/admin/rounds/{number}").text
    assert re.search(says, said(page))
    head = said(page.partition('class="verdict"')[2].partition('id="tiles"')[0])
    for told in ("casual minus scripted", "n = "):
        assert told in head
    if wish.get("game") != "taboo":
        assert "Mean score" not in page.partition('class="tiles')[2].partition("</dl>")[0]  # which pools both
    with reading(engine) as session:
        matches = session.scalars(select(MatchRow).where(MatchRow.round_id == number)).all()
    scores = [
        (each.utility_0 or 0, each.utility_1 or 0)[:: -1 if wish.get("swap_seats") and (each.index or 0) % 2 else 1]
        for each in matches
    ]
    first, second = (sum(each) / len(matches) for each in zip(*scores, strict=True))
    assert f"{first:.2f} : {second:.2f}".replace("-", "−") in said(client.get("/admin/rounds").text)
    compared = said(client.get(f"/admin/rounds/compare?round={number}&round={number_of_another(engine, wish)}").text)
    assert "Each model, and the difference between them" in compared


@pytest.mark.parametrize("models", [("casual", "scripted"), ("scripted", "casual")])
def test_a_difference_is_the_first_model_minus_the_second_wherever_it_is_told(
    client: FlaskClient, engine: Engine, settings: Settings, models: tuple[str, str]
) -> None:
    with writing(engine) as session:
        add_scripted_model(session, "casual", None, {"manner": "casual"})
    number = make_round(engine, *models, matches=8, seed=5)
    play(engine, settings, number)
    first, second = models
    page = said(client.get(f"/admin/rounds/{number}").text)
    chart = client.get(f"/admin/rounds/{number}/charts/difference-{number}.json").json
    assert chart is not None
    [mean] = re.findall(rf"{first} minus {second}, of 8 matches: mean ([+−][\d.]+) points", chart["description"])
    assert f"{first} minus {second} {mean} " in page
    assert f"{first} − {second}: {mean} (" in said(client.get("/admin/rounds").text)
    compared = said(client.get(f"/admin/rounds/compare?round={number}&round={number_of_another(engine, {})}").text)
    assert f"{first} minus {second} {mean} " in compared
    assert f"Paired differences: {number}: {first} minus {second} {mean}." in compared
    ahead, behind = models if mean.startswith("+") else models[::-1]
    assert f"{ahead} scores {mean[1:]} points more per match than {behind}, over 8 matches" in page


def number_of_another(engine: Engine, wish: dict[str, Any]) -> int:
    """A round of the same game in which nothing was played yet."""
    return make_round(engine, "scripted", game=wish.get("game", "negotiation"), matches=2)


def test_the_figures_follow_the_matches(client: FlaskClient, engine: Engine, settings: Settings) -> None:
    number = make_round(engine, "scripted", matches=4)
    assert "n = 4" not in said(client.get(f"/admin/rounds/{number}").text)
    play(engine, settings, number)
    assert "n = 4" in said(client.get(f"/admin/rounds/{number}").text)


def test_the_outcomes_of_taboo_are_counted(client: FlaskClient, played: Callable[..., int]) -> None:
    page = client.get(f"/admin/rounds/{played(game='taboo', matches=9)}").text
    for label in ("Attacker wins", "Defender wins", "Attacker breaks the rules", "Tied", "By model"):
        assert label in page


def test_a_round_is_cancelled_and_resumed(client: FlaskClient, engine: Engine, enqueued: list[int]) -> None:
    number = make_round(engine, "scripted", matches=4)
    address = f"/admin/rounds/{number}"
    assert client.post(address, data={"action": "cancel"}).location == address
    assert row_of(engine, number).status == "cancelled"
    assert "Resume" in client.get(address).text
    assert enqueued == []
    assert client.post(address, data={"action": "resume"}).location == address
    row = row_of(engine, number)
    assert (row.status, row.queued, enqueued) == ("waiting", True, [number])


@pytest.mark.parametrize("action", ["cancel", "resume"])
def test_what_is_over_is_neither_cancelled_nor_resumed(
    client: FlaskClient, engine: Engine, played: Callable[..., int], enqueued: list[int], action: str
) -> None:
    number = played(matches=2)
    answer = client.post(f"/admin/rounds/{number}", data={"action": action})
    assert (answer.status_code, "is done" in answer.text) == (409, True)
    assert (row_of(engine, number).status, enqueued) == ("done", [])


def test_a_round_that_nobody_plays_in_its_terminal_says_so(client: FlaskClient, engine: Engine) -> None:
    number = make_round(engine, "scripted", matches=2)
    with writing(engine) as session:
        session.execute(update(RoundRow).where(RoundRow.id == number).values(status="running", queued=False))
    page = said(client.get(f"/admin/rounds/{number}").text)
    assert "interrupted" in page
    assert "No terminal plays it now. If it has stopped there, Resume lets the workers" in page


def test_another_action_is_refused(client: FlaskClient, engine: Engine) -> None:
    number = make_round(engine, "scripted", matches=2)
    answer = client.post(f"/admin/rounds/{number}", data={"action": "explode"})
    assert (answer.status_code, "action: expected cancel or resume" in answer.text) == (400, True)


def test_a_failed_round_says_why_on_its_page_and_on_the_overview(client: FlaskClient, engine: Engine) -> None:
    number = make_round(engine, "scripted", matches=2)
    with writing(engine) as session:
        lifecycle.fail(session, number, "the model <b>never</b> answered")
    for path in (f"/admin/rounds/{number}", "/admin/"):
        page = client.get(path).text
        assert "the model &lt;b&gt;never&lt;/b&gt; answered" in page
    assert "(round 1) stopped" in page


def test_a_round_says_what_it_waits_for_and_what_it_has_cost(client: FlaskClient, engine: Engine) -> None:
    number = make_round(engine, "scripted", matches=40)
    with writing(engine) as session:
        values = {"status": "running", "queued": True, "error": "answers 429", "finished": 10, "moves": 55,
                  "prompt_tokens": 1234567, "started_at": datetime.now(UTC)}  # fmt: skip
        session.execute(update(RoundRow).where(RoundRow.id == number).values(**values))
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", client.get(f"/admin/rounds/{number}").text))
    assert "It waits: answers 429" in text
    assert "1,234,567" in text


@pytest.mark.parametrize("path", ["", "?tab=transcripts", "/latest", "/charts/x.json"])
@pytest.mark.parametrize("number", ["0", "99", "99999999999999"])
def test_a_round_that_is_not_there_is_not_found(client: FlaskClient, number: str, path: str) -> None:
    assert client.get(f"/admin/rounds/{number}{path}").status_code == 404


def test_the_latest_transcripts_come_alone(client: FlaskClient, played: Callable[..., int]) -> None:
    answer = client.get(f"/admin/rounds/{played(matches=3)}/latest")
    assert "<html" not in answer.text
    assert len(re.findall(r'href="/admin/matches/[\w-]{22}"', answer.text)) == 3


# ---- Transcripts and downloads -------------------------------------------------


def indices(page: str) -> list[int]:
    return [int(number) for number in re.findall(r'href="/admin/matches/[\w-]{22}">(\d+)</a>', page)]


def test_transcripts_are_filtered_and_paged(
    client: FlaskClient, played: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcripts, "PAGE", 5)
    number = played(matches=12, swap_seats=True)
    every = f"/admin/rounds/{number}?tab=transcripts"
    assert [index for page in leafed_through(client, every) for index in indices(page)] == list(range(12))
    assert indices(client.get(f"{every}&order=swapped").text) == [1, 3, 5, 7, 9]
    assert indices(client.get(f"{every}&order=given&after=4").text) == [6, 8, 10]
    assert indices(client.get(f"{every}&least=0&most=100&reason=deal&refused=no").text) == [0, 1, 2, 3, 4]
    plain = f"/admin/rounds/{played(matches=3)}?tab=transcripts"
    assert (indices(client.get(f"{plain}&order=given").text), indices(client.get(f"{plain}&order=swapped").text)) == (
        [0, 1, 2], [],
    )  # fmt: skip
    assert "No match fits the filters." in client.get(f"{every}&least=500").text
    assert "No match fits the filters." in client.get(f"{every}&refused=yes").text
    assert "There are no further matches." in client.get(f"{every}&after=900").text


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("least=many", "least: expected a score"),
        ("most=nan", "most: expected a score"),
        ("refused=maybe", "refused: expected yes or no"),
        ("order=odd", "order: expected given or swapped"),
        ("after=-1", "after: expected a whole number"),
        ("reason=" + "x" * 50, "reason: expected how a match ended"),
    ],
)
def test_a_filter_of_transcripts_that_cannot_be_is_said(
    client: FlaskClient, engine: Engine, query: str, says: str
) -> None:
    answer = client.get(f"/admin/rounds/{make_round(engine, 'scripted', matches=2)}?tab=transcripts&{query}")
    assert (answer.status_code, says in answer.text) == (400, True)


def test_a_match_of_a_round_leads_to_its_round_and_its_neighbours(
    client: FlaskClient, engine: Engine, played: Callable[..., int]
) -> None:
    number = played(matches=3)
    with reading(engine) as session:
        rows = session.execute(select(MatchRow.index, MatchRow.id).where(MatchRow.round_id == number)).all()
    ids = {row[0]: row[1] for row in rows}
    page = client.get(f"/admin/matches/{ids[1]}").text
    with reading(engine) as session:
        name = session.get_one(RoundRow, number).name
    assert f"<h1>Match 1 of {name}</h1>" in page
    assert f"<h1>{name}</h1>" in client.get(f"/admin/rounds/{number}").text
    for link in (
        f'href="/admin/rounds/{number}"',
        f'href="/admin/matches/{ids[0]}"',
        f'href="/admin/matches/{ids[2]}"',
    ):
        assert link in page
    assert "Previous match" not in client.get(f"/admin/matches/{ids[0]}").text


def test_matches_are_listed_and_downloaded_by_round(client: FlaskClient, played: Callable[..., int]) -> None:
    first, second = played(matches=2), played(matches=3)
    page = client.get(f"/admin/matches?round={second}&source=selfplay").text
    assert len(set(re.findall(r'href="/admin/matches/([\w-]{22})"', page))) == 3
    assert f'href="/admin/rounds/{second}"' in page
    rows = list(csv.DictReader(io.StringIO(client.get(f"/admin/export/matches.csv?round={first}").text)))
    assert [(row["round_id"], row["index"]) for row in rows] == [(str(first), "0"), (str(first), "1")]
    assert client.get("/admin/matches?round=x").status_code == 400


def test_what_models_play_is_not_among_the_matches_of_people(
    client: FlaskClient, engine: Engine, played: Callable[..., int]
) -> None:
    played(matches=3)
    with writing(engine) as session:
        seats = StoredSeat(PERSON), StoredSeat.of(find_model(session, "taboo", "scripted"))
        mine = live.create(session, "taboo", {"word": "cat"}, seats, seed=1, source="live", instant=True).id
        begun = live.create(session, "taboo", {"word": "cat"}, seats, seed=2, source="live", instant=True).id
        session.execute(update(MatchRow).where(MatchRow.id == begun).values(source="selfplay"))
    running = make_round(engine, "scripted", matches=5)
    page = client.get("/admin/").text
    assert re.findall(r'href="/admin/matches/([\w-]{22})"', page) == [mine, mine]
    figure = r"People’s matches {}</dt><dd class=\"figure\">(\d+)<"
    assert [re.findall(figure.format(when), page) for when in ("now", "today")] == [["1"], ["1"]]
    assert f'href="/admin/rounds/{running}"' in page.partition('id="runs-list"')[2].partition("</section>")[0]


def test_a_figure_of_a_page_is_saved_as_commands_write_it(
    app: Flask, client: FlaskClient, played: Callable[..., int], tmp_path: Path
) -> None:
    number = played(matches=4)
    spec = client.get(f"/admin/rounds/{number}/charts/score-{number}.json")
    fields = {"specs": spec.text, "signature": spec.headers["Figure-Signature"], "title": "Scores of both seats"}
    written = app.test_cli_runner().invoke(
        args=["analyze", "--round", str(number), "--charts", str(tmp_path), "--format", "pdf"]
    )
    assert written.exit_code == 0, written.output
    saved = client.post("/admin/figures/pdf", data=fields)
    assert saved.mimetype == "application/pdf"
    assert saved.data == (tmp_path / f"score-{number}.pdf").read_bytes()
    refused = client.post("/admin/figures/pdf", data={**fields, "specs": '{"data": {"url": "file:///etc/hosts"}}'})
    assert refused.status_code == 400
    assert "expected a figure of this server, got another" in html.unescape(refused.text)


# ---- Side by side --------------------------------------------------------------


def test_rounds_are_compared_side_by_side(client: FlaskClient, played: Callable[..., int]) -> None:
    first, second = played(matches=6), played(matches=6, config={"objective": "coop"})
    page = client.get(f"/admin/rounds/compare?round={first}&round={second}").text
    assert page.count("<figure") == page.count('data-download="svg"') == page.count('data-download="pdf"') == 3
    specs = [json.loads(html.unescape(text)) for text in re.findall(r"<template [^>]*>(.*?)</template>", page)]
    means = [each["value"] for each in specs[0]["light"]["data"]["values"]]
    assert len(means) == 2
    assert means[1] > means[0]  # in the second round a partner's points count
    for number in (first, second):
        assert f'href="/admin/rounds/{number}"' in page
    assert "Mean score" in page


@pytest.mark.parametrize(
    ("query", "status", "says"),
    [
        ("", 400, "round: expected 2 to 20 different ones"),
        ("round=1&round=1", 400, "round: expected 2 to 20 different ones"),
        ("round=1&round=x", 400, "round: expected a whole number"),
        ("round=1&round=99", 404, "round: expected the number of one that exists"),
        ("round=1&round=2", 400, "round: expected rounds of one game"),
        ("&".join(f"round={number}" for number in range(1, 40)), 400, "round: expected 2 to 20"),
    ],
)
def test_what_cannot_be_compared_is_said(
    client: FlaskClient, engine: Engine, query: str, status: int, says: str
) -> None:
    make_round(engine, "scripted", matches=2)
    make_round(engine, "scripted", game="taboo", matches=2)
    answer = client.get(f"/admin/rounds/compare?{query}")
    assert (answer.status_code, says in answer.text) == (status, True)


def test_a_cross_play_is_a_matrix_with_links_to_its_rounds(
    client: FlaskClient, engine: Engine, settings: Settings, stub: StubServer, enqueued: list[int]
) -> None:
    options = {"model": "stub-taboo", "base_url": stub.url, "key_env": "", "retries": 0}
    with writing(engine) as session:
        add_api_model(session, "stub", None, ["taboo"], options)
    data = form("taboo", cross_play="1", models=["scripted", "stub"], matches="3")
    assert client.post("/admin/rounds/new", data=data).location == "/admin/rounds/matrix/1"
    for number in (1, 2, 3, 4):
        play(engine, settings, number)
    page = client.get("/admin/rounds/matrix/1").text
    tables = page.split('class="heat"')[1:]
    assert [re.findall(r'href="/admin/rounds/(\d)"', table.partition("</table>")[0]) for table in tables] == [
        ["1", "2", "3", "4"],  # attackers on the left
        ["1", "3", "2", "4"],  # defenders on the left
    ]
    assert client.get("/admin/rounds/matrix/99").status_code == 404


def test_the_pages_are_for_the_signed_in_alone(app: Flask) -> None:
    for path in ("/admin/rounds", "/admin/rounds/new", "/admin/rounds/1", "/admin/rounds/1/latest"):
        assert app.test_client().get(path).location == f"/sign-in?next={path}"
    assert app.test_client().post("/admin/rounds/new", data=form()).location == "/sign-in"


def test_a_round_and_its_estimate_say_what_they_cost_where_prices_are_known(
    client: FlaskClient, engine: Engine, settings: Settings, stub: StubServer
) -> None:
    options = {"model": "stub-negotiator", "base_url": stub.url, "key_env": "", "price_in": 2600, "price_out": "10000"}
    with writing(engine) as session:
        add_api_model(session, "stub", None, ["negotiation"], options)
    number = make_round(engine, "scripted", "stub", matches=3)
    play(engine, settings, number)
    row = row_of(engine, number)
    cost = (row.prompt_tokens * 2600 + row.completion_tokens * 10_000) / 1e6
    assert f"${cost:,.2f}" in client.get(f"/admin/rounds/{number}?tab=log").text
    asked = form(model_1="stub", matches="300", action="estimate")
    assert f"${100 * cost:,.2f}" in client.post("/admin/rounds/new", data=asked).text
    with writing(engine) as session:  # later the model becomes dearer
        edit_model(session, "stub", options={"price_in": 5200, "price_out": 20_000})
    page = client.get(f"/admin/rounds/{number}?tab=log").text
    assert (f"${cost:,.2f}" in page, "at today’s prices" in page) == (True, False)
    with writing(engine) as session:  # as an earlier release has left it
        session.execute(update(RoundRow).values(prices=None, unpriced_calls=None))
    page = client.get(f"/admin/rounds/{number}?tab=log").text
    assert (f"${2 * cost:,.2f}" in page, "at today’s prices" in page) == (True, True)
