"""Moves that models are asked for as JSON: played over HTTP, kept in the log, and told as text everywhere else."""

import csv
import io
import json
import re
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, select

from app.core.config import Settings
from app.core.errors import Invalid
from app.core.extensions import reading, writing
from app.model_calls.request_runner import make_here
from app.models import MatchRow
from app.registry import ensure_baselines, get_model
from app.rounds import lifecycle
from app.rounds.job import RoundKind
from tests import model_servers as servers
from tests.datasets import cut, rows_of
from tests.experimenter import signed_in
from tests.model_requests import ask_for_test
from tests.rounds import add_models, check, facts, make_round, play, round_form, row_of
from tests.shell import Finished
from tests.stub_openai import Reply, Request, StubServer, negotiator, taboo_player

pytestmark = [
    pytest.mark.usefixtures("vendor_environment"),
    pytest.mark.parametrize("database_url", ["sqlite"], indirect=True),  # what is stored is the same on both
]
STRUCTURED: dict[str, Any] = {"sampling": {"structured": True}}
FORM = "THE FORM OF YOUR ANSWERS"
PROPOSAL = re.compile(r"\[propose\] \((\d+) books, (\d+) hats, (\d+) balls\)")
GUESS = re.compile(r"I know the word! It is `(\w+)`!")

Asked = Callable[..., None]


def as_json(text: str) -> str:
    """A move as the object that is asked for."""
    if found := PROPOSAL.fullmatch(text):
        books, hats, balls = map(int, found.groups())
        return json.dumps({"move": {"proposal": {"book": books, "hat": hats, "ball": balls}}})
    if found := GUESS.fullmatch(text):
        return json.dumps({"move": {"guess": found[1]}})
    return json.dumps({"move": {"message": text.removeprefix("[message] ")}}, indent=1)


def move(request: Request) -> str:
    """What the model says in its game, as text; the defender of taboo guesses at its third turn."""
    messages = request.body["messages"]
    if "Adversarial Taboo" not in messages[0]["content"]:
        return negotiator(messages)
    own = sum(message["role"] == "assistant" for message in messages)
    guesses = own == 2 and "You are the defender" in messages[0]["content"]
    return "I know the word! It is `river`!" if guesses else taboo_player(messages)


def keeps_to_schemas(request: Request) -> Reply:
    """A server that answers in JSON where a schema is sent."""
    if "17 times 24" in request.body["messages"][-1]["content"]:
        return Reply(servers.answer_to(request))
    return Reply(as_json(move(request)) if "response_format" in request.body else move(request))


@pytest.fixture
def settings(app: Flask) -> Settings:
    return app.config["SETTINGS"]  # type: ignore[no-any-return]


@pytest.fixture
def tested(engine: Engine, settings: Settings, stub: StubServer) -> Asked:
    """Adds a model of such a server and makes its test call."""

    def add(server: servers.Server = keeps_to_schemas, name: str = "m") -> None:
        stub.answer_with(name, server)
        add_models(engine, stub.url, name)
        with reading(engine) as session:
            number = get_model(session, name).id
        assert make_here(engine, settings, ask_for_test(engine, number))["ok"]

    return add


def played(engine: Engine, settings: Settings, *models: str, **wish: Any) -> int:
    number = make_round(engine, *models, **wish)
    play(engine, settings, number)
    return number


def asked_for_json(stub: StubServer) -> list[Request]:
    """The requests that ask for a move as JSON, with or without a schema."""
    return [each for each in stub.requests_of("m") if FORM in each.body["messages"][0]["content"]]


def logs(engine: Engine, round_id: int) -> list[list[dict[str, Any]]]:
    return [[body for *_, body in match["log"]] for match in facts(engine, round_id).values()]


def events(engine: Engine, round_id: int, *kinds: str) -> list[dict[str, Any]]:
    return [event for log in logs(engine, round_id) for event in log if event["kind"] in kinds]


def object_of(**fields: Any) -> dict[str, Any]:
    """The schema of an object with these fields and no others."""
    return {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}


# ---- A match that is played so ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("game", "kinds"), [("negotiation", {"message", "proposal"}), ("taboo", {"message", "declaration"})]
)
def test_matches_are_the_same_as_by_text_and_the_log_keeps_what_was_written(
    engine: Engine, settings: Settings, stub: StubServer, tested: Asked, game: str, kinds: set[str]
) -> None:
    tested()
    structured = played(engine, settings, "m", game=game, matches=6, **STRUCTURED)
    requests = asked_for_json(stub)
    plain = played(engine, settings, "m", game=game, matches=6)
    check(engine, structured, 6)
    row = row_of(engine, structured)
    assert (row.aborted, row.violations, row.lenient_moves) == (0, 0, 0)
    assert row.moves == len(requests) > 12
    for log, by_text in zip(logs(engine, structured), logs(engine, plain), strict=True):
        assert log[0]["prompts"] == [{**prompt, "answer": "json-1"} for prompt in by_text[0]["prompts"]]
        for event in log[1:-1]:
            assert event.pop("original") == as_json(event["text"])
        assert log[1:] == by_text[1:]
        assert {event["kind"] for event in log[1:-1]} == kinds
    assert not any('{"move"' in said["content"] for each in requests for said in each.body["messages"][1:])


