"""What no request of the API may be: bodies, queries, headers, methods, each refused in one line, with nothing made."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine

from app.api.openapi import operations, path_of
from app.job_kinds import JOB_KINDS
from app.jobs.creation import creation_of
from app.jobs.spec import fields_of
from app.models import RecipeRun, RoundRow
from tests.campaigns import add_local
from tests.programs import Program, refusal
from tests.recipes import GAMES, count_of

ROUND = '{"game": "taboo", "models": ["scripted"], "matches": 2, %s}'


@pytest.fixture
def program(app: Flask) -> Program:
    return Program(app, "read", "run", "people")


@pytest.fixture(autouse=True)
def _nothing_is_made(engine: Engine, enqueued_jobs: list[Any]) -> Iterator[None]:
    yield
    assert (count_of(engine, RoundRow), count_of(engine, RecipeRun), enqueued_jobs) == (0, 0, [])


def refused(program: Program, method: str, path: str, **sent: Any) -> dict[str, Any]:
    answer = program.ask(method, path, **sent)
    assert 400 <= answer.status_code < 500, answer.text
    found = refusal(answer)
    assert "\n" not in found["message"]
    return found


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ('"game": "negotiation"', "body: expected a JSON object, got the field 'game' twice"),
        ('"config": {"rule": "strict", "rule": "strict"}', "body: expected a JSON object, got the field 'rule' twice"),
        (f'"seed": {"9" * 5000}', "body: expected a JSON object, got a number of 5000 digits"),
        (f'"seed": -{"9" * 999}', "seed: expected a whole number from 0 to 9223372036854775807, got -99999999"),
        ('"seed": 1e999', "seed: expected a whole number from 0 to 9223372036854775807, got inf"),
        ('"seed": NaN', "body: expected a JSON object, got NaN, which is no JSON"),
        ('"config": %s' % ('{"a":' * 5000 + "1" + "}" * 5000), "body: expected a JSON object, got one nested too"),
        ('"config": %s' % ('{"a":' * 500 + "1" + "}" * 500), "config of taboo: expected only max_turns, rule, word"),
        ('"version": true', "version: expected a whole number from 1 to 1, got True"),
        ('"version": 0', "version: expected a whole number from 1 to 1, got 0"),
        ('"version": "1"', "version: expected a whole number from 1 to 1, got '1'"),
        ('"name": "two\\nlines"', "name: expected at most 120 characters on one line, got 'two\\nlines'"),
        ('"name": "\\u0000"', "body: expected texts without NUL and halves of characters, got '\\x00'"),
    ],
)  # fmt: skip
def test_a_body_is_refused(program: Program, field: str, said: str) -> None:
    found = refused(program, "POST", "/rounds", data=ROUND % field, content_type="application/json")
    assert found["message"].startswith(said)
    assert found["field"] == said.partition(":")[0].removesuffix(" of taboo")


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"Content-Type": "text/plain"}, "Content-Type: expected application/json, got text/plain"),
        ({"Content-Type": "x" * 500}, f"Content-Type: expected application/json, got {'x' * 60}…"),
        ({}, "Content-Type: expected application/json, got none"),
        (
            {"Content-Type": "application/json", "Content-Encoding": "gzip"},
            "Content-Encoding: expected none, got gzip",
        ),
    ],
)
def test_a_body_of_another_type_is_refused(app: Flask, program: Program, headers: dict[str, str], said: str) -> None:
    sent = {"Authorization": f"Bearer {program.secret}", **headers}
    answer = app.test_client().post("/api/v1/rounds", data=ROUND % '"seed": 1', headers=sent)
    assert (answer.status_code, refusal(answer)["message"]) == (415, said)
    assert refusal(answer)["field"] == said.partition(":")[0]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/models?limit=1&limit=2", "limit: expected one value, got 2"),
        ("/matches?round=1&round=1", "round: expected one value, got 2"),
        ("/models?cursor=a&cursor=&cursor=b", "cursor: expected one value, got 3"),
        ("/exports/moves.csv?game=taboo&game=negotiation", "game: expected one value, got 2"),
        (f"/models?limit={'9' * 5000}", "limit: expected a whole number from 1 to 200, got '9999"),
        ("/models?limit=%D9%A3", "limit: expected a whole number from 1 to 200, got '٣'"),
        ("/openapi.json?a=1", "query: expected no parameters, got 'a'"),
    ],
)
def test_a_query_is_refused(program: Program, path: str, said: str) -> None:
    found = refused(program, "GET", path)
    assert found["message"].startswith(said)
    assert found["field"] == said.partition(":")[0]


@pytest.mark.parametrize("preset", [["x"], {"a": 1}])
def test_a_preset_that_is_no_name_is_refused(program: Program, preset: Any) -> None:
    sent = {"agents": {"a": 1}, "observers": ["o"], "config": {"preset": preset}}
    found = refused(program, "POST", "/societies", json=sent)
    assert (found["field"], found["expected"]) == ("config.preset", "published or published-single-thread")


BODIES = {
    "round": {"game": "negotiation", "models": ["scripted"], "matches": 2},
    "training": {"method": "sft", "dataset": "1", "base": "learner", "name": "m"},
    "campaign": {"game": "negotiation", "base": "learner", "name": "c"},
    "benchmark": {"model": "learner", "tasks": "everyday-reasoning"},
    "society": {"agents": {"learner": 4}, "observers": ["learner"]},
    "assessment": {"model": "learner", "base": "scripted", "raters": ["learner"]},
    "alignment": {"base": "learner", "observers": ["learner"]},
    "rehearsal": {"study": "none"},
    "publication": {"model": "learner", "to": "a/b", "licence": "mit"},
    "recipe": {"recipe": {"text": "x"}},
}


@pytest.mark.parametrize("kind", [kind for kind in JOB_KINDS if creation_of(kind)], ids=lambda kind: kind.name)
def test_every_field_that_cannot_be_is_refused_by_its_name(program: Program, engine: Engine, kind: Any) -> None:
    add_local(engine, "learner")
    for field in fields_of(creation_of(kind).spec):  # type: ignore[union-attr]
        sent = {**BODIES[kind.name], field: [{"neither": "a text"}]}
        assert refused(program, "POST", f"/{kind.plural}", json=sent)["field"].partition(".")[0] == field


@pytest.mark.parametrize(
    ("kind", "sent", "field"),
    [
        ("round", {"models": ["nobody"]}, "models"),
        ("round", {"config": {"objective": "greed"}}, "config.objective"),
        ("round", {"config": {"limit": 0}}, "config.limit"),
        ("round", {"config": {"rule": "strict"}}, "config"),
        ("round", {"sampling": {"temperature": "hot"}}, "sampling.temperature"),
        ("campaign", {"base": "nobody"}, "base"),
        ("campaign", {"teacher": "nobody"}, "teacher"),
        ("campaign", {"config": {"objective": "greed"}}, "config.objective"),
        ("campaign", {"training": {"epochs": -1}}, "training.epochs"),
        ("recipe", {"recipe": {"text": "- not keys"}}, "recipe"),
    ],
)
def test_a_refusal_names_the_field_where_the_spec_has_it(
    program: Program, engine: Engine, kind: str, sent: dict[str, Any], field: str
) -> None:
    add_local(engine, "learner")
    assert refused(program, "POST", f"/{kind}s", json={**BODIES[kind], **sent})["field"] == field


@pytest.mark.parametrize("budget", [[], 0, False, "", 5, "1", {"usd": 0}, {"eur": 1}])
def test_what_is_no_budget_is_refused_when_a_job_is_resumed(program: Program, budget: Any) -> None:
    found = refused(program, "POST", "/rounds/1/resume", json={"budget": budget})
    assert str(found["field"]).partition(".")[0] == "budget"


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"turn": 3}, "inputs.turn: expected one of the inputs player, seed, seeds, turns, got 'turn'"),
        ({"turns": "many"}, "inputs.turns: expected a whole number, as turns is 2, got 'many'"),
        ({"seeds": []}, "inputs.seeds: expected values with commas between, got []"),
        ([1], "inputs: expected names with their values, got [1]"),
    ],
)
def test_an_input_of_a_recipe_is_refused_by_its_name(program: Program, inputs: Any, said: str) -> None:
    found = refused(program, "POST", "/recipes", json={"recipe": {"text": GAMES}, "inputs": inputs})
    assert (found["message"], found["field"]) == (said, said.partition(":")[0])


def recipe(*steps: str) -> str:
    return "recipe: x\nversion: 1\nsteps:\n" + "".join(f"  - {step}\n" for step in steps)


PLAY = "{name: play, do: round, with: {game: taboo, models: [scripted], matches: 2}}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            recipe("{name: rows, do: keep, with: {filter: all, rounds: ['${play.round}']}}", PLAY),
            "r.yaml:4: steps[1].with.rounds[1]: expected a step before this one, got play.round, which comes later",
        ),
        (
            recipe(
                "{name: a, do: training, with: {method: sft, base: tiny, dataset: '${b.dataset}'}}",
                "{name: b, do: keep, with: {filter: all, rounds: ['${a.model}']}}",
            ),
            "r.yaml:4: steps[1].with.dataset: expected a step before this one, got b.dataset, which comes later",
        ),
        (
            recipe(PLAY, "{name: t, do: training, with: {method: sft, base: tiny, dataset: '${play.round}'}}"),
            "r.yaml:5: steps[2].with.dataset: expected a dataset of conversations or a dataset of conversations",
        ),
        (recipe(PLAY).replace(PLAY, "[]"), "r.yaml:4: steps[1]: expected "),
        ("recipe: x\nversion: 1\nsteps: []\n", "r.yaml:3: steps: expected at least one, got []"),
        ("!!python/object:os.system x\n", "r.yaml:1: expected text, a number, a list or keys, got tag:yaml.org"),
    ],
)  # fmt: skip
def test_a_recipe_whose_steps_cannot_be_is_refused_at_its_line(program: Program, text: str, said: str) -> None:
    found = refused(program, "POST", "/recipes", json={"recipe": {"text": text, "name": "r.yaml"}})
    assert found["message"].startswith(said)


@pytest.mark.parametrize("last", ["", "x", "0" * 16, "x" * 5000, "ünï", "*"])
def test_an_event_that_was_never_sent_leaves_nothing_out(program: Program, last: str) -> None:
    assert program.ask("GET", "/rounds/1/events", last=last).status_code == 404


def test_every_address_says_which_methods_it_takes(app: Flask, program: Program) -> None:
    taken: dict[str, set[str]] = {}
    for each, kind in operations():
        path = path_of(each, kind).replace("{number}", "7").replace("{match_id}", "x").replace("{name}", "moves")
        taken.setdefault(path, set()).add(each.method)
    assert len(taken) > 40
    for path, methods in taken.items():
        allowed = methods | {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set())
        answer = program.ask("OPTIONS", path)
        assert (answer.status_code, answer.data, {*answer.headers["Allow"].split(", ")}) == (200, b"", allowed), path
        for method in {"GET", "POST", "PATCH", "PUT", "DELETE", "TRACE"} - allowed:
            answer = program.ask(method, path)
            assert (answer.status_code, refusal(answer)["code"]) == (405, "method_not_allowed"), (method, path)
            assert {*answer.headers["Allow"].split(", ")} == allowed, (method, path)
        if "GET" in methods:
            head, got = (program.ask(method, path) for method in ("HEAD", "GET"))
            assert (head.status_code, head.data) == (got.status_code, b""), path


@pytest.mark.parametrize("path", ["", "/", "/nothing", "/rounds/x", "/rounds/7/", "/rounds/7/nothing", "/matches/x/y"])
@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "DELETE", "OPTIONS"])
def test_where_there_is_nothing_no_method_is_taken(program: Program, method: str, path: str) -> None:
    answer = program.ask(method, path)
    assert (answer.status_code, refusal(answer)["code"]) == (404, "not_found")


@pytest.mark.parametrize("accept", ["text/html", "image/png", "*/*;q=0", ";;;", "", "x" * 5000])
def test_whatever_is_accepted_the_answer_is_json(app: Flask, program: Program, accept: str) -> None:
    headers = {"Authorization": f"Bearer {program.secret}", "Accept": accept}
    for path, status in (("/rounds", 200), ("/rounds/7", 404), ("/nothing", 404)):
        answer = app.test_client().get(f"/api/v1{path}", headers=headers)
        assert (answer.status_code, answer.mimetype) == (status, "application/json")
        assert isinstance(json.loads(answer.data), dict)
