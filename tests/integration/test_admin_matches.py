"""The list of matches and the replay of one."""

import html
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, insert, select, update

from app.core.extensions import reading, writing
from app.matches import live
from app.matches.stored import StoredMatch, StoredSeat
from app.matches.turns import WorkerContext, play_turn
from app.models import EventRow, MatchRow, SeatRow
from app.registry import PERSON, add_api_model, find_model
from app.web.admin import lists
from tests.experimenter import leafed_through, signed_in
from tests.stub_openai import StubServer

SPLIT = {"counts": [3, 2, 1], "values": [[1, 3, 1], [2, 0, 4]], "first": 0}


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return signed_in(app)


def taboo(engine: Engine, text: str | None = None) -> StoredMatch:
    with writing(engine) as session:
        seats = StoredSeat(PERSON), StoredSeat.of(find_model(session, "taboo", "scripted"))
        record = live.create(session, "taboo", {"word": "cat"}, seats, seed=1, source="live", instant=True)
    return record if text is None else say(engine, record, text)


def say(engine: Engine, record: StoredMatch, text: str) -> StoredMatch:
    seat = record.match.to_move
    assert seat is not None
    return live.commit(engine, live.MoveSubmission(record.id, seat, text), instant=True).record


def listed(page: str) -> list[str]:
    return re.findall(r'href="/admin/matches/([\w-]{22})"', page)


def test_what_shows_nothing_or_turns_the_text_is_marked_on_the_page_and_kept_in_the_downloads(
    client: FlaskClient, engine: Engine
) -> None:
    text = "it is \u202efurry\u202c and it m\u200beows"
    record = taboo(engine, text)
    page = client.get(f"/admin/matches/{record.id}").text
    assert "it is \ufffdfurry\ufffd and it m\ufffdeows" in page
    assert "marked above: U+202E, U+202C, U+200B." in page
    assert not {"\u202e", "\u202c", "\u200b"} & set(page)
    assert text in client.get(f"/admin/export/moves.csv?match={record.id}").text
    with reading(engine) as session:
        bodies = session.scalars(select(EventRow.body).where(EventRow.match_id == record.id).order_by(EventRow.seq))
        assert [body.get("invisible") for body in bodies][:3] == [None, ["U+202E", "U+202C", "U+200B"], None]


# ---- The list ----------------------------------------------------------------


def test_the_list_is_filtered_and_its_downloads_carry_the_filter(client: FlaskClient, engine: Engine) -> None:
    playing, over = taboo(engine), taboo(engine, "cat")
    assert listed(client.get("/admin/matches").text) == [over.id, playing.id]
    page = client.get("/admin/matches?status=over&game=taboo&player=scripted&reason=").text
    assert listed(page) == [over.id]
    link = re.search(r'href="(/admin/export/moves.csv[^"]+)"', page)
    assert link
    assert client.get(link[1].replace("&amp;", "&")).text.count(over.id) == 1
    assert "Nothing found." in client.get("/admin/matches?until=2001-01-01").text


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("since=yesterday", "since: expected a day such as 2026-01-31, got &#39;yesterday&#39;"),
        ("until=2026-02-30", "until: expected a day"),
        ("game=chess", "expected"),
        ("status=lost", "status: expected waiting or playing or over"),
        ("since=2026-02-02&until=2026-02-01", "until: expected 2026-02-02 or later"),
        ("before=page2", "before: expected what the link"),
        ("before=2026-01-01T00:00:00~x", "before: expected what the link"),
        ("before=9999-12-31T23:59:59-14:00~x", "before: expected what the link"),
        ("before=2026-01-01T00:00:00%2B00:00~%00", "before: expected what the link"),
        ("since=0001-01-01", "since: expected a day such as 2026-01-31"),
        ("player=nobody", "player: expected person or the name of a model in the registry, got &#39;nobody&#39;"),
        ("player=a%00b", "player: expected at most 100 characters on one line"),
        ("reason=" + "x" * 200, "reason: expected at most 100 characters"),
    ],
)
def test_a_filter_that_cannot_be_is_said_in_a_line(client: FlaskClient, query: str, says: str) -> None:
    answer = client.get(f"/admin/matches?{query}")
    assert answer.status_code == 400
    assert says in answer.text
    assert 'name="since"' in answer.text


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("reason=checkmate", "Nothing found."),
        ("reason=no+deal", "Nothing found."),
        ("before=2001-01-01T00:00:00%2B00:00~x", "There are no older ones."),
        ("since=2999-01-01", "Nothing found."),
    ],
)
def test_a_filter_that_no_match_fits_is_said_and_shown(
    client: FlaskClient, engine: Engine, query: str, says: str
) -> None:
    taboo(engine)
    answer = client.get(f"/admin/matches?{query}")
    assert answer.status_code == 200
    assert says in answer.text
    if "reason" in query:
        assert f"selected>{query.partition('=')[2].replace('+', ' ')}</option>" in answer.text


