"""Holds what a wave has stored, exported and paid against what its bots saw, and its arms against its log."""

import csv
import io
import json
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Engine, select

from app.core.config import ROOT
from app.core.extensions import reading
from app.models import Enrolment, Participant, Payment, Study, StudyEvent, StudyVersion, Wave
from app.studies.arms import arms
from app.studies.assignment import ASSIGNMENT
from app.studies.bots.copies import CODES
from app.studies.bots.notes import BotNotes
from app.studies.bots.report import report
from app.studies.design import StudyDesign
from app.studies.endings import PROLIFIC
from app.studies.payments import BONUS
from app.studies.places import FREED
from app.studies.store import design_of
from tests.stack import Stack

_UNPLAYED = ("resigned", "timeout", "abandoned")  # reasons of ends at which nobody scores
Rows = list[dict[str, str]]


class Audited(NamedTuple):
    """The figures of a wave, and everything that is wrong with it."""

    matches: int
    moves: int
    endings: Mapping[str, int]
    paid: str
    assignments: int
    problems: Sequence[str]


def unsettled(engine: Engine, wave_ids: Sequence[int]) -> int:
    """How many people have ended, or not, and are owed nothing in writing yet."""
    paid = select(Payment.id).where(Payment.enrolment_id == Enrolment.id, Payment.key == BONUS).exists()
    with reading(engine) as session:
        return len(session.scalars(select(Enrolment.id).where(Enrolment.wave_id.in_(wave_ids), ~paid)).all())


def audit_wave(parlor: Stack, engine: Engine, wave_id: int, notes: Sequence[BotNotes]) -> Audited:
    """Look at everything that a wave has left behind."""
    with reading(engine) as session:
        wave = session.get_one(Wave, wave_id)
        design = design_of(session.get_one(StudyVersion, wave.study_version_id))
        reference = f"{session.get_one(Study, wave.study_id).name}:{wave.name}"
        found = report(session, wave_id, notes)
        codes = dict(
            session.execute(
                select(Enrolment.token, Participant.code)
                .join(Participant, Participant.id == Enrolment.participant_id)
                .where(Enrolment.wave_id == wave_id)
            ).all()
        )
        log = session.scalars(select(StudyEvent).where(StudyEvent.wave_id == wave_id).order_by(StudyEvent.id)).all()
    exported = _export(parlor, reference)
    known = {codes[each.token]: each for each in notes if each.token in codes}
    problems = [*found["surprises"], *_replayed(parlor, reference), *_arms_apart(design, log)]
    problems += _counts(exported, known)
    problems += _bonuses(design, exported, known)
    return Audited(
        len(exported["matches.csv"]),
        len(exported["moves.csv"]),
        Counter(row["ending"] for row in exported["enrolments.csv"]),
        f"{found['paid']} {found['currency']}",
        sum(each.kind == ASSIGNMENT for each in log),
        problems,
    )


def _export(parlor: Stack, reference: str) -> Mapping[str, Rows]:
    """The tables of `flask study export-data`."""
    path = Path(parlor.home) / f"{reference.replace(':', '-')}.zip"
    _flask(parlor, "export-data", reference, "--out", str(path))
    with zipfile.ZipFile(path) as archive:
        return {
            name: list(csv.DictReader(io.TextIOWrapper(archive.open(name), "utf-8-sig")))
            for name in ("enrolments.csv", "matches.csv", "moves.csv", "payments.csv")
        }


def _replayed(parlor: Stack, reference: str) -> Iterator[str]:
    """Whether the seed and the log give the same arms."""
    found = json.loads(_flask(parlor, "replay", reference, "--json"))
    if found["differ"]:
        yield f"flask study replay: the arms of {found['differ']} differ"


def _flask(parlor: Stack, *line: str) -> str:
    command = [sys.executable, "-m", "flask", "study", *line]
    return subprocess.run(command, cwd=ROOT, env=parlor.env, check=False, capture_output=True, text=True).stdout


