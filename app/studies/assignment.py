"""Assigns people to arms: hidden random blocks within strata. Nothing here commits.

In each stratum slots are numbered from 0, and each block of as many slots as there are arms has every arm once, in an
order that follows from the seed. A person gets the lowest free slot of an arm whose share of the places is not used up:
so within a stratum the slots given out differ by at most one per arm until an arm has its share, while people who stay
may differ by more. If a wave follows a ready-made list, its lines are the slots, in one stratum. The slot of a person
who dropped out is free again, unless the design replaces nobody. All of it happens while the wave is locked and is kept
in its log, from which `replay` finds the same arms again.
"""

import json
import random
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import Conflict, Phrase
from app.games import find_game
from app.models import Arm, Enrolment, Participant, StudyEvent, StudyVersion, Wave
from app.studies.arms import arms
from app.studies.assignment_list import ASSIGNMENT_LIST, AssignmentList, list_of, mark_of, mark_of_enrolment, read_body
from app.studies.design import StudyDesign
from app.studies.endings import PROLIFIC
from app.studies.places import FREED, takes_place
from app.studies.progress import StudyProgress, lock_wave, log_event
from app.studies.stimuli import PlanPlace, distinct, plan_of
from app.studies.store import design_of
from app.studies.wave_terms import CHANGED, PLACES
from app.studies.waves import settings_of

ASSIGNMENT = "assignment"
LISTED = ""  # the stratum of a list's lines, which share one


class Slot(NamedTuple):
    """A position in the order of a stratum, and its arm, as an index into the design's arms."""

    stratum: str
    number: int
    arm: int


class Replayed(NamedTuple):
    """A logged assignment, and the slot expected from the seed and the log before it."""

    enrolment_id: int
    logged: Slot
    expected: Slot | None

    @property
    def agrees(self) -> bool:
        """Whether the logged and the expected slot are the same."""
        return self.logged == self.expected


def assign(session: Session, progress: StudyProgress) -> None:
    """Draw the arm and the plan of an enrolment, unless it already has them."""
    enrolment = progress.enrolment
    if enrolment.plan is not None:
        return
    rows = _arm_rows(session, progress.version)
    listed: AssignmentList | None = None
    if enrolment.wave_id is None:
        names = [row.id for row in rows]
        seed = wave_seed(progress.design, f"preview {enrolment.id}")
        rng = random.Random(f"{seed}/arm")
        at = rng.randrange(len(rows)) if enrolment.arm_id is None else names.index(enrolment.arm_id)
        slot = Slot("", 0, at)
    else:
        wave = lock_wave(session, enrolment.wave_id)
        session.refresh(enrolment, ["plan", "arm_id"])
        if enrolment.plan is not None:
            return
        seed = wave_seed(progress.design, wave.name)
        listed, held = list_of(session, wave.id), _held(session, wave, progress.design, rows)
        if listed is not None:
            found = listed_slot(listed, mark_of_enrolment(session, enrolment), held)
        else:
            found = next_slot(seed, len(rows), settings_of(wave).places, enrolment.stratum or "", held)
        if found is None:
            raise Conflict(
                "wave", expected=Phrase("a place that has no arm yet"), got=Phrase("none"), subject=wave.name
            )
        slot = found
    enrolment.arm_id, enrolment.assigned_at = rows[slot.arm].id, datetime.now(UTC)
    turn = slot.number // len(rows) if listed is None else listed.round_of(slot.number)
    place = PlanPlace(slot.arm, slot.stratum, turn, seed)
    drawn = plan_of(progress.design, _usable_pieces(progress), place)
    enrolment.plan = {"slot": slot.number, **drawn}
    log_event(session, progress, ASSIGNMENT, {"stratum": slot.stratum, "slot": slot.number, "arm": slot.arm})
    session.flush()


def wave_seed(design: StudyDesign, wave: str) -> str:
    """The seed of everything drawn for the people of a wave, or for a preview, which has a name like a wave's."""
    return f"{design.plan.assign.seed}/{design.study}/{wave}"


def next_slot(seed: str, arm_count: int, places: int, stratum: str, held: Collection[Slot]) -> Slot | None:
    """The slot for the next person of a stratum; None if all places have an arm.

    Arms have equal shares of the places; if these do not divide evenly, some have one more.
    """
    share, more = divmod(places, arm_count)
    sizes = Counter(slot.arm for slot in held)
    larger = sum(size > share for size in sizes.values())
    open_arms = {arm for arm in range(arm_count) if sizes[arm] < share or (sizes[arm] == share and larger < more)}
    if not open_arms:
        return None
    taken = {slot.number for slot in held if slot.stratum == stratum}
    return next(slot for slot in _slots(seed, arm_count, stratum) if slot.number not in taken and slot.arm in open_arms)


