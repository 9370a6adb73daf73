"""`flask study pay`, each command in a process of its own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from app.core.extensions import writing
from tests.enrolments import enrol, finish, load_example, open_wave, play
from tests.shell import Finished

WAVE = "two-models:main"
Flask = Callable[..., Finished]


@pytest.fixture
def people(engine: Engine, tmp_path: Path) -> None:
    """Two who have ended, of whom one failed the quiz and one played a match, and one who is under way."""
    with writing(engine) as session:
        version = load_example(session, tmp_path)
        wave = open_wave(session, version)
        progress = enrol(session, wave, "P1", version)
        play(session, progress, 0)
        finish(session, progress)
        finish(session, enrol(session, wave, "P2", version), "quiz_failed")
        enrol(session, wave, "P3", version)


def told(flask: Flask, *arguments: str) -> Any:
    done = flask("study", "pay", WAVE, *arguments, "--json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def refused(flask: Flask, *arguments: str) -> str:
    done = flask("study", "pay", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.usefixtures("people")
def test_people_are_paid_from_the_command_line(flask: Flask, tmp_path: Path) -> None:
    shown = told(flask)
    assert [(each["participant"], each["ending"]) for each in shown["owed"]] == [
        ("P1", "completed"),
        ("P2", "quiz_failed"),
    ]
    assert told(flask, "adjust", "P2", "--amount", "-0.25", "--reason", "paid by hand")["key"] == "adjustment 1"
    (batch,) = told(flask, "draft")
    assert (batch["batch"], batch["status"], batch["people"]) == (1, "drafted", 2)
    assert told(flask)["owed"] == []
    out = tmp_path / "bonus.txt"
    told(flask, "file", "1", "--out", str(out))
    first = out.read_bytes()
    assert first.decode().splitlines() == [f"p1id,{shown['owed'][0]['amount']}", "p2id,0.75"]
    assert out.stat().st_mode & 0o077 == 0
    assert told(flask, "discard", "1") == {"batch": 1, "status": "discarded"}
    told(flask, "draft")
    told(flask, "uploaded", "2")
    assert told(flask, "confirmed", "2") == {"batch": 2, "status": "confirmed"}
    told(flask, "file", "2", "--out", str(out))
    assert out.read_bytes() == first
    lines = flask("study", "pay", WAVE).stdout.splitlines()
    assert lines == [
        "The next batch pays 0 people, 0.00.",
        "No table from the recruiter has been imported (flask study submissions). Who is in no table is left out.",
        f"Batch 2 (prolific): confirmed, 2 people, {batch['amount']}.",
    ]


@pytest.mark.usefixtures("people")
def test_what_cannot_be_is_refused_in_one_line(flask: Flask, tmp_path: Path) -> None:
    for arguments, said in (
        (("two-models:second",), "wave: expected STUDY:WAVE"),
        ((WAVE, "send"), "action: expected draft, file"),
        ((WAVE, "file", "1"), "--out: expected one with file"),
        ((WAVE, "draft", "--amount", "1"), "--amount: expected none with draft"),
        ((WAVE, "uploaded", "1"), "batch: expected the number of one of this wave"),
        ((WAVE, "uploaded", "x"), "batch: expected a whole number"),
        ((WAVE, "adjust", "P2", "--amount", "much", "--reason", "x"), "--amount: expected an amount"),
        ((WAVE, "adjust", "P2", "--amount", "-1.01", "--reason", "x"), "at most 1.00 deducted"),
        ((WAVE, "adjust", "P3", "--amount", "1", "--reason", "x"), "expected one who has ended"),
        ((WAVE, "adjust", "P9", "--amount", "1", "--reason", "x"), "expected a participant code of this wave"),
    ):
        assert said in refused(flask, *arguments), said
    told(flask, "draft")
    assert "no batch yet" in refused(flask, WAVE, "draft")
    assert "--out: expected a file" in refused(flask, WAVE, "file", "1", "--out", str(tmp_path / "no" / "file"))
