"""The participants' pages and the JSON door, through Flask's client."""

import json
import random
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from itsdangerous import URLSafeTimedSerializer
from sqlalchemy import Engine, select

from app.core.errors import Invalid
from app.core.extensions import db, reading, writing
from app.datasets import build
from app.datasets.spec import read_spec
from app.games.negotiation.contexts import generate_context
from app.games.taboo.words import target_words
from app.matches import engine as matches
from app.matches import live
from app.matches.stored import LoggedEvent, StoredMatch, StoredSeat
from app.models import MatchRow
from app.players.base import PlayerSpec
from app.registry import add_api_model, add_local_model, get_model
from app.web import play, tickets
from workers.prepare import new_admin_link

SPLIT = {"counts": [3, 2, 1], "values": [[1, 3, 1], [2, 0, 4]]}


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


def begin(client: FlaskClient, **body: Any) -> dict[str, Any]:
    answer = client.post("/api/matches", json={"game": "negotiation", **body})
    assert answer.status_code == 201, answer.text
    return dict(answer.json or {})


def test_only_what_changes_the_session_sends_its_cookie(client: FlaskClient) -> None:
    client.get("/")  # has the session's first token for forms
    started = client.post("/start/taboo", data={"key": "a-start-of-a-game"})
    assert "Set-Cookie" in started.headers
    for path in ("/", started.location, "/static/css/base.css", "/rules/taboo"):
        assert "Set-Cookie" not in client.get(path).headers, path


def test_one_browser_has_only_so_many_games_open(make_app: Callable[..., Flask]) -> None:
    client = make_app(OPEN_MATCHES=2, READING_WORDS_PER_MINUTE=240).test_client()
    keys = ["first-start-of-all", "second-start-of-all"]
    started = [client.post("/start/taboo", data={"key": key}) for key in keys]
    assert [answer.status_code for answer in started] == [303, 303]
    refused = client.post("/start/negotiation", data={"key": "third-start-of-all"})
    assert refused.status_code == 409
    assert "You have reached the limit of open games." in refused.text
    assert "Finish or leave one of them first" in refused.text
    again = client.post("/start/taboo", data={"key": keys[1]})  # the same start, sent twice, is no third game
    assert (again.status_code, again.location) == (303, started[1].location)
    other_browser = client.application.test_client()
    assert other_browser.post("/start/negotiation", data={"key": "third-start-of-all"}).status_code == 303


def test_nothing_is_trained_on_without_a_yes_and_the_pages_say_so(client: FlaskClient, engine: Engine) -> None:
    page = " ".join(client.get("/privacy").text.split())
    assert "without your yes nothing of it is used for that" in page
    about = " ".join(client.get("/about").text.split())
    assert "from a game with a person only if that person has agreed to it" in about
    match = begin(client)["match"]
    with writing(engine) as session:
        live.submit(session, live.MoveSubmission(match, 0, None), instant=True)
    with reading(engine) as session:
        found = build.prepare(session, read_spec({"game": "negotiation", "filter": "all"}))
        assert [cut for cuts in build.training_rows(session, found) for cut in cuts] == []
        with pytest.raises(Invalid, match="training consent of the people in the match"):
            build.refuse_nothing(found)


def test_home_offers_both_games_and_names_no_model(client: FlaskClient) -> None:
    page = client.get("/").text
    assert "Play Deal or No Deal" in page
    assert "Play Adversarial Taboo" in page
    assert not re.search(r"scripted(?! program)", page)


PARTNERS = {  # what people are told of each, in English and in German
    "gpt-plain": ("a language model", "ein Sprachmodell"),
    "mouse-1": ("a small language model", "ein kleines Sprachmodell"),
    "scripted": ("a scripted program", "ein Programm mit festen Regeln"),
}


