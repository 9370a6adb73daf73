"""Pages are shown what happens, whatever happens to the page beside them or to whoever made it happen."""

import time
from collections.abc import Callable
from typing import Any

import gevent
import pytest
from flask import Flask
from sqlalchemy import Engine, event
from sqlalchemy.exc import OperationalError

from app.core.extensions import writing
from app.games.base import JSON
from app.matches import engine as match_engine
from app.matches import live
from app.matches.stored import StoredMatch, StoredSeat
from app.registry import find_model
from app.web import tickets
from app.web.sockets import play_namespace as sockets
from app.web.sockets import rooms
from app.web.sockets.play_namespace import PlayNamespace
from app.web.sockets.rooms import Rooms
from tests.effort import calls
from tests.stack import PATIENCE


class Pages:
    """What is sent to each socket, and what is to happen at the moment of sending: `sending(event, sid)`."""

    def __init__(self) -> None:
        self.heard: dict[str, list[tuple[str, JSON]]] = {}
        self.sending: Callable[[str, str], None] = lambda event, sid: None

    def send(self, event: str, sid: str, payload: JSON) -> None:
        self.sending(event, sid)
        self.heard.setdefault(sid, []).append((event, payload))

    def names(self, sid: str) -> list[str]:
        return [event for event, _ in self.heard.get(sid, [])]


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> Pages:
    pages = Pages()
    monkeypatch.setattr(sockets, "sender", lambda server, namespace: pages.send)
    return pages


@pytest.fixture
def record(engine: Engine) -> StoredMatch:
    """A person, who moves first, against a model that a worker plays."""
    with writing(engine) as session:
        seats = StoredSeat("person"), StoredSeat.of(find_model(session, "taboo", "scripted"))
        return live.create(session, "taboo", {"word": "cat"}, seats, seed=1, source="live", instant=False)


@pytest.fixture
def play(app: Flask, pages: Pages, monkeypatch: pytest.MonkeyPatch) -> PlayNamespace:
    """The handlers, which hear nothing of the workers: this process is not gevent's, and listening would stall it."""
    monkeypatch.setattr(PlayNamespace, "_listen", lambda self: None)
    return PlayNamespace(app, app.config["SETTINGS"].model_copy(update={"READING_WORDS_PER_MINUTE": 100}))


def come(play: PlayNamespace, app: Flask, record: StoredMatch, sid: str) -> None:
    """A page connects, as Socket.IO tells of it."""
    ticket = tickets.issue(app.config["SETTINGS"], record.id, 0)
    play.connect(sid, {"QUERY_STRING": f"match={record.id}"}, {"ticket": ticket})


def until(condition: Callable[[], Any]) -> None:
    with gevent.Timeout(PATIENCE):
        while not condition():
            gevent.sleep(0.02)


def move(engine: Engine, record: StoredMatch, seat: int, text: str) -> None:
    """Somebody moves in another process, and tells nobody."""
    assert live.commit(engine, live.MoveSubmission(record.id, seat, text), instant=False).answer.ok


def test_a_page_that_is_found_gone_keeps_no_change_from_the_others(
    app: Flask, engine: Engine, play: PlayNamespace, pages: Pages, record: StoredMatch
) -> None:
    def sending(event: str, sid: str) -> None:  # Engine.IO finds out that a socket is silent when it sends to it
        if event == "change" and sid.startswith("gone"):
            play.disconnect(sid)

    pages.sending = sending
    for sid in ("gone 1", "here", "gone 2"):
        come(play, app, record, sid)
    until(lambda: pages.names("here") == pages.names("gone 1") == pages.names("gone 2") == ["view"])
    move(engine, record, 0, "a pet")
    play._rooms.refresh(record.id)
    move(engine, record, 1, "is it small?")
    play._rooms.refresh(record.id)
    assert pages.names("here") == ["view", "change", "change"]


def test_a_page_that_comes_while_another_is_found_gone_gets_its_view(
    app: Flask, engine: Engine, play: PlayNamespace, pages: Pages, record: StoredMatch
) -> None:
    def sending(event: str, sid: str) -> None:
        if event == "change" and sid == "gone":
            come(play, app, record, "new")
            gevent.sleep(0.05)  # as reading from a database over the network lets others work
            play.disconnect(sid)

    pages.sending = sending
    for sid in ("gone", "here"):
        come(play, app, record, sid)
    until(lambda: pages.names("gone") and pages.names("here"))
    move(engine, record, 0, "a pet")
    gevent.spawn(play._rooms.refresh, record.id)
    until(lambda: "view" in pages.names("new") and "change" in pages.names("here"))


