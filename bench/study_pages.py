"""How long the experimenter's pages of a study take with 2,000 people and 10,000 matches, and what an export takes.

    python -m bench.study_pages                    on SQLite, in a folder of its own
    DATABASE_URL=postgresql://… python -m bench.study_pages     in a new database beside that one, dropped afterwards
    python -m bench.study_pages --people 500 --json

The baseline is the same page of the same study with 25 people, as many as one page lists: the ratio says how a page
grows. What an export holds in memory is compared with what the largest table takes that is read at once. It ends with
exit code 1 if a page takes longer than a second, or an export is not the same bytes twice.
"""

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from decimal import Decimal
from os import environ
from pathlib import Path
from typing import Any, NamedTuple

from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.core.extensions import db, reading, writing
from app.factory import create_app
from app.models import Arm, Enrolment, EventRow, MatchRow, SeatRow, StudyVersion, Wave
from app.schema import upgrade
from app.studies import batches, payments
from app.studies.export.archive import read_one_moment, write_archive
from app.studies.export.scope import find_scope
from app.studies.progress import StudyProgress, advance, answer, log_event
from bench.processes import yardstick_ms
from tests.enrolments import begin, break_off, enrol, finish, load_example, open_wave, play, time_moves
from tests.experimenter import signed_in
from tests.many_people import copy_people
from tests.services import new_database

BASELINE = 25  # people
LOOKS = 5  # requests for each page, after an untimed one
MOST_SECONDS = 1.0
_MIB = 1 << 20
_TIMING = {"first_input": 900, "typing": 4000, "sent": 8000, "hidden": 2000, "typed": 30, "pasted": 0, "pastes": 0}


# ---- Studies with people in them ---------------------------------------------------


class FilledWave(NamedTuple):
    """A wave to measure: its study, the wave itself, and a person who completed it."""

    study_id: int
    wave_id: int
    person: int
    people: int
    matches: int
    events: int


def fill(session: Session, folder: Path, people: int) -> FilledWave:
    """Load the two-model example, and put `people` people into a wave of it, half of them in batches.

    Of ten people, eight completed it, one is in a match, and one withdrew after a match that a model broke off; each
    has five matches. Raises whatever the product raises.
    """
    name = f"with-{people}-people"
    version = load_example(session, folder / name, **{"study: two-models": f"study: {name}"})
    wave = open_wave(session, version)
    terms = {"provider": {"prolific": {"study_id": "66f0c1", "fee": 0.333}}, "codes": {"completed": "C7RX94LM"}}
    wave.settings = {**wave.settings, **terms, "of": name, "places": people, "most_spent": "100000.00"}
    session.flush()
    known = [_completed(session, version, wave, at) for at in range(8)]
    known += [_under_way(session, version, wave), _withdrawn(session, version, wave)]
    payments.settle_all(session, wave)
    payments.adjust(session, known[-1], Decimal(1), "The page did not load")
    numbers = [progress.enrolment.id for progress in known]
    half = (people - len(known)) // 2
    copy_people(session, numbers, half)
    for batch in batches.draft(session, wave):
        batches.mark(session, batch, batches.UPLOADED)
    free = [progress.enrolment.id for progress in (_completed(session, version, wave, 8), *known[8:9])]
    payments.settle_all(session, wave)
    copy_people(session, free, people - len(known) - 1 - half)
    return FilledWave(
        version.study_id, wave.id, numbers[0],
        session.scalar(select(func.count()).select_from(Enrolment).where(Enrolment.wave_id == wave.id)) or 0,
        *_size(session, wave),
    )  # fmt: skip


def _size(session: Session, wave: Wave) -> tuple[int, int]:
    """The number of matches of a wave, and of their events."""
    own = (
        select(SeatRow.match_id)
        .join(Enrolment, Enrolment.id == SeatRow.enrolment_id)
        .where(Enrolment.wave_id == wave.id)
    )
    matches = session.scalar(select(func.count()).select_from(MatchRow).where(MatchRow.id.in_(own))) or 0
    events = session.scalar(select(func.count()).select_from(EventRow).where(EventRow.match_id.in_(own))) or 0
    return matches, events


