"""A ready-made list of arm assignments, in place of the random blocks. Nothing here commits.

A CSV table has one line per place: `order,arm`, from 1, in which people get the arms as they arrive; or
`participant,arm`, by the recruiter's ids, which lets nobody else in. The list is kept in the log of the wave, so that
`assignment.replay` finds the same arms again; ids are kept as hashes that are valid for that wave only.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.csv_reader import read_csv, refuse_rounded
from app.core.errors import Conflict, Invalid, Phrase, Verbatim
from app.models import Arm, Enrolment, Participant, StudyEvent, Wave
from app.studies.progress import by_whom, lock_wave, log_wave_event
from app.studies.waves import check_not_frozen, settings_of

ASSIGNMENT_LIST = "assignment list"
_BY_ORDER, _BY_PERSON, _ARM = "order", "participant", "arm"
_MOST_BYTES = 5_000_000


class AssignmentList(NamedTuple):
    """The arms of a list line by line, as indices into the design's arms, and the person for each line.

    `people` are marks of persons (see `mark_of`); empty if people get the lines in the order of their arrival.
    """

    arms: Sequence[int]
    people: Sequence[str] = ()

    def line_for(self, person: str | None, held: Collection[int]) -> int | None:
        """The line of the next person, given the lines already held: their own, or the lowest free one."""
        if self.people:
            return self.people.index(person) if person in self.people else None
        return next((line for line in range(len(self.arms)) if line not in held), None)

    def round_of(self, line: int) -> int:
        """The number of earlier lines with the same arm, by which the line's material is rotated."""
        return self.arms[:line].count(self.arms[line])


def mark_of(wave_id: int, person_hash: str) -> str:
    """The mark of a person in the list of a wave, which cannot be linked to any other wave."""
    return hashlib.sha256(f"{wave_id}\n{person_hash}".encode()).hexdigest()[:32]


def list_of(session: Session, wave_id: int) -> AssignmentList | None:
    """The list of a wave, the last one imported; None if arms are drawn."""
    lists = select(StudyEvent.body).where(StudyEvent.wave_id == wave_id, StudyEvent.kind == ASSIGNMENT_LIST)
    body = session.scalar(lists.order_by(StudyEvent.id.desc()).limit(1))
    return None if body is None else read_body(body)


def read_body(body: Mapping[str, Sequence[object]]) -> AssignmentList:
    """A list from its log entry."""
    return AssignmentList([int(str(arm)) for arm in body["arms"]], [str(person) for person in body["people"]])


def is_listed(session: Session, wave: Wave, person_hash: str) -> bool:
    """Whether the list of a wave, if it has one, lets a person in."""
    found = list_of(session, wave.id)
    return found is None or not found.people or mark_of(wave.id, person_hash) in found.people


def mark_of_enrolment(session: Session, enrolment: Enrolment) -> str | None:
    """The mark of an enrolment's person in the list of their wave."""
    person = session.get_one(Participant, enrolment.participant_id).person_hash
    return None if person is None or enrolment.wave_id is None else mark_of(enrolment.wave_id, person)


class ListTerms(NamedTuple):
    """What the list of a wave must fit: its arms by name, in order, and whether its people have ids."""

    wave_id: int
    arms: Sequence[str]
    recruiter: str
    has_ids: bool


class ReadList(NamedTuple):
    """A list as it is stored, the hashes that link its persons to those of the wave, and the file it was read from."""

    kept: AssignmentList
    people: frozenset[str]  # hashes of people
    name: str
    sha256: str


def terms_of(session: Session, wave: Wave) -> ListTerms:
    """What the list of a wave must fit."""
    arms = select(Arm.name).where(Arm.study_version_id == wave.study_version_id).order_by(Arm.id)
    provider = settings_of(wave).provider
    return ListTerms(wave.id, session.scalars(arms).all(), provider.name, provider.has_ids)


def read_list(content: bytes, name: str, terms: ListTerms, person_of: Callable[[str], str]) -> ReadList:
    """The list in a file; `person_of` returns a person's hash by the recruiter's id. Slow for a long list.

    Raises Invalid, with the line, for a list that cannot be followed.
    """
    found = _parse_list(content, name, terms.arms, has_ids=terms.has_ids)
    people = [person_of(each) for each in found.people]
    kept = found._replace(people=[mark_of(terms.wave_id, each) for each in people])
    return ReadList(kept, frozenset(people), name, hashlib.sha256(content).hexdigest())


