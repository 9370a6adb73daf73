"""The codes that coders gave, as CSV: one row per code. The transcripts' texts are not included."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.csv_tables import Column
from app.core.errors import Conflict, NotFound, Phrase
from app.matches.codings import WHOLE_MATCH, coders_of, codes_of, given_codes, left_coders
from app.models import Coding, CodingCode, GivenCode


class CodedRow(NamedTuple):
    """A row of the file."""

    coding: Coding
    code: CodingCode
    given: GivenCode


COLUMNS = (
    Column("coding", "text", "The coding.", "a name", lambda row: row.coding.name),
    Column("match_id", "text", "The match, as in matches.csv.", "22 characters", lambda row: row.given.match_id),
    Column("seq", "integer", "The line that has the code, by its place in the log, as in events.csv.",
           "from 1; empty for the match as a whole",
           lambda row: None if row.given.seq == WHOLE_MATCH else row.given.seq),
    Column("coder", "text", "The experimenter who gave the code.", "a name", lambda row: row.given.coder),
    Column("key", "integer", "The key of the code.", "1 to 8", lambda row: row.code.key),
    Column("code", "text", "The code.", "a name", lambda row: row.code.name),
    Column("at", "time", "When it was given.", "ISO 8601 in UTC, 2026-01-31T12:00:00.000Z", lambda row: row.given.at),
)  # fmt: skip


def coded_rows(session: Session, coding: Coding, coders: Sequence[str]) -> Iterator[CodedRow]:
    """The codes that these coders gave, by match, line and coder."""
    codes = {code.id: code for code in codes_of(session, coding.id)}
    return (CodedRow(coding, codes[each.code_id], each) for each in given_codes(session, coding.id, coders))


def finished_coding(session: Session, name: str) -> tuple[Coding, list[str]]:
    """The coding of that name and its coders, all of whom are done; one who is not done but gave no code is ignored.

    Raises NotFound, and Conflict while somebody is still coding: nobody may see others' codes before that.
    """
    coding = session.scalar(select(Coding).where(Coding.name == name))
    if coding is None:
        raise NotFound("coding", expected=Phrase("the name of one that exists"), got=name)
    coders = coders_of(session, coding.id)
    done = [coder.name for coder in coders if coder.done_at is not None]
    others = [coder.name for coder in coders if coder.done_at is None]
    if going_on := sorted({each.coder for each in given_codes(session, coding.id, others)}):
        left = ", ".join(each.name for each in left_coders(session, coding.id) if each.name in going_on)
        remedy = Phrase(
            "`flask match end-coder %(number)s CODER` ends what %(left)s left, whose account is gone",
            number=coding.id, left=left,
        ) if left else None  # fmt: skip
        expected = Phrase("one whose coders are all done")
        raise Conflict("coding", expected=expected, got=", ".join(going_on), remedy=remedy)
    return coding, done
