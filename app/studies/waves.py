"""Waves in the database: opened, paused, closed and frozen. Nothing here commits.

Enrolment in a paused wave is closed temporarily, in a closed one permanently. People in a wave continue to the end and
are paid. A frozen wave never changes.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Decimal

from sqlalchemy import and_, select
from sqlalchemy.orm import Session

from app.core.errors import Conflict, Invalid, NotFound, Phrase, Verbatim
from app.models import Enrolment, RecruitmentIdentity, Study, StudyVersion, Wave
from app.studies import placeholders, store
from app.studies.deadlines import day_of
from app.studies.design import StudyDesign
from app.studies.endings import CLOSED as ENDED_CLOSED
from app.studies.progress import StudyProgress, by_whom, end, find_progress, lock_enrolments, lock_wave, log_wave_event
from app.studies.untrained import check_untrained
from app.studies.wave_file import WaveFile, most_with_fee, stored_wave_file

OPEN, PAUSED, CLOSED = "open", "paused", "closed"
FROZEN = "frozen"  # the kind of the event that records a freeze
_MOST_LISTED = 5


def open_wave(session: Session, file: WaveFile, *, rehearsal: bool = False, trial: bool = False) -> Wave:
    """Open a wave, for people, for bots (`rehearsal`), or as a trial of an example (`trial`), whose blanks may remain.

    Raises Invalid for an invalid file, NotFound and Conflict.
    """
    version = _find_version_for_wave(session, file)
    design = store.design_of(version)
    if not rehearsal and not trial:
        _check_filled_in(version, design, file)
    if _wave_of(session, version.study_id, file.wave) is not None:
        raise Invalid("wave", expected=Phrase("a name that no wave of the study has"), got=file.wave)
    for reference in file.not_if_took_part_in:
        _check_known(session, reference)
    one = most_with_fee(design, file)
    if file.most_spent < one:
        amount = one.quantize(Decimal("0.01"), ROUND_CEILING)
        expected = Phrase("at least %(amount)s, what one person may cost", amount=amount)
        raise Invalid("most_spent", expected=expected, got=Verbatim(str(file.most_spent)))
    check_closing_time(file)
    store.check_models_there(session, version)
    check_untrained(session, version, design)
    wave = Wave(
        study_id=version.study_id,
        study_version_id=version.id,
        name=file.wave,
        settings=file.model_dump(mode="json", exclude_unset=True),
        status=OPEN,
        rehearsal=rehearsal,
        created_at=datetime.now(UTC),
    )
    session.add(wave)
    session.flush()
    log_action(session, wave, "opened")
    return wave


def settings_of(wave: Wave) -> WaveFile:
    """The settings in a wave's file."""
    return stored_wave_file(wave.settings)


def wave_file_of(session: Session, progress: StudyProgress) -> WaveFile | None:
    """The file of the wave that a person is in; None in a preview."""
    number = progress.enrolment.wave_id
    return None if number is None else settings_of(session.get_one(Wave, number))


def find_wave(session: Session, reference: str) -> Wave:
    """A wave by `study:wave`. Raises NotFound."""
    name, _, wave_name = reference.partition(":")
    study_id = session.scalar(select(Study.id).where(Study.name == name))
    wave = None if study_id is None else _wave_of(session, study_id, wave_name)
    if wave is None:
        raise NotFound("wave", expected=Phrase("STUDY:WAVE, with a wave that was opened"), got=reference)
    return wave


def pause(session: Session, wave: Wave, by: str | None = None) -> None:
    """Stop letting new people in for now. Raises Conflict."""
    _change_status(session, wave, PAUSED, (OPEN,), "paused", by)


def reopen(session: Session, wave: Wave, by: str | None = None) -> None:
    """Let people into a paused wave again. Raises Conflict."""
    _change_status(session, wave, OPEN, (PAUSED,), "reopened", by)


def close(session: Session, wave: Wave, by: str | None = None) -> None:
    """Close enrolment; people in the wave continue, and are paid. Raises Conflict."""
    _change_status(session, wave, CLOSED, (OPEN, PAUSED), "closed", by)
    wave.closed_at = datetime.now(UTC)
    design = store.design_of_wave(session, wave)
    day = day_of(design.privacy.vendor_ids_deleted, wave.closed_at, wave.closed_at)
    people = select(Enrolment.participant_id).where(Enrolment.wave_id == wave.id)
    elsewhere = select(Enrolment.participant_id).join(Wave).where(Wave.status != CLOSED, Wave.id != wave.id)
    identities = select(RecruitmentIdentity).where(
        RecruitmentIdentity.participant_id.in_(people),
        RecruitmentIdentity.participant_id.not_in(elsewhere),
        RecruitmentIdentity.remove_on.is_(None),
    )
    for identity in session.scalars(identities):
        identity.remove_on = day