def _played(session: Session, version: StudyVersion, wave: Wave, code: str, arm: int, matches: int) -> StudyProgress:
    """A person who practised and played `matches` matches that count."""
    arms = len(session.scalars(select(Arm.id).where(Arm.study_version_id == version.id)).all())
    progress = enrol(session, wave, f"{code}{version.id}", version, arm=arm % arms)
    play(session, progress, None)
    for position in range(matches):
        time_moves(session, play(session, progress, position), 0, _TIMING)
    return progress


def _completed(session: Session, version: StudyVersion, wave: Wave, number: int) -> StudyProgress:
    progress = _played(session, version, wave, f"C{number}", number, 4)
    while progress.step.kind != "done":
        if progress.step.kind == "survey":
            answer(progress, progress.step.key, _ANSWERS[progress.step.part or ""])
        advance(session, progress, progress.step.key)
    return finish(session, progress)


_ANSWERS: Mapping[str, Mapping[str, Any]] = {
    "after each match": {"trust": 5},
    "after each block": {"effort": 6, "read_it": 2},
    "end": {"same": "yes", "how": "The second one gave in sooner.", "ai_help": "never", "read_this": "green"},
}


def _under_way(session: Session, version: StudyVersion, wave: Wave) -> StudyProgress:
    progress = _played(session, version, wave, "H", 0, 3)
    begin(session, progress, 3)
    while progress.step.key != "match 4":
        advance(session, progress, progress.step.key)
    return progress


def _withdrawn(session: Session, version: StudyVersion, wave: Wave) -> StudyProgress:
    progress = _played(session, version, wave, "W", 1, 3)
    match_id = break_off(session, progress, 3)
    while progress.step.key != "match 4":
        advance(session, progress, progress.step.key)
    log_event(session, progress, "report", {"match": match_id, "text": "Nothing happened any more."})
    return finish(session, progress, "withdrawn", minutes=8)


# ---- Measuring ---------------------------------------------------------------------


def pages(filled: FilledWave, arm_id: int, older: int) -> dict[str, str]:
    """The address of each page, by its description."""
    study, wave = f"/admin/studies/{filled.study_id}", f"/admin/studies/waves/{filled.wave_id}"
    return {
        "list of studies": "/admin/studies",
        "study, with cost and previews": study,
        "all texts": f"{study}/texts",
        "editor": f"{study}/edit",
        "files of the study": f"{study}/files.zip",
        "wave": wave,
        "wave, people who completed": f"{wave}?where=completed",
        "wave, people of an arm": f"{wave}?arm={arm_id}",
        "wave, a code searched": f"{wave}?person=9",
        "wave, a page further on": f"{wave}?before={older}",
        "person": f"{wave}/people/{filled.person}",
        "pay": f"{wave}/pay",
        "file of a batch": f"{wave}/pay/1",
    }


class PageTime(NamedTuple):
    """Wall-clock seconds, and seconds of this process's own work, which a busy machine hardly affects."""

    clock: float
    own: float


def page_time(client: FlaskClient, address: str) -> PageTime:
    """A page's shortest time, as a busy machine only adds to it. Raises ValueError for a page that fails."""
    times: list[PageTime] = []
    for _ in range(LOOKS + 1):
        begun, worked = time.perf_counter(), time.process_time()
        answered = client.get(address)
        _ = answered.data
        times.append(PageTime(time.perf_counter() - begun, time.process_time() - worked))
        if answered.status_code != 200:
            raise ValueError(f"expected the page {address}, got {answered.status}")
    return PageTime(min(each.clock for each in times[1:]), min(each.own for each in times[1:]))


class ExportFigures(NamedTuple):
    """How long an export took, Python's peak memory for it, and the size and hash of the file."""

    seconds: float
    own_seconds: float
    peak_mib: float
    mib: float
    sha256: str


def export(folder: Path, reference: str) -> ExportFigures:
    """Export once for the time, and again for the memory, as measuring it takes time; both files must be identical."""
    path = folder / "data.zip"

    def write() -> bytes:
        with reading() as session:
            read_one_moment(session)
            write_archive(session, find_scope(session, reference), path)
        return path.read_bytes()

    begun, worked = time.perf_counter(), time.process_time()
    first = write()
    took, own = time.perf_counter() - begun, time.process_time() - worked
    tracemalloc.start()
    write()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    again = path.read_bytes()
    if first != again:
        raise ValueError(f"expected two exports of {reference} to be the same bytes, got two files")
    return ExportFigures(took, own, most / _MIB, len(first) / _MIB, hashlib.sha256(first).hexdigest())


