"""What lies in a database outlives the change of its tables."""

import json
import shutil
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask_migrate import downgrade, migrate, upgrade
from sqlalchemy import Column, MetaData, Table, insert, select, text
from sqlalchemy.orm import Session

from app.core.config import ROOT
from app.core.extensions import Model, open_engine, reading, writing
from app.factory import create_app
from app.models import LanguageModel, RecipeStep, StudyEvent, TrainingCharge
from app.models.types import UtcDateTime
from app.registry import player_spec, read_options
from app.schema import allow_migrations
from tests.shell import Shell

MATCH = """INSERT INTO "match" (id, game, source, status, seed, config, ply, model_to_move, violations, started_at,
    moved_at, lease_count) VALUES ('kept', 'taboo', 'live', 'over', 1, '{}', 0, false, 0, '2026-01-01 00:00:00.000000',
    '2026-01-01 00:00:00.000000', 0)"""
SEAT = "INSERT INTO seat (match_id, seat, role, kind) VALUES ('kept', 0, 'attacker', 'person')"


@pytest.fixture(params=["sqlite", "postgresql"])
def bare_app(request: pytest.FixtureRequest, home: object) -> Flask:
    """An app whose database has no tables yet."""
    url = request.getfixturevalue("service_database") if request.param == "postgresql" else ""
    app = create_app({"PARLOR_HOME": home, "DATABASE_URL": url})
    allow_migrations(app)
    return app


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_database_made_by_its_command_lacks_nothing(
    database: str, request: pytest.FixtureRequest, shell: Shell, tmp_path: Path
) -> None:
    url = request.getfixturevalue("service_database") if database == "postgresql" else ""

    def run(*words: str) -> str:
        done = shell.flask(words, env={"PARLOR_HOME": str(tmp_path / "home"), "DATABASE_URL": url})
        assert done.exit_code == 0, done.stderr
        return done.stdout

    run("db", "upgrade")
    assert run("db", "current") == run("db", "heads")
    assert "No new upgrade operations detected." in run("db", "check")
    with writing(open_engine(url or f"sqlite:///{tmp_path / 'home' / 'parlor.db'}")) as session:
        names = set(session.scalars(text("SELECT name FROM language_model")))
    assert {"scripted", "tiny-base"} <= names


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


def test_the_step_that_a_job_registered_before_is_known_afterwards(bare_app: Flask) -> None:
    with bare_app.app_context():
        _add_two_trainings()
        upgrade()
        with reading() as session:
            steps = session.execute(text("SELECT id, registered_step FROM training_job ORDER BY id")).all()
            assert [tuple(each) for each in steps] == [(1, 14), (2, None)]


def test_what_vendors_had_trained_before_is_charged_to_its_day(bare_app: Flask) -> None:
    with bare_app.app_context():
        _add_two_trainings()
        upgrade(revision="0045")
        with writing() as session:
            session.execute(
                text(
                    "UPDATE training_job SET remote_token = 'first', trained_tokens = 5000,"
                    " ended_at = '2026-02-03 04:05:06.000000' WHERE id = 1"
                )
            )
            session.execute(text("UPDATE training_job SET remote_token = 'second' WHERE id = 2"))
        for step in (upgrade, partial(downgrade, revision="0045"), upgrade):
            step()
        with reading() as session:
            [charge] = session.scalars(select(TrainingCharge))
            assert (charge.job_id, charge.tokens, charge.is_estimate, charge.price) == (1, 5000, False, None)
            assert charge.at == datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)


def test_what_campaigns_and_alignments_had_begun_becomes_their_steps_and_back(bare_app: Flask) -> None:
    with bare_app.app_context():
        _add_a_campaign_and_an_alignment()
        tables = ("campaign_iteration", "campaign_round", "campaign_evaluation", "alignment", "recipe_step")
        before = {table: _rows_of(table) for table in tables}
        upgrade()
        with reading() as session:
            steps = select(RecipeStep).order_by(RecipeStep.run_id, RecipeStep.campaign_id, RecipeStep.place)
            found = session.scalars(steps).all()
            told = [
                (step.key, step.kind, step.number, step.dataset_id, step.ended_at is not None)
                for step in found
                if step.campaign_id
            ]
            assert told == [
                ("evaluate_base", "round", 1, None, True),
                ("evaluate_2_base", "round", 2, None, True),
                ("play iteration=1", "round", 3, None, True),
                ("play_with_1 iteration=1", "round", 4, None, True),
                ("keep iteration=1", None, None, 1, True),
                ("train iteration=1", "training", 1, None, True),
                ("evaluate iteration=1", "round", 5, None, False),
            ]
            with_partner = next(step for step in found if step.name == "play_with_1")
            assert with_partner.spec == {"models": ["base", "scripted"]}
            assert [
                (step.key, step.number, step.dataset_id, step.realignment_id) for step in found if step.alignment_id
            ] == [
                ("demonstrations", 1, None, None),
                ("society", 1, None, None),
                ("comparisons", None, 1, None),
                ("training", 2, None, None),
            ]
            assert [(step.key, step.number) for step in found if step.run_id] == [("play turn=1", 3)]
        downgrade(revision="0052")
        assert {table: _rows_of(table) for table in tables} == before
        upgrade()


