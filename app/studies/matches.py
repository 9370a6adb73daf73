"""The matches of a person in a study: how they begin, and what follows when they are over.

What is played comes from the enrolment's plan, and everything around it from the design, never from the settings of
the server. A step has one match, however often it is asked for, and one more if a model broke the first one off and
the design has it replaced. Nothing here commits.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.games import find_game
from app.matches.clocks import Clocks
from app.matches.engine import ABORTED, RESIGNED
from app.matches.filter import REHEARSAL
from app.matches.lobby import LIVE
from app.matches.options import MatchOptions, ReplyTarget
from app.matches.store import NewMatch, SeatPerson, insert_matches
from app.matches.stored import StoredMatch, StoredSeat, load, opened
from app.models import Enrolment, LanguageModel, MatchRow, SeatRow, Wave
from app.registry import PERSON
from app.registry.prompts import player_prompt
from app.studies import lapses, payments
from app.studies.arms import level_of, matches_a_person
from app.studies.checks import MODEL, NO_PROMPT, PROMPT, condition_config
from app.studies.consents import training_consent
from app.studies.design import END_STUDY, REPLACE, StudyDesign
from app.studies.endings import INACTIVE, TECHNICAL, WITHDRAWN
from app.studies.extra_time import factor_of, longer
from app.studies.lapses import Lapse
from app.studies.participant_steps import MATCH, PRACTICE, Step
from app.studies.progress import StudyProgress, end, find_progress, log_event
from app.studies.store import models_of


def due(session: Session, progress: StudyProgress) -> MatchRow | None:
    """The match of the due step; None before it has begun, and at a step without one."""
    return _of_step(session, progress, progress.step) if progress.step.kind in (PRACTICE, MATCH) else None


def _of_step(session: Session, progress: StudyProgress, step: Step) -> MatchRow | None:
    """The match of a step, or the one that replaced it."""
    keys = _keys(progress, step)
    rows = {row.start_key: row for row in session.scalars(select(MatchRow).where(MatchRow.start_key.in_(keys)))}
    return next((rows[key] for key in reversed(keys) if key in rows), None)


def start(session: Session, progress: StudyProgress, step: Step) -> StoredMatch:
    """The match of a step, begun if it has not been; its arm must have been drawn.

    If it is begun twice at once, only one begins: the slower transaction fails with IntegrityError and is retried.
    """
    existing = _of_step(session, progress, step)
    return _begin_match(session, progress, step) if existing is None else load(session, existing.id)


def after(session: Session, progress: StudyProgress, step: Step, now: datetime | None = None) -> StoredMatch | None:
    """Apply what follows when the match of a step is over: the match that replaces it, or None.

    With None the person moves on, unless the enrolment has ended: a person who leaves a match has withdrawn; one who
    was silent in a match that counts is inactive once `lapses` says so, and is asked until then; and a design may have
    a model's failure end the study.
    """
    now = now or datetime.now(UTC)
    row = _of_step(session, progress, step)
    if row is None or row.status != "over" or progress.enrolment.ending is not None:
        return None
    if row.reason == RESIGNED:
        end(session, progress, WITHDRAWN, match=row.id)
    elif (lapse := lapses.lapse_of(session, progress, row, now)) is not None:
        if lapses.ends_study(session, progress, lapse, now):
            end(session, progress, INACTIVE, match=row.id)
    elif row.reason == ABORTED:
        return _after_failure(session, progress, step, row)
    return None


def lapse_to_ask_about(session: Session, progress: StudyProgress, now: datetime | None = None) -> Lapse | None:
    """The lapse at a step whose match ended by the person's silence, who is asked whether they are still there."""
    if progress.enrolment.ending is not None:
        return None
    return lapses.lapse_of(session, progress, due(session, progress), now or datetime.now(UTC))


def unanswered(session: Session, now: datetime | None = None) -> list[int]:
    """The enrolments of people who did not say in time that they are still there; `end_unanswered` ends them."""
    now = now or datetime.now(UTC)
    waiting = (find_progress(session, number) for number in lapses.waiting(session, now))
    return [
        progress.enrolment.id
        for progress in waiting
        if (lapse := lapse_to_ask_about(session, progress, now)) is not None
        and lapses.ends_study(session, progress, lapse, now)
    ]


def end_unanswered(session: Session, enrolment_id: int, now: datetime | None = None) -> bool:
    """End the study of a person who has not confirmed within the grace period that they are still there."""
    progress = find_progress(session, enrolment_id, lock=True)
    if progress.enrolment.ending is not None or progress.step.kind != MATCH:
        return False
    after(session, progress, progress.step, now)
    payments.record_owed(session, progress)
    return progress.enrolment.ending is not None


def end_after_silence(session: Session, match_id: str) -> None:
    """If a match ended by a clock, end the study of a person who may not come back; see `after`."""
    number = session.scalar(
        select(SeatRow.enrolment_id).where(SeatRow.match_id == match_id, SeatRow.enrolment_id.is_not(None))
    )
    if number is None:
        return
    progress = find_progress(session, number, lock=True)
    row = due(session, progress)
    if row is not None and row.id == match_id:
        after(session, progress, progress.step)
    payments.record_owed(session, progress)


