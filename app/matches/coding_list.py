"""The list of codings, the latest first, and everything visible of a single one."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.core.errors import Conflict, Phrase, Verbatim
from app.core.lists import COMMANDS, ListColumn, Listing, Reference, attribute, of_other
from app.games.base import JSON
from app.matches.codings import WHOLE_MATCH, coders_of, codes_of, matches_of
from app.matches.export_codings import coded_rows, finished_coding
from app.models import CodedMatch, Coder, Coding


class CodingItem(NamedTuple):
    """A coding in a list: the number of its matches, and its coders with whether each is done."""

    row: Coding
    matches: int
    coders: Sequence[Coder]


def _coding_items(session: Session, rows: Sequence[Coding]) -> list[CodingItem]:
    ids = [row.id for row in rows]
    counted = select(CodedMatch.coding_id, func.count()).where(CodedMatch.coding_id.in_(ids))
    matches = dict(session.execute(counted.group_by(CodedMatch.coding_id)).all())
    coders: dict[int, list[Coder]] = defaultdict(list)
    for coder in session.scalars(select(Coder).where(Coder.coding_id.in_(ids)).order_by(Coder.name)):
        coders[coder.coding_id].append(coder)
    return [CodingItem(row, matches.get(row.id, 0), coders[row.id]) for row in rows]


def _coder(coder: Coder) -> Phrase | Verbatim:
    name = Verbatim(coder.name)
    return name if coder.done_at is None else Phrase("%(coder)s (done)", coder=name)


LIST: Listing[Coding] = Listing(
    name="codings",
    table=Coding,
    columns=(
        ListColumn(
            "name", Phrase("Coding"), lambda each: Reference("coding", each.row.id, each.row.name), sort=Coding.name
        ),
        attribute(Coding.id, Phrase("Number"), "coding_id", numeric=True, seen=COMMANDS),
        ListColumn(
            "matches",
            Phrase("Matches"),
            lambda each: each.matches,
            sort=of_other(func.count(), CodedMatch.coding_id == Coding.id),
            numeric=True,
        ),
        ListColumn(
            "coders",
            Phrase("Coders"),
            lambda each: [*map(_coder, each.coders)] or None,
            sort=of_other(func.min(Coder.name), Coder.coding_id == Coding.id),
            none=Phrase("nobody yet"),
        ),
        attribute(Coding.created_by, Phrase("Created by")),
        attribute(Coding.created_at, Phrase("Created, UTC"), numeric=True),
    ),
    items=_coding_items,
)


def coding_json(session: Session, coding: Coding) -> JSON:
    """Everything visible of a coding: the given codes are None until all coders are done."""
    try:
        given = [
            {
                "match_id": row.given.match_id,
                "seq": None if row.given.seq == WHOLE_MATCH else row.given.seq,
                "coder": row.given.coder,
                "key": row.code.key,
                "at": row.given.at.isoformat(timespec="seconds"),
            }
            for row in coded_rows(session, *finished_coding(session, coding.name))
        ]
    except Conflict:
        given = None
    return {
        "coding_id": coding.id,
        "name": coding.name,
        "created_by": coding.created_by,
        "created_at": coding.created_at.isoformat(timespec="seconds"),
        "codes": [{"key": code.key, "name": code.name, "help": code.help} for code in codes_of(session, coding.id)],
        "coders": [{"name": each.name, "done": each.done_at is not None} for each in coders_of(session, coding.id)],
        "matches": [*matches_of(session, coding.id)],
        "given": given,
    }