def _rows_of(name: str) -> list[dict[str, Any]]:
    """All rows of a table as it is now; JSON as values."""
    with reading() as session:
        table = Table(name, MetaData(), autoload_with=session.connection())
        rows = [dict(row) for row in session.execute(select(table)).mappings()]
    return sorted(
        ({key: json.loads(value) if key in _JSON and isinstance(value, str) else value for key, value in row.items()}
         for row in rows),
        key=lambda row: json.dumps(row, default=str, sort_keys=True),
    )  # fmt: skip


_JSON = ("figures", "spec", "material", "values")


def _add_a_campaign_and_an_alignment() -> None:
    """A campaign that evaluates its first model, an alignment in its second training, and a run of a recipe."""
    upgrade(revision="0052")
    with writing() as session:
        add = partial(_insert_whole, session)
        for number, name in ((101, "base"), (102, "loop-1")):
            add("language_model", id=number, name=name, label=name)
        add("dataset", id=1, name="rows", version=1)
        for number, made in ((1, 102), (2, None)):
            add("training_job", id=number, dataset_id=1, model_id=made)
        for number in range(1, 6):
            add("round", id=number, model_0_id=101, model_1_id=101)
        spec = {"evaluation_temperature": 0, "partners": [], "sampling": {}, "play_with": {"scripted": 0.5}}
        add("campaign", id=1, base_id=101, spec=spec)
        figure = {"score_mean": {"value": 1}}
        add("campaign_iteration", campaign_id=1, number=0, model_id=101, evaluation_id=1, figures=figure)
        first = {"round_id": 3, "dataset_id": 1, "job_id": 1, "model_id": 102, "evaluation_id": 5}
        add("campaign_iteration", campaign_id=1, number=1, **first)
        add("campaign_round", campaign_id=1, iteration=1, partner="scripted", round_id=4)
        add("campaign_evaluation", campaign_id=1, iteration=0, label="greedy", round_id=2, figures=figure)
        add("society", id=1)
        chain = {"demonstrations_id": 1, "sft_job_id": 1, "society_id": 1, "dataset_id": 1, "job_id": 2}
        add("alignment", id=1, base_id=101, **chain)
        add("recipe_run", id=1)
        add("recipe_step", run_id=1, key="play turn=1", name="play", values={"turn": 1}, kind="round", number=3)


def _insert_whole(session: Session, table: str, **values: Any) -> None:
    """A row of a table as the database has it just now, with something in each column that must have a value."""
    empty: dict[type, Any] = {str: "", int: 0, float: 0.0, bool: False, dict: {}, object: {}}
    empty[datetime] = datetime(2026, 1, 1)  # noqa: DTZ001  as the columns store it
    columns = Table(table, MetaData(), autoload_with=session.connection()).columns
    needed = [each for each in columns if not each.nullable and each.server_default is None and not each.primary_key]
    _insert(session, table, **{each.name: empty[each.type.python_type] for each in needed} | values)


def _add_two_trainings() -> None:
    """A training that has made a model and one that failed, in a database of an early release."""
    at = datetime(2026, 1, 1)  # noqa: DTZ001  as the columns store it
    job = {"name": "made", "method": "sft", "backend": "local", "dataset_id": 1, "config": {}, "status": "done"}
    job |= {"queued": False, "lease_count": 0, "log": "", "created_at": at}
    upgrade(revision="0009")
    with writing() as session:
        _insert(
            session, "language_model", id=7, name="made", label="Made", kind="local", games=[], options={},
            enabled=True, created_at=at,
        )  # fmt: skip
        _insert(
            session, "dataset", id=1, name="rows", version=1, spec={}, sha256="", size=1, rows=1, words=1,
            own_words=1, figures={}, created_at=at,
        )  # fmt: skip
        _insert(session, "training_job", id=1, model_id=7, **job)
        _insert(session, "training_job", id=2, **job | {"status": "failed"})
        for number, body in enumerate(({"event": "step", "step": 84}, {"event": "finished", "step": 14})):
            _insert(session, "training_event", job_id=1, number=number, body=body)


def _insert(session: Session, table: str, **values: Any) -> None:
    """A row of a table as the database has it just now."""
    session.execute(insert(Table(table, MetaData(), autoload_with=session.connection())).values(values))