def test_files_and_pages_show_the_move_and_what_was_written(
    app: Flask, engine: Engine, settings: Settings, tested: Asked
) -> None:
    tested()
    number, client = played(engine, settings, "m", "scripted", matches=1, **STRUCTURED), signed_in(app)
    moves, matches = (
        list(csv.DictReader(io.StringIO(client.get(f"/admin/export/{name}.csv?round={number}").text)))
        for name in ("moves", "matches")
    )
    own = [each for each in moves if each["player"] == "m"]
    assert own
    assert [each["original"] for each in own] == [as_json(each["text"]) for each in own]
    assert {each["original"] for each in moves if each["player"] == "scripted"} == {""}
    assert [(each["answer_form_0"], each["answer_form_1"]) for each in matches] == [("json-1", "")]
    page = client.get(f"/admin/matches/{matches[0]['match_id']}").text
    assert "Moves are asked for as JSON." in page
    assert "The model wrote:" in page
    assert 'Response format: <span dir="auto">json_schema</span>' in page
    assert "Moves as JSON: yes" in client.get(f"/admin/rounds/{number}?tab=settings").text


@pytest.mark.parametrize("game", ["negotiation", "taboo"])
def test_rows_to_train_on_are_those_of_the_same_matches_played_by_text(
    engine: Engine, settings: Settings, tested: Asked, game: str
) -> None:
    tested()
    found = []
    for asked in (STRUCTURED, {}):
        number = played(engine, settings, "m", game=game, matches=6, **asked)
        rows = rows_of(settings.home, cut(engine, settings.home, rounds=[number], filter="all"))
        found.append([{**row, "group": row["group"][-2:]} for row in rows])
    assert len(found[0]) == 12
    assert found[0] == found[1]


# ---- What is asked ----------------------------------------------------------------------------


def test_the_schema_of_a_negotiation_has_what_is_there_and_what_the_turn_allows(
    engine: Engine, settings: Settings, stub: StubServer, tested: Asked
) -> None:
    tested()
    config = {"counts": [1, 2, 3], "values": [[1, 3, 1], [4, 0, 2]], "first": 0}
    played(engine, settings, "m", matches=1, config=config, material=None, **STRUCTURED)
    say = object_of(message={"type": "string"})
    numbers = {"book": [0, 1], "hat": [0, 1, 2], "ball": [0, 1, 2, 3]}
    wanted = {item: {"type": "integer", "enum": each} for item, each in numbers.items()}
    propose = object_of(proposal=object_of(**wanted))
    either = {"anyOf": [say, propose]}
    assert [request.body["response_format"] for request in asked_for_json(stub)] == [
        {"type": "json_schema", "json_schema": {"name": "move", "strict": True, "schema": schema}}
        for schema in ({"title": "move", **object_of(move=each)} for each in (say, either, either, propose))
    ]


def test_the_schema_of_taboo_has_a_guess_for_the_defender_alone(
    engine: Engine, settings: Settings, stub: StubServer, tested: Asked
) -> None:
    tested()
    played(engine, settings, "m", game="taboo", matches=1, **STRUCTURED)
    say, guess = object_of(message={"type": "string"}), object_of(guess={"type": "string"})
    requests = asked_for_json(stub)
    schemas = [each.body["response_format"]["json_schema"]["schema"]["properties"]["move"] for each in requests]
    assert schemas == [say, {"anyOf": [say, guess]}] * 3
    told = ['{"move": {"guess": "the word"}}' in each.body["messages"][0]["content"] for each in requests]
    assert told == [False, True] * 3


@pytest.mark.parametrize("game", ["negotiation", "taboo"])
def test_the_prompt_of_a_turn_is_a_prefix_of_the_next(
    engine: Engine, settings: Settings, stub: StubServer, tested: Asked, game: str
) -> None:
    tested()
    played(engine, settings, "m", game=game, matches=1, **STRUCTURED)
    chats = [request.body["messages"] for request in asked_for_json(stub)]
    for before, after in zip(chats, chats[2:], strict=False):
        assert after[: len(before)] == before
    assert all(FORM in chat[0]["content"] for chat in chats)


# ---- Answers that are no such object ----------------------------------------------------------


