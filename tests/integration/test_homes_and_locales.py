"""Homes, languages, time zones and users that are not ours: Parlor in them, from its start to a restore."""

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.participant import Participant
from tests.stack import PATIENCE, ROOT, TURNS_ALONE, Stack, free_port, wait_until
from tests.tables import negotiation

ODD = "a b ü %20 %(x)s ;?#'\"$&"
LONG = "long" * 30


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder with a short path."""
    path = Path(tempfile.mkdtemp(prefix="parlor-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def command(home: Path, env: Mapping[str, str], *words: str) -> "subprocess.CompletedProcess[bytes]":
    own = {**os.environ, "PARLOR_HOME": str(home), **env}
    return subprocess.run(
        [sys.executable, "-m", "flask", *words], cwd=ROOT, env=own, capture_output=True, timeout=PATIENCE
    )


def live_one_life(home: Path, env: Mapping[str, str]) -> None:
    """Start Parlor, play a move, list the match, make a backup, stop, and restore it elsewhere."""
    home.mkdir(parents=True)
    parlor = Stack(home, {**TURNS_ALONE, **env}, anew=True)
    try:
        parlor.wait_until_ready()
        assert "Parlor" in parlor.get("/")
        with Participant(negotiation(parlor)) as person:
            assert person.move("[message] Grüße, 你好.")["ok"]
            wait_until(lambda: person.view["ply"] == 2, "the answer")
        listed = command(home, env, "export", "moves")
        assert "Grüße, 你好." in listed.stdout.decode("utf-8"), listed
        told = command(home, env, "doctor")
        assert re.search(rb"broker\W+ok|ok\W+broker", told.stdout), told
        assert command(home, env, "model", "list").returncode == 0
        kept = home / "kept ü.backup"
        made = command(home, env, "backup", str(kept))
        assert made.returncode == 0, made
    finally:
        parlor.close()
    other = home.with_name(home.name + "-2")
    restored = command(other, env, "restore", str(kept))
    assert restored.returncode == 0, restored
    assert "Grüße, 你好.".encode() in command(other, env, "export", "moves").stdout


def test_parlor_lives_in_an_odd_and_long_home_in_the_language_c_and_a_far_time_zone(folder: Path) -> None:
    live_one_life(folder / ODD / LONG, {"LC_ALL": "C", "TZ": "Pacific/Kiritimati"})


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "env"),
    [
        ("with a space", {"LC_ALL": "POSIX"}),
        ("ümlaut", {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}),
        ("100%", {"LC_ALL": "C.UTF-8"}),
        ("%20", {"LANG": "de_DE.UTF-8", "LC_ALL": "de_DE.UTF-8"}),
        ("?#", {"TZ": "No/Such_Zone"}),
        ("l" * 80, {"TZ": ":/etc/no-such-file"}),
        ("l" * 200, {"LC_ALL": "C"}),
    ],
)
def test_parlor_lives_in_other_surroundings(folder: Path, name: str, env: dict[str, str]) -> None:
    live_one_life(folder / name, env)


@pytest.mark.long
def test_parlor_lives_in_the_encoding_iso_8859_1(folder: Path) -> None:
    if shutil.which("localedef") is None:
        pytest.skip("localedef, which makes locales, is not installed")
    made = folder / "de_DE"
    done = subprocess.run(["localedef", "-i", "de_DE", "-f", "ISO-8859-1", str(made)], capture_output=True)
    if not made.is_dir():
        pytest.skip(f"this machine cannot make the locale de_DE in ISO-8859-1: {done.stderr!r}")
    live_one_life(folder / "home ü", {"LOCPATH": str(folder), "LC_ALL": "de_DE"})


NOBODY = 65534
AS_NOBODY = ("setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups")
# Where Python itself lies in root's home: may read whatever it likes there, and still write nothing.
MAY_READ = ("--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search")


@pytest.fixture
def as_somebody() -> tuple[str, ...]:
    """The beginning of a command line that makes it another user's than root."""
    if os.getuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root, with setpriv, can try what another user may")
    plain = subprocess.run([*AS_NOBODY, "test", "-x", sys.executable], capture_output=True)
    return AS_NOBODY if plain.returncode == 0 else (*AS_NOBODY, *MAY_READ)


def start_as(somebody: tuple[str, ...], home: Path) -> "subprocess.Popen[bytes]":
    own = {**os.environ, "PARLOR_HOME": str(home), "PORT": str(free_port()), **TURNS_ALONE, "HOME": "/"}
    line = [*somebody, sys.executable, "-m", "workers.supervisor"]
    return subprocess.Popen(line, cwd=ROOT, env=own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def test_another_user_starts_parlor_in_a_folder_of_its_own(as_somebody: tuple[str, ...], folder: Path) -> None:
    os.chown(folder, NOBODY, NOBODY)
    with start_as(as_somebody, folder) as process:
        assert process.stdout is not None
        try:
            said = next((line for line in process.stdout if line.startswith((b"Ctrl-C", b"error"))), b"")
            assert said.startswith(b"Ctrl-C stops everything"), said
        finally:
            process.terminate()


@pytest.mark.parametrize("name", ["", "parlor.db", "run", "run/web.pid", "run/supervisor.lock"])
def test_files_that_the_user_may_not_write_are_one_line(as_somebody: tuple[str, ...], folder: Path, name: str) -> None:
    foreign = folder / name
    for path in (folder / "run", folder / "logs"):
        path.mkdir()
    if not foreign.exists():
        foreign.touch()
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    os.chown(foreign, 0, 0)
    foreign.chmod(0o700 if foreign.is_dir() else 0o600)
    foreign.parent.chmod(0o755)
    if name not in ("", "run"):
        os.chown(foreign.parent, 0, 0)
        foreign.parent.chmod(0o1777)
    with start_as(as_somebody, folder) as process:
        said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2, said
    assert said.count(b"\n") == 1, said
    assert said.startswith(b"error: PARLOR_HOME: "), said
    assert stat.S_IMODE(foreign.stat().st_mode) in (0o600, 0o700)