def test_keys_of_models_are_bound_to_the_hosts_that_they_have(bare_app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    models = {
        "vendor": ({"model": "m"}, None),  # the workers' own OPENAI_BASE_URL says where it is
        "own": ({"model": "m", "base_url": "https://Mine.Example:8443/v1", "key_env": "MY_KEY"}, "mine.example"),
        "stub": ({"model": "m", "base_url": "http://127.0.0.1:9/v1"}, "127.0.0.1"),
        "open": ({"model": "m", "base_url": "http://vllm:8000/v1", "key_env": ""}, None),
        "elsewhere": ({"model": "m", "key_env": "OTHER_API_KEY"}, "api.openai.com"),
    }
    added = text(
        "INSERT INTO language_model (name, label, kind, games, options, enabled, created_at)"
        " VALUES (:name, :name, 'api', '[\"taboo\"]', :options, true, '2026-01-01 00:00:00.000000')"
    )
    with bare_app.app_context():
        upgrade(revision="0009")
        with writing() as session:
            for name, (options, _) in models.items():
                session.execute(added, {"name": name, "options": json.dumps(options)})
        upgrade()
        with reading() as session:
            rows = {row.name: row for row in session.scalars(select(LanguageModel).where(LanguageModel.kind == "api"))}
        for name, (options, host) in models.items():
            assert rows[name].options == options | ({"key_host": host} if host else {})
            assert read_options(player_spec(rows[name])).key_host == host
        downgrade(revision="0009")
        with reading() as session:
            kept = session.execute(text("SELECT name, options FROM language_model WHERE kind = 'api'")).all()
        for name, options in kept:
            assert (options if isinstance(options, dict) else json.loads(options)) == models[name][0]


def test_a_seat_still_goes_with_its_match_afterwards(bare_app: Flask) -> None:
    with bare_app.app_context():
        upgrade()
        with writing() as session:
            session.execute(text(MATCH))
            session.execute(text(SEAT))
            session.execute(text('DELETE FROM "match"'))
            assert session.scalar(text("SELECT count(*) FROM seat")) == 0


def test_reports_that_came_after_a_freeze_are_reports(bare_app: Flask) -> None:
    rows = (
        "INSERT INTO study (id, name, created_at) VALUES (1, 'two-models', '2026-01-01 00:00:00.000000')",
        """INSERT INTO study_version (id, study_id, number, design, sha256, created_at)
            VALUES (1, 1, 1, '{}', 'a', '2026-01-01 00:00:00.000000')""",
        """INSERT INTO wave (id, study_id, study_version_id, name, settings, status, created_at)
            VALUES (1, 1, 1, 'main', '{}', 'closed', '2026-01-01 00:00:00.000000')""",
    )
    insert = """INSERT INTO study_event (wave_id, kind, body, at)
        VALUES (1, :kind, '{"by": "ann"}', '2026-01-01 00:00:00.000000')"""
    with bare_app.app_context():
        upgrade(revision="0031")
        with writing() as session:
            for row in rows:
                session.execute(text(row))
            for kind in ("report", "late report", "report read", "report handled"):
                session.execute(text(insert), {"kind": kind})
        upgrade()
        with reading() as session:
            found = session.execute(select(StudyEvent.kind, StudyEvent.body).order_by(StudyEvent.id)).all()
    assert [row.kind for row in found] == ["report", "report", "report assigned", "report closed"]
    assert [row.body.get("to") for row in found] == [None, None, "ann", "ann"]  # who had read or handled it


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


def test_a_new_migration_has_the_next_number_and_needs_nothing_of_the_app(bare_app: Flask, tmp_path: Path) -> None:
    folder = tmp_path / "migrations"
    shutil.copytree(ROOT / "migrations", folder)
    last = max(path.name[:4] for path in folder.glob("versions/0*.py"))
    table = Table("remark", Model.metadata, Column("at", UtcDateTime(), primary_key=True))
    try:
        with bare_app.app_context():
            upgrade()
            migrate(directory=str(folder), message="remarks")
            [written] = folder.glob("versions/*_remarks.py")
            upgrade(directory=str(folder))
            with reading() as session:
                assert session.execute(text("SELECT at FROM remark")).all() == []
    finally:
        Model.metadata.remove(table)
    assert written.name == f"{int(last) + 1:04}_remarks.py"


def test_jobs_from_before_have_no_requester_and_outlive_the_one_that_they_get(bare_app: Flask) -> None:
    at = datetime(2026, 1, 1)  # noqa: DTZ001  as the columns store it
    job = {"queued": True, "created_at": at, "status": "done"}
    with bare_app.app_context():
        upgrade(revision="0019")
        with writing() as session:
            _insert(session, "user", id=1, name="anna", created_at=at)
            _insert(
                session, "round", id=1, name="before", game="taboo", source="selfplay", config={}, matches=1, seed=1,
                swap_seats=False, pick="in-order", sampling={}, finished=0, aborted=0, moves=0, violations=0, calls=0,
                failed_calls=0, prompt_tokens=0, completion_tokens=0, **job,
            )  # fmt: skip
        for step in (upgrade, downgrade, upgrade):
            step()
            with reading() as session:
                assert session.scalar(text("SELECT name FROM round")) == "before"
                assert session.scalar(text("SELECT count(*) FROM campaign")) == 0
        who = text("SELECT requested_by_id, requested_by FROM round")
        with writing() as session:
            assert tuple(session.execute(who).one()) == (None, None)
            assert session.scalar(text("SELECT prices FROM round")) is None
            session.execute(text("UPDATE round SET requested_by_id = 1, requested_by = 'anna'"))
            session.execute(text('DELETE FROM "user"'))
            assert tuple(session.execute(who).one()) == (None, "anna")