def _counts(exported: Mapping[str, Rows], known: Mapping[str, BotNotes]) -> Iterator[str]:
    """Endings, matches and moves, as they are exported and as the bots saw them."""
    of_code = {code: ending for ending, code in CODES.items()}
    stored = {row["participant"]: row["ending"] for row in exported["enrolments.csv"]}
    told = {code: of_code.get(notes.code or "", "none") for code, notes in known.items()}
    if stored != told:
        differ = {
            code: (stored.get(code), told.get(code))
            for code in stored.keys() | told
            if stored.get(code) != told.get(code)
        }
        yield f"endings: exported and told differ for {differ}"
    matches = {row["match_id"]: row for row in exported["matches.csv"]}
    for code, notes in known.items():
        for match_id, utility in notes.utilities.items():
            row = matches.get(match_id)
            if row is None or row["participant"] != code or Decimal(row["own_utility"]) != Decimal(str(utility)):
                yield f"bot {notes.number}: saw {utility} in match {match_id}, exported is {row}"
    moved = Counter(row["participant"] for row in exported["moves.csv"] if row["player"] == "person")
    for code, notes in known.items():
        if moved[code] != notes.moves:
            yield f"bot {notes.number}, which {notes.habit}: {notes.moves} moves were taken, {moved[code]} are exported"


def _bonuses(design: StudyDesign, exported: Mapping[str, Rows], known: Mapping[str, BotNotes]) -> Iterator[str]:
    """Each person's bonus, from the utilities that the bot saw and the design's terms."""
    paid = {row["participant"]: Decimal(row["amount"]) for row in exported["payments.csv"] if row["key"] == BONUS}
    of_person: dict[str, Rows] = {}
    for row in exported["matches.csv"]:
        if row["practice"] == "false":
            of_person.setdefault(row["participant"], []).append(row)
    for code, notes in known.items():
        total = sum((_earned(design, row, notes) for row in of_person.get(code, [])), Decimal(0))
        owed = min(total.quantize(Decimal("0.01"), ROUND_HALF_UP), design.pay.most_a_person)
        if paid.get(code) != owed:
            yield f"bot {notes.number}, which {notes.habit}: saw matches worth {owed}, is paid {paid.get(code)}"


def _earned(design: StudyDesign, row: Mapping[str, str], notes: BotNotes) -> Decimal:
    terms = design.pay.bonus
    if row["reason"] == "aborted":
        return terms.model_failure
    own: Any = terms.by_objective.get(row.get("condition_objective", ""))
    per_point, endowment, floor = (
        value if (value := getattr(own, name, None)) is not None else getattr(terms, name)
        for name in ("per_point", "endowment", "floor")
    )
    points = notes.utilities.get(row["match_id"])
    if points is None:  # a bot that was not there at the end
        points = 0 if row["reason"] in _UNPLAYED else float(row["own_utility"])
    earned: Decimal = max(endowment + per_point * Decimal(str(points)), floor)
    return earned


def _arms_apart(design: StudyDesign, log: Sequence[StudyEvent]) -> Iterator[str]:
    """At every moment: slots that are held or wait to be issued again have no gap, so that arms differ by one at most
    where none waits; and whoever comes is given one that waits before a new one.
    """
    arm_count = len(arms(design))
    held: dict[int, tuple[str, int, int]] = {}
    issued: dict[str, dict[int, int]] = {}  # by stratum: the arm of each slot that was ever issued
    for event in log:
        if event.enrolment_id is None:
            continue
        if event.kind == ASSIGNMENT:
            stratum, slot, arm = event.body["stratum"], event.body["slot"], event.body["arm"]
            taken = {number for where, number, _ in held.values() if where == stratum}
            if slot in taken:
                yield f"slot {slot} of {stratum} was given to two people"
            waiting = issued.setdefault(stratum, {}).keys() - taken
            if slot not in issued[stratum] and waiting:
                yield f"slot {slot} of {stratum} was issued while {sorted(waiting)} waited"
            issued[stratum][slot] = arm
            held[event.enrolment_id] = stratum, slot, arm
        elif event.kind == FREED or (
            event.kind == "ending" and design.ending(event.body["ending"], PROLIFIC).frees_place
        ):
            held.pop(event.enrolment_id, None)
        for stratum, known in issued.items():
            sizes = Counter(dict.fromkeys(range(arm_count), 0))
            sizes.update(known.values())
            if known.keys() != set(range(len(known))) or max(sizes.values()) - min(sizes.values()) > 1:
                yield f"after event {event.id} the arms of {stratum} have {dict(sizes)} of slots {sorted(known)}"
                return