def test_people_are_told_what_their_partner_is_and_never_its_name(make_app: Callable[..., Flask], home: Path) -> None:
    app = make_app()
    with app.app_context():
        engine = db.engine
    client = app.test_client()
    small = home / "checkpoints" / "mouse-1"
    small.mkdir(parents=True)
    header = json.dumps({"weights": {"dtype": "F32", "shape": [40, 25], "data_offsets": [0, 4000]}}).encode()
    (small / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4000))
    local = {"path": "checkpoints/mouse-1", "sha256": "0" * 64}
    with writing(engine) as session:
        rows = [
            add_api_model(session, "gpt-plain", None, [], {"model": "x", "base_url": "http://127.0.0.1:9/v1"}),
            add_local_model(session, "mouse-1", None, [], local, prompt_style="compact"),
            get_model(session, "scripted"),
        ]
        for row in rows:
            row.offered_to_people = True
        labels = {row.name: row.label for row in rows}
    for number, language in enumerate(("en", "de")):
        headers = {"Accept-Language": language}
        front = client.get("/", headers=headers).text
        for name, told in PARTNERS.items():
            match = begin(client, opponent=labels[name])
            client.get(f"/play/{match['match']}?ticket={match['ticket']}")
            seat = tickets.check(app.config["SETTINGS"], match["ticket"], match["match"])
            during = client.get(f"/play/{match['match']}", headers=headers).text
            live.commit(engine, live.MoveSubmission(match["match"], seat, None), instant=True)
            after = client.get(f"/play/{match['match']}/result", headers=headers).text
            for page in (front, during, after):
                assert told[number] in page
                assert not re.search(r"gpt-plain|mouse-1|\bscripted\b(?! program|&#34;)", page)


def test_every_page_forbids_what_it_does_not_need(client: FlaskClient) -> None:
    match = begin(client)
    for path in ("/", "/about", "/privacy", "/rules/taboo", match["url"].split("8000")[1], "/nowhere"):
        policy = client.get(path, follow_redirects=True).headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy


def test_a_match_from_the_form_can_be_refreshed_and_continued(client: FlaskClient) -> None:
    key = re.search(r'name="key"[^>]*value="([^"]+)"', client.get("/").text)
    assert key
    first = client.post("/start/negotiation", data={"key": key[1]})
    again = client.post("/start/negotiation", data={"key": key[1]})  # a double click
    assert first.status_code == again.status_code == 303
    assert first.location == again.location
    assert client.get(first.location).status_code == 200
    assert first.location in client.get("/").text


def test_a_ticket_in_the_address_is_taken_out_of_it(client: FlaskClient) -> None:
    match = begin(client)
    answer = client.get(f"/play/{match['match']}?ticket={match['ticket']}")
    assert answer.location == f"/play/{match['match']}"
    assert client.get(answer.location).status_code == 200


@pytest.mark.parametrize("change", ["forged", "foreign", "expired", "absent"])
def test_a_match_is_shown_to_nobody_else(app: Flask, client: FlaskClient, change: str) -> None:
    match = begin(client)
    ticket = match["ticket"]
    if change == "forged":
        ticket = URLSafeTimedSerializer("another key", salt="parlor.seat").dumps([match["match"], 0])
    elif change == "foreign":
        ticket = begin(client)["ticket"]
    elif change == "expired":
        app.config["SETTINGS"] = app.config["SETTINGS"].model_copy(update={"TICKET_HOURS": -1 / 3600})
    query = "" if change == "absent" else f"?ticket={ticket}"
    answer = app.test_client().get(f"/play/{match['match']}{query}")
    assert answer.status_code == 403
    assert "This is not yours to open." in answer.text
    assert "Traceback" not in answer.text


def test_a_match_that_is_over_leads_to_its_result_and_back(client: FlaskClient) -> None:
    match = begin(client)
    client.get(f"/play/{match['match']}?ticket={match['ticket']}")
    assert client.get(f"/play/{match['match']}/result").location == f"/play/{match['match']}"


@pytest.mark.parametrize(
    ("path", "status", "title"),
    [
        ("/nowhere", 404, "This page is not here."),
        ("/rules/chess", 404, "This page is not here."),
        ("/start/negotiation", 405, "That did not work."),
    ],
)
def test_a_wrong_address_gets_a_kind_page(client: FlaskClient, path: str, status: int, title: str) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert title in answer.text


