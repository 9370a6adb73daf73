"""The words for a rating in a cell of the grid on pages of societies."""

from typing import NamedTuple

from flask_babel import format_decimal, gettext

from app.society.config import LARGEST_RATING
from app.society.grid import FAILED, SHOWN, UNREAD

SHOWS = SHOWN  # the grid begins with the first one


class CellWords(NamedTuple):
    """A cell of the grid: its class, its text, and the text for screen readers. As in society-cells.js."""

    look: str
    text: str
    said: str


def cell_of(tenths: int | None) -> CellWords:
    """The cell of a rating as `app/society/grid.py` gives it."""
    if tenths is None:
        return CellWords("rate-open", "", gettext("not over"))
    if tenths == FAILED:
        return CellWords("rate-none", "×", gettext("failed"))
    if tenths == UNREAD:
        return CellWords("rate-none", "–", gettext("not rated"))
    number = str(format_decimal(tenths / 10, "0.#"))
    return CellWords(f"rate-{min(LARGEST_RATING, max(1, (tenths + 5) // 10))}", number, number)
