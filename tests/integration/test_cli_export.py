"""`flask export` writes whole files or none, and to stdout when it is asked to."""

import csv
import io
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import Engine

from app.core.extensions import writing
from app.matches import live
from app.matches.stored import StoredSeat
from app.registry import PERSON
from tests.shell import Finished
from tests.stack import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
FLASK = str(Path(sys.executable).with_name("flask"))
Run = Callable[..., Finished]


@pytest.fixture
def run(flask: Run) -> Run:
    return lambda *arguments: flask("export", *arguments)


@pytest.fixture
def matches(engine: Engine) -> int:
    people = StoredSeat(PERSON), StoredSeat(PERSON)
    with writing(engine) as session:
        for number in range(3):
            live.create(session, "taboo", {"word": "cat"}, people, seed=number, source="live", instant=True)
    return 3


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.usefixtures("matches")
@pytest.mark.parametrize("arguments", [[], ["--out", "-"]])
def test_nothing_or_a_dash_writes_to_stdout(run: Run, arguments: list[str]) -> None:
    result = run("matches", *arguments)
    assert result.exit_code == 0
    assert len(list(csv.DictReader(io.StringIO(result.stdout)))) == 3
    assert not result.stderr


@pytest.mark.usefixtures("matches")
@pytest.mark.parametrize("table", ["matches", "moves", "events", "generations", "codebook"])
def test_a_file_holds_what_stdout_shows(run: Run, tmp_path: Path, table: str) -> None:
    result = run(table, "--out", str(tmp_path / "it.csv"), "--json")
    written = (tmp_path / "it.csv").read_bytes()
    assert written == run(table).stdout_bytes
    rows = len(list(csv.reader(io.StringIO(written.decode(), newline="")))) - 1
    assert json.loads(result.stdout) == {"table": table, "rows": rows, "file": str(tmp_path / "it.csv")}
    assert left_in(tmp_path) == ["it.csv"]


@pytest.mark.usefixtures("matches")
def test_a_mark_for_excel_and_a_guard_can_be_asked_for(run: Run) -> None:
    assert run("matches", "--bom", "--guard").stdout_bytes.startswith(b"\xef\xbb\xbfmatch_id")


@pytest.mark.usefixtures("matches")
def test_one_game_can_be_chosen(run: Run) -> None:
    assert run("matches", "--game", "negotiation").stdout.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["matches", "--game", "chess"],
        ["matches", "--out", "/nowhere/at/all.csv"],
        ["matches", "--out", str(ROOT)],
        ["matches", "--json"],
        ["codebook", "--json"],
        ["participants"],
        ["matches", "--out", ""],
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(run: Run, arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert not result.stdout


@pytest.mark.usefixtures("matches")
def test_a_refused_export_leaves_the_old_file_as_it_was(run: Run, tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("old")
    assert run("matches", "--game", "chess", "--out", str(tmp_path / "old.csv")).exit_code == 2
    assert (tmp_path / "old.csv").read_text() == "old"
    assert left_in(tmp_path) == ["old.csv"]


@pytest.mark.usefixtures("matches")
def test_a_link_stays_a_link_and_a_device_a_device(run: Run, tmp_path: Path) -> None:
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    assert run("matches", "--out", str(tmp_path / "link.csv")).exit_code == 0
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_bytes().startswith(b"match_id")
    assert run("matches", "--out", "/dev/null").exit_code == 0
    assert Path("/dev/null").is_char_device()
    full = run("matches", "--out", "/dev/full")
    assert (full.exit_code, full.stderr.count("\n")) == (2, 1)


@pytest.mark.usefixtures("matches")
@pytest.mark.parametrize(("end", "code"), [(KeyboardInterrupt(), 130), (OSError(28, "No space left on device"), 2)])
def test_an_export_that_is_cut_off_leaves_no_half_of_a_file(
    app: Flask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: BaseException, code: int
) -> None:
    def half(*_: object, **__: object) -> Iterator[bytes]:
        yield b"match_id,"
        assert len(left_in(tmp_path)) == 1  # the draft
        raise end

    monkeypatch.setattr("app.cli.export.to_csv", half)
    result = app.test_cli_runner().invoke(args=["export", "matches", "--out", str(tmp_path / "it.csv")])
    assert result.exit_code == code
    assert len(result.stderr.strip().splitlines()) == 1
    assert left_in(tmp_path) == []


# ---- As it is really started ------------------------------------------------


def start(home: Path, *arguments: str, limit: int | None = None) -> subprocess.Popen[str]:
    def with_little_room() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.Popen(
        [FLASK, *arguments],
        cwd=ROOT,
        env={**os.environ, "PARLOR_HOME": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=with_little_room,
    )


def test_an_empty_home_gets_its_database_and_a_header(home: Path) -> None:
    process = start(home / "new", "export", "matches")
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert out.startswith("match_id,round_id,")
    assert out.count("\n") == 1


def test_a_full_disk_leaves_no_half_of_a_file(home: Path, tmp_path: Path) -> None:
    process = start(home, "export", "codebook", "--out", str(tmp_path / "it.csv"), limit=1000)
    _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err.count("\n")) == (2, 1), err
    assert "File too large" in err
    assert left_in(tmp_path) == []


def test_the_command_line_loads_no_model_library() -> None:
    code = "import sys, app.cli; print([name for name in ('torch', 'openai', 'transformers') if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True) == "[]\n"
