"""The archive of a study's data: its tables, what is left out of it, and that the same data are the same bytes."""

import csv
import hashlib
import io
import json
import tracemalloc
import zipfile
from collections.abc import Callable, Sequence
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from app.core import csv_tables
from app.core.csv_tables import CODEBOOK, Column
from app.core.errors import Conflict, NotFound
from app.core.extensions import reading, writing
from app.matches import live
from app.models import (
    Consent,
    Enrolment,
    Participant,
    StudyEvent,
    StudyVersion,
    Wave,
)
from app.studies import batches, matches, payments
from app.studies.consents import withdraw_training
from app.studies.export import analysis, columns
from app.studies.export import archive as archives
from app.studies.export.archive import read_one_moment, write_archive
from app.studies.export.scope import find_scope
from app.studies.forget import forget_person
from app.studies.monitor.inbox import inbox
from app.studies.progress import StudyProgress, advance, answer, end, find_progress, log_event
from app.studies.submissions import VisitStatus, take_statuses
from app.studies.waves import close, freeze
from tests.enrolments import START, break_off, enrol, finish, load_example, open_wave, play, time_moves
from tests.experimenter import signed_in
from tests.many_people import copy_people
from tests.r_programs import check_frame, needs_r, run_lines
from tests.shell import Finished
from tests.waves import assigned, new_wave

TIMING = {"first_input": 900, "typing": 4000, "sent": 8000, "hidden": 2000, "typed": 30, "pasted": 10, "pastes": 1}
Rows = list[dict[str, str]]


