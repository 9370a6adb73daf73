"""Writes matches of Deal or No Deal in the format of the published self-play (see `lm_folder`), for its own
programs.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from app.core.errors import Invalid, Verbatim
from app.core.files import file_problem, temporary_beside
from app.datasets.lm_folder import LOGS, RESULTS, SCORES, TEXTS, number, record_of
from app.datasets.records import ExportableMatch


def write_lm_selfplay(matches: Iterable[ExportableMatch], folder: Path | str) -> int:
    """Write the matches, which are ordered by index, to a new or empty folder, and return their number.

    The folder is made beside its place and renamed when complete. Raises Invalid for a folder that is not empty or
    cannot be written, and for matches of another game or not over; nothing is left behind then.
    """
    place = Path(folder)
    try:
        if place.exists() and (not place.is_dir() or any(place.iterdir())):
            got = "a folder with something in it" if place.is_dir() else "a file"
            raise Invalid(None, expected="a new or an empty folder", got=Verbatim(got), subject=place)
        target = place.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary_beside(target) as draft:
            draft.mkdir()
            written = _write_matches(matches, draft)
    except OSError as error:
        raise Invalid(
            None, expected="a folder that can be written", got=Verbatim(file_problem(error)), subject=place
        ) from None
    return written


def _write_matches(matches: Iterable[ExportableMatch], folder: Path) -> int:
    for part in (LOGS, RESULTS, TEXTS):
        (folder / part).mkdir()
    written, before = 0, -1
    first, second = ((folder / name).open("w", encoding="utf-8") for name in SCORES)
    with first as scores_0, second as scores_1:
        for match in matches:
            if match.index <= before:
                raise Invalid(
                    "match",
                    expected=f"an index above that of the match before, {before}",
                    got=match.index,
                    subject=f"match {match.index}",
                )
            before = match.index
            record = record_of(match)
            stem = number(match.index)
            _put_json(folder / LOGS / f"{stem}_p0.json", record.log_0)
            _put_json(folder / LOGS / f"{stem}_p1.json", record.log_1)
            _put_json(folder / RESULTS / f"{stem}.json", record.result)
            _put_text(folder / TEXTS / f"{stem}_full.txt", record.full)
            for seat, text in enumerate((record.player_0, record.player_1)):
                if text is not None:
                    _put_text(folder / TEXTS / f"{stem}_p{seat}.txt", text)
            scores_0.write(f"{record.score_0} \n")
            scores_1.write(f"{record.score_1} \n")
            written += 1
    return written


def _put_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value), encoding="ascii", newline="")


def _put_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="")