@pytest.mark.parametrize("game", ["negotiation", "taboo"])
def test_other_answers_are_refused_and_asked_for_again(
    engine: Engine, settings: Settings, stub: StubServer, tested: Asked, game: str
) -> None:
    tested()
    wrong = [
        '{"move": {"message": "I would like the boo',  # cut off
        "[message] I would like the books.",
        'Here you are: {"move": {"message": "hello"}}',
        '{"move": {"message": "hello", "proposal": null}}',
        '{"move": {"message": 7}}',
        '{"move": {"proposal": {"book": 1, "hat": true, "ball": 0}}}',
        '{"move": {"proposal": {"book": 1, "hat": 0}}}',
        '{"move": {"guess": null}}',
        '{"message": "hello"}',
        '["move"]',
        "7" * 1500,
        "[" * 1500,
        "",
    ]
    for text in wrong:
        stub.answer_with(
            "m", lambda request, text=text: keeps_to_schemas(request) if corrected(request) else Reply(text)
        )
        number = played(engine, settings, "m", "scripted", game=game, matches=1, **STRUCTURED)
        refused, [log] = events(engine, number, "violation"), logs(engine, number)
        assert row_of(engine, number).aborted == 0
        assert {(each["code"], each["text"]) for each in refused} == {("no_json", text)}
        assert len(refused) == row_of(engine, number).violations == sum("original" in each for each in log) > 0
    assert "does not count. Answer with one JSON object" in asked_for_json(stub)[-1].body["messages"][-1]["content"]


def corrected(request: Request) -> bool:
    return "Answer again" in request.body["messages"][-1]["content"]


def test_the_fifth_of_them_ends_the_match(engine: Engine, settings: Settings, stub: StubServer, tested: Asked) -> None:
    tested()
    stub.answer_with("m", lambda _: Reply("I would rather not."))
    number = played(engine, settings, "m", "scripted", game="taboo", matches=2, **STRUCTURED)
    assert (row_of(engine, number).aborted, row_of(engine, number).violations) == (2, 10)


def test_what_only_the_rules_forbid_is_refused_by_their_reason(
    engine: Engine, settings: Settings, stub: StubServer, tested: Asked
) -> None:
    tested()
    forbidden = iter(
        (
            '{"move": {"proposal": {"book": 1, "hat": 0, "ball": 0}}}',
            '{"move": {"message": "  "}}',
            '{"move": {"message": "a [propose] in it"}}',
            '{"move": {"message": "a \\u0007 bell"}}',
            '{"move": {"message": "hello"}}',
        )
    )
    stub.answer_with("m", lambda request: Reply(next(forbidden, None) or as_json(move(request))))
    number = played(engine, settings, "m", matches=1, **STRUCTURED)
    codes = [each["code"] for each in events(engine, number, "violation")]
    assert codes == ["too_early", "empty", "two_prefixes", "control_character"]
    assert row_of(engine, number).aborted == 0


def test_an_object_in_a_fence_is_read_where_moves_are_read_leniently(
    engine: Engine, settings: Settings, stub: StubServer, tested: Asked
) -> None:
    tested()
    stub.answer_with("m", lambda request: Reply(f"```json\n{as_json(move(request))}\n```"))
    lenient, strict = (played(engine, settings, "m", matches=2, lenient=each, **STRUCTURED) for each in (True, False))
    assert (row_of(engine, lenient).violations, row_of(engine, lenient).aborted) == (0, 0)
    assert row_of(engine, strict).aborted == 2
    moves = events(engine, lenient, "message", "proposal")
    assert [each["original"] for each in moves] == [f"```json\n{as_json(each['text'])}\n```" for each in moves]


def test_a_message_that_begins_as_text_does_is_no_second_prefix(
    engine: Engine, settings: Settings, stub: StubServer, tested: Asked
) -> None:
    tested()
    stub.answer_with("m", lambda request: Reply(as_json(move(request).replace("[message]", "[message] [Message]"))))
    number = played(engine, settings, "m", matches=2, **STRUCTURED)
    assert row_of(engine, number).violations == 0
    assert {each["text"].count("essage]") for each in events(engine, number, "message")} == {1}


# ---- Servers ------------------------------------------------------------------------------------


