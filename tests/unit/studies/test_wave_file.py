"""The file of a wave: what it may say, and the line that is told for what it may not."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from app.core.errors import FieldError
from app.studies.wave_file import WaveFile, link_path, most_with_fee, wave_warnings
from app.studies.wave_reader import load_wave
from tests.waves import loaded_study, wave_file

WHOLE = """wave: main
of: fair-shares@3
provider: {prolific: {study_id: "66f0c1", fee: 0.333, minimum_per_hour: 8.00}}
places: 96
start: {first: 10, then: pause}
codes: {completed: "C7RX94LM", quiz_failed: "CQ2M81TT"}
not_if_took_part_in: ["fair-shares:pilot"]
most_spent: 2200.00
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "main.yaml"


def test_a_file_says_who_recruits_how_many_and_for_how_much(path: Path) -> None:
    path.write_text(WHOLE)
    file = load_wave(path).file
    assert (file.provider.name, file.fee, file.places, str(file.most_spent)) == (
        "prolific", Decimal("0.333"), 96, "2200.00",
    )  # fmt: skip
    again = WaveFile.model_validate_json(json.dumps(file.model_dump(mode="json", exclude_unset=True)))
    assert again == file


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("places: 96", "place: 96", "main.yaml:4: place: expected places, got place"),
        ("places: 96", "places: none", "main.yaml:4: places: expected a whole number, got 'none'"),
        (
            "fair-shares@3",
            "Fair Shares",
            "main.yaml:2: of: expected a study: STUDY or STUDY@VERSION, got 'Fair Shares'",
        ),
        ('"66f0c1"', "66001", "main.yaml:3: provider.prolific.study_id: expected text (in quotes where it looks like"),
        ('"C7RX94LM"', "770", "main.yaml:6: codes.completed: expected text of at most 40 letters, digits and hyphens"),
        (
            '"CQ2M81TT"',
            '"c7rx94lm"',
            (
                "main.yaml:6: codes: expected codes that differ from each other, whatever the case of their letters,"
                " got completed: C7RX94LM, quiz_failed: c7rx94lm"
            ),
        ),
        (
            '"CQ2M81TT"',
            '"NoCode"',
            (
                "main.yaml:6: codes: expected codes other than nocode, by which recruiters say that none was given,"
                " got quiz_failed: NoCode"
            ),
        ),
        ("completed:", "complete:", "main.yaml:6: codes.complete"),
        (
            "completed:",
            "declined:",
            "main.yaml:6: codes: expected codes with one for completed, as prolific asks for it",
        ),
        ("then: pause", "then: stop", "main.yaml:5: start.then: expected 'pause', got 'stop'"),
        (
            'prolific: {study_id: "66f0c1", ',
            "mturk: {",
            "main.yaml:3: provider: expected one of prolific, connect, link, as Amazon Mechanical Turk closed on",
        ),
        ("fee: 0.333", 'signed: "yes"', "main.yaml:3: provider.prolific.signed: expected "),
        ("fee: 0.333", "audience: us", "main.yaml:3: provider.prolific: expected signed: true beside an audience"),
        (
            'prolific: {study_id: "66f0c1", fee: 0.333',
            "connect: {signed: true",
            "main.yaml:3: provider.connect.signed: expected ",
        ),
        ("prolific:", "prolifik:", "main.yaml:3: provider.prolifik: expected prolific, got prolifik"),
        ("8.00}}", "8.00}, link: {}}", "main.yaml:3: provider: expected one of prolific, connect, link"),
        ("2200.00", "a lot", "main.yaml:8: most_spent: expected an amount of money such as 8.50, got 'a lot'"),
        ("most_spent: 2200.00\n", "", "main.yaml:1: most_spent: expected a value, got none"),
        ("places: 96", "places: 0", "main.yaml:4: places: expected "),
        ("places: 96", "places: 96\nplaces: 97", "main.yaml:5: places: expected each key once, got it in line 4, too"),
        (
            "fair-shares:pilot",
            "a:b:c",
            "main.yaml:7: not_if_took_part_in[1]: expected a study or a wave",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_line(path: Path, old: str, new: str, line: str) -> None:
    path.write_text(WHOLE.replace(old, new))
    with pytest.raises(FieldError) as refused:
        load_wave(path)
    assert line in refused.value.message


def test_a_low_cap_and_a_low_wage_are_warned() -> None:
    design = loaded_study().design
    assert most_with_fee(design, wave_file()) == Decimal("15.00")
    endings = ("completed", "technical", "withdrawn", "declined", "inactive", "full", "closed", "quiz_failed")
    codes = {name: f"C{at}" for at, name in enumerate(endings)}
    assert list(wave_warnings(design, wave_file(codes=codes))) == []
    terms = {"study_id": "66f0c1", "fee": 0.5, "minimum_per_hour": 20.00}
    keys = [
        each.path
        for each in wave_warnings(design, wave_file(most_spent=100, codes=codes, provider={"prolific": terms}))
    ]
    assert keys == [("most_spent",), ("provider", "prolific", "minimum_per_hour")]


def test_endings_without_a_code_are_warned_where_a_recruiter_asks_for_one() -> None:
    design = loaded_study().design
    (unpaid, others) = wave_warnings(design, wave_file(not_if_took_part_in=["two-models:pilot"]))
    assert unpaid.path == others.path == ("codes",)
    assert unpaid.text.startswith("technical without a code: nobody can submit it")
    assert others.text.startswith("declined, inactive, full, closed, quiz_failed, ineligible without a code")
    assert list(wave_warnings(design, wave_file(provider={"link": {}}, codes={}))) == []


@pytest.mark.parametrize(
    ("provider", "link"),
    [
        (
            {"prolific": {"study_id": "1"}},
            "?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}",
        ),
        (
            {"connect": {}},
            "?participantId={{participantId}}&assignmentId={{assignmentId}}&projectId={{projectId}}",
        ),
        ({"link": {"id_parameter": "who"}}, "?who=ID"),
        ({"link": {}}, ""),
    ],
)
def test_a_recruiter_is_given_a_link(provider: dict[str, object], link: str) -> None:
    assert link_path("two-models", wave_file(provider=provider)) == f"/s/two-models/main{link}"
