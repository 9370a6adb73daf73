"""The API for programs: who is let in, what is refused and how, lists with cursors, jobs."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, select, update

from app import accounts
from app.core.extensions import reading, writing
from app.job_kinds import JOB_KINDS
from app.jobs import states
from app.jobs.creation import creation_of
from app.models import ApiRequest, ApiToken, RecipeRun
from app.registry import add_api_model
from app.rounds.job import ROUND as ROUND_KIND
from tests.datasets import cut
from tests.experimenter import signed_in
from tests.programs import Program, refusal
from tests.recipes import GAMES, count_of
from tests.rounds import make_round, play

ROUND = {"game": "taboo", "models": ["scripted"], "matches": 2, "seed": 7}


@pytest.fixture
def program(app: Flask) -> Program:
    return Program(app, "read", "run")


# ---- Who is let in -----------------------------------------------------------


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic YTpi", "Bearer parlor_x", "parlor_x"])
def test_without_a_good_token_nobody_is_let_in(app: Flask, header: str) -> None:
    answer = app.test_client().get("/api/v1/models", headers={"Authorization": header} if header else {})
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert refusal(answer)["field"] == "Authorization"


def test_an_expired_and_a_revoked_token_are_told_apart_in_one_line(app: Flask, program: Program) -> None:
    with writing() as session:
        session.execute(update(ApiToken).values(expires_at=datetime.now(UTC) - timedelta(seconds=1)))
    assert "got program 0, expired on " in refusal(program.ask("GET", "/models"))["message"]
    with writing() as session:
        session.execute(update(ApiToken).values(revoked_at=datetime(2026, 1, 31, tzinfo=UTC)))
    found = refusal(program.ask("GET", "/models"))
    assert found["message"] == (
        "Authorization: expected a valid token, got program 0, revoked on 2026-01-31; the account page makes tokens"
    )


@pytest.mark.parametrize(
    ("scopes", "method", "path", "status"),
    [
        (("read",), "GET", "/models", 200),
        (("run",), "GET", "/models", 403),
        (("read", "people"), "POST", "/rounds", 403),
        (("run",), "POST", "/rounds", 201),
        (("read",), "POST", "/rounds/1/cancel", 403),
        (("read",), "POST", "/rounds/1/resume", 403),
        (("run",), "POST", "/rounds/1/resume", 404),
    ],
)
def test_a_token_does_what_its_scopes_say(
    app: Flask, scopes: tuple[str, ...], method: str, path: str, status: int, enqueued_jobs: list[Any]
) -> None:
    answer = Program(app, *scopes).ask(method, path, **({"json": ROUND} if path == "/rounds" else {}))
    assert answer.status_code == status, answer.text
    if status == 403:
        wanted = "read" if method == "GET" else "run"
        assert refusal(answer)["message"] == (
            f"scope: expected {wanted}, got program 0 with {', '.join(scopes)};"
            " make a token with it on the account page"
        )


def test_a_session_lets_nobody_in_and_none_may_come_beside_a_token(app: Flask, program: Program) -> None:
    browser = signed_in(app)
    assert browser.get("/api/v1/models").status_code == 400
    answer = browser.get("/api/v1/models", headers={"Authorization": f"Bearer {program.secret}"})
    assert (answer.status_code, refusal(answer)["field"]) == (400, "Cookie")
    assert "Set-Cookie" not in program.ask("GET", "/models").headers


def test_a_token_needs_no_csrf_token(make_app: Callable[..., Flask], enqueued_jobs: list[Any]) -> None:
    app = make_app()
    app.config["WTF_CSRF_ENABLED"] = True
    with app.app_context():
        assert Program(app, "run").post("/rounds", ROUND).status_code == 201


def test_a_program_that_asks_too_often_is_told_when_to_come_back(
    make_app: Callable[..., Flask], broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(REDIS_URL=broker, API_REQUESTS_PER_MINUTE=3)
    with app.app_context():
        hasty, other = Program(app, "read"), Program(app, "read")
        assert [hasty.ask("GET", "/models").status_code for _ in range(4)] == [200, 200, 200, 429]
        answer = hasty.ask("GET", "/models")
        assert 1 <= int(answer.headers["Retry-After"]) <= 60
        assert refusal(answer)["message"].startswith("expected at most 3 requests a minute, got more")
        assert other.ask("GET", "/models").status_code == 200


def test_whoever_guesses_tokens_is_stopped_by_address(make_app: Callable[..., Flask], broker: str) -> None:
    app = make_app(REDIS_URL=broker)
    with app.app_context():
        client = app.test_client()
        found = [
            client.get("/api/v1/models", headers={"Authorization": f"Bearer parlor_{each}"}).status_code
            for each in range(125)  # of which sixty are within a minute, also where it begins anew meanwhile
        ]
    assert found[:60] == [401] * 60
    assert set(found) == {401, 429}


def test_the_last_use_of_a_token_is_kept(app: Flask, program: Program) -> None:
    program.get("/models")
    with reading() as session:
        used = session.scalar(select(ApiToken.used_at))
        assert used is not None
        assert datetime.now(UTC) - used < timedelta(minutes=1)


# ---- Refusals ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing", 404, "not_found"),
        ("GET", "/rounds/1/nothing", 404, "not_found"),
        ("GET", "/rounds/99", 404, "not_found"),
        ("GET", f"/rounds/{10**30}", 404, "not_found"),
        ("GET", f"/models/{10**30}", 404, "not_found"),
        ("GET", f"/datasets/{10**30}", 404, "not_found"),
        ("DELETE", "/rounds", 405, "method_not_allowed"),
        ("POST", "/models", 405, "method_not_allowed"),
        ("GET", "/models?limit=0", 400, "invalid"),
        ("GET", "/models?columns=nothing", 400, "invalid"),
        ("GET", "/models?sort=nothing", 400, "invalid"),
        ("GET", "/models?nothing=1", 400, "invalid"),
        ("GET", "/models?=1", 400, "invalid"),
        ("GET", "/models?cursor=nothing", 400, "invalid"),
        ("GET", "/models?cursor=%00", 400, "invalid"),
    ],
)
def test_every_refusal_has_one_shape(program: Program, method: str, path: str, status: int, code: str) -> None:
    answer = program.ask(method, path)
    assert (answer.status_code, refusal(answer)["code"]) == (status, code)


def test_a_refusal_says_its_parts(program: Program) -> None:
    assert refusal(program.post("/rounds", {**ROUND, "sampling": {"temperature": 9}})) == {
        "code": "invalid",
        "message": "sampling.temperature: expected a number from 0 to 2, got 9",
        "field": "sampling.temperature",
        "expected": "a number from 0 to 2",
        "got": "9",
        "remedy": None,
    }


def test_an_error_of_our_own_is_json_and_says_nothing_of_it(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.api.registry.dataset_json", lambda *_: 1 / 0)
    monkeypatch.setattr("app.api.registry.store.get_dataset", lambda *_: None)
    answer = program.ask("GET", "/datasets/1")
    assert (answer.status_code, refusal(answer)["code"]) == (500, "internal")
    assert "division" not in answer.text


@pytest.mark.parametrize(
    ("sent", "status", "said"),
    [
        ({"data": "{", "content_type": "application/json"}, 400, "expected a JSON object"),
        ({"data": "[1]", "content_type": "application/json"}, 400, "body: expected a JSON object, got [1]"),
        ({"data": '{"seed": NaN}', "content_type": "application/json"}, 400, "NaN, which is no JSON"),
        ({"data": "[" * 100_000, "content_type": "application/json"}, 400, "got one nested too deeply"),
        ({"data": "game=taboo", "content_type": "application/x-www-form-urlencoded"}, 415, "expected application/json"),
        ({}, 415, "Content-Type: expected application/json, got none"),
        ({"data": b"{" + b" " * 8_100_000 + b"}", "content_type": "application/json"}, 413, "at most 8 MB"),
    ],
)
def test_a_body_that_is_no_spec_is_refused(program: Program, sent: dict[str, Any], status: int, said: str) -> None:
    answer = program.ask("POST", "/rounds", **sent)
    assert answer.status_code == status
    assert said in refusal(answer)["message"]


def test_only_who_has_a_token_may_send_much(app: Flask, enqueued_jobs: list[Any]) -> None:
    words = "\n".join(f"word{number}" for number in range(20_000))
    body = {**ROUND, "material": {"text": words, "name": "many.txt"}}
    answer = app.test_client().post("/api/v1/rounds", json=body)
    assert (answer.status_code, refusal(answer)["code"]) == (413, "too_large")


# ---- Lists -------------------------------------------------------------------


def test_a_list_is_read_by_cursors_and_has_the_columns_of_the_command(app: Flask, program: Program) -> None:
    listed = json.loads(app.test_cli_runner().invoke(args=["model", "list", "--json", "--columns", "name"]).output)
    found = [each for page in program.pages("/models", 2) for each in page]
    assert [each["name"] for each in found] == [each["name"] for each in listed]
    assert found[0]["kind"] == "scripted"
    assert set(program.get("/models?columns=name,label")["items"][0]) == {"name", "label"}
    assert [each["name"] for each in program.get("/models?sort=-name&limit=1")["items"]] == [
        max(each["name"] for each in listed)
    ]


def test_a_cursor_of_another_query_is_refused(program: Program) -> None:
    cursor = program.get("/models?limit=1")["next"]
    for path in ("/models?sort=name", "/models?name=tiny", "/models?columns=name"):
        answer = program.ask("GET", f"{path}&cursor={cursor}")
        assert answer.status_code == 400
        assert refusal(answer)["message"] == (
            "cursor: expected one of this query, got one of another; begin without a cursor, or ask as before:"
            " only the limit may change"
        )
    assert program.ask("GET", f"/datasets?cursor={cursor}").status_code == 400
    assert program.ask("GET", f"/models?limit=2&cursor={cursor}").status_code == 200


def test_jobs_that_come_while_a_list_is_read_move_nothing_in_it(engine: Engine, program: Program) -> None:
    made = [make_round(engine, "scripted", matches=2) for _ in range(5)]
    seen = []
    for page in program.pages("/rounds", 2):
        seen += [each["round_id"] for each in page]
        make_round(engine, "scripted", matches=2)
    assert seen == sorted(made, reverse=True)


def test_models_and_datasets_are_shown_as_their_commands_show_them(
    app: Flask, engine: Engine, program: Program
) -> None:
    number = make_round(engine, "scripted", matches=2)
    play(engine, app.config["SETTINGS"], number)
    dataset = cut(engine, app.config["SETTINGS"].home, rounds=[number], filter="all")

    def told(*words: str) -> Any:
        return json.loads(app.test_cli_runner().invoke(args=[*words, "--json"]).output)

    assert program.get(f"/datasets/{dataset.id}") == told("dataset", "show", str(dataset.id))
    [listed] = program.get("/datasets")["items"]
    assert (listed["dataset_id"], listed["rows"]) == (dataset.id, dataset.rows)
    [model] = program.get("/models?name=scripted")["items"]
    shown = program.get(f"/models/{model['model_id']}")
    assert shown == {"model_id": model["model_id"], **told("model", "show", "scripted")}


# ---- Jobs --------------------------------------------------------------------


def test_every_kind_of_jobs_has_a_list(program: Program) -> None:
    for kind in JOB_KINDS:
        assert program.get(f"/{kind.plural}") == {"items": [], "next": None, "more": False}
        assert program.ask("GET", f"/{kind.plural}/1").status_code == 404


@pytest.fixture
def copies(app: Flask) -> Iterator[None]:
    """A further kind in the registry, whose jobs come of no spec."""
    kind = replace(ROUND_KIND, name="copy", plural="copies", creation="")
    JOB_KINDS.append(kind)
    yield
    JOB_KINDS.remove(kind)


def test_a_kind_that_comes_into_the_registry_is_in_the_api(engine: Engine, program: Program, copies: None) -> None:
    number = make_round(engine, "scripted", matches=2)
    assert [each["round_id"] for each in program.get("/copies")["items"]] == [number]
    assert program.get(f"/copies/{number}")["matches"] == 2
    assert (program.post(f"/copies/{number}/cancel").json or {})["url"] == f"/api/v1/copies/{number}"
    answer = program.post("/copies", ROUND)
    assert (answer.status_code, refusal(answer)["code"]) == (405, "method_not_allowed")
    paths = program.get("/openapi.json")["paths"]
    assert [*paths["/copies"]] == ["get"]
    assert "post" in paths["/copies/{number}/resume"]


@pytest.mark.parametrize("kind", [kind for kind in JOB_KINDS if creation_of(kind)], ids=lambda kind: kind.name)
def test_every_kind_refuses_a_field_that_its_spec_has_not(program: Program, kind: Any) -> None:
    needed = {"game": "taboo", "base": "tiny-base"} if kind.name == "campaign" else {}
    found = refusal(program.post(f"/{kind.plural}", {**needed, "no_such_field": 1}))
    assert (found["field"], found["code"]) == ("no_such_field", "invalid")
    assert refusal(program.post(f"/{kind.plural}", {**needed, "": 1}))["code"] == "invalid"


def test_a_spec_of_an_earlier_version_has_its_fields(program: Program) -> None:
    body = {"game": "taboo", "base": "tiny-base", "version": 1, "play_with": {"scripted": 1}}  # which was a list then
    found = refusal(program.post("/campaigns", body))
    assert found["message"] == "play_with: expected equal or a number above 0 and below 1, got 1"
    assert refusal(program.post("/campaigns", {**body, "version": 99}))["field"] == "version"


def test_a_round_is_created_shown_cancelled_and_resumed(
    app: Flask, engine: Engine, program: Program, enqueued_jobs: list[Any]
) -> None:
    answer = program.post("/rounds", ROUND)
    assert answer.status_code == 201
    assert answer.json == {"id": 1, "ids": [1], "status": "waiting", "url": "/api/v1/rounds/1"}
    assert answer.headers["Location"] == "/api/v1/rounds/1"
    assert enqueued_jobs == [("round", 1)]
    shown = program.get("/rounds/1")
    assert (shown["seed"], shown["matches"], shown["requested_by"], shown["status"]) == (7, 2, "ann", "waiting")
    told = json.loads(app.test_cli_runner().invoke(args=["round", "show", "1", "--json"]).output)
    assert shown == told
    assert (program.post("/rounds/1/cancel").json or {})["status"] == "cancelled"
    raised = program.post("/rounds/1/resume", {"budget": {"usd": 2.5}})
    assert (raised.status_code, (raised.json or {})["status"]) == (200, "waiting")
    assert program.get("/rounds/1")["budget_usd"] == 2.5
    assert enqueued_jobs == [("round", 1)] * 2
    play(engine, app.config["SETTINGS"], 1)
    assert program.get("/rounds/1")["status"] == states.DONE
    for action in ("cancel", "resume"):
        answer = program.post(f"/rounds/1/{action}")
        assert (answer.status_code, refusal(answer)["code"]) == (409, "conflict")


def test_a_round_is_the_one_that_the_command_makes_of_the_same_spec(
    app: Flask, program: Program, enqueued_jobs: list[Any]
) -> None:
    program.post("/rounds", ROUND)
    line = ["round", "run", "taboo", "--models", "scripted", "--matches", "2", "--seed", "7", "--queue"]
    assert app.test_cli_runner().invoke(args=line).exit_code == 0
    one, other = (program.get(f"/rounds/{number}") for number in (1, 2))
    own = {"round_id", "created_at", "requested_by"}
    assert {name: value for name, value in one.items() if name not in own} == {
        name: value for name, value in other.items() if name not in own
    }


def test_a_cross_play_is_all_of_its_rounds(program: Program, enqueued_jobs: list[Any]) -> None:
    with writing() as session:
        add_api_model(session, "other", "Other", ["taboo"], {"model": "m", "base_url": "http://127.0.0.1:9"})
    body = {**ROUND, "cross_play": True, "models": ["scripted", "other"]}
    answer = program.post("/rounds", body).json or {}
    assert answer["ids"] == [1, 2, 3, 4]
    assert [number for _, number in enqueued_jobs] == answer["ids"]
    assert [each["round_id"] for each in program.get("/rounds")["items"]] == [4, 3, 2, 1]


def test_files_come_as_their_texts_and_no_file_of_the_server_is_read(
    program: Program, enqueued_jobs: list[Any]
) -> None:
    body = {key: value for key, value in ROUND.items() if key != "matches"}
    program.post("/rounds", {**body, "material": {"text": "cake\nbread\ntea\n", "name": "mine.txt"}})
    shown = program.get("/rounds/1")
    assert shown["matches"] == 3  # each piece once
    found = refusal(program.post("/rounds", {**body, "material": "/etc/hostname"}))
    assert (found["field"], found["got"]) == ("material", "'/etc/hostname'")
    society = {"agents": {"scripted-agent": 1}, "observers": ["scripted-observer"]}
    assert program.post("/societies", {**society, "questions": {"text": "How?\nWhy?\n"}}).status_code == 201
    found = refusal(program.post("/societies", {**society, "questions": "/etc/hostname"}))
    assert found["expected"] == 'shipped or {"text": …, "name": …}'
    found = refusal(program.post("/societies", {**society, "questions": {"text": ""}}))
    assert found["field"] == "questions"


def test_a_recipe_comes_as_its_text_and_is_refused_at_its_line(program: Program, enqueued_jobs: list[Any]) -> None:
    body = {"recipe": {"text": GAMES, "name": "games.yaml"}, "inputs": {"turns": 3}, "name": "mine"}
    assert program.post("/recipes", body).status_code == 201
    assert enqueued_jobs == [("recipe", 1)]
    shown = program.get("/recipes/1")
    assert (shown["name"], shown["of"], shown["spec"]["inputs"]["turns"]) == ("mine", 11, 3)
    wrong = {"recipe": {"text": GAMES.replace("filter: all", "filtered: all"), "name": "games.yaml"}}
    answer = program.post("/recipes", wrong)
    assert answer.status_code == 400
    assert "games.yaml:13: steps[2].with.filtered (turn=1)" in answer.text
    assert program.post("/recipes", {}).status_code == 400


def with_words(text: str = "lemon\npencil\n", **files: Any) -> dict[str, Any]:
    """A recipe with a round that is played on the words of a file beside it."""
    games = GAMES.replace("{game: negotiation, models", "{game: taboo, material: words/few.txt, models", 1)
    sent = {"words/few.txt": text, **files}
    return {"recipe": {"text": games, "name": "games.yaml", "files": sent}}


def test_files_that_a_recipe_names_come_beside_its_text(program: Program, enqueued_jobs: list[Any]) -> None:
    assert program.post("/recipes", with_words()).status_code == 201
    with reading() as session:
        assert session.scalars(select(RecipeRun.files)).all() == [{"words/few.txt": "lemon\npencil\n"}]


LINE = "games.yaml:9: steps[1].with.material (turn=1): expected "
SENT = "a file that came with the recipe, got words/few.txt; send its text in `recipe.files`"


@pytest.mark.parametrize(
    ("files", "code", "said"),
    [
        (None, "file_needed", f"{LINE}{SENT}"),
        ({}, "file_needed", f"{LINE}{SENT}"),
        ({"few.txt": "lemon"}, "file_needed", f"{LINE}{SENT}"),
        ({"words/few.txt": "lemon\npencil\n", "more.txt": ""}, "invalid",
         "recipe.files: expected only files that its steps name, got 'more.txt'"),
        ({"words/few.txt": 1}, "invalid", "recipe.files: expected the texts of files by their names, got {"),
        (["words/few.txt"], "invalid", "recipe.files: expected the texts of files by their names, got ["),
        ({"words/few.txt": "lemon, \x01"}, "invalid", "games.yaml:9: steps[1].with.material (turn=1): "),
        ({"words/few.txt": "lemon\n" * 900_000}, "invalid", f"{LINE}files of at most 5 MB together, got more; import"),
    ],
)  # fmt: skip
def test_files_of_a_recipe_that_do_not_fit_are_refused_at_their_line(
    engine: Engine, program: Program, files: Any, code: str, said: str
) -> None:
    body = with_words()
    body["recipe"]["files"] = files
    answer = program.post("/recipes", body)
    assert (answer.status_code, refusal(answer)["code"]) == (400, code)
    assert refusal(answer)["message"].startswith(said)
    assert count_of(engine, RecipeRun) == 0


def test_what_a_refusal_of_a_missing_file_has_is_its_name(program: Program) -> None:
    found = refusal(program.post("/recipes", {"recipe": {"text": with_words()["recipe"]["text"]}}))
    assert (found["code"], found["got"]) == ("file_needed", "words/few.txt")


# ---- Once --------------------------------------------------------------------


def test_a_request_with_a_key_is_done_once(program: Program, enqueued_jobs: list[Any]) -> None:
    first, again = (program.post("/rounds", ROUND, key="once") for _ in range(2))
    assert (first.status_code, first.data) == (again.status_code, again.data)
    assert first.headers["Location"] == again.headers["Location"]
    assert len(program.get("/rounds")["items"]) == 1
    assert enqueued_jobs == [("round", 1)]
    assert (program.post("/rounds", ROUND, key="twice").json or {})["id"] == 2
    assert (program.post("/rounds", ROUND).json or {})["id"] == 3


def test_a_key_with_another_body_is_refused(program: Program, enqueued_jobs: list[Any]) -> None:
    program.post("/rounds", ROUND, key="once")
    for path, body in (("/rounds", {**ROUND, "seed": 8}), ("/rounds/1/cancel", None)):
        answer = program.post(path, body, key="once")
        assert answer.status_code == 422
        assert refusal(answer)["message"] == (
            "Idempotency-Key: expected what was sent with this key before, got another address or body;"
            " send another key with another request"
        )
    assert len(program.get("/rounds")["items"]) == 1


def test_a_key_is_known_for_a_day_and_only_to_its_token(app: Flask, program: Program, enqueued_jobs: list[Any]) -> None:
    program.post("/rounds", ROUND, key="once")
    assert (Program(app, "run", user="bob").post("/rounds", ROUND, key="once").json or {})["id"] == 2
    with writing() as session:
        session.execute(update(ApiRequest).values(at=datetime.now(UTC) - timedelta(days=1, seconds=1)))
    assert (program.post("/rounds", ROUND, key="once").json or {})["id"] == 3
    with reading() as session:
        kept = session.scalars(select(ApiRequest.key).order_by(ApiRequest.id)).all()
    assert kept == [None, None, "once"]


def test_what_was_refused_may_come_again_with_its_key(program: Program, enqueued_jobs: list[Any]) -> None:
    assert program.post("/rounds/1/cancel", key="once").status_code == 404
    program.post("/rounds", ROUND)
    assert program.post("/rounds/1/cancel", key="once").status_code == 200


@pytest.mark.parametrize("key", ["", "x" * 201, "tab\there"])
def test_a_key_that_cannot_be_is_refused(program: Program, key: str) -> None:
    assert refusal(program.post("/rounds", ROUND, key=key))["field"] == "Idempotency-Key"


# ---- What was changed --------------------------------------------------------


def test_whatever_is_changed_is_noted_with_who_did_it(app: Flask, program: Program, enqueued_jobs: list[Any]) -> None:
    program.post("/rounds", ROUND)
    program.post("/rounds", {**ROUND, "models": ["nobody"]})  # which is refused, and changes nothing
    program.post("/rounds/1/cancel", key="once")
    program.post("/rounds/1/cancel", key="once")
    program.get("/rounds/1")
    found = json.loads(app.test_cli_runner().invoke(args=["token", "changes", "--json"]).output)
    told = [(each["user"], each["token"], each["method"], each["path"], each["subject"]) for each in found]
    assert told == [
        ("ann", "program 0", "POST", "/api/v1/rounds/1/cancel", "round 1"),
        ("ann", "program 0", "POST", "/api/v1/rounds", "round 1"),
    ]


def test_what_was_changed_stays_known_when_its_experimenter_is_removed(
    app: Flask, program: Program, enqueued_jobs: list[Any]
) -> None:
    program.post("/rounds", ROUND)
    with writing() as session:
        accounts.create_user(session, "bob", None, datetime.now(UTC))
        accounts.remove_user(session, "ann")
    with reading() as session:
        [row] = session.scalars(select(ApiRequest))
        assert (row.token_id, row.user_name, row.subject) == (None, "ann", "round 1")