def whole_table_mib() -> float:
    """Python's peak memory, in MiB, while the logs of all matches are read at once."""
    tracemalloc.start()
    with reading() as session:
        session.execute(select(EventRow.match_id, EventRow.body, EventRow.timing, EventRow.at)).fetchall()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / _MIB


def measure(app: Flask, people: int, folder: Path) -> dict[str, Any]:
    """All figures. Called within the context of the app."""
    with writing() as session:
        few, many = fill(session, folder, BASELINE), fill(session, folder, people)
        arms = {
            filled: session.scalars(
                select(Arm.id)
                .join(Wave, Wave.study_version_id == Arm.study_version_id)
                .where(Wave.id == filled.wave_id)
            ).first()
            for filled in (few, many)
        }
        middle = {
            filled: session.scalars(
                select(Enrolment.id).where(Enrolment.wave_id == filled.wave_id).order_by(Enrolment.id)
                .offset(filled.people // 2).limit(1)
            ).one()
            for filled in (few, many)
        }  # fmt: skip
    client = signed_in(app)
    addresses = {filled: pages(filled, arms[filled] or 0, middle[filled]) for filled in (few, many)}
    found = {}
    for name, address in addresses[many].items():
        own, base = page_time(client, address), page_time(client, addresses[few][name])
        found[name] = {
            "ms": 1000 * own.clock,
            "own_ms": 1000 * own.own,
            "baseline_ms": 1000 * base.clock,
            "ratio": own.clock / base.clock,
        }
    exports = {filled.people: export(folder, f"with-{filled.people}-people")._asdict() for filled in (few, many)}
    return {
        "database": db.engine.dialect.name,
        "people": many.people,
        "matches": many.matches,
        "events": many.events,
        "pages": found,
        "exports": exports,
        "whole_table_mib": whole_table_mib(),
        "yardstick_ms": yardstick_ms(),
    }


# ---- Running -----------------------------------------------------------------------


@contextmanager
def running_app() -> Iterator[tuple[Flask, Path]]:
    """An app on a new database, and a folder that goes with it."""
    home = Path(tempfile.mkdtemp(prefix="parlor-study-pages-", dir="/tmp"))
    named = environ.get("DATABASE_URL", "")
    try:
        with new_database(named) if named else nullcontext("") as url:
            app = create_app({"PARLOR_HOME": home, "DATABASE_URL": url, "SMALL_MODELS": False})
            app.config["WTF_CSRF_ENABLED"] = False
            with app.app_context():
                upgrade(app)
                yield app, home
                db.engine.dispose()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def table(found: Mapping[str, Any]) -> str:
    """The results, as tables of docs/results.md."""
    size = f"{found['people']:,} people, {found['matches']:,} matches, {found['events']:,} events, {found['database']}"
    lines = [f"{size}; the fixed piece of Python takes {found['yardstick_ms']:.0f} ms", ""]
    lines += [f"| page | ms | own work, ms | ms with {BASELINE} people | ratio |", "| --- | --- | --- | --- | --- |"]
    for name, page in found["pages"].items():
        lines.append(
            f"| {name} | {page['ms']:.0f} | {page['own_ms']:.0f} | {page['baseline_ms']:.0f} | {page['ratio']:.1f} |"
        )
    lines += [
        "",
        "| export | s | own work, s | memory at most, MiB | file, MiB | the same twice |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for people, own in found["exports"].items():
        memory = f"{own['peak_mib']:.1f} | {own['mib']:.2f} | yes"
        lines.append(f"| {people:,} people | {own['seconds']:.1f} | {own['own_seconds']:.1f} | {memory} |")
    lines += ["", f"All events read at once hold {found['whole_table_mib']:.0f} MiB."]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure and print. 0: every page is fast enough; 1: some page is not."""
    parser = argparse.ArgumentParser(prog="python -m bench.study_pages", description=__doc__.partition("\n")[0])
    parser.add_argument("--people", type=int, default=2000, help="in the larger of the two studies [2000]")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    asked = parser.parse_args(arguments)
    with running_app() as (app, folder):
        found = measure(app, asked.people, folder)
    print(json.dumps(found) if asked.json else table(found))
    slow = [name for name, page in found["pages"].items() if page["ms"] > 1000 * MOST_SECONDS]
    for name in slow:
        print(f"error: expected {name} within {MOST_SECONDS:g} s", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
