"""Codings: experimenters give codes to lines of transcripts, each independently until done. Nothing here commits."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import Select, delete, exists, func, select
from sqlalchemy.orm import Session

from app.core.errors import Conflict, Invalid, NotFound, Phrase, check_name
from app.core.validation import is_storable
from app.jobs.holding import hold
from app.matches.blinding import blinded_conditions
from app.matches.filter import MatchFilter, check_known, is_over
from app.matches.text_index import line_numbers
from app.matches.transcripts import placing
from app.models import CodedMatch, Coder, Coding, CodingCode, GivenCode, MatchRow, RoundRow, User

MOST_CODES = 8  # each has a key
MOST_MATCHES = 500  # in a coding
WHOLE_MATCH = 0  # in place of a line's number
RANDOM = "random"
_LONGEST_NAME, _LONGEST_HELP = 40, 300
_OVER = "over"


def find_coding(session: Session, number: int) -> Coding:
    """The coding of that number. Raises NotFound."""
    found = session.get(Coding, number) if number < 2**31 else None
    if found is None:
        raise NotFound("coding", expected=Phrase("the number of one that exists"), got=number)
    return found


def open_codings(session: Session) -> Sequence[Coding]:
    """The codings that accept further matches because no coder is done, the latest first."""
    done = exists().where(Coder.coding_id == Coding.id, Coder.done_at.is_not(None))
    return session.scalars(select(Coding).where(~done).order_by(Coding.id.desc())).all()


def create_coding(session: Session, name: str, codes: str, creator: str) -> Coding:
    """A coding with codes typed one per line, `name: help`; their keys are their positions, from 1.

    Raises Invalid, and Conflict for a name that is already taken.
    """
    check_name("name", name)
    read = read_codes(codes)
    if session.scalar(select(Coding.id).where(Coding.name == name)) is not None:
        raise Conflict("name", expected=Phrase("a name that no other coding has"), got=name)
    coding = Coding(name=name, created_by=creator, created_at=datetime.now(UTC))
    session.add(coding)
    session.flush()
    session.add_all(
        CodingCode(coding_id=coding.id, key=key, name=code, help=meaning) for key, (code, meaning) in enumerate(read, 1)
    )
    session.flush()
    return coding


def read_codes(text: str) -> list[tuple[str, str]]:
    """Names and help texts of codes typed one per line, `name: help`. Raises Invalid."""
    found = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, meaning = (part.strip() for part in line.partition(":"))
        if not (0 < len(name) <= _LONGEST_NAME and len(meaning) <= _LONGEST_HELP and line.isprintable()):
            expected = Phrase(
                "a line such as %(example)s, with at most %(name)s and %(help)s characters",
                example="concedes: asks for less than before", name=_LONGEST_NAME, help=_LONGEST_HELP,
            )  # fmt: skip
            raise Invalid("codes", expected=expected, got=line)
        found.append((name, meaning))
    names = {name for name, _ in found}
    if not 1 <= len(found) <= MOST_CODES or len(names) < len(found):
        expected = Phrase("1 to %(most)s lines, each with another name", most=MOST_CODES)
        raise Invalid("codes", expected=expected, got=len(found))
    return found


def choose_matches(
    session: Session, number: int, choice: MatchFilter, most: int = MOST_MATCHES, order: str = RANDOM
) -> Sequence[str]:
    """The ids of up to `most` finished matches of a filter that are not in the coding yet.

    `order`: an order of transcripts, of which the first ones are taken, or RANDOM for a random sample, the same each
    time. Only reads. Raises Invalid for another order, and if there is no such match.
    """
    check_known(session, choice)
    conditions = (*blinded_conditions(choice), is_over(), MatchRow.id.not_in(_select_coded_match_ids(number)))
    found = select(MatchRow.id).where(*conditions)
    if order != RANDOM:
        ids = session.scalars(found.order_by(*placing(order)).limit(most)).all()
    else:
        ids = session.scalars(found.order_by(MatchRow.id)).all()
        ids = random.Random(number).sample(ids, min(most, len(ids)))
    if not ids:
        raise Invalid("coding", expected=Phrase("matches that are over and not in it yet"), got=Phrase("none"))
    return ids


def add_matches(session: Session, coding: Coding, match_ids: Sequence[str]) -> int:
    """Add matches to a coding, in this order; those already in it keep their places. The number of new ones.

    Raises Conflict once a coder is done, or if there would be too many.
    """
    _lock(session, coding)
    if any(coder.done_at for coder in coders_of(session, coding.id)):
        raise Conflict("coding", expected=Phrase("one that nobody has finished"), got=coding.name)
    there = matches_of(session, coding.id)
    new = [each for each in match_ids if each not in there]
    if len(there) + len(new) > MOST_MATCHES:
        expected = Phrase("at most %(most)s matches in a coding", most=MOST_MATCHES)
        raise Conflict("coding", expected=expected, got=len(there) + len(new))
    rounds = select(MatchRow.round_id).where(MatchRow.id.in_(new), MatchRow.round_id.is_not(None))
    hold(session, session.scalars(select(RoundRow).where(RoundRow.id.in_(rounds))))
    session.add_all(CodedMatch(coding_id=coding.id, match_id=each, place=len(there) + n) for n, each in enumerate(new))
    session.flush()
    return len(new)


def codes_of(session: Session, number: int) -> Sequence[CodingCode]:
    """The codes of a coding, by their keys."""
    return session.scalars(select(CodingCode).where(CodingCode.coding_id == number).order_by(CodingCode.key)).all()


def matches_of(session: Session, number: int) -> Sequence[str]:
    """The ids of a coding's matches, in order."""
    return session.scalars(_select_coded_match_ids(number).order_by(CodedMatch.place, CodedMatch.match_id)).all()


