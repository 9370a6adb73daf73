"""Matches of bots and of previews are nobody's results: lists, exports, figures and datasets leave them out."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask_migrate import downgrade, upgrade
from sqlalchemy import Engine, MetaData, Table, insert, select, text
from sqlalchemy.orm import Session

from app.analysis.reading import chosen_tables
from app.core.extensions import reading, writing
from app.core.failures import MODEL_FAULT
from app.factory import create_app
from app.matches import export, live
from app.matches.filter import conditions, read_choice
from app.matches.listing import LIST
from app.matches.overview import latest_matches, live_matches, overview
from app.matches.stored import load
from app.models import MatchRow, Study, Wave
from app.registry import add_scripted_model
from app.schema import allow_migrations
from app.studies import matches
from app.studies.bots.copies import open_rehearsal
from app.studies.listing import STUDIES
from app.studies.monitor.inbox import inbox, waiting_reports, waves_with_reports
from app.studies.progress import StudyProgress
from app.studies.reports import keep_report
from tests.experimenter import signed_in
from tests.study_matches import enrolled, go_to, loaded
from tests.study_pages import text_of

BOTS, PREVIEW, PERSON = "bots", "preview", "person"


@pytest.fixture
def played(engine: Engine, tmp_path: Path) -> Mapping[str, str]:
    """The ids of three matches of one design, which are over: of a bot, of a preview and of a person."""
    with writing(engine) as session:
        add_scripted_model(session, "casual", None, {"manner": "casual"})
        version = loaded(session, tmp_path, "two-models", ("b: tiny", "b: casual"))
        person, preview = enrolled(session, version), enrolled(session, version)
        preview.enrolment.wave_id = None
        wave = open_rehearsal(session, f"{session.get_one(Study, version.study_id).name}@1", 4, live=False)
        bot = enrolled(session, version)
        bot.enrolment.wave_id = wave.id
        for progress in (bot, person):
            keep_report(session, progress, "other", "It hung.")
        found = {name: _played(session, each) for name, each in ((BOTS, bot), (PREVIEW, preview), (PERSON, person))}
        # Else nothing would be found by who played or how it ended.
        session.get_one(Wave, person.enrolment.wave_id).frozen_at = datetime.now(UTC)
        return found


def _played(session: Session, progress: StudyProgress) -> str:
    record = matches.start(session, progress, go_to(progress, "match 1"))
    return live.abort(session, load(session, record.id, lock=True), MODEL_FAULT, 1, "no valid move").id


def chosen(session: Session, **choice: str) -> set[str]:
    found = {row.id for row in export.rows(session, export.MATCHES, read_choice(choice))}
    rows = LIST.read(session, LIST.order(""), where=conditions(read_choice(choice))).rows
    listed = LIST.items(session, rows)
    assert {each.match.id for each in listed} == found
    tables = chosen_tables(session, read_choice(choice))
    assert sum(len(table) for table in tables.values()) == len(found)
    return found


def test_bots_and_previews_are_in_no_result_that_did_not_ask_for_them(
    engine: Engine, played: Mapping[str, str]
) -> None:
    with reading(engine) as session:
        assert session.get_one(MatchRow, played[PERSON]).source == "live"
        of_people: list[dict[str, str]] = [{}, {"player": "person"}, {"study": "two-models"}, {"reason": "aborted"}]
        for choice in of_people:
            assert chosen(session, **choice) == {played[PERSON]}, choice
        assert chosen(session, source="rehearsal") == {played[BOTS], played[PREVIEW]}
        assert chosen(session, match=played[BOTS]) == {played[BOTS]}
        now = datetime.now(UTC)
        found = overview(session, now, now - timedelta(days=1))
        assert (found.today, found.broken_off) == (1, 1)
        assert {each.match.id for each in (*latest_matches(session), *live_matches(session, now))} == {played[PERSON]}


def test_the_page_of_matches_shows_rehearsals_where_they_are_asked_for(app: Flask, played: Mapping[str, str]) -> None:
    client = signed_in(app)
    page, asked = client.get("/admin/matches").text, client.get("/admin/matches?source=rehearsal").text
    assert played[PERSON] in page
    assert played[BOTS] not in page
    assert "Matches of bots and previews are left out" in page
    assert played[BOTS] in asked
    assert played[PERSON] not in asked
    assert "Matches of bots and previews are left out" not in asked


def test_pages_count_people_and_their_matches_and_reports_alone(
    app: Flask, engine: Engine, played: Mapping[str, str]
) -> None:
    with reading(engine) as session:
        assert len(played) == 3
        (report,) = inbox(session)
        assert waiting_reports(session, "ann").new == 1
        assert [wave.id for wave, _, _ in waves_with_reports(session)] == [report.wave.id]
        bots = session.scalars(select(Wave.id).where(Wave.rehearsal)).one()
        assert [each.wave.id for each in inbox(session, bots)] == [bots]  # where it is asked for
        assert [wave.id for wave, _, _ in waves_with_reports(session, bots)] == [bots, report.wave.id]
        listed = {
            line["study"]: line["enrolled"] for line in STUDIES.lines(session, STUDIES.columns, STUDIES.order(""))
        }
        assert listed == {"two-models": 1, "two-models-rehearsal": 0}
    admin = signed_in(app)
    assert "1 report of a participant is new." in text_of(admin.get("/admin/"))
    assert sum(map(int, re.findall(r'data-as="Matches"[^>]*><span>(\d+)<', admin.get("/admin/models").text))) == 1


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_matches_of_bots_from_before_are_recognised_by_their_wave(
    request: pytest.FixtureRequest, home: object, database: str
) -> None:
    url = request.getfixturevalue("service_database") if database == "postgresql" else ""
    app = create_app({"PARLOR_HOME": home, "DATABASE_URL": url})
    allow_migrations(app)
    with app.app_context():
        upgrade(revision="0028")
        with writing() as session:
            _from_before(session)
        for _ in range(2):
            upgrade()
            with reading() as session:
                sources = dict(session.execute(text('SELECT id, source FROM "match"')).all())
                waves = dict(session.execute(text("SELECT name, rehearsal FROM wave")).all())
            assert sources == {
                "of a job": "rehearsal", "of a command": "rehearsal", "of a preview": "rehearsal",
                "of a person": "live", "of a guest": "live",
            }  # fmt: skip
            assert {name for name, rehearsal in waves.items() if rehearsal} == {"renamed", "bots-1234abcd"}
            downgrade(revision="0028")


def _from_before(session: Session) -> None:
    at = datetime(2026, 1, 1)  # noqa: DTZ001  as the columns store it
    _insert(session, "study", id=1, name="s-rehearsal", created_at=at)
    _insert(session, "study", id=2, name="s", created_at=at)
    version = {"number": 1, "design": {}, "sha256": "", "created_at": at}
    _insert(session, "study_version", id=1, study_id=1, **version)
    _insert(session, "study_version", id=2, study_id=2, **version)
    names = {1: ("renamed", 1), 2: ("bots-1234abcd", 1), 3: ("bots-people", 2)}
    for number, (name, study) in names.items():
        _insert(session, "wave", id=number, study_id=study, study_version_id=study, name=name, settings={},
                status="closed", created_at=at)  # fmt: skip
    _insert(session, "rehearsal", id=1, study_version_id=2, wave_id=1, bots=1, seed=1, live=False, status="done",
            queued=True, created_at=at, lease_count=0)  # fmt: skip
    matches = {"of a job": 1, "of a command": 2, "of a person": 3, "of a preview": None, "of a guest": 0}
    for number, (name, wave) in enumerate(matches.items(), 1):
        _insert(session, "match", id=name, game="taboo", source="live", status="over", seed=1, config={}, ply=0,
                model_to_move=False, violations=0, started_at=at, moved_at=at, lease_count=0)  # fmt: skip
        enrolment = None
        if wave != 0:
            study = names[wave][1] if wave else 2
            _insert(session, "participant", id=number, study_id=study, code=name, created_at=at)
            _insert(session, "enrolment", id=number, participant_id=number, study_version_id=study, wave_id=wave,
                    holds_place=True, step=0, stage="consent", answers={}, enrolled_at=at)  # fmt: skip
            enrolment = number
        _insert(session, "seat", match_id=name, seat=0, role="attacker", kind="person", enrolment_id=enrolment)


def _insert(session: Session, table: str, **values: Any) -> None:
    """A row of a table as the database has it just now."""
    session.execute(insert(Table(table, MetaData(), autoload_with=session.connection())).values(values))