def test_pages_of_the_list_hold_every_match_once(
    client: FlaskClient, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "PAGE", 10)
    now = datetime.now(UTC)
    rows = [
        {"id": f"{n:022}", "game": "taboo", "source": "live", "status": "over", "seed": n, "config": {}, "ply": 1,
         "model_to_move": False, "violations": 0, "reason": "tied game", "moved_at": now, "lease_count": 0,
         "started_at": now - timedelta(seconds=n // 7)}  # several began at the same moment
        for n in range(35)
    ]  # fmt: skip
    seats = [{"match_id": row["id"], "seat": seat, "role": "x", "kind": PERSON} for row in rows for seat in (0, 1)]
    with writing(engine) as session:
        session.execute(insert(MatchRow), rows)
        session.execute(insert(SeatRow), seats)
    found = [listed(page) for page in leafed_through(client, "/admin/matches?reason=tied+game")]
    assert list(map(len, found)) == [10, 10, 10, 5]
    assert sorted(chain(*found)) == sorted(str(row["id"]) for row in rows)


# ---- One match ---------------------------------------------------------------


def test_a_match_is_replayed_with_both_private_views(client: FlaskClient, engine: Engine) -> None:
    with writing(engine) as session:
        seats = StoredSeat(PERSON), StoredSeat(PERSON)
        record = live.create(session, "negotiation", SPLIT, seats, seed=7, source="live", instant=True)
    for text in ("[message] hi there", "[propose] (2 books, 0 hats, 1 balls)"):
        record = say(engine, record, text)
    before, after = (client.get(f"/admin/matches/{record.id}?at={at}").text for at in (2, 3))
    assert "1 of 3" not in before
    assert "2 of 3" in before
    assert "hidden from this seat" not in before
    assert after.count("hidden from this seat") == 1
    for value in (1, 3, 2, 4):
        assert f'<td class="num">{value}</td>' in before
    latest, third = (client.get(f"/admin/matches/{record.id}{at}").text for at in ("", "?at=3"))
    assert latest.partition("<main")[2].partition("</main>")[0] == third.partition("<main")[2].partition("</main>")[0]


def test_what_a_match_was_begun_with_is_told_with_labels(client: FlaskClient, engine: Engine) -> None:
    with writing(engine) as session:
        people = StoredSeat(PERSON), StoredSeat(PERSON)
        told = [
            live.create(session, game, config, people, seed=7, source="live", instant=True)
            for game, config in (("negotiation", {**SPLIT, "first": 1}), ("taboo", {"word": "cat"}))
        ]
    negotiation, taboo = (words(client.get(f"/admin/matches/{record.id}").text) for record in told)
    for said in (
        f"On the table: {', '.join(map(str, SPLIT['counts']))}",
        f"Worth to each seat: {' / '.join(', '.join(map(str, row)) for row in SPLIT['values'])}",
        "Objective: own points (λ = 0)", "Maximum moves: 50", "Moves first: second seat",
    ):  # fmt: skip
        assert said in negotiation
    assert "Turns of each side: 5 ; Judge: strict: the word and its inflections ; Word: cat" in taboo
    assert not re.search(r'[{\[]"|max_turns|null', negotiation + taboo)
    assert "Item On the table Worth (own)" in negotiation


def test_a_model_has_its_own_name_in_every_language_and_what_a_judge_did_not_find_is_left_out(
    client: FlaskClient, engine: Engine
) -> None:
    with writing(engine) as session:
        seats = StoredSeat(PERSON), StoredSeat.of(find_model(session, "taboo", "scripted"))
        record = live.create(session, "taboo", {"word": "cat"}, seats, seed=7, source="live", instant=True)
    record = say(engine, record, "hello there")
    told = words(client.get(f"/admin/matches/{record.id}", headers={"Accept-Language": "de"}).text)
    assert "Platz 1: Mensch" in told
    assert "Platz 2: scripted" in told
    assert "Wort gesagt" not in told


def words(page: str) -> str:
    """What a page says, without its markup."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))


def test_what_each_side_asked_for_is_told_in_words_and_as_a_table(client: FlaskClient, engine: Engine) -> None:
    with writing(engine) as session:
        seats = StoredSeat(PERSON), StoredSeat(PERSON)
        record = live.create(session, "negotiation", SPLIT, seats, seed=7, source="live", instant=True)
    for text in ("[message] hi", "[propose] (2 books, 2 hats, 0 balls)", "[propose] (3 books, 0 hats, 0 balls)"):
        record = say(engine, record, text)
    before, one, both = (client.get(f"/admin/matches/{record.id}?at={at}").text for at in (2, 3, 4))
    assert "What each side asked for" not in before
    assert "One side has made its offer so far." in one
    told = words(both)
    assert "together they ask for 2 books too many, and nobody asks for 1 ball" in told
    assert "Book 3 3 2 5 2 too many" in told
    assert "Ball 1 0 0 0 1 left" in told
    assert "Worth to that side 3 points 4 points" in told  # 3·1, 2·2 + 2·0
    assert "Asks for 2 books and 2 hats." in told
    assert "allocation" not in both


def test_a_deal_is_told_in_words(client: FlaskClient, engine: Engine) -> None:
    with writing(engine) as session:
        seats = StoredSeat(PERSON), StoredSeat(PERSON)
        record = live.create(session, "negotiation", SPLIT, seats, seed=7, source="live", instant=True)
    for text in ("[message] hi", "[propose] (3 books, 0 hats, 1 balls)", "[propose] (0 books, 2 hats, 0 balls)"):
        record = say(engine, record, text)
    told = words(client.get(f"/admin/matches/{record.id}").text)
    assert "The offers fit" in told
    assert "The first seat gets 2 hats. The second seat gets 3 books and" in told
    assert "Pareto-optimal." in told


def test_refused_moves_calls_of_models_and_the_abort_are_told_with_their_reasons(
    client: FlaskClient, engine: Engine, desk: Callable[..., WorkerContext], stub: StubServer
) -> None:
    with writing(engine) as session:
        options = {"base_url": stub.url, "model": "stub-broken", "key_env": "", "retries": 0}
        row = add_api_model(session, "breaker", "Kim", ["negotiation"], options)
        seats = StoredSeat(PERSON), StoredSeat.of(row)
        record = live.create(session, "negotiation", SPLIT, seats, seed=7, source="live", instant=True)
    say(engine, record, "[message] hello")
    play_turn(desk(), record.id)
    page = client.get(f"/admin/matches/{record.id}").text
    assert page.count("Refused: ") == 5
    assert page.count("<summary>Generation</summary>") == 5
    assert "Aborted, the model’s fault" in page
    second = client.get(f"/admin/matches/{record.id}?at=4").text
    shown = second.partition('id="replay-generation"')[2]
    assert "2 of 5" in shown
    assert "[message] hello" in shown  # the exact prompt
    assert "No model was called" not in shown
    assert "No model was called" in page.partition('id="replay-generation"')[2]


@pytest.mark.parametrize("at", ["0", "99", "-1", "x", "²", "1" * 30])
def test_an_event_that_is_not_there_is_refused(client: FlaskClient, engine: Engine, at: str) -> None:
    answer = client.get(f"/admin/matches/{taboo(engine).id}", query_string={"at": at})
    assert answer.status_code == 400
    assert "at: expected the number of an event, from 1 to 1" in answer.text


@pytest.mark.parametrize("name", ["A" * 22, "A" * 3000, "%00", "%ff", "..%2f.."])
def test_an_unknown_match_is_not_found_and_the_way_back_is_shown(client: FlaskClient, name: str) -> None:
    answer = client.get(f"/admin/matches/{name}")
    assert answer.status_code == 404
    assert "Go to the overview" in answer.text
    assert len(answer.text) < 6000


def test_what_was_said_never_becomes_html(client: FlaskClient, engine: Engine) -> None:
    record = taboo(engine, "<script>alert(1)</script>")
    pages: list[Any] = [client.get(f"/admin/matches/{record.id}").text]
    with writing(engine) as session:
        session.execute(update(MatchRow).values(reason="<img src=x>"))
    pages.append(client.get("/admin/matches").text)
    for page in pages:
        assert "<script>alert" not in page
        assert "<img src=x>" not in page


def test_the_pages_are_for_the_signed_in_alone(app: Flask, engine: Engine) -> None:
    for path in ("/admin/matches", f"/admin/matches/{taboo(engine, 'a pet').id}"):
        assert app.test_client().get(path).location == f"/sign-in?next={path}"
