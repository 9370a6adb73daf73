"""The participant protocol as a stranger's client meets it, on a running Parlor (docs/protocol.md)."""

import contextlib
import json
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from itsdangerous import TimestampSigner

from app.core.config import load_settings
from app.web import tickets
from app.web.sockets import rooms
from tests.another_web import another_web
from tests.participant import JSON, Participant, Refused, Table, request
from tests.stack import TURNS_ALONE, Stack, running_parlor
from tests.stub_openai import Reply, StubServer
from tests.tables import ASKED, add_model, negotiation, settings_of, taboo, two_people

VIEW = {
    "match", "game", "role", "partner", "status", "ply", "to_move", "transcript", "facts", "secret", "may", "clock",
    "outcome",
}  # fmt: skip
ENTRY = {"ply", "by", "kind", "text", "at"}
ASK, OFFER = f"[message] {ASKED}", "[propose] (1 books, 0 hats, 0 balls)"
MODEL, LABEL = "zebra-quartz", "Partner Blue"


@pytest.fixture(scope="module")
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        server.script("slow", Reply("[message] Let me think aloud.", delay=0.3))
        yield server


@pytest.fixture(scope="module")
def parlor(stub: StubServer) -> Iterator[Stack]:
    """One Parlor for all of these tests, in which an API model and the scripted partner play."""
    with running_parlor(GUEST_MATCHES_PER_MINUTE="0", **TURNS_ALONE) as running:
        add_model(running, stub.url, MODEL, "stub-negotiator", LABEL)
        add_model(running, stub.url, "slow", "slow", "Partner Green")
        yield running


# ---- Coming in ------------------------------------------------------------------


def test_the_first_thing_that_comes_is_the_whole_view_with_exactly_the_documented_fields(parlor: Stack) -> None:
    table = negotiation(parlor)
    with Participant(table) as person:
        event, view = person.heard[0]
    assert event == "view"
    assert set(view) == VIEW
    assert view | {"transcript": []} == {
        "match": table.match,
        "game": "negotiation",
        "role": "negotiator",
        "partner": "scripted",
        "status": "playing",
        "ply": 0,
        "to_move": "you",
        "transcript": [],
        "facts": {"counts": {"book": 1, "hat": 2, "ball": 2}, "lambda": 0, "limit": 50},
        "secret": {"values": {"book": 10, "hat": 0, "ball": 0}},
        "may": [{"kind": "message"}],
        "clock": None,
        "outcome": None,
    }


@pytest.mark.parametrize(
    ("role", "secret", "to_move", "may"),
    [
        ("attacker", {"word": "lemon"}, "you", [{"kind": "message"}]),
        ("defender", {}, "you", [{"kind": "message"}, {"kind": "declaration"}]),
    ],
)
def test_taboo_shows_each_role_what_it_may_know(
    parlor: Stack, role: str, secret: JSON, to_move: str, may: list[JSON]
) -> None:
    with Participant(taboo(parlor, role)) as person:
        view = person.view
    assert set(view) == VIEW
    assert (view["role"], view["secret"], view["to_move"], view["may"]) == (role, secret, to_move, may)
    assert view["facts"] == {"max_turns": 5, "turns_left": 5}
    assert [set(entry) for entry in view["transcript"]] == [ENTRY] * view["ply"]


def refused(table: Table, **how: Any) -> JSON:
    """What a socket is told that must not come in."""
    person = Participant(table, **how)
    try:
        with pytest.raises(Refused) as caught:
            person.connect()
    finally:
        person.close()
    assert person.heard == []
    assert isinstance(caught.value.error["data"]["message"], str)
    return dict(caught.value.error["data"])


def test_a_forged_ticket_is_refused(parlor: Stack) -> None:
    table = taboo(parlor, "attacker")
    payload, moment, signature = table.ticket.split(".")
    other = taboo(parlor, "defender").ticket.split(".")
    swapped = signature[:-2] + ("AA" if signature[-2:] != "AA" else "BB")
    forged = [f"{payload}.{moment}.{swapped}", f"{payload}.{moment}.{other[2]}", f"{payload}x.{moment}.{signature}"]
    forged += ["", "x", "\ud800", "." * 50, f"{payload}", "ß" * 300, table.ticket * 2]
    for ticket in forged:
        assert refused(table, auth={"ticket": ticket})["code"] == "not_allowed"