def listed_slot(listed: AssignmentList, person: str | None, held: Collection[Slot]) -> Slot | None:
    """The slot that a list gives the next person, by their mark in it; None if there is none."""
    line = listed.line_for(person, {slot.number for slot in held})
    return None if line is None else Slot(LISTED, line, listed.arms[line])


def _slots(seed: str, arm_count: int, stratum: str) -> Iterator[Slot]:
    """All slots of a stratum in order, endlessly."""
    for block in count():
        order = list(range(arm_count))
        random.Random(f"{seed}/{stratum}/block {block}").shuffle(order)
        for at, arm in enumerate(order):
            yield Slot(stratum, block * arm_count + at, arm)


def replay(session: Session, wave: Wave) -> Sequence[Replayed]:
    """All assignments of a wave, drawn again from the seed and its log."""
    version = session.get_one(StudyVersion, wave.study_version_id)
    design = design_of(version)
    events = session.scalars(select(StudyEvent).where(StudyEvent.wave_id == wave.id).order_by(StudyEvent.id))
    log = [(each.enrolment_id, each.kind, each.body) for each in events]
    people = session.execute(
        select(Enrolment.id, Participant.person_hash)
        .join(Participant, Participant.id == Enrolment.participant_id)
        .where(Enrolment.wave_id == wave.id, Participant.person_hash.is_not(None))
    )
    marks = {number: mark_of(wave.id, str(person)) for number, person in people}
    changes = [body[PLACES] for _, kind, body in log if kind == CHANGED and PLACES in body]
    places = changes[0][0] if changes else settings_of(wave).places
    return list(replayed(design, wave.name, places, log, marks))


def replayed(
    design: StudyDesign,
    wave: str,
    places: int,
    log: Sequence[tuple[int | None, str, Mapping[str, Any]]],
    marks: Mapping[int, str] | None = None,
) -> Iterator[Replayed]:
    """The assignments in a log of (enrolment, kind, body), each with the slot expected from the seed or the list.

    `places` is the initial number; `marks`: the mark of each enrolment in the list of the wave.
    """
    seed, arm_count = wave_seed(design, wave), len(arms(design))
    held: dict[int, Slot] = {}
    listed: AssignmentList | None = None
    for enrolment_id, kind, body in log:
        if kind == ASSIGNMENT_LIST:
            listed = read_body(body)
        if kind == CHANGED and PLACES in body:
            places = body[PLACES][1]
        if enrolment_id is None:
            continue
        if kind == ASSIGNMENT:
            logged = Slot(body["stratum"], body["slot"], body["arm"])
            if listed is None:
                expected = next_slot(seed, arm_count, places, logged.stratum, held.values())
            else:
                expected = listed_slot(listed, (marks or {}).get(enrolment_id), held.values())
            yield Replayed(enrolment_id, logged, expected)
            held[enrolment_id] = logged
        elif design.plan.assign.replace == "nobody":
            continue
        elif kind == FREED or (kind == "ending" and design.ending(body["ending"], PROLIFIC).frees_place):
            held.pop(enrolment_id, None)


def _held(session: Session, wave: Wave, design: StudyDesign, rows: Sequence[Arm]) -> list[Slot]:
    """The slots that people have."""
    places = {row.id: at for at, row in enumerate(rows)}
    query = select(Enrolment.stratum, Enrolment.plan, Enrolment.arm_id).where(
        Enrolment.wave_id == wave.id, Enrolment.arm_id.is_not(None), takes_place(design)
    )
    return [
        Slot(stratum or "", plan["slot"], places[arm_id])
        for stratum, plan, arm_id in session.execute(query)
        if plan is not None and arm_id is not None
    ]


def _arm_rows(session: Session, version: StudyVersion) -> Sequence[Arm]:
    """The arms of a version in order, which is the order in which they were stored."""
    return session.scalars(select(Arm).where(Arm.study_version_id == version.id).order_by(Arm.id)).all()


def _usable_pieces(progress: StudyProgress) -> list[int]:
    """The indices of the pieces that are distinct to those who play them."""
    kind = find_game(progress.design.game).material
    if progress.design.material is None or kind is None:
        return []
    return distinct(json.dumps(kind.held_out_key(piece)) for piece in progress.version.design["material"])
