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