def test_an_expired_ticket_is_refused_under_a_code_of_its_own(parlor: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    table = taboo(parlor, "attacker")
    settings = settings_of(parlor)
    monkeypatch.setattr(TimestampSigner, "get_timestamp", lambda _: int(time.time()) - 24 * 3600 - 60)
    assert refused(table, auth={"ticket": tickets.issue(settings, table.match, 0)})["code"] == "expired_ticket"


def test_a_ticket_for_another_match_is_refused(parlor: Stack) -> None:
    table, other = taboo(parlor, "attacker"), taboo(parlor, "attacker")
    assert refused(table, auth={"ticket": other.ticket})["code"] == "not_allowed"
    assert refused(table, match=other.match)["code"] == "not_allowed"


def test_a_ticket_that_another_parlor_signed_is_refused(parlor: Stack) -> None:
    table = taboo(parlor, "attacker")
    foreign = tickets.issue(load_settings({"SECRET_KEY": "somebody else's"}), table.match, 0)
    assert refused(table, auth={"ticket": foreign})["code"] == "not_allowed"


@pytest.mark.parametrize("auth", [None, {}, {"ticket": None}, {"ticket": 7}, {"ticket": ["x"]}, "ticket", [1]])
def test_no_ticket_at_all_is_refused(parlor: Stack, auth: object) -> None:
    assert refused(taboo(parlor, "attacker"), auth=auth)["code"] == "not_allowed"


@pytest.mark.parametrize("match", ["", "AAAAAAAAAAAAAAAAAAAAAA", "%00", "../admin", "x" * 3000])
def test_an_address_without_the_match_of_the_ticket_is_refused(parlor: Stack, match: str) -> None:
    assert refused(taboo(parlor, "attacker"), match=match)["code"] == "not_allowed"


# ---- Moving ---------------------------------------------------------------------


def test_a_move_is_acknowledged_first_and_shown_as_changes_in_order(parlor: Stack) -> None:
    with Participant(negotiation(parlor)) as person:
        answer = person.move(ASK)
        assert answer == {"ok": True, "ply": 1}
        person.wait(lambda: len(person.all_of("change")) == 2, "two changes")
        mine, theirs = person.all_of("change")
        assert [name for name, _ in person.heard] == ["view", "change", "change"]
        assert set(mine) == {"match", "ply", "to_move", "may", "transcript"}
        assert (mine["ply"], mine["to_move"], mine["may"]) == (1, "partner", [])
        [entry] = mine["transcript"]
        assert set(entry) == ENTRY
        assert (entry["ply"], entry["by"], entry["kind"], entry["text"]) == (0, "you", "message", ASK)
        assert (theirs["ply"], theirs["to_move"]) == (2, "you")
        assert theirs["may"] == [{"kind": "message"}, {"kind": "proposal"}]
        assert [(entry["ply"], entry["by"]) for entry in theirs["transcript"]] == [(1, "partner")]
        merged_view = person.view
        assert person.ask("sync") == {"ok": True, "ply": 2}
        person.wait(lambda: len(person.all_of("view")) == 2, "the whole view")
        assert person.view == merged_view


def test_a_deal_is_played_to_its_end_and_then_shows_what_was_hidden(parlor: Stack) -> None:
    with Participant(negotiation(parlor)) as person:
        person.move(ASK)
        person.wait(lambda: person.view["ply"] == 2, "an answer")
        assert person.move(OFFER) == {"ok": True, "ply": 3}
        person.wait(lambda: person.over, "the end")
        view = person.view
    assert view["outcome"] == {"reason": "deal", "winner": None, "utility": 10, "partner_utility": 10}
    assert (view["to_move"], view["may"], view["clock"]) == (None, [], None)
    assert [entry["by"] for entry in view["transcript"]] == ["you", "partner", "you", "partner"]
    assert view["transcript"][3]["text"] == "[propose] (0 books, 2 hats, 2 balls)"
    assert [entry["ply"] for entry in view["transcript"]] == [0, 1, 2, 3]


def test_a_right_guess_wins_and_a_wrong_one_loses(parlor: Stack) -> None:
    for guess, reason, winner, points in (
        ("lemon", "defender wins", "you", (1, -1)),
        ("pencil", "attacker wins", "partner", (-1, 1)),
    ):
        with Participant(taboo(parlor, "defender")) as person:
            assert person.move(f'I know the word! It is "{guess}"!')["ok"]
            person.wait(lambda person=person: person.over, "the end")
            outcome = person.view["outcome"]
            assert (outcome["utility"], outcome["partner_utility"]) == points
            assert (outcome["reason"], outcome["winner"]) == (reason, winner)
            assert person.view["facts"]["word"] == "lemon"


def test_a_repeated_move_gets_its_first_answer_and_adds_nothing(parlor: Stack) -> None:
    with Participant(negotiation(parlor)) as person:
        first = person.move(ASK, "once", 0)
        person.wait(lambda: person.view["ply"] == 2, "an answer")
        seen = len(person.heard)
        assert person.move(ASK, "once", 0) == first
        assert person.move("[message] Something else.", "once", 2) == first
        assert person.ask("sync")["ok"]
        person.wait(lambda: len(person.heard) > seen, "the whole view")
        assert person.view["ply"] == 2
        assert [name for name, _ in person.heard[seen:]] == ["view"]


def test_a_refused_move_may_be_repeated_and_gets_its_first_answer(parlor: Stack) -> None:
    with Participant(negotiation(parlor)) as person:
        first = person.move("no prefix", "bad")
        assert first == person.move("no prefix", "bad")
        assert first["error"]["code"] == "illegal_move"
        assert person.move(ASK, "good")["ok"]


def code_of(answer: JSON) -> str:
    """The code of a refusal of the one documented shape."""
    assert set(answer) == {"ok", "error"}
    assert answer["ok"] is False
    assert set(answer["error"]) == {"code", "message"} | ({"violation"} & set(answer["error"]))
    assert ("violation" in answer["error"]) == (answer["error"]["code"] == "illegal_move")
    assert answer["error"]["message"]
    assert "\n" not in answer["error"]["message"]
    return str(answer["error"]["code"])


def test_a_move_for_another_ply_is_stale(parlor: Stack) -> None:
    with Participant(negotiation(parlor)) as person:
        assert code_of(person.move(ASK, ply=1)) == "stale"
        assert code_of(person.move(ASK, ply=-1)) == "stale"
        assert code_of(person.move(ASK, ply=10**30)) == "stale"
        assert person.move(ASK)["ok"]
        person.wait(lambda: person.view["ply"] == 2, "an answer")
        assert code_of(person.move(ASK, ply=0)) == "stale"


def test_a_move_in_the_partners_turn_is_refused_and_goes_through_in_ones_own(parlor: Stack) -> None:
    with Participant(negotiation(parlor, opponent="Partner Green")) as person:
        assert person.move(ASK)["ok"]
        assert code_of(person.move(ASK, "early", ply=1)) == "not_your_turn"
        person.wait(lambda: person.view["ply"] == 2, "an answer")
        assert person.move(ASK, "early", ply=2)["ok"]


@pytest.mark.parametrize(
    ("text", "words", "violation"),
    [
        ("hello", "[message]", "no_prefix"),
        ("", "[message]", "no_prefix"),
        ("[message]", "empty", "empty"),
        ("[message] a [propose] (1 books, 0 hats, 0 balls)", "one move at a time", "two_prefixes"),
        ("[propose] (1 books, 0 hats, 0 balls)", "say something first", "too_early"),
        ("[message] bell \x07", "U+0007", "control_character"),
        ("[message] null \x00", "U+0000", "control_character"),
    ],
)
def test_a_move_against_the_rules_is_refused_with_its_reason(
    parlor: Stack, text: str, words: str, violation: str
) -> None:
    with Participant(negotiation(parlor)) as person:
        answer = person.move(text)
        assert code_of(answer) == "illegal_move"
        assert answer["error"]["violation"] == violation
        assert words.lower() in answer["error"]["message"].lower()
        assert person.move(ASK)["ok"]


@pytest.mark.parametrize(
    "offer", ["(2 books, 0 hats, 0 balls)", "(-1 books, 0 hats, 0 balls)", "(1, 0, 0)", "(1 books, 0 hats, 0 balls) ok"]
)
def test_an_offer_that_cannot_be_is_refused_and_the_talk_goes_on(parlor: Stack, offer: str) -> None:
    with Participant(negotiation(parlor)) as person:
        person.move(ASK)
        person.wait(lambda: person.view["ply"] == 2, "an answer")
        assert code_of(person.move(f"[propose] {offer}")) == "illegal_move"
        assert person.view["ply"] == 2


def test_a_hundred_kilobytes_are_too_long_and_a_long_but_allowed_text_is_not(parlor: Stack) -> None:
    with Participant(negotiation(parlor)) as person:
        assert code_of(person.move("[message] " + "a" * 100_000)) == "too_long"
        assert code_of(person.move("[message] " + "😀" * 2000)) == "too_long"
        text = "[message] " + "😀" * 1990
        assert person.move(text)["ok"]
        person.wait(lambda: person.view["ply"] >= 1, "the move")
        assert person.view["transcript"][0]["text"] == text


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"move_id": "a", "ply": 0},
        {"move_id": "a", "text": ASK},
        {"ply": 0, "text": ASK},
        {"move_id": "a", "ply": 0, "text": 7},
        {"move_id": "a", "ply": 0, "text": None},
        {"move_id": "a", "ply": 0, "text": [ASK]},
        {"move_id": "a", "ply": "0", "text": ASK},
        {"move_id": "a", "ply": True, "text": ASK},
        {"move_id": "a", "ply": 0.5, "text": ASK},
        {"move_id": "a", "ply": None, "text": ASK},
        {"move_id": "", "ply": 0, "text": ASK},
        {"move_id": "a" * 65, "ply": 0, "text": ASK},
        {"move_id": "a\nb", "ply": 0, "text": ASK},
        {"move_id": 7, "ply": 0, "text": ASK},
        {"move_id": {}, "ply": 0, "text": ASK},
        [],
        "move",
        7,
    ],
)
def test_a_move_of_another_shape_is_invalid_and_changes_nothing(parlor: Stack, body: object) -> None:
    with Participant(negotiation(parlor)) as person:
        assert code_of(person.ask("move", body)) == "invalid"
        person.ask("sync")
        person.wait(lambda: len(person.all_of("view")) == 2, "the whole view")
        assert person.view["ply"] == 0