def _select_coded_match_ids(number: int) -> Select[str]:
    return select(CodedMatch.match_id).where(CodedMatch.coding_id == number)


def coders_of(session: Session, number: int) -> Sequence[Coder]:
    """The coders of a coding, by name."""
    return session.scalars(select(Coder).where(Coder.coding_id == number).order_by(Coder.name)).all()


def toggle(session: Session, coding: Coding, coder: str, match_id: str, seq: int, key: int) -> bool:
    """Give a line, or with WHOLE_MATCH the match, the code of that key, or take it back; whether it now has it.

    Raises NotFound for a match, line or code that the coding does not have, and Conflict for a coder who is done.
    """
    _find_or_add_coder(session, coding, coder)
    code = session.scalar(select(CodingCode).where(CodingCode.coding_id == coding.id, CodingCode.key == key))
    if code is None:
        raise NotFound("code", expected=Phrase("the key of a code of this coding"), got=key)
    if not is_storable(match_id) or session.get(CodedMatch, (coding.id, match_id)) is None:
        raise NotFound("match", expected=Phrase("a match of this coding"), got=match_id)
    if seq != WHOLE_MATCH and seq not in line_numbers(session, [match_id])[match_id]:
        raise NotFound("line", expected=Phrase("a line of this match"), got=seq)
    row = {"coding_id": coding.id, "match_id": match_id, "coder": coder, "seq": seq, "code_id": code.id}
    given = session.scalar(select(GivenCode).filter_by(**row))
    if given is not None:
        session.delete(given)
    else:
        session.add(GivenCode(**row, at=datetime.now(UTC)))
    session.flush()
    return given is None


def undo(session: Session, coding: Coding, coder: str) -> GivenCode | None:
    """Take back the code that a coder gave last; None if there is none. Raises Conflict for a coder who is done."""
    _find_or_add_coder(session, coding, coder)
    own = select(GivenCode).where(GivenCode.coding_id == coding.id, GivenCode.coder == coder)
    last = session.scalar(own.order_by(GivenCode.id.desc()).limit(1))
    if last is not None:
        session.delete(last)
        session.flush()
    return last


