"""Tags and notes of jobs, models and datasets: on pages, by command, in lists, in comparisons and by the API."""

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from flask import Flask
from sqlalchemy import Engine

from app.accounts import tokens
from app.core.errors import Invalid
from app.core.extensions import writing
from app.jobs import tags
from app.models import User
from tests.experimenter import signed_in
from tests.rounds import add_models, make_round
from tests.shell import Finished

Run = Callable[..., Finished]


@pytest.fixture
def rounds(engine: Engine) -> list[int]:
    add_models(engine, "http://127.0.0.1:9/v1", "haggler")
    return [make_round(engine, "haggler", seed=seed) for seed in (1, 2, 3)]


def test_a_list_is_filtered_by_a_tag_and_its_file_has_tags_and_notes(app: Flask, rounds: list[int]) -> None:
    browser = signed_in(app)
    assert ">Tags<" not in browser.get("/admin/rounds").text  # as long as none has one, there is no column for them
    for number in rounds[:2]:
        answer = browser.post(f"/admin/tags/round/{number}", data={"action": "tag", "value": "baseline, seed check"})
        assert answer.status_code == 303
        assert answer.location == f"/admin/rounds/{number}#new-tag"
    browser.post(f"/admin/tags/round/{rounds[0]}", data={"action": "note", "value": " The server was slow.\n"})
    page = browser.get(f"/admin/rounds/{rounds[0]}").text
    assert "The server was slow." in page
    assert '<span class="tag">baseline</span>' in page
    listed = browser.get("/admin/rounds?tag=baseline").text
    assert [f'id="line-{number}"' in listed for number in rounds] == [True, True, False]
    assert "baseline<br>seed check" in listed
    lines = json.loads(browser.get("/admin/rounds?format=json").text)
    assert [(line["round_id"], line["tags"], line["notes"]) for line in lines] == [
        (rounds[2], [], []),
        (rounds[1], ["baseline", "seed check"], []),
        (rounds[0], ["baseline", "seed check"], ["The server was slow."]),
    ]
    browser.post(f"/admin/tags/round/{rounds[1]}", data={"action": "untag", "value": "baseline"})
    assert f'id="line-{rounds[1]}"' not in browser.get("/admin/rounds?tag=baseline").text


def test_a_comparison_takes_the_runs_of_a_tag_and_shows_tags_and_notes_beside_each(
    app: Flask, engine: Engine, rounds: list[int]
) -> None:
    with writing(engine) as session:
        for number in rounds[:2]:
            tags.add_tags(session, "round", number, ["baseline"], "ada")
        tags.add_note(session, "round", rounds[1], "With the new prompt.", "ada")
    browser = signed_in(app)
    page = browser.get("/admin/compare/rounds?tag=baseline").text
    assert [f'name="run" value="{number}" checked' in page for number in rounds] == [True, True, False]
    assert "With the new prompt." in page
    assert browser.get("/admin/compare/rounds?tag=unknown").status_code == 400
    both = browser.get(f"/admin/compare/rounds?run={rounds[2]}&tag=baseline").text
    assert all(f'name="run" value="{number}" checked' in both for number in rounds)


def test_commands_give_take_and_list_tags_and_notes(flask: Run, rounds: list[int]) -> None:
    one, two, _ = map(str, rounds)
    assert flask("round", "tag", one, "baseline", "paper").stdout == "baseline, paper\n"
    assert flask("round", "tag", one, "paper", "--remove").stdout == "baseline\n"
    assert "command line: Looks odd." in flask("round", "note", one, "Looks odd.").stdout
    listed = flask("round", "list", "--tag", "baseline", "--json").stdout
    assert [(line["round_id"], line["tags"]) for line in json.loads(listed)] == [(rounds[0], ["baseline"])]
    assert "TAGS" in flask("round", "list").stdout.partition("\n")[0]
    shown = json.loads(flask("round", "show", one, "--json").stdout)
    assert (shown["tags"], shown["notes"][0]["text"]) == (["baseline"], "Looks odd.")
    assert flask("round", "note", one, "--remove", str(shown["notes"][0]["note_id"])).stdout == "No notes.\n"
    assert flask("model", "tag", "haggler", "mine").stdout == "mine\n"
    assert "haggler" in flask("model", "list", "--tag", "mine").stdout
    assert "haggler" not in flask("model", "list", "--tag", "yours").stdout
    refused = flask("round", "tag", two, "a,b")
    assert refused.exit_code == 2
    assert "tag: expected 1 to 40 characters without commas" in refused.stderr
    assert flask("round", "tag", "99", "x").exit_code == 2


def test_programs_read_and_change_tags(app: Flask, engine: Engine, rounds: list[int]) -> None:
    with writing(engine) as session:
        user = User(name="ada", created_at=datetime.now(UTC))
        session.add(user)
        session.flush()
        secret = tokens.create(session, user, "laptop", ["read", "run"], "1", datetime.now(UTC))[1]
    client, headers = app.test_client(), {"Authorization": f"Bearer {secret}"}
    address = f"/api/v1/rounds/{rounds[0]}"
    made = client.post(f"{address}/tags", json={"add": ["baseline"], "note": "By a program."}, headers=headers)
    assert made.status_code == 200
    assert made.json is not None
    assert (made.json["tags"], made.json["notes"][0]["by"]) == (["baseline"], "ada")
    found = client.get("/api/v1/rounds?tag=baseline", headers=headers).json
    assert found is not None
    assert [(line["round_id"], line["tags"]) for line in found["items"]] == [(rounds[0], ["baseline"])]
    assert client.post(f"{address}/tags", json={"add": "baseline"}, headers=headers).status_code == 400
    after = client.post(f"{address}/tags", json={"remove": ["baseline"]}, headers=headers).json
    assert after is not None
    assert after["tags"] == []


def test_a_thing_has_no_more_tags_than_a_reader_can_take_in(engine: Engine) -> None:
    with writing(engine) as session:
        tags.add_tags(session, "round", 1, [str(number) for number in range(tags.MOST_TAGS)], "ada")
    with pytest.raises(Invalid, match="at most 20 tags"), writing(engine) as session:
        tags.add_tags(session, "round", 1, ["one more"], "ada")
