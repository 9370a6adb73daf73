"""What lies in a database outlives the change of its tables."""

import pytest
from flask import Flask
from flask_migrate import downgrade, upgrade
from sqlalchemy import text

from app.extensions import reading, writing
from app.factory import create_app

MATCH = """INSERT INTO "match" (id, game, source, status, seed, config, ply, model_to_move, violations, started_at,
    moved_at, lease_count) VALUES ('kept', 'taboo', 'live', 'over', 1, '{}', 0, false, 0, '2026-01-01 00:00:00.000000',
    '2026-01-01 00:00:00.000000', 0)"""
SEAT = "INSERT INTO seat (match_id, seat, role, kind) VALUES ('kept', 0, 'attacker', 'person')"


@pytest.fixture(params=["sqlite", "postgresql"])
def bare_app(request: pytest.FixtureRequest, home: object) -> Flask:
    """An app whose database has no tables yet."""
    url = request.getfixturevalue("service_database") if request.param == "postgresql" else ""
    return create_app({"PARLOR_HOME": home, "DATABASE_URL": url})


def test_matches_outlive_every_change_of_their_table_and_its_undoing(bare_app: Flask) -> None:
    with bare_app.app_context():
        upgrade(revision="0004")
        with writing() as session:
            session.execute(text(MATCH))
            session.execute(text(SEAT))
        for step in (upgrade, downgrade, upgrade):
            step()
            with reading() as session:
                assert session.scalar(text('SELECT count(*) FROM "match"')) == 1
                assert session.scalar(text("SELECT role FROM seat")) == "attacker"


def test_a_seat_still_goes_with_its_match_afterwards(bare_app: Flask) -> None:
    with bare_app.app_context():
        upgrade()
        with writing() as session:
            session.execute(text(MATCH))
            session.execute(text(SEAT))
            session.execute(text('DELETE FROM "match"'))
            assert session.scalar(text("SELECT count(*) FROM seat")) == 0


def test_models_are_offered_to_people_as_before_but_for_those_never_seen_to_answer(bare_app: Flask) -> None:
    insert = """INSERT INTO language_model (name, label, kind, games, options, enabled, test_result, created_at)
        VALUES (:name, :name, :kind, '["taboo"]', :options, :enabled, :result, '2026-01-01 00:00:00.000000')"""
    failed, passed = '{"ok": false, "error": "no answer"}', '{"ok": true, "text": "hello"}'
    rows = {
        "scripted": ("scripted", "{}", True, None),
        "hidden": ("scripted", "{}", False, None),
        "tiny": ("local", '{"path": "data/models/tiny"}', True, None),
        "tiny-base": ("local", '{"path": "data/models/tiny-base"}', True, passed),
        "untried": ("api", "{}", True, None),
        "failed": ("api", "{}", True, failed),
        "passed": ("api", "{}", True, passed),
        "withdrawn": ("api", "{}", False, passed),
    }
    uses = text("SELECT name, usable_in_rounds, offered_to_people FROM language_model ORDER BY id")
    with bare_app.app_context():
        upgrade(revision="0009")
        with writing() as session:
            for name, (kind, options, enabled, result) in rows.items():
                values = {"name": name, "kind": kind, "options": options, "enabled": enabled, "result": result}
                session.execute(text(insert), values)
            session.execute(text(MATCH))
            session.execute(text(SEAT))
            session.execute(text("UPDATE seat SET language_model_id = (SELECT id FROM language_model LIMIT 1)"))
        upgrade()
        with reading() as session:
            found = {name: (bool(rounds), bool(people)) for name, rounds, people in session.execute(uses)}
            assert session.scalar(text("SELECT language_model_id FROM seat")) is not None
        assert found == {
            "scripted": (True, True), "hidden": (False, False), "tiny": (True, True), "tiny-base": (True, False),
            "untried": (True, False), "failed": (True, False), "passed": (True, True), "withdrawn": (False, False),
        }  # fmt: skip
        downgrade(revision="0009")
        with reading() as session:
            off = session.scalars(text("SELECT name FROM language_model WHERE NOT enabled ORDER BY name")).all()
        assert off == ["hidden", "withdrawn"]
