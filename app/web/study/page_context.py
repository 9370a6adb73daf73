"""What each page of a study shows."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import quote

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import Consent, Participant, RecruitmentIdentity, StudyVersion, Wave
from app.studies import answers, idle, lapses, matches, payments
from app.studies.arms import matches_a_person
from app.studies.checks import OBJECTIVE
from app.studies.consents import PUBLICATION, TRAINING
from app.studies.cost import stakes_of
from app.studies.design import HIDDEN, StudyDesign, SurveyQuestion
from app.studies.endings import (
    BY_TIME,
    COMPLETED,
    FULL_BASE,
    INACTIVE,
    PROLIFIC,
    QUIZ_FAILED,
    REMOVED,
    TECHNICAL,
    WITHDRAWN,
    EndingName,
)
from app.studies.enrolment import may_be_readmitted
from app.studies.lapses import Lapse
from app.studies.participant_steps import CONSENT, DEBRIEF, DONE, INSTRUCTIONS, MATCH, PARTNER, PRACTICE, QUIZ, SURVEY
from app.studies.progress import StudyProgress
from app.studies.reports import has_reported
from app.studies.store import design_of, models_of
from app.studies.survey import applies, ordered, rule_of
from app.studies.texts import first_condition, goal_of
from app.studies.wave_file import LINK, WaveFile, return_address
from app.studies.waves import OPEN, settings_of, wave_file_of
from app.web.seats import settings
from app.web.study.blueprint import private_url
from app.web.study.page_texts import (
    consent_text,
    deadline_words,
    debrief_page,
    goal_words,
    instructions_page,
    linked_words,
    vendors,
)
from app.web.study.results import played_games, points_text, shows_bonus
from app.web.study.stages import games_of_block, stages

_MADE_UP_ID = "PREVIEW-0000"
PROLIFIC_RETURN = "https://app.prolific.com/submissions/complete?cc="
CONNECT_RETURN = "https://connect.cloudresearch.com/participant/project/{project}/complete"


def page(session: Session, progress: StudyProgress) -> dict[str, Any]:
    """Everything that the page of the due step shows."""
    return common(session, progress) | _PAGES[progress.step.kind](session, progress)


def common(session: Session, progress: StudyProgress) -> dict[str, Any]:
    """What every page of a study shows: where the person is, whom to ask, how to leave.

    A person who ended early is no longer at any step, and has not done those that were ahead.
    """
    enrolment = progress.enrolment
    shown = stages(progress) if enrolment.ending in (None, COMPLETED) else []
    return {
        "design": progress.design,
        "currency": progress.design.pay.currency,
        "token": enrolment.token,
        "private_link": settings().public_url + private_url(str(enrolment.token)),
        "step": progress.step,
        "stages": shown,
        "stage_number": 1 + next((at for at, stage in enumerate(shown) if stage.state == "now"), 0),
        "ending": enrolment.ending,
        "silent_in": idle.left(session, progress),
        "if_silent": progress.design.ending(INACTIVE, PROLIFIC),
        "minute_rate": rate_a_minute(progress.design),
        "can_leave": progress.can_leave,
        "agreed": progress.step.kind != CONSENT and (enrolment.ending is None or enrolment.agreed_at is not None),
        "preview": enrolment.wave_id is None,
        "person": session.get_one(Participant, enrolment.participant_id).code,
    }


def still_there(session: Session, progress: StudyProgress, lapse: Lapse) -> dict[str, Any]:
    """The content of the page that asks people whether they are still there after a match that they let run out."""
    base, bonus = payments.owed_now(session, progress, INACTIVE)
    return common(session, progress) | {
        "limits": progress.design.same_for_all.limits,
        "left": lapse.left(datetime.now(UTC)),
        "here": answers.HERE,
        "inactive": base + bonus,
        "following": progress.steps[progress.enrolment.step + 1],
        "count": matches_a_person(progress.design),
    }


def consent_page(session: Session, version: StudyVersion, recruiter: str) -> dict[str, Any]:
    """What people sent by that recruiter read before they take part, and what Parlor adds to it."""
    design = design_of(version)
    goals = design.levels(OBJECTIVE) if OBJECTIVE in design.conditions else {}
    stakes = {label: stakes_of(design, {OBJECTIVE: label}) for label in goals}
    return {
        "text": consent_text(version),
        "vendors": vendors(session, version),
        "matches": matches_a_person(design),
        "rates": sorted({each.per_point for each in stakes.values()} or {design.pay.bonus.per_point}),
        "a_minute": rate_a_minute(design),
        "early": early_endings(design),
        "idle": idle_rules(design),
        "by_time_if_inactive": design.ending(INACTIVE, PROLIFIC).base == BY_TIME,
        "told": design.partner_told,
        "delete_until": deadline_words(design.privacy.delete_my_data_until),
        "ids_until": deadline_words(design.privacy.vendor_ids_deleted),
        "linked_until": linked_words(design.privacy.link_deleted),
        "recruiter": recruiter,
        "questions_asked": bool(design.survey.all),
    }


def idle_rules(design: StudyDesign) -> dict[str, Any]:
    """The rules about silence that people should know: the clock of a turn, the grace after it, and the longest
    break.
    """
    same = design.same_for_all
    return {
        "turn": None if same.limits.turn is None else int(same.limits.turn.total_seconds()),
        "grace": same.idle.end,
        "longest": idle.longest_silence(design),
    }


def rate_a_minute(design: StudyDesign) -> Decimal:
    """The pay per minute if an ending pays by time."""
    return (design.pay.base / design.minutes).quantize(Decimal("0.01"))


def early_endings(design: StudyDesign) -> list[tuple[EndingName, Any]]:
    """The endings before the last page that a person should know of, with what they mean."""
    names: list[EndingName] = [WITHDRAWN, INACTIVE, TECHNICAL, REMOVED]
    if design.quiz is not None:
        names.insert(1, QUIZ_FAILED)
    return [(name, design.ending(name, PROLIFIC)) for name in names]


def consent(session: Session, progress: StudyProgress) -> dict[str, Any]:
    """What a person reads, or has read, before they take part."""
    file = wave_file_of(session, progress)
    return consent_page(session, progress.version, "" if file is None else file.provider.name)


def _instructions(_session: Session, progress: StudyProgress) -> dict[str, Any]:
    following = progress.steps[progress.enrolment.step + 1].kind
    return instructions_page(progress) | {"following": following, "block": progress.step.block}


def _quiz_page_context(_session: Session, progress: StudyProgress) -> dict[str, Any]:
    return {
        "quiz": answers.quiz_now(progress),
        "failed": progress.design.ending(QUIZ_FAILED, PROLIFIC),
        "a_minute": rate_a_minute(progress.design),
    }


def _survey_page_context(_session: Session, progress: StudyProgress) -> dict[str, Any]:
    asked, seed = answers.due_questions(progress), answers.seed_of(progress, progress.step)
    earlier = answers.earlier_answers(progress)
    here = {question.id for question in asked}
    rules = {question.id: rule_of(question) for question in asked}
    shown = []
    for question in asked:
        rule = rules[question.id]
        if rule is None or rule.name in here or applies(question, earlier):
            shown.append(question)
    options = {question.id: ordered(_options(question), question, seed) for question in shown}
    return {
        "questions": shown,
        "options": options,
        "rules": {name: rule for name, rule in rules.items() if rule is not None and rule.name in here},
        "returned": answers.returned(progress),
        "block_games": None if progress.step.block is None else games_of_block(progress, progress.step.block),
    }


def _options(question: SurveyQuestion) -> Sequence[str]:
    if question.matrix is not None:
        return list(question.matrix.rows)
    return question.choice or question.choices or ()


def _match(session: Session, progress: StudyProgress) -> dict[str, Any]:
    design = progress.design
    row = matches.due(session, progress)
    games = played_games(session, progress)
    here = next((game for game in reversed(games) if row is not None and game.match_id == row.id), None)
    following = progress.steps[progress.enrolment.step + 1]
    goal = goal_of(design, progress.condition or first_condition(design))
    counted = {game.number: game for game in games if game.number is not None}
    return {
        "here": here,
        "feedback": design.same_for_all.feedback,
        "games": counted,
        "count": matches_a_person(design),
        "following": following,
        "bonus": payments.earned(session, progress) if shows_bonus(progress) and counted else None,
        "goal": goal,
        "goal_words": None if goal.weight is None else goal_words(goal),
        "points_text": points_text,
        "limits": design.same_for_all.limits,
        "idle": idle_rules(design) | {"grace": lapses.grace_of(session, progress)},
        "lapses": lapses.count(session, progress.enrolment.id),
        "inactive": design.ending(INACTIVE, PROLIFIC),
        "a_minute": rate_a_minute(design),
        "failure_pay": design.pay.bonus.model_failure,
        "replaces": row is not None and row.status == "over" and bool((row.options or {}).get("replaces")),
        "again": design.same_for_all.model_failure.then,
    }


def _partner_page_context(_session: Session, _progress: StudyProgress) -> dict[str, Any]:
    return {"partners": answers.PARTNERS}


def _debrief_page_context(session: Session, progress: StudyProgress) -> dict[str, Any]:

    def answered(kind: str) -> bool | None:
        same = Consent.participant_id == progress.enrolment.participant_id, Consent.kind == kind
        return session.scalar(select(Consent.given).where(*same).order_by(Consent.id.desc()).limit(1))

    return {
        "text": debrief_page(progress),
        "partners": _games_by_partner_kind(session, progress),
        "trained_before": answered(TRAINING),
        "published_before": answered(PUBLICATION),
        "bonus": payments.earned(session, progress),
        "was_hidden": progress.design.partner_told == HIDDEN,
    }


def _games_by_partner_kind(session: Session, progress: StudyProgress) -> Mapping[str, list[int]]:
    """The kinds of partners, each with the numbers of the games against it."""
    models, found = models_of(session, progress.version), dict[str, list[int]]()
    levels = progress.design.levels("model")
    for game in played_games(session, progress):
        if game.number is None or progress.enrolment.plan is None:
            continue
        label = progress.enrolment.plan["matches"][game.number - 1]["condition"]["model"]
        row = models[str(levels[label])]
        numbers = found.setdefault(row.kind, [])
        if game.number not in numbers:
            numbers.append(game.number)
    return found


def _done(session: Session, progress: StudyProgress) -> dict[str, Any]:
    file, ending = wave_file_of(session, progress), progress.enrolment.ending or COMPLETED
    code = None if file is None else file.codes.get(ending)  # type: ignore[call-overload]  # a column's text
    games = played_games(session, progress)
    participant = session.get_one(Participant, progress.enrolment.participant_id)
    return {
        "code": code,
        "recruiter": "" if file is None else file.provider.name,
        "may_come_again": _may_come_again(session, progress),
        "return_to": _return_address(file, code, ending) or _own_return(session, progress, file, ending),
        "tried_return": _tried_return(session, progress, ending),
        "payments": [
            row for row in payments.payments_of(session, progress.enrolment.id) if row.amount or row.key == "base"
        ],
        "games": [game for game in games if game.number is not None],
        "shows_points": progress.design.same_for_all.feedback != "none" and ending == COMPLETED,
        "points_text": points_text,
        "delete_until": deadline_words(progress.design.privacy.delete_my_data_until),
        "kept": progress.design.ending(ending, PROLIFIC).keeps_data,  # type: ignore[arg-type]  # a column's text
        "erased": participant.erased_at is not None,
        "has_reported": has_reported(session, progress),
    }


def _own_return(session: Session, progress: StudyProgress, file: WaveFile | None, ending: str) -> str | None:
    """The return address of the researcher's own link, for people paid in full there: credit is given through it."""
    full = progress.design.ending(ending, PROLIFIC).base == FULL_BASE  # type: ignore[arg-type]  # a column's text
    if file is None or not full:
        return None
    identity = select(RecruitmentIdentity.external_id).where(
        RecruitmentIdentity.participant_id == progress.enrolment.participant_id, RecruitmentIdentity.recruiter == LINK
    )
    return return_address(file, session.scalar(identity.order_by(RecruitmentIdentity.id.desc()).limit(1)))


