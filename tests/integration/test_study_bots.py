"""Bots with good and bad habits go through a copy of a study on a running Parlor, as people would."""

import csv
import io
import json
import shutil
import zipfile
from pathlib import Path

import pytest

from tests.shell import Shell
from tests.stack import ROOT, Stack

STUDY = ROOT / "data/studies/two-models/two-models.yaml"
EXPECTED = {
    "plain": "completed",
    "refreshes": "completed",
    "double-clicks": "completed",
    "two browsers": "completed",
    "leaves and comes back": "completed",
    "pastes": "completed",
    "fails the quiz": "quiz_failed",
    "goes silent": "inactive",
    "withdraws": "withdrawn",
    "declines": "declined",
    "sends old forms": "completed",
}


@pytest.fixture(scope="module")
def loaded(parlor: Stack, shell: Shell) -> Stack:
    """A Parlor that knows the study, whose second model it does not ship."""
    folder = shutil.copytree(STUDY.parent, parlor.home / "two-models")
    text = (folder / STUDY.name).read_text()
    (folder / STUDY.name).write_text(text.replace("model: {a: scripted, b: tiny}", "model: {a: scripted}"))
    done = shell.flask(("study", "load", folder / STUDY.name), env=parlor.env)
    assert done.exit_code == 0, done.stderr
    return parlor


def test_every_bot_reaches_the_ending_of_its_habit_with_its_code_and_pay(
    loaded: Stack, shell: Shell, tmp_path: Path
) -> None:
    done = shell.flask(("study", "bots", "two-models", "--n", len(EXPECTED), "--json"), env=loaded.env)
    found = json.loads(done.stdout)
    assert (found["surprises"], done.exit_code) == ([], 0)
    assert found["endings"] == {habit: {ending: 1} for habit, ending in EXPECTED.items()}
    exported = tmp_path / "data.zip"
    assert shell.flask(("study", "export-data", found["wave"], "--out", exported), env=loaded.env).exit_code == 0
    with zipfile.ZipFile(exported) as archive:
        rows = {
            name: list(csv.DictReader(io.TextIOWrapper(archive.open(name), "utf-8-sig")))
            for name in ("enrolments.csv", "payments.csv")
        }
    assert sorted(row["ending"] for row in rows["enrolments.csv"]) == sorted(EXPECTED.values())
    completed = [*EXPECTED.values()].count("completed")
    assert [row["amount"] for row in rows["payments.csv"] if row["key"] == "base"].count("5.00") == completed


@pytest.mark.parametrize(
    ("line", "named"), [(("no-such-study",), "no-such-study"), (("two-models", "--n", "0"), "--n")]
)
def test_bots_that_cannot_be_sent_are_refused_with_one_line(
    loaded: Stack, shell: Shell, line: tuple[str, ...], named: str
) -> None:
    done = shell.flask(("study", "bots", *line), env=loaded.env)
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)
    assert named in done.stderr