class Archive:
    """An archive that was written, by the names of its files."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            self.files = {name: archive.read(name) for name in archive.namelist()}

    def rows(self, name: str) -> Rows:
        return list(csv.DictReader(io.StringIO(self.files[f"{name}.csv"].decode(), newline="")))

    def by_person(self, name: str) -> dict[str, dict[str, str]]:
        return {row["participant"]: row for row in self.rows(name)}

    def lines(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.files[f"{name}.jsonl"].splitlines()]


def export(engine: Engine, folder: Path, reference: str = "two-models", **options: Any) -> Archive:
    path = folder / "data.zip"
    with reading(engine) as session:
        read_one_moment(session)
        write_archive(session, find_scope(session, reference, **options), path)
    return Archive(path.read_bytes())


def test_a_report_after_the_freeze_is_kept_beside_what_was_frozen(
    app: Flask, engine: Engine, wave_id: int, tmp_path: Path
) -> None:
    with writing(engine) as session:
        progress = finish(session, person(session, wave_id, "P1"))
        close(session, session.get_one(Wave, wave_id))
        freeze(session, session.get_one(Wave, wave_id))
        token = progress.enrolment.token
    before = export(engine, tmp_path).content
    app.test_client().post(f"/s/me/{token}/report", data={"reason": "other", "text": "I was not paid.", "then": "stay"})
    with reading(engine) as session:
        (report,) = inbox(session, wave_id)
        assert (report.code, report.event.body["text"]) == ("P1", "I was not paid.")
    assert export(engine, tmp_path).content == before
    assert "report" in [each["kind"] for each in export(engine, tmp_path, since_freeze=True).lines("log")]


def test_what_somebody_reports_after_a_deletion_is_in_no_archive(
    app: Flask, engine: Engine, wave_id: int, tmp_path: Path
) -> None:
    with writing(engine) as session:
        enrolment = person(session, wave_id, "P1").enrolment
        token = enrolment.token
        forget_person(session, enrolment.participant_id)
    app.test_client().post(f"/s/me/{token}/report", data={"reason": "other", "text": "Is it gone?", "then": "stay"})
    with reading(engine) as session:
        assert [report.text for report in inbox(session, wave_id)] == ["Is it gone?"]
    (line,) = (each for each in export(engine, tmp_path).lines("log") if each["kind"] == "report")
    assert (line["participant"], line["body"]["reported"], "text" in line["body"]) == ("P1", "other", False)


def test_a_frozen_archive_stays_as_it_was_and_what_came_since_is_apart(
    app: Flask, engine: Engine, wave_id: int, tmp_path: Path
) -> None:
    with writing(engine) as session:
        one, two = (person(session, wave_id, code) for code in ("P1", "P2"))
        play(session, one, 0)
        for progress in (one, two):
            finish(session, progress, "completed" if progress is one else "quiz_failed")
            participant_id = progress.enrolment.participant_id
            session.add(
                Consent(participant_id=participant_id, kind="training", text_version="a" * 64, given=True, at=START)
            )
        end(session, person(session, wave_id, "P3"), "withdrawn")
        wave = session.get_one(Wave, wave_id)
        payments.settle_all(session, wave)
        first, *_ = batches.draft(session, wave)
        payments.adjust(session, two, Decimal("0.50"), "The page did not load")
        with pytest.raises(Conflict, match="wave: expected a wave that is frozen"):
            find_scope(session, "two-models:main", since_freeze=True)
        close(session, wave)
        freeze(session, wave)
        number, first_batch = two.enrolment.id, first.number
    frozen = export(engine, tmp_path)
    with writing(engine) as session:
        wave, two = session.get_one(Wave, wave_id), find_progress(session, number)
        payments.adjust(session, two, Decimal("2.25"), "Paid after all")
        batches.discard(session, batches.find_batch(session, wave, first_batch))
        drafted, *_ = batches.draft(session, wave)
        batches.mark(session, drafted, batches.UPLOADED)
        batches.mark(session, drafted, batches.CONFIRMED)
        withdraw_training(session, two.enrolment.participant_id)
        three = session.scalars(select(Enrolment).where(Enrolment.ending == "withdrawn")).one()
        assert advance(session, find_progress(session, three.id), "debrief").kind == "done"
    assert export(engine, tmp_path).content == frozen.content
    later = export(engine, tmp_path, since_freeze=True)
    assert set(later.files) == {
        "README.txt", "payments.csv", "consents.csv", "log.jsonl", "codebook.csv", "read.R", "read.do", "design-1.json",
        "SHA256SUMS",
    }  # fmt: skip
    new = [row for row in later.rows("payments") if row not in frozen.rows("payments")]
    assert ("P2", "2.25", "confirmed") in {(row["participant"], row["amount"], row["status"]) for row in new}
    assert ("P2", "2.25") not in {(row["participant"], row["amount"]) for row in frozen.rows("payments")}
    assert [bool(row["withdrawn_at"]) for row in later.rows("consents")] == [False, True]
    assert [bool(row["withdrawn_at"]) for row in frozen.rows("consents")] == [False, False]
    kinds = [each["kind"] for each in later.lines("log")]
    assert "adjustment" in kinds
    assert "frozen" not in kinds
    assert "frozen" in [each["kind"] for each in frozen.lines("log")]
    admin = signed_in(app)
    assert admin.get(f"/admin/studies/waves/{wave_id}/since-freeze.zip").data == later.content


@pytest.fixture
def wave_id(app: Flask, tmp_path: Path) -> int:
    with writing() as session:
        return open_wave(session, load_example(session, tmp_path)).id


def person(session: Session, wave_id: int, code: str, **options: Any) -> StudyProgress:
    wave = session.get_one(Wave, wave_id)
    return enrol(session, wave, code, session.get_one(StudyVersion, wave.study_version_id), **options)


def surveyed(progress: StudyProgress, read_it: Sequence[int] = (2, 2), read_this: str = "green", **end: Any) -> None:
    """The answers to all surveys of two-models."""
    for match in (1, 2, 3, 4):
        answer(progress, f"survey after match {match}", {"trust": 3 + match})
    for block, value in enumerate(read_it, 1):
        answer(progress, f"survey after block {block}", {"effort": 6, "read_it": value})
    answer(progress, "survey end", {"same": "no", "ai_help": "never", "read_this": read_this, **end})


@pytest.fixture
def people(engine: Engine, wave_id: int) -> None:
    """P1 did all, P2 pasted and read nothing, P3 withdrew after a match, P4 failed the quiz, P5 is under way."""
    with writing(engine) as session:
        one = person(session, wave_id, "P1")
        play(session, one, None)
        for position in range(4):
            time_moves(session, play(session, one, position), 0, {**TIMING, "pasted": 0})
        surveyed(one, same="yes", how="=they differed; a lot")
        answer(one, "quiz 1", {"attempts": [
            {"at": START.isoformat(), "answers": ["4"], "right": False},
            {"at": START.isoformat(), "answers": ["6"], "right": True},
        ]})  # fmt: skip
        finish(session, one)
        two = person(session, wave_id, "P2", arm=1, at=START + timedelta(minutes=1))
        time_moves(session, play(session, two, 0), 0, TIMING)
        break_off(session, two, 1)
        surveyed(two, read_it=(5, 5), read_this="red")
        finish(session, two, minutes=8)
        three = person(session, wave_id, "P3")
        play(session, three, 0)
        finish(session, three, "withdrawn")
        finish(session, person(session, wave_id, "P4", arm=None), "quiz_failed")
        person(session, wave_id, "P5")
        payments.settle_all(session, session.get_one(Wave, wave_id))
        batches.draft(session, session.get_one(Wave, wave_id))
        log_event(session, one, "report", {"match": "m", "text": "my partner was rude"})
        session.add(
            Consent(participant_id=one.enrolment.participant_id, kind="training", text_version="a" * 64, given=True,
                    at=START)
        )  # fmt: skip
        preview = enrol(session, None, "preview", one.version)
        play(session, preview, 0)


@pytest.mark.usefixtures("people")
def test_a_person_is_a_row_with_outcomes_by_condition(engine: Engine, tmp_path: Path) -> None:
    archive = export(engine, tmp_path)
    found = archive.by_person("analysis")
    assert list(found) == ["P1", "P2", "P3", "P4", "P5"]
    one = found["P1"]
    assert {name: one[name] for name in ("ending", "data", "attention", "matches", "minutes", "quiz_attempts")} == {
        "ending": "completed", "data": "counts", "attention": "3", "matches": "4", "minutes": "20",
        "quiz_attempts": "2",
    }  # fmt: skip
    outcomes = {name: one[name] for name in one if name.startswith("utility_")}
    assert outcomes == {"utility_a_self": "7", "utility_a_coop": "15", "utility_b_self": "7", "utility_b_coop": "15"}
    assert (one["utility"], one["pasted_share"], one["hidden_share"], one["excluded_by"]) == ("11", "0", "0.25", "")
    two = found["P2"]
    assert (two["attention"], two["matches"], two["pasted_share"]) == ("0", "1", "0.25")
    assert two["excluded_by"] == "attention < 2; pasted_share > 0.2"
    assert (found["P3"]["data"], found["P4"]["matches"], found["P5"]["data"]) == ("counts", "0", "under way")
    assert sum(found["P3"][name] != "" for name in outcomes) == 1


@pytest.mark.usefixtures("people")
def test_nobody_is_excluded_for_what_was_not_asked(engine: Engine, wave_id: int, tmp_path: Path) -> None:
    with writing(engine) as session:
        passed, failed = person(session, wave_id, "P6"), person(session, wave_id, "P7")
        for progress, given in ((passed, 2), (failed, 5)):  # the first of three checks, of which two are to be passed
            play(session, progress, 0)
            answer(progress, "survey after block 1", {"effort": 4, "read_it": given})
        twice = person(session, wave_id, "P8")
        for block in (1, 2):
            answer(twice, f"survey after block {block}", {"effort": 4, "read_it": 5})
    found = export(engine, tmp_path).by_person("analysis")
    asked = {code: (row["attention"], row["quiz_attempts"], row["excluded_by"]) for code, row in found.items()}
    for code in ("P3", "P4", "P5"):  # who left after a match, failed the quiz, has just come
        assert asked[code] == ("", "", ""), code
    assert asked["P6"] == ("1", "", "")
    assert asked["P7"] == ("0", "", "")  # two more checks might still be passed
    assert asked["P8"] == ("0", "", "attention < 2")


@pytest.mark.usefixtures("people")
def test_every_table_agrees_with_what_happened(engine: Engine, tmp_path: Path) -> None:
    archive = export(engine, tmp_path)
    assert not {"ids.csv"} & set(archive.files)
    everything = b"".join(archive.files.values())
    assert b"p1id" not in everything
    assert b"preview" not in everything.replace(b"Previews", b"").replace(b"bots or of a preview", b"")
    matches = archive.rows("matches")
    assert [row["participant"] for row in matches].count("P1") == 5
    practice = [row for row in matches if row["practice"] == "true"]
    assert [(row["position"], row["condition_model"]) for row in practice] == [("", "")]
    counted = [row for row in matches if row["participant"] == "P1" and row["practice"] == "false"]
    assert [row["position"] for row in counted] == ["0", "1", "2", "3"]
    assert {row["own_utility"] for row in counted if row["condition_objective"] == "coop"} == {"15"}
    moves = archive.rows("moves")
    own = [row for row in moves if row["participant"] == "P2"]
    assert {(row["typing_ms"], row["pasted"], row["late_s"]) for row in own} == {("4000", "10", "")}
    assert {row["participant"] for row in moves} == {"P1", "P2", "P3", ""}
    assert {row["claims_human"] for row in moves if row["participant"] == ""} == {"false"}
    assert {row["claims_human"] for row in own} == {""}
    paid = {(row["participant"], row["key"]): row for row in archive.rows("payments")}
    assert (paid["P4", "base"]["amount"], paid["P4", "base"]["batch"], paid["P4", "base"]["status"]) == (
        "1.00", "1", "drafted",
    )  # fmt: skip
    assert [row["participant"] for row in archive.rows("participants")] == ["P1", "P2", "P3", "P4", "P5"]
    assert [row["text_version"] for row in archive.rows("consents")] == ["a" * 64]
    quizzes = [(row["participant"], row["attempt"], row["right"]) for row in archive.rows("quizzes")]
    assert quizzes == [("P1", "1", "false"), ("P1", "2", "true")]
    assert [row["status"] for row in archive.rows("submissions")] == ["active"] * 5
    assert [row["piece"] for row in archive.rows("material")] == [str(number) for number in range(16)]
    events = archive.lines("events")
    assert {each["match_id"] for each in events} == {row["match_id"] for row in matches}
    assert [each["kind"] for each in archive.lines("log")].count("ending") == 4
    assert "two-models@1" in archive.files["README.txt"].decode()
    assert "not frozen" in archive.files["README.txt"].decode()
    assert json.loads(archive.files["design-1.json"])["study"] == "two-models"


@pytest.mark.usefixtures("people")
def test_what_is_missing_says_why(engine: Engine, wave_id: int, tmp_path: Path) -> None:
    with writing(engine) as session:
        lost = finish(session, person(session, wave_id, "P6"))
        answer(lost, "survey end", {"same": "yes", "how": None, "ai_help": {"not_said": True}, "read_this": "green"})
    archive = export(engine, tmp_path)
    found = archive.by_person("answers")
    assert {name: found["P6"][name] for name in ("trust_match_1", "how", "ai_help", "same")} == {
        "trust_match_1": ".l", "how": ".s", "ai_help": ".r", "same": "yes",
    }  # fmt: skip
    assert (found["P1"]["how"], found["P2"]["how"], found["P3"]["same"]) == ("=they differed; a lot", ".n", ".n")
    assert (found["P1"]["trust_match_2"], found["P5"]["same"]) == ("5", ".n")
    missing = {(row["participant"], row["step"], row["question"]): row["missing"] for row in archive.rows("surveys")}
    assert missing["P6", "survey after match 1", "trust"] == "lost"
    assert missing["P6", "survey end", "how"] == "skipped"
    assert missing["P2", "survey end", "how"] == "not asked"
    assert missing["P1", "survey end", "how"] == ""


def test_an_answer_that_reads_like_a_code_of_a_missing_one_is_told_from_it(
    engine: Engine, wave_id: int, tmp_path: Path
) -> None:
    written = {"P1": ".n", "P2": "..s", "P3": ".nothing", "P4": None}
    with writing(engine) as session:
        for code, how in written.items():
            answer(person(session, wave_id, code), "survey end", {"same": "yes", "how": how})
    archive = export(engine, tmp_path)
    assert {code: row["how"] for code, row in archive.by_person("answers").items()} == {
        "P1": "..n", "P2": "...s", "P3": ".nothing", "P4": ".s",
    }  # fmt: skip
    assert [row["answer"] for row in archive.rows("surveys") if row["question"] == "how"] == [
        ".n",
        "..s",
        ".nothing",
        "",
    ]
    assert "one more full stop before it" in archive.files["README.txt"].decode()


@needs_r
@pytest.mark.usefixtures("people")
@pytest.mark.parametrize("bom", [False, True])
def test_r_reads_every_table_by_the_lines_of_the_archive(engine: Engine, tmp_path: Path, bom: bool) -> None:
    folder = tmp_path / "unpacked"
    folder.mkdir()
    path = tmp_path / "data.zip"
    with reading(engine) as session:
        read_one_moment(session)
        scope = find_scope(session, "two-models", with_ids=True)
        write_archive(session, scope, path, bom=bom)
    zipfile.ZipFile(path).extractall(folder)
    frames = run_lines(folder, "source('read.R')")
    files = sorted(folder.glob("*.csv"))
    assert sorted(frames) == [file.stem for file in files]
    described = list(csv.DictReader((folder / "codebook.csv").open(encoding="utf-8-sig", newline="")))
    for file in files:
        of_table = [each for each in described if each["table"] == file.stem]
        columns = [Column(each["column"], each["type"], each["meaning"], each["values"]) for each in of_table]
        check_frame(file, CODEBOOK if file.stem == "codebook" else columns, *frames[file.stem])
        assert f'import delimited using "{file.name}"' in (folder / "read.do").read_text()
    _, moves = frames["moves"]
    assert moves["claims_human"][0] == "logical"
    assert frames["participants"][0] == 5


@pytest.mark.usefixtures("people")
def test_the_codebook_has_each_column_and_the_sums_each_file(engine: Engine, tmp_path: Path) -> None:
    archive = export(engine, tmp_path, with_ids=True)
    told: dict[str, list[str]] = {}
    for row in archive.rows("codebook"):
        told.setdefault(row["table"], []).append(row["column"])
    for name in archive.files:
        table = name.removesuffix(".csv")
        if name.endswith(".csv") and table != "codebook":
            header = next(csv.reader(io.StringIO(archive.files[name].decode())))
            assert told.pop(table) == header
            assert len(set(header)) == len(header), name
    assert told == {}
    lines = archive.files["SHA256SUMS"].decode().splitlines()
    sums = {name: digest for digest, name in (line.split("  ") for line in lines)}
    assert set(sums) == set(archive.files) - {"SHA256SUMS"}
    assert all(hashlib.sha256(archive.files[name]).hexdigest() == digest for name, digest in sums.items())


@pytest.mark.usefixtures("people")
def test_the_same_data_are_the_same_bytes(engine: Engine, wave_id: int, tmp_path: Path) -> None:
    first = export(engine, tmp_path)
    assert export(engine, tmp_path).content == first.content
    assert export(engine, tmp_path, "two-models:main").content == first.content
    with writing(engine) as session:
        person(session, wave_id, "P7")
    assert export(engine, tmp_path).content != first.content


@pytest.mark.usefixtures("people")
def test_a_public_export_has_no_words_of_people(engine: Engine, tmp_path: Path) -> None:
    private, public = export(engine, tmp_path), export(engine, tmp_path, public=True)
    for words in (b"they differed", b"hello", b"my partner was rude", b"[message]"):
        assert any(words in content for content in private.files.values()), words
        assert not any(words in content for content in public.files.values()), words
    assert public.by_person("answers")["P1"]["how"] == ".h"
    assert public.by_person("analysis") == private.by_person("analysis")
    assert [row["kind"] for row in public.rows("moves")] == [row["kind"] for row in private.rows("moves")]


@pytest.mark.usefixtures("people")
def test_who_had_the_data_deleted_keeps_a_row_without_answers(engine: Engine, tmp_path: Path) -> None:
    with writing(engine) as session:
        row = session.scalars(select(Participant).where(Participant.code == "P1")).one()
        row.erased_at = START
        session.scalars(select(Enrolment).where(Enrolment.participant_id == row.id)).one().answers = {}
    archive = export(engine, tmp_path)
    one = archive.by_person("analysis")["P1"]
    assert (one["data"], one["utility"], one["attention"], one["utility_a_self"]) == ("withdrawn", "", "", "")
    assert set(list(archive.by_person("answers")["P1"].values())[3:]) == {".w"}
    assert archive.by_person("participants")["P1"]["deleted"] == "true"
    assert archive.by_person("payments")["P1"]["amount"] != ""
    for name in ("analysis", "answers", "surveys", "enrolments", "submissions", "payments", "matches", "moves"):
        of_one = {row["data"] for row in archive.rows(name) if row["participant"] == "P1"}
        of_others = {row["data"] for row in archive.rows(name) if row["participant"] not in ("P1", "")}
        assert of_one == {"withdrawn"}, name
        assert "counts" in of_others, name
        assert "withdrawn" not in of_others, name
    own = [row for row in archive.rows("matches") if row["participant"] == "P1"]
    outcomes = ("own_utility", "utility_0", "utility_1", "reason", "winner", "moves", "agreed", "points_0", "got_1")
    assert len(own) == 5
    assert {row[name] for row in own for name in outcomes} == {""}
    assert {row["condition_objective"] for row in own if row["practice"] == "false"} == {"self", "coop"}
    moves = [row for row in archive.rows("moves") if row["match_id"] in {row["match_id"] for row in own}]
    assert {row["data"] for row in moves} == {"withdrawn"}  # those of the models that played with P1 as well
    assert {(row["kind"], row["text"], row["at"]) for row in moves if row["participant"] == "P1"} == {("", "", "")}
    others = [row for row in archive.rows("matches") if row["participant"] == "P3"]
    assert all(row["own_utility"] for row in others)


def test_what_is_not_there_is_refused(engine: Engine, wave_id: int, tmp_path: Path) -> None:
    with reading(engine) as session:
        for reference in ("nothing", "two-models:second", ""):
            with pytest.raises(NotFound):
                find_scope(session, reference)
    archive = export(engine, tmp_path)
    assert archive.rows("analysis") == []  # a wave to which nobody came


def test_the_other_example_and_another_outcome_are_exported(engine: Engine, app: Flask, tmp_path: Path) -> None:
    with writing(engine) as session:
        version = load_example(session, tmp_path, "taboo-roles")
        wave = open_wave(session, version)
        progress = enrol(session, wave, "P1", version)
        play(session, progress, 0, ["[message] it grows", "I know the word! It is tree."], word="tree")
        answer(progress, "partner", {"partner": "not sure"})
        answer(progress, "survey end", {
            "partner": "a person", "felt": {"clever": 4, "friendly": {"not_said": True}, "odd": None}, "fun": 70,
            "age": 30, "first_check": 4, "second_check": "apple",
        })  # fmt: skip
        finish(session, progress)
        second = load_example(session, tmp_path / "two", **{"outcome: utility": "outcome: words_mean"})
        negotiator = enrol(session, open_wave(session, second), "P2", second)
        play(session, negotiator, 0)
    one = export(engine, tmp_path, "taboo-roles").by_person
    assert {name: one("answers")["P1"][name] for name in ("felt_clever", "felt_friendly", "felt_odd", "fun")} == {
        "felt_clever": "4", "felt_friendly": ".r", "felt_odd": ".s", "fun": "70",
    }  # fmt: skip
    assert one("analysis")["P1"]["attention"] == "2"
    assert one("analysis")["P1"]["excluded_by"] == ""
    two = export(engine, tmp_path).by_person("analysis")["P2"]
    assert [two[name] for name in two if name.startswith("words_mean_") and two[name]] == ["18"]


def test_ids_are_exported_on_request_alone_and_that_is_kept(
    flask: Callable[..., Finished], engine: Engine, people: None, tmp_path: Path
) -> None:
    out = tmp_path / "out.zip"
    told = flask("study", "export-data", "two-models", "--out", str(out))
    assert (told.exit_code, told.stdout) == (0, f"Wrote 5 people to {out}.\n")
    plain = out.read_bytes()
    assert out.stat().st_mode & 0o077 == 0
    told = flask("study", "export-data", "two-models:main", "--out", str(out), "--with-ids", "--json")
    assert {each["name"]: each["rows"] for each in json.loads(told.stdout)["files"]}["ids.csv"] == 5
    ids = Archive(out.read_bytes()).by_person("ids")
    assert (ids["P1"]["external_id"], ids["P1"]["submission_id"]) == ("p1id", "visitp1")
    with reading(engine) as session:
        looked = session.scalars(select(StudyEvent).where(StudyEvent.kind == "ids exported")).all()
        assert [each.body for each in looked] == [{"by": "command line"}]
    flask("study", "export-data", "two-models", "--out", str(out))
    assert out.read_bytes() == plain
    for arguments, said in (
        (("two-models", "--out", str(out), "--with-ids", "--public"), "--public: expected it without --with-ids"),
        (("nothing", "--out", str(out)), "study: expected STUDY or STUDY:WAVE"),
        (("two-models", "--out", str(tmp_path / "no" / "out.zip")), "--out: expected a file that can be written"),
    ):
        refused = flask("study", "export-data", *arguments)
        assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
        assert said in refused.stderr
    assert out.read_bytes() == plain


def test_spreadsheets_are_guarded(flask: Callable[..., Finished], people: None, tmp_path: Path) -> None:
    out = tmp_path / "out.zip"
    assert flask("study", "export-data", "two-models", "--out", str(out), "--guard", "--bom").exit_code == 0
    answers = Archive(out.read_bytes()).files["answers.csv"].decode()
    assert answers.startswith("\N{ZERO WIDTH NO-BREAK SPACE}participant,")
    assert "'=they differed; a lot" in answers


def test_memory_does_not_grow_with_the_people(
    engine: Engine, wave_id: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (analysis, archives, columns, csv_tables):
        monkeypatch.setattr(module, "ROWS_AT_ONCE", 10)
    with writing(engine) as session:
        progress = person(session, wave_id, "P")
        for position in range(4):
            play(session, progress, position)
        number = finish(session, progress).enrolment.id
        copy_people(session, [number], 9)
    with reading(engine) as session:
        written(session, tmp_path)  # with what is loaded and kept once
        small = most_held(session, tmp_path)
    with writing(engine) as session:
        copy_people(session, [number], 60)
    with reading(engine) as session:
        big = most_held(session, tmp_path)
        assert big < small + 2**20


def written(session: Session, folder: Path) -> None:
    write_archive(session, find_scope(session, "two-models"), folder / "data.zip")


def most_held(session: Session, folder: Path) -> int:
    """Bytes that Python holds at most while an archive is written."""
    tracemalloc.start()
    written(session, folder)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def test_who_came_by_the_link_of_a_wave_is_paid_and_exported(engine: Engine, app: Flask, tmp_path: Path) -> None:
    with writing(engine) as session:
        wave = new_wave(session)
        progress = assigned(session, wave, "5f0c1")
        step = next(each for each in progress.steps if each.key == "match 1")
        progress.enrolment.step, progress.enrolment.stage = progress.steps.index(step), step.kind
        match = matches.start(session, progress, step)
        seat = match.seats.index(next(each for each in match.seats if each.kind == "person"))
        live.submit(session, live.MoveSubmission(match.id, seat, None), instant=False)
        matches.after(session, progress, step)
        assert progress.enrolment.ending == "withdrawn"
        payments.record_owed(session, progress)
        payments.adjust(session, progress, Decimal("0.50"), "for the trouble")
        take_statuses(session, wave, [VisitStatus("visit of 5f0c1", "submitted")], whole=True)
        (batch,) = batches.draft(session, wave)
        assert batches.batch_file(session, batch).content.startswith(b"5f0c1,0.5")
    archive = export(engine, tmp_path)
    (row,) = archive.rows("analysis")
    assert (row["ending"], row["matches"]) == ("withdrawn", "1")
    (assignment,) = archive.rows("assignments")
    assert (assignment["slot"], assignment["participant"]) == ("0", row["participant"])
    (played,) = archive.rows("matches")
    assert played["condition_objective"] in ("self", "coop")
    assert played["piece"] != ""