def freeze(session: Session, wave: Wave, by: str | None = None) -> None:
    """Freeze a closed wave permanently; people who had only arrived end as turned away.

    Raises Conflict while people are under way.
    """
    arrived = lock_enrolments(
        session, and_(Enrolment.wave_id == wave.id, Enrolment.ending.is_(None), Enrolment.agreed_at.is_(None))
    )
    wave = lock_wave(session, wave.id)
    check_not_frozen(wave)
    if wave.status != CLOSED:
        raise _wave_conflict(
            wave, Phrase("a closed wave"), Phrase("one that is %(status)s", status=Verbatim(wave.status))
        )
    for enrolment in arrived:
        if not enrolment.holds_place:
            end(session, find_progress(session, enrolment.id), ENDED_CLOSED, door=True)
    under_way = session.scalars(select(Enrolment.id).where(Enrolment.wave_id == wave.id, Enrolment.ending.is_(None)))
    if count := len(under_way.all()):
        raise _wave_conflict(
            wave, Phrase("a wave in which nobody is under way"), Phrase("one with %(count)s people", count=count)
        )
    wave.frozen_at = datetime.now(UTC)
    log_action(session, wave, FROZEN, by)


def check_closing_time(file: WaveFile) -> None:
    """Raises Invalid if the closing time has passed."""
    if file.closes_at is not None and file.closes_at <= datetime.now(UTC):
        raise Invalid("closes", expected=Phrase("a time in the future, in UTC"), got=str(file.closes))


def check_not_frozen(wave: Wave) -> None:
    """Raises Conflict if a wave is frozen."""
    if wave.frozen_at is not None:
        raise _wave_conflict(wave, Phrase("a wave that is not frozen"), Phrase("one that is"))


def log_action(session: Session, wave: Wave, kind: str, by: str | None = None) -> None:
    """Log an action on a wave, and who took it."""
    log_wave_event(session, wave.id, kind, by_whom(by))


def _change_status(
    session: Session, wave: Wave, status: str, before: tuple[str, ...], kind: str, by: str | None
) -> None:
    wave = lock_wave(session, wave.id)
    check_not_frozen(wave)
    if wave.status not in before:
        expected = Phrase("a paused wave") if before == (PAUSED,) else Phrase("a wave that is not %(it)s", it=_it(wave))
        raise _wave_conflict(wave, expected, Phrase("one that is %(status)s", status=_it(wave)))
    wave.status = status
    log_action(session, wave, kind, by)


def _it(wave: Wave) -> Verbatim:
    return Verbatim(wave.status)


def _wave_conflict(wave: Wave, expected: Phrase, got: Phrase) -> Conflict:
    return Conflict("wave", expected=expected, got=got, subject=Verbatim(wave.name))


def _find_version_for_wave(session: Session, file: WaveFile) -> StudyVersion:
    try:
        return store.find_version(session, file.of)
    except NotFound as error:
        raise NotFound("of", **{**error.parts, "subject": None}) from None


def _wave_of(session: Session, study_id: int, name: str) -> Wave | None:
    return session.scalar(select(Wave).where(Wave.study_id == study_id, Wave.name == name))


def _check_filled_in(version: StudyVersion, design: StudyDesign, file: WaveFile) -> None:
    """Raises Invalid if a study or its wave still has an example's blanks."""
    found = [*placeholders.in_design(design, version.design["texts"])]
    if found:
        raise Invalid(
            "of",
            expected=Phrase("a study in which everything is filled in"),
            got=_first_placeholders(found),
            remedy=Phrase("load a version with words of your own"),
        )
    for each in placeholders.in_wave(file.model_dump(mode="json", exclude_unset=True)):
        raise Invalid(str(each.path[0]), expected=Phrase("a value of your own"), got=Verbatim(str(each)))


def _first_placeholders(found: Sequence[placeholders.Placeholder]) -> Verbatim:
    """The first blanks, in one line."""
    more = ", …" if len(found) > _MOST_LISTED else ""
    return Verbatim(", ".join(map(str, found[:_MOST_LISTED])) + more)


def _check_known(session: Session, reference: str) -> None:
    """Raises Invalid for a study or wave that does not exist: a wrong name would let in people who should be kept
    out.
    """
    name, mark, _ = reference.partition(":")
    known = session.scalar(select(Study.id).where(Study.name == name)) is not None
    if mark and known:
        try:
            find_wave(session, reference)
        except NotFound:
            known = False
    if not known:
        raise Invalid("not_if_took_part_in", expected=Phrase("existing studies and waves"), got=reference)