def test_a_server_that_refuses_schemas_in_the_middle_is_asked_without_and_the_next_round_is_refused(
    engine: Engine, settings: Settings, stub: StubServer, tested: Asked
) -> None:
    tested()
    with_schema = count()

    def changes(request: Request) -> Reply:
        if "response_format" in request.body and next(with_schema) >= 5:
            return servers.refused("response_format")
        return Reply(as_json(move(request)))  # the prompt asks for it all the same

    stub.answer_with("m", changes)
    number = played(engine, settings, "m", matches=6, **STRUCTURED)
    check(engine, number, 6)
    assert (row_of(engine, number).aborted, row_of(engine, number).violations) == (0, 0)
    assert sum("response_format" not in each.body for each in asked_for_json(stub)) > 5
    assert all("original" in each for each in events(engine, number, "message", "proposal"))
    with reading(engine) as session:
        assert get_model(session, "m").options["refused_fields"] == ["response_format"]
    with pytest.raises(Invalid, match=r"got m \(its server refuses them\); ask for moves as text"):
        make_round(engine, "m", **STRUCTURED)


def test_a_round_is_refused_before_it_starts_where_a_server_has_no_structured_output(
    engine: Engine, stub: StubServer, tested: Asked
) -> None:
    tested(servers.llama_cpp, "ignoring")
    tested(servers.transformers_serve, "refusing")
    add_models(engine, stub.url, "new")
    with writing(engine) as session:
        ensure_baselines(session)
    for name, got in {
        "ignoring": "ignoring (its server ignores them); ask for moves as text",
        "refusing": "refusing (its server refuses them); ask for moves as text",
        "new": "new (not tested); make its test call: `flask model test new`",
        "tiny": "tiny (a local model); ask for moves as text",
    }.items():
        with pytest.raises(Invalid) as refused:
            make_round(engine, "scripted", name, **STRUCTURED)
        expected = "structured: expected models whose servers keep to JSON Schemas, as a test call finds out"
        assert refused.value.message == f"{expected}, got {got}"
        assert make_round(engine, "scripted", name)


def test_a_model_that_sends_a_form_of_its_own_is_refused(engine: Engine, tested: Asked) -> None:
    tested()
    with writing(engine) as session:
        row = get_model(session, "m")
        row.options = {**row.options, "extra": {"response_format": {"type": "text"}}}
    with pytest.raises(Invalid, match="extra: expected no field that the option structured_output sends"):
        make_round(engine, "m", **STRUCTURED)


def test_a_round_that_was_broken_off_goes_on_as_it_began(
    engine: Engine, settings: Settings, stub: StubServer, tested: Asked
) -> None:
    tested()
    number = make_round(engine, "m", matches=8, **STRUCTURED)
    play(engine, settings, number, until=lambda: len(asked_for_json(stub)) >= 10)
    play(engine, settings, number)
    check(engine, number, 8)
    assert (row_of(engine, number).aborted, row_of(engine, number).violations) == (0, 0)
    assert all("original" in each for each in events(engine, number, "message", "proposal"))


def test_scripted_players_are_asked_for_nothing(engine: Engine, settings: Settings) -> None:
    number = played(engine, settings, "scripted", matches=2, **STRUCTURED)
    assert (row_of(engine, number).finished, row_of(engine, number).violations) == (2, 0)
    assert events(engine, number, "started")[0]["prompts"] == [None, None]
    assert not any("original" in each for each in events(engine, number, "message", "proposal"))


# ---- How it is asked for ------------------------------------------------------------------------


def test_it_is_off_unless_somebody_asks_for_it_and_kept_with_the_round(engine: Engine, tested: Asked) -> None:
    tested()
    on, off = make_round(engine, "m", **STRUCTURED), make_round(engine, "m")
    assert [row_of(engine, number).sampling for number in (on, off)] == [{"structured": True}, {}]
    with reading(engine) as session:
        specs = [lifecycle.spec_of(session, row_of(engine, number)) for number in (on, off)]
    assert [spec.sampling.structured for spec in specs] == [True, False]


def test_the_form_has_a_tick_for_it(app: Flask, engine: Engine, tested: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RoundKind, "enqueue", lambda *_, **_queue: None)
    tested()
    client, form = signed_in(app), round_form("taboo") | {"models": ["m"], "matches": "4"}
    for sent, asked in ((form, None), (form | {"structured": "1"}, True)):
        assert client.post("/admin/rounds/new", data=sent).status_code == 303
        with reading(engine) as session:
            [*_, row] = session.scalars(select(type(row_of(engine, 1))))
            assert row.sampling.get("structured") == asked
    assert 'name="structured" value="1" checked>' in client.get("/admin/rounds/new?like=2").text


def test_the_command_has_an_option_and_says_in_a_line_why_it_cannot_be(
    engine: Engine, stub: StubServer, flask: Callable[..., Finished]
) -> None:
    add_models(engine, stub.url, "new")
    done = flask("round", "run", "negotiation", "--models", "new", "new", "--structured")
    assert done.exit_code == 2
    assert "got new (not tested); make its test call: `flask model test new`" in done.stderr
    with reading(engine) as session:
        assert session.scalar(select(MatchRow.id)) is None