def import_list(session: Session, wave: Wave, found: ReadList, by: str | None = None) -> None:
    """Make a wave follow a list that was read for it, in place of any earlier list.

    Raises Invalid if the list is too short, and Conflict once anybody has an arm.
    """
    wave = lock_wave(session, wave.id)
    check_not_frozen(wave)
    drawn = select(Enrolment.id).where(Enrolment.wave_id == wave.id, Enrolment.arm_id.is_not(None))
    if session.scalar(drawn.limit(1)) is not None:
        raise Conflict("wave", expected=Phrase("one in which nobody has an arm yet"), got=Phrase("one with people"))
    lines, places = len(found.kept.arms), settings_of(wave).places
    if lines < places:
        expected = Phrase("a line for each of the %(places)s places", places=places)
        raise Invalid(None, expected=expected, got=Phrase("%(lines)s lines", lines=lines), subject=Verbatim(found.name))
    _check_people(session, wave, found)
    body = {"arms": list(found.kept.arms), "people": list(found.kept.people), "sha256": found.sha256}
    log_wave_event(session, wave.id, ASSIGNMENT_LIST, body | by_whom(by))
    session.flush()


def _check_people(session: Session, wave: Wave, found: ReadList) -> None:
    """Raises Conflict if anybody in the wave has no line in a list by persons."""
    if not found.people:
        return
    here = (
        select(Participant.code, Participant.person_hash)
        .join(Enrolment, Enrolment.participant_id == Participant.id)
        .where(Enrolment.wave_id == wave.id, Enrolment.ending.is_(None))
        .order_by(Enrolment.id)
    )
    for code, person in session.execute(here):
        if person not in found.people:
            expected = Phrase("a line for everybody who is in the wave")
            raise Conflict("list", expected=expected, got=Phrase("none for %(code)s", code=Verbatim(code)))


def _parse_list(content: bytes, name: str, arms: Sequence[str], *, has_ids: bool) -> AssignmentList:
    """The list of a file, with ids as they are written. Raises Invalid."""
    if len(content) > _MOST_BYTES:
        raise Invalid("list", expected=Phrase("a table of at most 5 MB"), got=Phrase("a larger one"))
    try:
        table = read_csv(content, name, (_BY_ORDER, _BY_PERSON, _ARM))
    except Invalid as error:
        raise Invalid("list", **{**error.parts, "subject": None}) from None
    header = table.columns
    keys = [each for each in (_BY_ORDER, _BY_PERSON) if each in header]
    if len(keys) != 1 or _ARM not in header:
        expected = Phrase("the columns order and arm, or participant and arm")
        raise Invalid("list", expected=expected, got=Verbatim(f"{', '.join(header) or 'none'} ({table.written})"))
    by_person = keys[0] == _BY_PERSON
    if by_person and not has_ids:
        expected = Phrase("the column order, as the people of this wave have no ids")
        raise Invalid("list", expected=expected, got=Verbatim(_BY_PERSON))
    found = [_parse_line(row.cells, keys[0], arms, f"{name}:{row.line}") for row in table.rows]
    _check_complete(found, name, by_person=by_person)
    if not by_person:
        found.sort(key=lambda line: int(line[0]))
    return AssignmentList([arm for _, arm in found], [key for key, _ in found] if by_person else [])


def _parse_line(row: Mapping[str, str], key: str, arms: Sequence[str], place: str) -> tuple[str, int]:
    """The key of a line (order or person), and the index of its arm."""
    whom, arm = row.get(key, ""), row.get(_ARM, "")
    if key == _BY_PERSON:
        refuse_rounded(whom, place)
    if key == _BY_ORDER and not (whom.isascii() and whom.isdecimal() and len(whom) < 10):
        raise Invalid(None, expected=Phrase("a number from 1 as the order"), got=whom, subject=Verbatim(place))
    if not whom:
        raise Invalid(None, expected=Phrase("the recruiter's id of a person"), got=whom, subject=Verbatim(place))
    if arm not in arms:
        expected = Phrase("an arm of this design (%(arms)s)", arms=Verbatim("; ".join(arms)))
        raise Invalid(None, expected=expected, got=arm, subject=Verbatim(place))
    return str(int(whom)) if key == _BY_ORDER else whom, arms.index(arm)


def _check_complete(found: Sequence[tuple[str, int]], name: str, *, by_person: bool) -> None:
    """Raises Invalid for keys that occur twice or are missing."""
    twice = [key for key, count in Counter(key for key, _ in found).items() if count > 1]
    if twice:
        expected = Phrase("each person once") if by_person else Phrase("each number of the order once")
        raise Invalid(None, expected=expected, got=twice[0], subject=Verbatim(name))
    if not by_person and {int(key) for key, _ in found} != set(range(1, len(found) + 1)):
        gap = min(set(range(1, len(found) + 1)) - {int(key) for key, _ in found})
        expected = Phrase("all numbers of the order from 1 on")
        raise Invalid(None, expected=expected, got=Phrase("none with %(number)s", number=gap), subject=Verbatim(name))
