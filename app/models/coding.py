"""Codings: a set of codes, the matches that are coded with it, the coders, and the codes that they gave."""

from datetime import datetime

from sqlalchemy import ForeignKey, ForeignKeyConstraint, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.core.extensions import Model
from app.models.match import MATCH_ID
from app.models.types import UtcDateTime

CODER = String(80)  # an experimenter's name, which outlives the account


class Coding(Model):
    """A set of codes with the matches that are coded with it."""

    __tablename__ = "coding"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(80), unique=True)
    created_by: Mapped[str] = mapped_column(CODER)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class CodingCode(Model):
    """A code of a coding, with the key that gives it, from 1 to 8."""

    __tablename__ = "code"
    __table_args__ = (UniqueConstraint("coding_id", "key"), UniqueConstraint("coding_id", "name"))

    id: Mapped[int] = mapped_column(primary_key=True)
    coding_id: Mapped[int] = mapped_column(ForeignKey("coding.id", ondelete="CASCADE"))
    key: Mapped[int]
    name: Mapped[str] = mapped_column(String(40))
    help: Mapped[str] = mapped_column(String(300))


class CodedMatch(Model):
    """A match of a coding. It is deleted, with its codes, when somebody deletes what was written in it."""

    __tablename__ = "coded_match"

    coding_id: Mapped[int] = mapped_column(ForeignKey("coding.id", ondelete="CASCADE"), primary_key=True)
    match_id: Mapped[str] = mapped_column(
        MATCH_ID, ForeignKey("match.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    place: Mapped[int]  # position in the coding order, from 0


class Coder(Model):
    """An experimenter who codes; from `done_at` on, their codes do not change, and other coders who are done see
    them.
    """

    __tablename__ = "coder"

    coding_id: Mapped[int] = mapped_column(ForeignKey("coding.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(CODER, primary_key=True)
    done_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class GivenCode(Model):
    """A code that a coder gave to a line of a match, by its place in the log; place 0, the beginning, is the whole
    match.
    """

    __tablename__ = "given_code"
    __table_args__ = (
        UniqueConstraint("coding_id", "coder", "match_id", "seq", "code_id"),
        ForeignKeyConstraint(
            ["coding_id", "match_id"], ["coded_match.coding_id", "coded_match.match_id"], ondelete="CASCADE"
        ),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    coding_id: Mapped[int]
    match_id: Mapped[str] = mapped_column(MATCH_ID)
    coder: Mapped[str] = mapped_column(CODER)
    code_id: Mapped[int] = mapped_column(ForeignKey("code.id", ondelete="CASCADE"), index=True)
    seq: Mapped[int]
    at: Mapped[datetime] = mapped_column(UtcDateTime)
