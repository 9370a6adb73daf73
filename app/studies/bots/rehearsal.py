"""A rehearsal: bots go through a copy of a study, and what they saw is held against what Parlor has stored.

The copy is a study of its own with a wave of its own, so a rehearsal takes no place of people and no arm. Its partners
are scripted players that answer at once, unless it is to be as live as the study itself.
"""

import asyncio
import json
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from app.extensions import reading, writing
from app.games.base import JSON
from app.models import Arm, Enrolment, MatchRow, Payment, SeatRow, Study, StudyVersion, Wave
from app.registry import PERSON
from app.studies import store, waves
from app.studies.answers import asked_now, quiz_now
from app.studies.bots.bot import HABITS, Bot, BotNotes
from app.studies.checks import MODEL
from app.studies.cost import highest_base
from app.studies.design import StudyDesign
from app.studies.endings import COMPLETED
from app.studies.loaded_design import LoadedDesign
from app.studies.progress import Way, find_way_by_token
from app.studies.quiz import right_values
from app.studies.steps import MATCH, PRACTICE, QUIZ, SURVEY
from app.studies.wave_file import WaveFile

SUFFIX = "-rehearsal"
ID_PARAMETER = "bot"
AT_ONCE = 20
CODE = "REHEARSED"
_TURN = "20 s"  # a silent bot is waited for no longer


def open_rehearsal(session: Session, reference: str, count: int, *, live: bool) -> Wave:
    """A wave of a copy of a version, with places for so many bots. Raises NotFound for an unknown version."""
    original = store.find_version(session, reference)
    version, _ = store.load(session, _copy(original, live=live))
    study = session.get_one(Study, version.study_id)
    design = store.design_of(version)
    most = (highest_base(design) + design.pay.most_a_person) * (count + 1)
    file = {
        "wave": f"bots-{secrets.token_hex(4)}",
        "of": f"{study.name}@{version.number}",
        "provider": {"link": {"id_parameter": ID_PARAMETER}},
        "places": count,
        "codes": {COMPLETED: CODE},
        "most_spent": str(most),
    }
    return waves.open_wave(session, WaveFile.model_validate(file))


def rehearse(
    engine: Engine, server: str, wave_id: int, *, count: int, seed: int, habits: Sequence[str] = HABITS
) -> JSON:
    """Have so many bots go through a wave, and report on them; in the end the wave is closed."""
    with reading(engine) as session:
        wave = session.get_one(Wave, wave_id)
        study = session.get_one(Study, wave.study_id).name
        link = f"/s/{study}/{wave.name}?{ID_PARAMETER}="
    notes = asyncio.run(_run(engine, server, link, count, seed, habits))
    with writing(engine) as session:
        waves.close(session, session.get_one(Wave, wave_id))
    with reading(engine) as session:
        return report(session, wave_id, notes)


async def _run(engine: Engine, server: str, link: str, count: int, seed: int, habits: Sequence[str]) -> list[BotNotes]:
    turnstile = asyncio.Semaphore(AT_ONCE)

    def answers(token: str) -> Mapping[str, str]:
        with reading(engine) as session:
            return right_answers(find_way_by_token(session, token))

    async def one(number: int) -> BotNotes:
        bot = Bot(server, f"{link}bot-{seed}-{number}", number, habits[number % len(habits)], seed, answers)
        async with turnstile:
            return await bot.run()

    return await asyncio.gather(*(one(number) for number in range(count)))


def right_answers(way: Way) -> dict[str, str]:
    """What whoever reads carefully answers on the page that is due: by field, of quizzes and of checks of attention."""
    design, step = way.design, way.step
    if step.kind == SURVEY:
        return {each.id: str(each.attention) for each in asked_now(way) if each.attention is not None}
    if step.kind != QUIZ or design.quiz is None or way.enrolment.ending is not None:
        return {}
    attempts = way.enrolment.answers.get(step.key, {}).get("values", {}).get("attempts", [])
    return right_values(design, design.quiz, way.condition or {}, attempts, quiz_now(way))