def test_a_page_that_comes_while_the_database_goes_away_is_let_go_so_that_it_comes_again(
    app: Flask, engine: Engine, play: PlayNamespace, pages: Pages, record: StoredMatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go: list[str] = []
    monkeypatch.setattr(sockets.socketio.server, "disconnect", lambda sid, namespace: let_go.append(sid))
    come(play, app, record, "first")
    until(lambda: "view" in pages.names("first"))

    def away(*_: Any) -> None:
        raise OperationalError("SELECT", {}, Exception("the server closed the connection"))

    event.listen(engine, "before_cursor_execute", away)
    try:
        come(play, app, record, "second")  # whose match is open here, so that it is let in
        until(lambda: let_go)
    finally:
        event.remove(engine, "before_cursor_execute", away)
    assert let_go == ["second"]
    assert pages.names("second") == []
    come(play, app, record, "second again")
    until(lambda: "view" in pages.names("second again"))


def test_a_page_that_goes_costs_the_same_however_many_others_are_open(
    app: Flask, engine: Engine, play: PlayNamespace, pages: Pages, record: StoredMatch
) -> None:
    with writing(engine) as session:
        seats = StoredSeat("person"), StoredSeat.of(find_model(session, "taboo", "scripted"))
        other = live.create(session, "taboo", {"word": "dog"}, seats, seed=2, source="live", instant=False)
    costs = []
    for number in (5, 200):
        for each in range(number):
            come(play, app, record, f"{number}/{each}")
        come(play, app, other, f"{number}/goes")
        until(lambda: pages.names(f"{number}/goes"))
        costs.append(calls(lambda: play.disconnect(f"{number}/goes")))
    gevent.sleep(0.05)  # until those that have gone are out of their rooms
    assert costs[0] == costs[1]


def test_a_receipt_is_shown_step_by_step_without_reading_or_folding_the_log_again(
    app: Flask, engine: Engine, play: PlayNamespace, pages: Pages, record: StoredMatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    come(play, app, record, "here")
    until(lambda: pages.names("here") == ["view"])
    receipt = live.commit(engine, live.MoveSubmission(record.id, 0, "a pet"), instant=True)

    def refused(*_: object) -> None:
        raise AssertionError("expected the steps of the receipt, got another fold or a look at the database")

    event.listen(engine, "before_cursor_execute", refused)
    monkeypatch.setattr(match_engine, "apply", refused)
    try:
        play._rooms.follow(receipt.steps)
        play._rooms.follow(receipt.steps)  # what was shown already is not shown again
    finally:
        event.remove(engine, "before_cursor_execute", refused)
    shown = [payload for name, payload in pages.heard["here"] if name == "change"]
    assert [(each["ply"], [entry["by"] for entry in each["transcript"]]) for each in shown] == [
        (1, ["you"]), (2, ["partner"]),
    ]  # fmt: skip


def test_the_web_goes_on_listening_after_whatever_goes_wrong(
    app: Flask, pages: Pages, record: StoredMatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def breaks(what: str) -> Callable[..., None]:
        def broken(*_: object) -> None:
            tried.append(what)
            if len(tried) > 6:
                raise gevent.GreenletExit
            raise OperationalError("select", {}, Exception("the database is being restarted"))

        return broken

    monkeypatch.setattr(PlayNamespace, "_follow_channel", breaks("listen"))
    monkeypatch.setattr(Rooms, "refresh_all", breaks("refresh"))
    come(PlayNamespace(app, app.config["SETTINGS"]), app, record, "here")
    until(lambda: tried.count("listen") >= 3)
    assert tried.count("refresh") >= 2


def test_a_page_learns_of_a_move_whose_maker_was_killed_before_telling(
    app: Flask, engine: Engine, play: PlayNamespace, pages: Pages, record: StoredMatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "LOOK_SECONDS", 0.2)
    come(play, app, record, "here")
    until(lambda: pages.names("here") == ["view"])
    answer = play.move(play._connections["here"], "here", {"move_id": "m", "ply": 0, "text": "a pet"})
    assert answer["ok"]
    gevent.sleep(0.3)
    move(engine, record, 1, "is it small?")
    until(lambda: pages.names("here") == ["view", "change", "change"])


def test_a_view_that_is_asked_for_again_and_again_comes_from_memory_and_ends_up_true(
    app: Flask, engine: Engine, play: PlayNamespace, pages: Pages, record: StoredMatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rooms, "FRESH", 3600.0)
    come(play, app, record, "here")
    until(lambda: pages.names("here") == ["view"])
    place = play._connections["here"]
    move(engine, record, 0, "a pet")
    asked: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *what: asked.append(what[2]))
    assert play.sync(place, "here", {}) == {"ok": True, "ply": 1}  # the first one asks the database
    assert asked
    asked.clear()
    assert [play.sync(place, "here", {}) for _ in range(50)] == [{"ok": True, "ply": 1}] * 50
    assert asked == []
    assert pages.names("here") == ["view", "change", *["view"] * 51]
    assert all(view["ply"] == 1 for name, view in pages.heard["here"][2:])
    # What others do meanwhile comes without being asked for again.
    monkeypatch.setattr(rooms, "FRESH", 0.2)
    play._rooms._rooms[record.id].reads_soon = False
    play._rooms._rooms[record.id].read_at = time.monotonic()
    move(engine, record, 1, "is it small?")
    play.sync(place, "here", {})
    until(lambda: pages.heard["here"][-1][0] == "change" and pages.heard["here"][-1][1]["ply"] == 2)


def test_who_is_refused_because_the_match_has_ended_is_shown_its_end_with_the_refusal(
    app: Flask, engine: Engine, play: PlayNamespace, pages: Pages, record: StoredMatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rooms, "FRESH", 3600.0)
    come(play, app, record, "here")
    until(lambda: pages.names("here") == ["view"])
    place = play._connections["here"]
    play.sync(place, "here", {})  # from now on views come from memory
    live.commit(
        engine, live.MoveSubmission(record.id, 0, None), instant=False
    )  # in another process, which tells nobody
    answer = play.move(place, "here", {"move_id": "m", "ply": 0, "text": "a pet"})
    assert answer["error"]["code"] == "over"
    name, shown = pages.heard["here"][-1]
    assert (name, shown["status"]) == ("change", "over")
