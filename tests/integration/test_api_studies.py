"""Studies in the API: what is told of them, and who participants are only with a scope of its own."""

import csv
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import select

from app.core.extensions import reading, writing
from app.models import ApiRequest, Participant, StudyEvent, Wave
from app.studies.export.archive import write_archive
from app.studies.export.scope import find_scope
from app.studies.store import find_version, written_design
from tests.enrolments import enrol, load_example, open_wave
from tests.programs import Program, refusal
from tests.shell import Finished


@pytest.fixture
def wave(app: Flask, tmp_path: Path) -> int:
    """A wave in which one person is, whom the recruiter calls p1id."""
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
        assert "p1id" not in found.text
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


def test_how_the_recruiter_names_people_is_told_with_a_scope_of_its_own_and_kept_in_the_log(
    app: Flask, wave: int, flask: Callable[..., Finished], tmp_path: Path
) -> None:
    for scopes in (("read", "run"), ("people",)):
        answer = Program(app, *scopes).post(f"/waves/{wave}/ids")
        assert (answer.status_code, "p1id" in answer.text) == (403, False)
    program = Program(app, "read", "people")
    for path, body, status in ((f"/waves/{wave}/ids", {"all": 1}, 400), ("/waves/99/ids", None, 404)):
        assert program.post(path, body).status_code == status
    assert program.ask("GET", f"/waves/{wave}/ids").status_code == 405
    assert takers(wave) == []
    [named] = (program.post(f"/waves/{wave}/ids", key="once").json or {})["items"]
    assert (named["recruiter"], named["external_id"]) == ("prolific", "p1id")
    [person] = program.get(f"/waves/{wave}/people")["items"]
    assert named["participant"] == person["participant"]
    assert program.post(f"/waves/{wave}/ids", key="once").json == {"items": [named]}
    assert takers(wave) == ["ann"]
    with reading() as session:
        kept = session.scalars(select(ApiRequest)).all()
        assert [(each.subject, each.answer) for each in kept] == [(f"ids of wave {wave}", {})]
    out = tmp_path / "ids.zip"
    assert flask("study", "export-data", "two-models", "--with-ids", "--out", out).exit_code == 0
    with zipfile.ZipFile(out) as archive:
        [written] = csv.DictReader(io.StringIO(archive.read("ids.csv").decode()))
    assert written == {name: value or "" for name, value in named.items()}
    assert takers(wave) == ["ann", "command line"]


def takers(wave: int) -> list[str]:
    """Who took the recruiter's ids, by the log of the wave."""
    with reading() as session:
        log = session.scalars(select(StudyEvent).where(StudyEvent.wave_id == wave).order_by(StudyEvent.id))
        return [each.body["by"] for each in log if each.kind == "ids exported"]
