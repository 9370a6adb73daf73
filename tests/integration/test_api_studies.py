"""Studies in the API: what is told of them, and who participants are only with a scope of its own."""

import zipfile
from pathlib import Path

import pytest
from flask import Flask

from app.core.extensions import reading, writing
from app.models import Participant, Wave
from app.studies.export.archive import write_archive
from app.studies.export.scope import find_scope
from app.studies.store import find_version, written_design
from tests.enrolments import enrol, load_example, open_wave
from tests.programs import Program, refusal


@pytest.fixture
def wave(app: Flask, tmp_path: Path) -> int:
    """A wave in which one person is, whom the recruiter calls P1."""
    with writing() as session:
        version = load_example(session, tmp_path)
        wave = open_wave(session, version)
        enrol(session, wave, "P1", version, arm=None)
        return wave.id


def test_studies_are_listed_and_shown_with_their_waves(app: Flask, wave: int) -> None:
    program = Program(app, "read")
    [listed] = program.get("/studies")["items"]
    assert (listed["study"], listed["version"], listed["enrolled"]) == ("two-models", 1, 1)
    assert program.get("/studies?name=another")["items"] == []
    shown = program.get(f"/studies/{listed['study_id']}")
    with reading() as session:
        assert shown["design"] == written_design(find_version(session, "two-models"))
    assert [each["version"] for each in shown["versions"]] == ["two-models@1"]
    assert [(each["wave_id"], each["status"], each["entered"]) for each in shown["waves"]] == [(wave, "open", 1)]
    assert program.ask("GET", "/studies/99").status_code == 404
    assert program.ask("GET", f"/studies/{10**20}").status_code == 404


def test_who_people_are_is_told_only_with_its_scope(app: Flask, wave: int) -> None:
    with reading() as session:
        code = session.query(Participant.code).scalar()
    [person] = Program(app, "read", "people").get(f"/waves/{wave}/people")["items"]
    assert person["participant"] == code
    reader = Program(app, "read", "run")
    [same] = reader.get(f"/waves/{wave}/people")["items"]
    assert same == {name: value for name, value in person.items() if name not in ("participant", "enrolment_id")}
    assert {"where", "arm", "pay", "entered_at"} <= set(same)
    for query in ("columns=participant", "columns=enrolment_id", "sort=participant", "sort=-enrolment_id"):
        answer = reader.ask("GET", f"/waves/{wave}/people?{query}")
        assert answer.status_code == 400
        assert code not in answer.text
        assert "participant" not in (refusal(answer)["expected"] or "")
    for path in (f"/waves/{wave}/people", "/studies/1", "/matches", "/exports/matches.csv", "/exports/events.csv"):
        found = reader.ask("GET", path)
        assert found.status_code == 200
        assert code not in found.text
        assert "P1" not in found.text
    assert Program(app, "people").ask("GET", f"/waves/{wave}/people").status_code == 403
    assert reader.ask("GET", "/waves/99/people").status_code == 404


def test_the_data_of_a_study_are_those_of_the_command_and_take_a_scope_of_their_own(
    app: Flask, wave: int, tmp_path: Path
) -> None:
    program = Program(app, "read", "people")
    with reading() as session:
        name = session.get_one(Wave, wave).name
    for query, reference, public in (
        ("", "two-models", False),
        (f"?wave={name}", f"two-models:{name}", False),
        ("?public=1", "two-models", True),
    ):
        path = tmp_path / "data.zip"
        with reading() as session:
            write_archive(session, find_scope(session, reference, public=public), path)
        answer = program.ask("GET", f"/studies/1/data.zip{query}")
        assert (answer.status_code, answer.mimetype) == (200, "application/zip")
        assert answer.data == path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        assert "ids.csv" not in archive.namelist()
    for query, status, field in (
        ("1/data.zip?wave=none", 404, "wave"),
        ("99/data.zip", 404, "study"),
        (f"{10**20}/data.zip", 404, "study"),
        ("1/data.zip?public=yes", 400, "public"),
        ("1/data.zip?with_ids=1", 400, "query"),
    ):
        answer = program.ask("GET", f"/studies/{query}")
        assert (answer.status_code, refusal(answer)["field"]) == (status, field)
    for scopes in (("read", "run"), ("people",)):
        assert Program(app, *scopes).ask("GET", "/studies/1/data.zip").status_code == 403