def _tried_return(session: Session, progress: StudyProgress, ending: str) -> tuple[str, str] | None:
    """In a preview: the latest wave of its version that has a return address, and that address with a made-up id."""
    if progress.enrolment.wave_id is not None or progress.design.ending(ending, PROLIFIC).base != FULL_BASE:  # type: ignore[arg-type]
        return None
    of_version = select(Wave).where(Wave.study_version_id == progress.version.id, Wave.rehearsal.is_(False))
    for wave in session.scalars(of_version.order_by(Wave.id.desc())):
        if (address := return_address(settings_of(wave), _MADE_UP_ID)) is not None:
            return wave.name, address
    return None


def _may_come_again(session: Session, progress: StudyProgress) -> bool:
    wave = None if progress.enrolment.wave_id is None else session.get_one(Wave, progress.enrolment.wave_id)
    return wave is not None and wave.status == OPEN and wave.frozen_at is None and may_be_readmitted(progress)


def _return_address(file: WaveFile | None, code: str | None, ending: str) -> str | None:
    """The address behind the button on the last page; None if the recruiter has none.

    Prolific's includes any code. Connect's includes none, and is for those who completed the study.
    """
    if file is None or code is None:
        return None
    if file.provider.prolific is not None:
        return PROLIFIC_RETURN + code
    connect = file.provider.connect
    if connect is not None and connect.project_id is not None and ending == COMPLETED:
        return CONNECT_RETURN.format(project=quote(connect.project_id, safe=""))
    return None


_PAGES: Mapping[str, Callable[[Session, StudyProgress], dict[str, Any]]] = {
    CONSENT: consent,
    SURVEY: _survey_page_context,
    INSTRUCTIONS: _instructions,
    QUIZ: _quiz_page_context,
    PRACTICE: _match,
    MATCH: _match,
    PARTNER: _partner_page_context,
    DEBRIEF: _debrief_page_context,
    DONE: _done,
}