@pytest.mark.parametrize(
    ("game", "config", "refused"),
    [
        ("taboo", {"word": "lemon"}, "no word from a guest"),
        (
            "negotiation",
            {"counts": [1, 2, 2], "values": [[10, 0, 0], [0, 3, 2]]},
            "no counts and no values from a guest",
        ),
        ("taboo", {"word": None, "max_turns": 3, "rule": "released"}, None),
        ("negotiation", {"objective": "coop", "limit": 9, "first": 1}, None),
    ],
)
def test_guests_choose_how_to_play_and_not_what_they_are_to_find_out(
    make_app: Callable[..., Flask], game: str, config: dict[str, Any], refused: str | None
) -> None:
    client = make_app(GUEST_CONFIG=False).test_client()
    answer = client.post("/api/matches", json={"game": game, "config": config})
    if refused is None:
        assert answer.status_code == 201
    else:
        assert (answer.status_code, answer.json["error"]["code"]) == (403, "not_allowed")  # type: ignore[index]
        assert refused in answer.json["error"]["message"]  # type: ignore[index]
        assert "GUEST_CONFIG=true" in answer.json["error"]["message"]  # type: ignore[index]
        allowed = make_app(GUEST_CONFIG=True).test_client().post("/api/matches", json={"game": game, "config": config})
        assert allowed.status_code == 201


def test_a_form_without_its_token_is_refused(app: Flask) -> None:
    app.config["WTF_CSRF_ENABLED"] = True
    answer = app.test_client().post("/start/taboo", data={})
    assert answer.status_code == 400
    assert "reload it" in answer.text


@pytest.mark.parametrize(
    ("body", "status", "code", "message"),
    [
        (None, 400, "invalid", "expected a JSON object"),
        ([], 400, "invalid", "expected a JSON object"),
        ({}, 400, "invalid", "game: expected the name of a game"),
        ({"game": "chess"}, 404, "not_found", "expected negotiation or taboo, got 'chess'"),
        ({"game": 7}, 400, "invalid", "game: expected text"),
        ({"game": "taboo", "opponent": "GPT"}, 404, "not_found", "opponent: expected one who plays taboo"),
        ({"game": "taboo", "role": "judge"}, 400, "invalid", "role: expected attacker or defender, got 'judge'"),
        ({"game": "taboo", "config": {"word": "two words"}}, 400, "invalid", "word: expected one English word"),
        ({"game": "taboo", "config": []}, 400, "invalid", "config: expected an object"),
        ({"game": "taboo", "config": [1]}, 400, "invalid", "config: expected an object"),
        ({"game": "negotiation", "config": {"objective": 3}}, 400, "invalid", "objective: expected self, coop"),
        ({"game": "taboo", "colour": "red"}, 400, "invalid", "'colour'"),
        ({"game": "taboo", "training_consent": "yes"}, 400, "invalid", "training_consent: expected true, false"),
        ({"game": "taboo", "role": "\0" * 5000}, 400, "invalid", "role: expected"),
    ],
)
def test_the_json_door_says_what_it_expected(
    client: FlaskClient, body: Any, status: int, code: str, message: str
) -> None:
    answer = client.post("/api/matches", json=body) if body is not None else client.post("/api/matches", data="{")
    assert answer.status_code == status
    error = (answer.json or {})["error"]
    assert error["code"] == code
    assert message in error["message"]
    assert len(error["message"]) < 400


def test_guests_are_limited_to_so_many_matches_a_minute(make_app: Callable[..., Flask]) -> None:
    client = make_app(GUEST_MATCHES_PER_MINUTE=3).test_client()
    statuses = [client.post("/api/matches", json={"game": "taboo"}).status_code for _ in range(4)]
    assert statuses == [201, 201, 201, 429]
    answer = client.post("/api/matches", json={"game": "taboo"})
    assert (answer.json or {})["error"]["code"] == "too_fast"


def test_no_limit_is_no_limit(make_app: Callable[..., Flask]) -> None:
    client = make_app(GUEST_MATCHES_PER_MINUTE=0).test_client()
    assert {client.post("/api/matches", json={"game": "taboo"}).status_code for _ in range(40)} == {201}


def test_without_guest_play_nothing_is_started(make_app: Callable[..., Flask], engine: Engine) -> None:
    client = make_app(GUEST_PLAY=False).test_client()
    assert client.get("/").status_code == 200
    assert "Play Deal or No Deal" not in client.get("/").text
    assert client.post("/start/taboo").status_code == 403
    answer = client.post("/api/matches", json={"game": "taboo"})
    assert (answer.status_code, (answer.json or {})["error"]["code"]) == (403, "not_allowed")
    with reading(engine) as session:
        assert session.scalar(select(MatchRow.id)) is None