def test_nothing_can_be_done_after_the_end(parlor: Stack) -> None:
    with Participant(taboo(parlor, "attacker")) as person:
        assert person.move("The word is lemon.")["ok"]
        person.wait(lambda: person.over, "the end")
        assert code_of(person.move("And now?")) == "over"
        assert code_of(person.ask("resign")) == "over"
        assert person.ask("sync")["ok"]


def test_who_resigns_ends_the_match_for_both_without_points(parlor: Stack) -> None:
    with Participant(taboo(parlor, "attacker")) as person:
        assert person.ask("resign")["ok"]
        person.wait(lambda: person.over, "the end")
        assert person.view["outcome"] == {"reason": "resigned", "winner": None, "utility": 0, "partner_utility": 0}


def test_an_event_that_does_not_exist_is_ignored(parlor: Stack) -> None:
    with Participant(taboo(parlor, "attacker")) as person:
        person.tell("abort", {"everything": True})
        assert person.ask("sync")["ok"]
        assert person.view["status"] == "playing"


# ---- Who else is there ----------------------------------------------------------


def test_a_second_socket_at_a_seat_gets_the_same_changes(parlor: Stack) -> None:
    table = negotiation(parlor)
    with Participant(table) as one, Participant(table) as two:
        one.move(ASK)
        two.wait(lambda: two.view["ply"] == 2, "an answer")
        two.move(OFFER)
        for person in (one, two):
            person.wait(lambda person=person: person.over, "the end")
        assert one.all_of("change") == two.all_of("change")
        assert one.view == two.view
    with Participant(table) as late:
        assert late.view == one.view