def report(session: Session, wave_id: int, notes: Sequence[BotNotes]) -> JSON:
    """What bots saw, beside what is stored: endings by habit, arms, pay, and all that surprised."""
    wave = session.get_one(Wave, wave_id)
    design = waves.design_of(session.get_one(StudyVersion, wave.study_version_id))
    enrolments = list(session.scalars(select(Enrolment).where(Enrolment.wave_id == wave_id)))
    by_token = {each.token: each for each in enrolments}
    sums: dict[int, Decimal] = {}
    for payment in session.scalars(select(Payment).join(Enrolment).where(Enrolment.wave_id == wave_id)):
        sums[payment.enrolment_id] = sums.get(payment.enrolment_id, Decimal(0)) + payment.amount
    surprises = [f"bot {each.number}, which {each.habit}: {what}" for each in notes for what in each.surprises]
    if by_token.keys() != {each.token for each in notes}:
        surprises.append(f"{len(notes)} bots came, {len(enrolments)} people are stored")
    endings: dict[str, Counter[str]] = {}
    for each in notes:
        enrolment = by_token.get(each.token)
        ending = None if enrolment is None else enrolment.ending
        endings.setdefault(each.habit, Counter())[ending or "none"] += 1
        surprises += _disagreements(session, design, each, enrolment)
    names = dict(session.execute(select(Arm.id, Arm.name).where(Arm.study_version_id == wave.study_version_id)).all())
    arms = Counter(names[each.arm_id] for each in enrolments if each.arm_id is not None and each.ending == COMPLETED)
    return {
        "wave": f"{session.get_one(Study, wave.study_id).name}:{wave.name}",
        "bots": len(notes),
        "endings": {habit: dict(found) for habit, found in endings.items()},
        "completed_by_arm": {name: arms[name] for name in names.values()},
        "paid": str(sum(sums.values(), Decimal(0))),
        "currency": design.pay.currency,
        "surprises": surprises,
        "notes": [asdict(each) for each in notes],
    }


def _disagreements(session: Session, design: StudyDesign, notes: BotNotes, enrolment: Enrolment | None) -> list[str]:
    """Where what a bot saw is not what is stored of it."""
    who = f"bot {notes.number}, which {notes.habit}"
    if enrolment is None:
        return [f"{who}: nothing is stored of it"]
    found = []
    if not notes.arrived or enrolment.ending is None:
        found.append(f"{who}: came to no last page; its ending is {enrolment.ending}")
    if (enrolment.ending == COMPLETED) != (notes.code == CODE):
        found.append(f"{who}: ended {enrolment.ending} and saw the code {notes.code}")
    if enrolment.ending == COMPLETED:
        seated = select(MatchRow.id).join(SeatRow, SeatRow.match_id == MatchRow.id)
        over = seated.where(SeatRow.enrolment_id == enrolment.id, SeatRow.kind == PERSON, MatchRow.status == "over")
        due = sum(step.startswith((MATCH, PRACTICE)) for step in notes.steps)
        if (stored := len(session.scalars(over).all())) < due:
            found.append(f"{who}: came by {due} matches, {stored} are stored")
    if enrolment.ending == COMPLETED:
        keys = set(session.scalars(select(Payment.key).where(Payment.enrolment_id == enrolment.id)))
        if design.pay.base and "base" not in keys:
            found.append(f"{who}: completed without its base pay")
    return found


def _copy(original: StudyVersion, *, live: bool) -> LoadedDesign:
    """A version under another name; with scripted partners and without pauses unless it is to be live."""
    written: dict[str, Any] = store.written_design(original)
    written["study"] = f"{written['study'][: 40 - len(SUFFIX)]}{SUFFIX}"
    if not live:
        levels = written["conditions"].get(MODEL)
        labels = list(levels) if levels is not None else []
        if labels:
            written["conditions"][MODEL] = {str(label): "scripted" for label in labels}
        same = written.setdefault("same_for_all", {})
        same["reply_after"] = {"seconds_per_word": 0, "least": 0, "most": 0}
        same["limits"] = {**same.get("limits", {}), "turn": _TURN}
        if "practice" in written["plan"]:
            written["plan"]["practice"]["against"] = "scripted"
    design = StudyDesign.model_validate_json(json.dumps(written))
    stored = original.design
    kind = "live" if live else "scripted"
    return LoadedDesign(design, written, stored["texts"], stored["material"], (), f"{original.sha256[:56]}{kind:>8}")
