"""Agreement between the coders of a coding: Krippendorff's alpha of each code, over all lines, and over whole matches.

Each line is a unit: a coder gave it the code or did not. For the codes of whole matches, each match is a unit.

Source: Krippendorff, Content Analysis, 4th ed. (2018), chapter 12; computed by the library krippendorff
"""

from collections.abc import Collection, Sequence
from importlib import import_module
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.core.errors import Conflict, Phrase
from app.matches.codings import WHOLE_MATCH, codes_of, given_codes, matches_of
from app.matches.text_index import line_numbers
from app.models import CodingCode

LINES, MATCHES = "lines", "matches"

Unit = tuple[str, int]  # a match, and a line of it or WHOLE_MATCH


class Agreement(NamedTuple):
    """The coders' agreement on a code; `unit` is one of LINES and MATCHES, `units` the number of these.

    `given` is how many units have the code, by coder; `differ` how many have it from some coders but not from others.
    `alpha` is None if nobody gave the code to any unit, or everybody gave it to all: nothing varies.
    """

    code: CodingCode
    unit: str
    units: int
    given: tuple[int, ...]
    differ: int
    alpha: float | None


def agreement(session: Session, number: int, coders: Sequence[str]) -> list[Agreement]:
    """The agreement of these coders, who are done, on each code by its key; on whole matches if some have the code.

    Raises Conflict where the library is not installed.
    """
    match_ids = matches_of(session, number)
    lines = [(match_id, seq) for match_id, seqs in line_numbers(session, match_ids).items() for seq in seqs]
    whole = [(match_id, WHOLE_MATCH) for match_id in match_ids]
    by_code: dict[int, dict[str, set[Unit]]] = {}
    for each in given_codes(session, number, coders):
        of_code = by_code.setdefault(each.code_id, {coder: set() for coder in coders})
        of_code[each.coder].add((each.match_id, each.seq))
    found = []
    for code in codes_of(session, number):
        marks = [by_code.get(code.id, {}).get(coder, set()) for coder in coders]
        found.append(_agreement(code, LINES, lines, marks))
        if any(seq == WHOLE_MATCH for marked in marks for _, seq in marked):
            found.append(_agreement(code, MATCHES, whole, marks))
    return found


def alpha_of(ratings: Sequence[Sequence[int]]) -> float | None:
    """Krippendorff's alpha of nominal ratings, of shape (coders, units); None where there are none or all are the same.

    Raises Conflict where the library is not installed.
    """
    if len({rating for coder in ratings for rating in coder}) < 2:
        return None
    try:
        krippendorff = import_module("krippendorff")  # it loads numpy, which no other page of codings needs
    except ModuleNotFoundError:
        raise Conflict(
            None,
            expected=Phrase("the library krippendorff"),
            got=Phrase("a Parlor without it"),
            remedy=Phrase("`pip install 'parlor[agreement]'` installs it"),
        ) from None
    return float(krippendorff.alpha(reliability_data=[[*coder] for coder in ratings], level_of_measurement="nominal"))


def _agreement(code: CodingCode, unit: str, units: Sequence[Unit], marks: Sequence[Collection[Unit]]) -> Agreement:
    ratings = [[int(each in marked) for each in units] for marked in marks]
    differ = sum(len(set(of_unit)) > 1 for of_unit in zip(*ratings, strict=True))
    return Agreement(code, unit, len(units), tuple(map(sum, ratings)), differ, alpha_of(ratings))