def test_typing_reaches_the_other_seat_and_not_ones_own(parlor: Stack) -> None:
    table = negotiation(parlor)
    partner = tickets.issue(settings_of(parlor), table.match, 1)
    with Participant(table) as person, Participant(table, auth={"ticket": partner}) as other:
        assert person.ask("typing", {"on": True}) == {"ok": True, "ply": 0}
        other.wait(lambda: other.all_of("typing") == [{"on": True}], "that the partner types")
        assert person.ask("typing", {"on": False})["ok"]
        other.wait(lambda: other.all_of("typing") == [{"on": True}, {"on": False}], "that the partner has stopped")
        assert person.all_of("typing") == []
        for body in ({}, {"on": 1}, {"on": "true"}, {"on": None}):
            assert code_of(person.ask("typing", body)) == "invalid"


def test_a_model_is_seen_typing_while_it_thinks(parlor: Stack) -> None:
    with Participant(negotiation(parlor, opponent="Partner Green")) as person:
        person.move(ASK)
        person.wait(lambda: person.view["ply"] == 2, "an answer")
        person.wait(lambda: len(person.all_of("typing")) == 2, "that the partner has stopped typing")
    assert person.all_of("typing") == [{"on": True}, {"on": False}]


def test_the_first_word_of_a_model_comes_without_being_asked_for(parlor: Stack) -> None:
    with Participant(negotiation(parlor, first="partner", opponent=LABEL)) as person:
        person.wait(lambda: person.view["ply"] == 1, "the partner's first word")
        assert person.view["transcript"][0]["by"] == "partner"


