"""Freeing the disk by page, command and API: what is said before, what pages say after, and the way back."""

import csv
import io
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, func, select, update

from app.core.config import Settings
from app.core.errors import Conflict
from app.core.extensions import reading, writing
from app.models import LanguageModel, MatchRow, Removal, RoundRow, SeatRow
from app.rounds.job import ROUND
from tests.datasets import cut
from tests.experimenter import signed_in
from tests.jobs import make_dataset, make_job, run
from tests.programs import Program
from tests.rounds import make_round, play
from tests.shell import Finished

Run = Callable[..., Finished]


@pytest.fixture
def settings(app: Flask) -> Settings:
    found: Settings = app.config["SETTINGS"]
    return found


@pytest.fixture
def round_id(engine: Engine, settings: Settings) -> int:
    number = make_round(engine, "scripted", matches=3)
    play(engine, settings, number)
    return number


def matches(engine: Engine) -> int:
    with reading(engine) as session:
        return session.scalar(select(func.count()).select_from(MatchRow)) or 0


def removals(engine: Engine) -> list[Removal]:
    with reading(engine) as session:
        return [*session.scalars(select(Removal).order_by(Removal.id))]


def test_a_page_asks_once_and_pages_of_what_is_gone_say_who_removed_it(
    app: Flask, engine: Engine, settings: Settings, round_id: int
) -> None:
    dataset = cut(engine, settings.home, "rows", rounds=[round_id], filter="all", style="compact")
    job = make_job(engine, dataset, epochs=1)
    assert run(engine, settings, job)
    with reading(engine) as session:
        model = session.scalars(select(LanguageModel).where(LanguageModel.name == "small")).one().id
    client = signed_in(app)
    shown = client.get("/admin/spend/storage").text
    for thing in (f"model:{model}", f"dataset:{dataset.id}", f"round:{round_id}", f"training:{job}"):
        assert f'value="{thing}"' in shown
    things = {"thing": [f"dataset:{dataset.id}", f"round:{round_id}", f"training:{job}", f"model:{model}"]}
    asked = client.post("/admin/spend/storage", data={"action": "check", **things})
    assert asked.status_code == 200
    assert f"{dataset.rows} of its rows are of this round" in asked.text
    assert matches(engine) == 3
    done = client.post("/admin/spend/storage", data={"action": "remove", "archive": "1", **things})
    assert (done.status_code, done.location) == (303, "/admin/spend/removed")
    assert matches(engine) == 0
    assert f'value="round:{round_id}"' not in client.get("/admin/spend/storage").text

    found = {row.kind: row for row in removals(engine)}
    assert {row.by for row in found.values()} == {"admin"}
    for address in (f"/admin/rounds/{round_id}", f"/admin/rounds/{round_id}/latest", f"/admin/jobs/{job}"):
        gone = client.get(address)
        assert gone.status_code == 410
        assert "Removed to free disk space" in gone.text
        assert "archives/" in gone.text
    pages = [f"/admin/models/{model}", f"/admin/datasets/{dataset.id}"]
    for address in pages:
        page = client.get(address)
        assert page.status_code == 200
        assert "Its files were removed on" in page.text
    lineage = client.get(f"/admin/models/{model}/lineage")
    assert lineage.status_code == 200
    assert f"/admin/rounds/{round_id}" in lineage.text
    for address in (
        "/admin/rounds", "/admin/jobs", "/admin/datasets", "/admin/models?archived=1", "/admin/matches", "/admin/",
        "/admin/spend", f"/admin/datasets/{dataset.id}/rows", "/admin/spend/removed", "/admin/models/leaderboard",
    ):  # fmt: skip
        assert client.get(address).status_code == 200, address
    other = make_round(engine, "scripted", matches=2, seed=3)
    play(engine, settings, other)
    compared = f"run={round_id}&run={other}"
    for address in (f"/admin/rounds/compare?round={round_id}&round={other}", f"/admin/compare/rounds?{compared}"):
        assert client.get(address).status_code < 500, address
    assert client.get(f"/admin/datasets/{dataset.id}.jsonl").status_code == 409
    with pytest.raises(Conflict, match=r"round 1: expected one that is still there, got one that was removed on"):
        cut(engine, settings.home, "again", rounds=[round_id], filter="all")
    with pytest.raises(Conflict, match="one that was removed on"), reading(engine) as session:
        ROUND.resume(session, round_id, queued=True)
    assert "removed" in client.get("/admin/rounds").text

    for row in found.values():
        back = client.post(f"/admin/spend/removed/{row.id}", data={"action": "undo"})
        assert (back.status_code, back.location) == (303, f"/admin/spend/removed/{row.id}")
        assert "Put back" in client.get(f"/admin/spend/removed/{row.id}").text
    assert matches(engine) == 5
    assert client.get(f"/admin/rounds/{round_id}").status_code == 200
    assert client.get(f"/admin/datasets/{dataset.id}.jsonl").status_code == 200
    again = client.post(f"/admin/spend/removed/{found['round'].id}", data={"action": "undo"})
    assert again.status_code == 409
    assert "one that admin has put back" in again.text