def finish(session: Session, coding: Coding, coder: str) -> None:
    """Mark a coder as done, for good. Raises Conflict if there is no match to code, or for one who is already done."""
    found = _find_or_add_coder(session, coding, coder)
    if not matches_of(session, coding.id):
        raise Conflict("coding", expected=Phrase("one with matches"), got=Phrase("none"))
    found.done_at = datetime.now(UTC)
    session.flush()


def left_coders(session: Session, number: int) -> list[Coder]:
    """The coders who are not done and never will be, because their account is gone."""
    accounts = select(User.name)
    which = (Coder.coding_id == number, Coder.done_at.is_(None), Coder.name.not_in(accounts))
    return [*session.scalars(select(Coder).where(*which).order_by(Coder.name))]


def end_left(session: Session, coding: Coding, name: str, *, drop: bool) -> int:
    """End the work of a coder whose account is gone: with `drop` their codes are deleted, else they count as done. The
    number of codes they gave. Raises NotFound for an unknown name, and Conflict for any other coder.
    """
    _lock(session, coding)
    coder = session.get(Coder, (coding.id, name)) if is_storable(name) else None
    if coder is None:
        raise NotFound("coder", expected=Phrase("a coder of this coding"), got=name)
    if name not in {each.name for each in left_coders(session, coding.id)}:
        expected = Phrase("one who is not done and whose account was removed")
        raise Conflict("coder", expected=expected, got=name, remedy=Phrase("all others end it themselves"))
    own = (GivenCode.coding_id == coding.id, GivenCode.coder == name)
    given = session.scalar(select(func.count()).select_from(GivenCode).where(*own)) or 0
    if drop:
        session.execute(delete(GivenCode).where(*own))
        session.delete(coder)
    else:
        coder.done_at = datetime.now(UTC)
    session.flush()
    return given


def seen_coders(session: Session, number: int, reader: str) -> list[str]:
    """The coders whose codes an experimenter sees: their own, and, once they are done, those of all others who are
    done.
    """
    coders = coders_of(session, number)
    done = [each.name for each in coders if each.done_at is not None]
    return sorted({*done, reader}) if reader in done else [reader]


def given_codes(
    session: Session, number: int, coders: Sequence[str], match_id: str | None = None
) -> Sequence[GivenCode]:
    """The codes that these coders gave, of one match or of all, by match, line, coder and code."""
    found = (
        select(GivenCode)
        .join(CodedMatch, (CodedMatch.coding_id == GivenCode.coding_id) & (CodedMatch.match_id == GivenCode.match_id))
        .where(GivenCode.coding_id == number, GivenCode.coder.in_(coders))
    )
    if match_id is not None:
        found = found.where(GivenCode.match_id == match_id)
    order = CodedMatch.place, GivenCode.match_id, GivenCode.seq, GivenCode.coder, GivenCode.code_id
    return session.scalars(found.order_by(*order)).all()


def forget_codes(session: Session, match_id: str) -> int:
    """Remove a match from all codings, with the codes given to it; the number of those codings."""
    there = session.scalar(select(func.count()).select_from(CodedMatch).where(CodedMatch.match_id == match_id)) or 0
    session.execute(delete(GivenCode).where(GivenCode.match_id == match_id))
    session.execute(delete(CodedMatch).where(CodedMatch.match_id == match_id))
    return there


def _find_or_add_coder(session: Session, coding: Coding, name: str) -> Coder:
    """The coder of that name, added if new. Raises Conflict for one who is done."""
    _lock(session, coding)
    coder = session.get(Coder, (coding.id, name))
    if coder is None:
        coder = Coder(coding_id=coding.id, name=name)
        session.add(coder)
    if coder.done_at is not None:
        raise Conflict("coding", expected=Phrase("one that you have not finished"), got=coding.name)
    return coder


def _lock(session: Session, coding: Coding) -> None:
    """Lock the coding against changes by others until the transaction ends."""
    session.refresh(coding, with_for_update=True)
