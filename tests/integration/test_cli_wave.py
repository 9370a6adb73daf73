"""`flask study open` and what follows, in processes of their own."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from flask import Flask

from app.core.extensions import reading, writing
from app.models import StudyEvent
from app.studies.waves import find_wave
from tests.shell import Finished
from tests.waves import STUDIES, assigned, join, loaded_study, store_study

WAVE = """wave: main
of: two-models
provider: {prolific: {study_id: "66f0c1", fee: 0.333, minimum_per_hour: 8.00}}
places: 8
codes: {completed: "C7RX94LM", technical: "CT", withdrawn: "CW", declined: "CD", inactive: "CI", full: "CF",
  closed: "CC", quiz_failed: "CQ"}
most_spent: 200.00
"""


@pytest.fixture
def path(app: Flask, tmp_path: Path) -> Path:
    """The file of a wave of a study that is loaded."""
    with writing() as session:
        store_study(session, loaded_study())
    path = tmp_path / "main.yaml"
    path.write_text(WAVE)
    return path


def test_a_wave_is_opened_paused_reopened_closed_and_frozen(flask: Callable[..., Finished], path: Path) -> None:
    opened = flask("study", "open", path)
    assert opened.stderr == ""
    assert opened.stdout == (
        "Opened two-models:main of version 1: "
        "/s/two-models/main?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}\n"
    )
    again = flask("study", "open", path)
    assert (again.exit_code, again.stdout) == (2, "")
    assert again.stderr == "Error: main.yaml:1: wave: expected a name that no wave of the study has, got 'main'\n"
    assert flask("study", "pause", "two-models:main").stdout == "Paused two-models:main.\n"
    refused = flask("study", "freeze", "two-models:main")
    assert (refused.exit_code, refused.stderr) == (2, "Error: main: expected a closed wave, got one that is paused\n")
    told = json.loads(flask("study", "reopen", "two-models:main", "--json").stdout)
    assert told == {"wave": "two-models:main", "version": 1, "status": "open", "frozen": False}
    assert flask("study", "close", "two-models:main").stdout == "Closed two-models:main.\n"
    assert json.loads(flask("study", "freeze", "two-models:main", "--json").stdout)["frozen"] is True
    refused = flask("study", "reopen", "two-models:main")
    assert refused.stderr == "Error: main: expected a wave that is not frozen, got one that is\n"


def test_a_study_or_wave_that_is_not_filled_in_is_opened_to_nobody(
    flask: Callable[..., Finished], path: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(STUDIES / "two-models", tmp_path / "study"))
    design = folder / "two-models.yaml"
    design.write_text(design.read_text().replace("name: Ada Byron", "name: Write your name here"))
    consent = folder / "consent.md"
    consent.write_text(consent.read_text() + "\nAsk [your telephone number].\n")
    loaded = flask("study", "load", design)
    assert (loaded.exit_code, loaded.stderr.splitlines()) == (
        0,
        [
            "Fill in contact.name 'Write your name here': no wave opens before.",
            "Fill in consent.text (consent.md) '[your telephone number]': no wave opens before.",
        ],
    )
    refused = flask("study", "open", path)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr == (
        "Error: main.yaml:2: of: expected a study in which everything is filled in, got contact.name 'Write your name"
        " here', consent.text (consent.md) '[your telephone number]'; load a version with words of your own\n"
    )
    path.write_text(WAVE.replace("of: two-models", "of: two-models@1").replace("C7RX94LM", "YOUR-CODE"))
    refused = flask("study", "open", path)
    assert (refused.exit_code, refused.stderr) == (
        2, "Error: main.yaml:5: codes: expected a value of your own, got codes.completed 'YOUR-CODE'\n",
    )  # fmt: skip
    assert flask("study", "pause", "two-models:main").exit_code == 2


def test_a_study_is_loaded_with_its_wave_or_neither(app: Flask, flask: Callable[..., Finished], path: Path) -> None:
    folder = Path(shutil.copytree(STUDIES / "two-models", path.parent / "study"))
    design = folder / "two-models.yaml"
    design.write_text(design.read_text().replace("title: Sharing things", "title: Sharing more"))
    path.write_text(WAVE.replace("200.00", "2.00"))
    refused = flask("study", "open", design, path)
    assert "main.yaml:7: most_spent: expected at least 13.33, what one person may cost, got 2.00" in refused.stderr
    assert json.loads(flask("study", "list", "--json").stdout)[0]["version"] == 1
    path.write_text(WAVE)
    assert json.loads(flask("study", "open", design, path, "--json").stdout)["version"] == 2
    path.write_text(WAVE.replace("wave: main", "wave: first").replace("200.00", "50.00"))
    told = json.loads(flask("study", "open", "two-models@1", path, "--json").stdout)
    assert (told["version"], [each["key"] for each in told["warnings"]]) == (1, ["most_spent"])
    path.write_text(WAVE.replace("of: two-models", "of: two-models@2").replace("wave: main", "wave: third"))
    refused = flask("study", "open", "two-models@1", path)
    assert refused.stderr == "Error: main.yaml:2: of: expected two-models or two-models@1, got 'two-models@2'\n"


def test_endings_without_a_code_are_told_before_people_come(flask: Callable[..., Finished], path: Path) -> None:
    path.write_text(WAVE.replace(' technical: "CT",', "").replace(' full: "CF",', ""))
    told = flask("study", "open", path).stdout.splitlines()
    assert told[0].startswith(
        "Warning: codes: technical without a code: nobody can submit it, so its base is paid by a"
    )
    assert told[1] == "Warning: codes: full without a code: people are asked to return their submission."
    assert told[2].startswith("Opened two-models:main")


def test_a_file_that_is_wrong_opens_nothing(flask: Callable[..., Finished], path: Path) -> None:
    path.write_text(WAVE.replace("places: 8", "places: eight"))
    refused = flask("study", "open", path)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr == "Error: main.yaml:4: places: expected a whole number, got 'eight'\n"
    unknown = flask("study", "pause", "two-models:main")
    assert "wave: expected STUDY:WAVE, with a wave that was opened, got 'two-models:main'" in unknown.stderr


def test_arms_are_drawn_again_from_the_log(app: Flask, flask: Callable[..., Finished], path: Path) -> None:
    flask("study", "open", path)
    with writing() as session:
        wave = find_wave(session, "two-models:main")
        for name in ("ann", "ben"):
            assigned(session, wave, name)
    told = flask("study", "replay", "two-models:main")
    assert (told.exit_code, told.stdout) == (
        0, "two-models:main: 2 of 2 assignments are what the seed and the log say.\n",
    )  # fmt: skip
    with writing() as session:
        event = session.query(StudyEvent).filter_by(kind="assignment").order_by(StudyEvent.id).first()
        event.body = {**event.body, "arm": (event.body["arm"] + 1) % 4}
    told = flask("study", "replay", "two-models:main", "--json")
    assert (told.exit_code, len(json.loads(told.stdout)["differ"])) == (1, 1)


def test_people_who_are_in_a_closed_wave_stay_in_it(app: Flask, flask: Callable[..., Finished], path: Path) -> None:
    flask("study", "open", path)
    with writing() as session:
        join(session, find_wave(session, "two-models:main"), "ann")
    flask("study", "close", "two-models:main")
    refused = flask("study", "freeze", "two-models:main")
    assert "expected a wave in which nobody is under way, got one with 1 people" in refused.stderr
    with reading() as session:
        assert find_wave(session, "two-models:main").frozen_at is None


def test_how_visits_stand_is_taken_from_the_recruiters_table(
    app: Flask, flask: Callable[..., Finished], path: Path
) -> None:
    flask("study", "open", path)
    with writing() as session:
        for name in ("ann", "ben"):
            join(session, find_wave(session, "two-models:main"), name)
    table = path.parent / "prolific_export.csv"
    table.write_text(
        "\ufeffSubmission id,Participant id,Status,Started at\n"
        "visit of ann,ann,RETURNED,2026-11-01\nvisit of ben,ben,AWAITING REVIEW,2026-11-01\nother,cem,TIMED-OUT,\n"
    )
    told = flask("study", "submissions", "two-models:main", table)
    first, ben = told.stdout.splitlines()
    assert first == "two-models:main: 1 returned, 1 submitted; 2 changed, 1 not of this wave."
    assert ben.startswith("Look at ")
    assert ben.endswith(": under way here, and submitted at the recruiter.")
    again = json.loads(flask("study", "submissions", "two-models:main", table, "--json").stdout)
    assert (again["changed"], again["statuses"]) == (0, {"returned": 1, "submitted": 1})
    table.write_text(
        "SUBMISSION ID,participant_id,status\n'visit of ann,'ann,RETURNED\nvisit of ben,ben,AWAITING\xa0REVIEW\n"
    )
    again = json.loads(flask("study", "submissions", "two-models:main", table, "--json").stdout)
    assert (again["changed"], again["statuses"]) == (0, {"returned": 1, "submitted": 1})
    table.write_text("Submission id,Status\nvisit of ben,LOST\n")
    refused = flask("study", "submissions", "two-models:main", table)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.startswith("Error: prolific_export.csv:2: expected an id and a status (active, submitted, ")
    table.write_text("id,state\n1,2\n")
    refused = flask("study", "submissions", "two-models:main", table)
    assert "prolific_export.csv: expected the columns Submission id and Status, or submission and" in refused.stderr