def test_an_admin_link_works_once(app: Flask) -> None:
    client = app.test_client()
    assert client.get("/admin/").location == "/sign-in?next=/admin/"
    path = "/enter/" + new_admin_link(app).rpartition("/")[2]
    assert client.get(path).status_code == 200  # a preview spends nothing
    assert client.post(path).location == "/admin/"
    assert client.get("/admin/").status_code == 200
    assert app.test_client().post(path).status_code == 403
    assert app.test_client().post("/enter/guessed").status_code == 403


# ---- Nothing private leaks ---------------------------------------------------


def record_of(game: str, config: dict[str, Any], texts: list[str], opponent: str, seat: int) -> StoredMatch:
    """A match in memory, of a person in `seat` and a model with a name of its own."""
    model = StoredSeat("model", hash(opponent), PlayerSpec("api", opponent))
    seats = (StoredSeat("person"), model) if seat == 0 else (model, StoredSeat("person"))
    prompts = {"style": "full", "template": opponent}
    start = matches.start(game, config, 1, (None, prompts) if seat == 0 else (prompts, None))
    at = datetime(2030, 1, 1, tzinfo=UTC)
    record = StoredMatch("M", 1, seats, (LoggedEvent(0, 0, start, at),), matches.replay([start]))
    for text in texts:
        mover = record.match.to_move
        if mover is None:
            break
        said = f"[propose] ({len(opponent) % 2} books, 0 hats, 0 balls)" if text == "offer" else text
        for event in matches.step(record.match, mover, said, by_model=mover != seat):
            record = record.extended([event], at)
    return record


@pytest.fixture
def page_of(app: Flask, monkeypatch: pytest.MonkeyPatch) -> Callable[[StoredMatch, int], bytes]:
    """The page of a match, byte for byte, as one seat gets it."""
    client = app.test_client()

    def page(record: StoredMatch, seat: int) -> bytes:
        monkeypatch.setattr(play, "seat_in", lambda _: seat)
        monkeypatch.setattr(play, "load", lambda *_: record)
        monkeypatch.setattr(tickets, "issue", lambda *_: "T")
        answer = client.get("/play/M")
        assert answer.status_code == 200
        return re.sub(rb'(name="csrf_token" value=")[^"]+', rb"\1", answer.data)  # masked anew in each answer

    return page


def test_pages_of_negotiations_that_differ_in_the_partner_alone_are_the_same(
    page_of: Callable[[StoredMatch, int], bytes],
) -> None:
    rng = random.Random(5)
    for _ in range(60):
        seat, first = rng.randrange(2), rng.randrange(2)
        mine = generate_context(rng)
        theirs = next(c for c in iter(lambda: generate_context(rng), None) if c.counts == mine.counts)
        talk = rng.choice([[], ["[message] a"], ["[message] a", "[message] b"], ["[message] a", "[message] b"]])
        offers = first + len(talk) + seat
        texts = [*talk, "offer"] if talk and offers % 2 == 1 else talk  # only the partner's offer may differ
        pages = set()
        for other, name in ((mine, "gpt-even"), (theirs, "llama-odd")):
            values = [list(mine.values[seat]), list(other.values[1 - seat])]
            config = {"counts": list(mine.counts), "values": values if seat == 0 else values[::-1], "first": first}
            pages.add(page_of(record_of("negotiation", config, texts, name, seat), seat))
        assert len(pages) == 1
        assert not re.search(rb"gpt-even|llama-odd", pages.pop())


def test_pages_of_taboo_that_differ_in_the_word_and_the_model_are_the_same_to_the_defender(
    page_of: Callable[[StoredMatch, int], bytes],
) -> None:
    rng = random.Random(6)
    words = rng.sample(target_words(), 60)
    for one, two in zip(words[::2], words[1::2], strict=True):
        texts = ["Tell me.", "Why?", "I see."][: rng.randint(0, 3)]
        pages = {
            page_of(record_of("taboo", {"word": word}, texts, name, 1), 1)
            for word, name in ((one, "gpt-even"), (two, "llama-odd"))
        }
        assert len(pages) == 1