def _after_failure(session: Session, progress: StudyProgress, step: Step, row: MatchRow) -> StoredMatch | None:
    """Apply the design's policy after a match that was aborted, which is replaced at most once."""
    then = progress.design.same_for_all.model_failure.then
    if then == REPLACE and row.start_key == _keys(progress, step)[0]:
        return _begin_match(session, progress, step, replaces=row.id)
    if then == END_STUDY:
        end(session, progress, TECHNICAL, match=row.id)
    return None


def _begin_match(session: Session, progress: StudyProgress, step: Step, replaces: str | None = None) -> StoredMatch:
    design, enrolment = progress.design, progress.enrolment
    planned = _planned_match(progress, step)
    partner = _partner_seat(session, progress, step, planned["condition"])
    person, seat = StoredSeat(PERSON), planned["seat"]
    key = _keys(progress, step)[0 if replaces is None else 1]
    limits = design.same_for_all.limits
    clocks = Clocks(
        None if limits.turn is None else limits.turn.total_seconds(),
        None if limits.match is None else limits.match.total_seconds(),
    )
    record = opened(
        design.game,
        _match_config(progress, planned),
        (person, partner) if seat == 0 else (partner, person),
        _seed(design, key),
        longer(clocks, factor_of(session, enrolment.id)),
        _match_options(design, replaces),
    )
    agreed = training_consent(session, enrolment.participant_id)
    new = NewMatch(
        record,
        _match_source(session, enrolment),
        start_key=key,
        arm_id=enrolment.arm_id,
        position=step.number if step.kind == MATCH else None,
        people={seat: SeatPerson(agreed, enrolment.participant_id, enrolment.id)},
    )
    insert_matches(session, [new])
    noted = {"match": record.id, "step": step.key}
    log_event(session, progress, "match", noted if replaces is None else {**noted, "replaces": replaces})
    return record


def _match_source(session: Session, enrolment: Enrolment) -> str:
    """The source of a match: bots, and previews, which are in no wave, play like people but do not count as people."""
    wave = None if enrolment.wave_id is None else session.get_one(Wave, enrolment.wave_id)
    return REHEARSAL if wave is None or wave.rehearsal else LIVE


def _planned_match(progress: StudyProgress, step: Step) -> Mapping[str, Any]:
    """The values drawn for a match. Practice is played under the same condition as the first match that counts."""
    plan = progress.enrolment.plan
    if plan is None or step.number is None or step.kind not in (PRACTICE, MATCH):
        raise ValueError(f"expected a step of a match of a person whose arm is drawn, got {step.key}")
    if step.kind == MATCH:
        counted: Mapping[str, Any] = plan["matches"][step.number]
        return counted
    return {"first": None, "condition": plan["matches"][0]["condition"], **plan["practice"][step.number]}


def _match_config(progress: StudyProgress, planned: Mapping[str, Any]) -> dict[str, Any]:
    """The game's config: that of the condition, with the piece of material and the seat that begins."""
    game = find_game(progress.design.game)
    config = condition_config(progress.design, planned["condition"])
    if game.first_field is not None and planned["first"] is not None:
        config[game.first_field] = planned["first"]
    if game.material is not None and planned["piece"] is not None:
        config.update(game.material.config_of(progress.version.design["material"][planned["piece"]]))
    return config


def _partner_model(
    session: Session, progress: StudyProgress, step: Step, condition: Mapping[str, str]
) -> LanguageModel:
    """The pinned model, which keeps playing whatever the registry now says about it."""
    design = progress.design
    practice = design.plan.practice if step.kind == PRACTICE else None
    name = level_of(design, condition, MODEL) if practice is None else practice.against
    return models_of(session, progress.version)[str(name)]


def _partner_seat(session: Session, progress: StudyProgress, step: Step, condition: Mapping[str, str]) -> StoredSeat:
    """The partner, with the prompt that the condition gives it in addition to the rules; none in practice."""
    seat = StoredSeat.of(_partner_model(session, progress, step, condition))
    named = NO_PROMPT if step.kind == PRACTICE else level_of(progress.design, condition, PROMPT, NO_PROMPT)
    if seat.spec is None or named == NO_PROMPT:
        return seat
    return replace(seat, spec=replace(seat.spec, system=player_prompt(session, str(named))))


def _match_options(design: StudyDesign, replaces: str | None) -> MatchOptions:
    same = design.same_for_all
    return MatchOptions(
        ReplyTarget(same.reply_after.seconds_per_word, same.reply_after.least, same.reply_after.most),
        same.feedback,
        same.model_failure.retries,
        design.partner_told,
        matches_a_person(design),
        replaces,
    )


def _keys(progress: StudyProgress, step: Step) -> tuple[str, str]:
    """The keys that make a step's match and its replacement each start only once. No guest's key has a slash."""
    first = f"study/{progress.enrolment.id}/{step.key}"
    return first, f"{first}/replacement"


def _seed(design: StudyDesign, key: str) -> int:
    """A seed of 62 bits derived from the design's seed, the enrolment and the step."""
    digest = hashlib.sha256(f"{design.plan.assign.seed}/{key}".encode()).digest()
    return int.from_bytes(digest[:8]) >> 2