# ---- Who is there ---------------------------------------------------------------


def wait_out_patience(parlor: Stack, *people: Participant) -> None:
    """Wait until a connection that was lost before now would have been told of, and until all that was said has come.

    Somebody who comes in now is told that their partner is not there, as late as anybody is told of such a thing.
    """
    table, _ = two_people(parlor, "taboo", {"word": "lemon"})
    with Participant(table) as alone:
        alone.wait(lambda: alone.all_of("presence") == [{"on": False}], "that the partner is not there")
    for person in people:
        person.ask("typing", {"on": False})  # its answer comes after all that was sent before


def test_a_lost_connection_is_told_to_the_partner_and_so_is_its_return(parlor: Stack) -> None:
    first, second = two_people(parlor, "taboo", {"word": "lemon"})
    with Participant(first) as person:
        person.wait(lambda: person.all_of("presence") == [{"on": False}], "that the partner is not there yet")
        with Participant(second) as partner:
            person.wait(lambda: person.all_of("presence")[1:] == [{"on": True}], "that the partner has come")
            partner.tell("typing", {"on": True})
            person.wait(lambda: person.all_of("typing") == [{"on": True}], "that the partner types")
        person.wait(lambda: person.all_of("presence")[2:] == [{"on": False}], "that the partner is gone")
        person.wait(lambda: person.all_of("typing")[1:] == [{"on": False}], "that nobody types any more")
        with Participant(first) as other_tab:
            other_tab.wait(lambda: other_tab.all_of("presence") == [{"on": False}], "the same in a second tab")
        with Participant(second) as partner:
            person.wait(lambda: person.all_of("presence")[3:] == [{"on": True}], "that the partner is back")
            assert partner.all_of("presence") == []