@pytest.mark.parametrize(
    ("form", "status", "said"),
    [
        ({"action": "check"}, 400, "1 to 100 that are ticked"),
        ({"action": "check", "thing": "round:99"}, 404, "got 99"),
        ({"action": "remove", "thing": "user:1"}, 400, "user"),
        ({"action": "remove", "thing": "round:x"}, 400, "expected"),
        ({"action": "burn", "thing": "round:1"}, 400, "check or remove"),
    ],
)
def test_a_form_that_cannot_be_is_answered_with_one_line(
    app: Flask, round_id: int, engine: Engine, form: dict[str, str], status: int, said: str
) -> None:
    answer = signed_in(app).post("/admin/spend/storage", data=form)
    assert answer.status_code == status
    assert said in answer.text
    assert matches(engine) == 3
    assert signed_in(app).get("/admin/spend/storage?kind=planet").status_code == 400


def test_what_cannot_go_stands_in_the_list_with_the_reason_and_no_box(
    app: Flask, engine: Engine, round_id: int
) -> None:
    with writing(engine) as session:
        row = session.scalars(select(MatchRow)).first()
        assert row is not None
        session.execute(update(SeatRow).where(SeatRow.match_id == row.id).values(kind="person"))
        session.execute(update(RoundRow).values(source="import"))  # models alone play what is played here
    client = signed_in(app)
    shown = client.get("/admin/spend/storage").text
    assert "people wrote in its matches, which is never deleted this way" in shown
    assert f'value="round:{round_id}"' not in shown
    refused = client.post("/admin/spend/storage", data={"action": "remove", "thing": f"round:{round_id}"})
    assert refused.status_code == 409
    assert "never deleted this way" in refused.text
    assert removals(engine) == []


def test_the_command_lists_removes_and_puts_back(
    app: Flask, engine: Engine, settings: Settings, flask: Run, round_id: int
) -> None:
    dataset = make_dataset(engine, settings)
    with writing(engine) as session:
        session.execute(update(RoundRow).values(created_at=datetime.now(UTC) - timedelta(days=40)))
    said = json.loads(flask("storage", "list", "--json").stdout)
    assert {(each["kind"], each["number"]) for each in said} == {
        ("round", round_id), ("round", round_id + 1), ("dataset", dataset.id),
    }  # fmt: skip
    listed = flask("storage", "list", "--older-than", "30").stdout
    assert listed.startswith("NAME ")
    assert f"  round:{round_id}  " in listed
    assert "dataset:" not in listed
    assert f"dataset {dataset.reference} (" in listed
    things = [f"dataset:{dataset.id}", f"round:{round_id}", f"round:{round_id + 1}"]
    for order, found in (("thing", things), ("-thing", things[::-1])):
        printed = flask("storage", "list", "--sort", order, "--columns", "thing,name", "--csv").stdout
        assert [line["thing"] for line in csv.DictReader(io.StringIO(printed))] == found
    second = flask("storage", "list", "--sort", "thing", "--columns", "thing", "--limit", "1", "--offset", "1")
    assert second.stdout.split() == ["THING", things[1]]
    checked = flask("storage", "clean", "--older-than", "30", "--check")
    assert checked.stdout.splitlines()[-1] == "Would remove 1 thing with 0.0 MB of files."
    assert removals(engine) == []
    done = json.loads(flask("storage", "clean", "--older-than", "30", "--json").stdout)
    assert [(each["kind"], each["number"]) for each in done["things"]] == [("round", round_id)]
    [number] = done["removals"]
    assert flask("storage", "clean", f"round:{round_id}").exit_code == 2
    shown = flask("round", "show", str(round_id), "--json")
    assert json.loads(shown.stdout)["status"] == "removed"
    assert "the command line" in flask("storage", "removed").stdout
    resumed = flask("round", "resume", str(round_id))
    assert (resumed.exit_code, "Traceback" in resumed.stderr) == (2, False)
    with reading(engine) as session:
        page = Program(app, "read").get("/removals")
        assert [(each["name"], each["state"]) for each in page["items"]] == [
            (session.get_one(RoundRow, round_id).name, "undoable")
        ]
    assert flask("storage", "undo", str(number)).stdout.startswith(f"Put back round {round_id}")
    assert json.loads(flask("round", "show", str(round_id), "--json").stdout)["status"] == "done"
    removed = flask("storage", "clean", f"dataset:{dataset.id}", "--no-archive").stdout
    [number] = map(int, re.findall(r"removal (\d+)", removed))
    assert flask("storage", "delete-archive", str(number)).exit_code == 0
    assert flask("storage", "undo", str(number)).exit_code == 2
    trained = flask("training", "run", "tiny", "--dataset", str(dataset.id), "--name", "late")
    assert trained.exit_code == 2
    assert "one that was removed on" in trained.stderr
    used: Any = flask("storage", "clean", "round:1", "--kind", "round")
    assert (used.exit_code, used.stderr.count("\n")) == (2, 1)
