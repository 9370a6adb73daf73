"""A database that version 0.1 has filled is migrated, and everything in it goes on."""

import gzip
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask_migrate import upgrade
from sqlalchemy import Integer, MetaData, Table, func, insert, select, text
from sqlalchemy.orm import Session

from app.analysis.rounds import analyse
from app.core.extensions import db, reading, writing
from app.factory import create_app
from app.matches import live
from app.matches.events import Ended
from app.matches.stored import load
from app.models import LanguageModel, MatchRow, ModelRequest, RoundRow
from app.registry import has_passed_test
from app.schema import allow_migrations
from tests.experimenter import signed_in
from tests.rounds import play

LAST_OF_0_1 = "0009"
FILLED = Path(__file__).resolve().parents[1] / "golden" / "version_0_1.json.gz"
TO_PERSON, TO_MODEL = "0QC2t29513qsZRgQWxqXpQ", "hZfF5ZKXnaYqxvH3XjhRIA"  # open matches, by who is to move
QUEUED_ROUND = 4


@pytest.fixture(params=["sqlite", "postgresql"])
def migrated(request: pytest.FixtureRequest, home: Path) -> Flask:
    """An app with the database of version 0.1, migrated."""
    url = request.getfixturevalue("service_database") if request.param == "postgresql" else ""
    app = create_app({"PARLOR_HOME": home, "DATABASE_URL": url, "READING_WORDS_PER_MINUTE": 0})
    allow_migrations(app)
    app.config["WTF_CSRF_ENABLED"] = False
    with app.app_context():
        upgrade(revision=LAST_OF_0_1)
        with writing() as session:
            _fill(session)
        upgrade()
    return app


def _fill(session: Session) -> None:
    tables: dict[str, list[dict[str, Any]]] = json.loads(gzip.decompress(FILLED.read_bytes()), object_hook=_moment)
    if session.get_bind().dialect.name == "sqlite":
        session.execute(text("PRAGMA defer_foreign_keys=ON"))
    for name, rows in tables.items():
        table = Table(name, MetaData(), autoload_with=session.connection())
        assert set(rows[0]) == set(table.columns.keys())
        session.execute(insert(table), rows)
        numbered = "id" in table.columns and isinstance(table.columns["id"].type, Integer)
        if numbered and session.get_bind().dialect.name == "postgresql":  # which counts on by itself
            session.execute(text(f"SELECT setval('{name}_id_seq', {max(row['id'] for row in rows)})"))


def _moment(body: dict[str, Any]) -> Any:
    return datetime.fromisoformat(body["$moment"]) if "$moment" in body else body


def test_what_version_0_1_played_is_read_and_goes_on(migrated: Flask) -> None:
    client = signed_in(migrated)
    settings = migrated.config["SETTINGS"]
    with migrated.app_context():
        engine = db.engine
        with reading() as session:
            ids = session.scalars(select(MatchRow.id)).all()
            assert len(ids) == 27
            for match_id in ids:
                record, row = load(session, match_id), session.get_one(MatchRow, match_id)
                ended = record.match.ended
                assert (ended.reason if isinstance(ended, Ended) else None, record.match.ply) == (row.reason, row.ply)
            assert analyse(session, [1])[0].matches == 12
        with writing() as session:
            ply = load(session, TO_PERSON).match.ply
            seat = load(session, TO_PERSON).match.to_move
            assert seat is not None
            said = live.MoveSubmission(TO_PERSON, seat, "And what else?", "after the upgrade")
            receipt = live.submit(session, said, instant=True)
            assert receipt.record.match.ply > ply
        play(engine, settings, QUEUED_ROUND)
        with reading() as session:
            assert session.get_one(RoundRow, QUEUED_ROUND).status == "done"
            played = select(func.count()).where(MatchRow.round_id == QUEUED_ROUND, MatchRow.status == "over")
            assert session.scalar(played) == 6
            mine = session.scalar(select(LanguageModel).where(LanguageModel.name == "mine"))
            assert mine is not None
            assert has_passed_test(mine)
            assert session.scalar(select(func.count()).select_from(ModelRequest)) == 1
            assert mine.uses == ["games", "chat"]
    for path in ("", "models", "models/4", "rounds", "rounds/1", "matches", f"matches/{TO_MODEL}", "datasets/1", "jobs",
                 "jobs/1", "campaigns", "campaigns/1"):  # fmt: skip
        assert client.get(f"/admin/{path}").status_code == 200, path