def test_a_second_tab_that_closes_is_no_lost_connection(parlor: Stack) -> None:
    first, second = two_people(parlor, "taboo", {"word": "lemon"})
    with Participant(second), Participant(first) as person:
        for _ in range(3):
            with Participant(second):
                pass
        wait_out_patience(parlor, person)
        assert person.all_of("presence") == []


def test_a_page_that_is_loaded_again_is_no_lost_connection(parlor: Stack) -> None:
    """On a busy machine that may take longer than a lost connection is waited for: the first quick one counts."""
    for _ in range(50):
        first, second = two_people(parlor, "taboo", {"word": "lemon"})
        with contextlib.ExitStack() as later, contextlib.ExitStack() as before:
            before.enter_context(Participant(second))
            person = later.enter_context(Participant(first))
            left_at = time.monotonic()
            before.close()
            later.enter_context(Participant(second))
            if time.monotonic() - left_at < rooms.PATIENCE:
                wait_out_patience(parlor, person)
                assert person.all_of("presence") == []
                return
    pytest.fail(f"expected one of fifty pages to load again within {rooms.PATIENCE} s")


def test_nothing_is_said_of_a_models_presence_or_of_a_game_that_is_over(parlor: Stack) -> None:
    first, second = two_people(parlor, "taboo", {"word": "lemon"})
    with Participant(negotiation(parlor, opponent="Partner Green")) as alone, Participant(first) as person:
        with Participant(second) as partner:
            partner.ask("resign")
        wait_out_patience(parlor, person, alone)
        assert person.over
        assert person.all_of("presence") == alone.all_of("presence") == []


# ---- What stays private ---------------------------------------------------------


def test_nothing_private_is_in_any_payload_before_the_end(parlor: Stack) -> None:
    table = negotiation(parlor, opponent=LABEL)
    with Participant(table) as person:
        person.move("[message] Who begins?")
        person.wait(lambda: person.view["ply"] == 2, "an answer")
        person.move("[message] Then make your offer.")
        person.wait(lambda: person.view["ply"] == 4, "an offer")
        before = json.dumps(person.heard)
        offer = person.view["transcript"][-1]
        assert (offer["kind"], offer["by"], offer["text"]) == ("proposal", "partner", None)
        for private in ("[propose]", "allocation", MODEL, "stub-negotiator", LABEL, "seed"):
            assert private not in before
        for own in ('"values": {"book": 10, "hat": 0, "ball": 0}',):
            assert before.count('"values"') == before.count(own) == 1
        assert person.move("[propose] (0 books, 2 hats, 2 balls)")["ok"]
        person.wait(lambda: person.over, "the end")
        revealed = person.all_of("change")[-1]["transcript"]
        assert [(entry["ply"], entry["kind"], entry["text"]) for entry in revealed] == [
            (3, "proposal", "[propose] (1 books, 0 hats, 0 balls)"),
            (4, "proposal", "[propose] (0 books, 2 hats, 2 balls)"),
        ]
        assert MODEL not in json.dumps(person.heard)


def test_the_word_is_in_no_payload_of_the_defender_before_the_end(parlor: Stack) -> None:
    with Participant(taboo(parlor, "defender", "marzipan")) as person:
        for _ in range(2):
            person.wait_for_turn()
            person.move("Go on, please.")
        person.wait_for_turn()
        before = json.dumps(person.heard)
        assert not person.over
        assert "marzipan" not in before
        assert '"word"' not in before
        person.move('I know the word! It is "marzipan"!')
        person.wait(lambda: person.over, "the end")
        assert person.view["facts"]["word"] == "marzipan"


# ---- POST /api/matches -----------------------------------------------------------


def test_a_match_starts_with_its_ticket_and_an_address_that_opens_it(parlor: Stack) -> None:
    status, answer = request(parlor.url, {"game": "taboo", "opponent": LABEL, "role": "attacker"})
    assert status == 201
    assert set(answer) == {"match", "ticket", "url"}
    assert answer["url"].startswith(f"{parlor.url}/play/{answer['match']}")
    with Participant(Table(parlor.url, answer["match"], answer["ticket"], answer["url"])) as person:
        assert person.view["role"] == "attacker"
    with urllib.request.build_opener(urllib.request.HTTPCookieProcessor()).open(answer["url"]) as page:
        assert page.status == 200
        assert "ticket" not in page.url


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff\xfe", 400),
        ([], 400),
        ("taboo", 400),
        ({}, 400),
        ({"game": None}, 404),
        ({"game": "chess"}, 404),
        ({"game": 7}, 400),
        ({"game": "taboo", "colour": "red"}, 400),
        ({"game": "taboo", "role": "judge"}, 400),
        ({"game": "taboo", "role": 1}, 400),
        ({"game": "taboo", "opponent": "nobody"}, 404),
        ({"game": "taboo", "opponent": MODEL}, 404),
        ({"game": "taboo", "config": []}, 400),
        ({"game": "taboo", "config": "x"}, 400),
        ({"game": "taboo", "config": {"word": "two words"}}, 400),
        ({"game": "taboo", "config": {"word": 7}}, 400),
        ({"game": "taboo", "config": {"max_turns": 0}}, 400),
        ({"game": "taboo", "config": {"letters": 5}}, 400),
        ({"game": "negotiation", "config": {"objective": 2}}, 400),
        ({"game": "negotiation", "config": {"objective": "greedy"}}, 400),
        ({"game": "negotiation", "config": {"counts": [1, 2, 2]}}, 400),
        ({"game": "negotiation", "config": {"counts": [1, 2, 2], "values": [[1, 1, 1], [0, 3, 2]]}}, 400),
        ({"game": "negotiation", "config": {"counts": [1, 2], "values": [[10, 0], [0, 5]]}}, 400),
        ({"game": "negotiation", "config": {"counts": "122", "values": "xx"}}, 400),
        ({"game": "negotiation", "config": {"first": 2}}, 400),
        ({"game": "negotiation", "config": {"limit": 10**30}}, 400),
    ],
)
def test_a_bad_request_is_one_line_with_a_code_and_starts_nothing(parlor: Stack, body: object, status: int) -> None:
    came, answer = request(parlor.url, body)
    assert (came, set(answer)) == (status, {"error"}), answer
    assert set(answer["error"]) == {"code", "message"}
    assert answer["error"]["message"]
    assert "\n" not in answer["error"]["message"]
    assert MODEL not in answer["error"]["message"].replace(repr(MODEL), "")


def test_too_many_matches_in_a_minute_are_refused_until_the_minute_is_over(parlor: Stack) -> None:
    with another_web(parlor, {"GUEST_MATCHES_PER_MINUTE": "2"}) as server:
        came = [request(server, {"game": "taboo"}) for _ in range(3)]
    assert [status for status, _ in came] == [201, 201, 429]
    assert came[2][1]["error"]["code"] == "too_fast"


def test_no_match_starts_where_guest_play_is_off(parlor: Stack) -> None:
    with another_web(parlor, {"GUEST_PLAY": "false"}) as server:
        status, answer = request(server, {"game": "taboo"})
    assert status == 403
    assert answer["error"]["code"] == "not_allowed"


def test_moves_that_come_too_fast_are_refused_and_can_be_sent_again(parlor: Stack) -> None:
    with (
        another_web(parlor, {"MOVES_PER_SECOND": "0.5"}) as server,
        Participant(taboo(parlor, "attacker", "marzipan", server=server)) as person,
    ):
        answers = [person.move(" ", move_id=f"m{number}") for number in range(2)]
        assert [answer["error"]["code"] for answer in answers] == ["illegal_move", "too_fast"]
        person.wait(lambda: person.insist("Hello there.", "m1", 0)["ok"], "the same move, taken after a while")


def test_a_body_nested_too_deeply_is_refused(parlor: Stack) -> None:
    status, answer = request(parlor.url, b'{"game": ' + b"[" * 45_000 + b"]" * 45_000 + b"}")
    assert (status, answer["error"]["code"]) == (400, "invalid")
