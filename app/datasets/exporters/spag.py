"""Writes matches of Adversarial Taboo in the format of the published games: `[{history, target_word, max_turns},
…]`.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path

from app.core.errors import Invalid, Verbatim
from app.core.files import file_problem, temporary_beside
from app.datasets.records import ExportableMatch
from app.datasets.spag_episode import episode_of


def write_spag(matches: Iterable[ExportableMatch], file: Path | str) -> int:
    """Write the matches to a file in their order, one at a time, and return their number.

    The file is written beside its place and renamed when complete. Raises Invalid for a file that cannot be written,
    and for a match of another game; nothing is left behind then.
    """
    target = Path(file).resolve()  # what a link points at is replaced, not the link
    if target.is_dir():
        raise Invalid(None, expected="a file", got=Verbatim("a folder"), subject=file)
    try:
        with temporary_beside(target) as draft, draft.open("x", encoding="ascii") as into:
            written = 0
            for match in matches:
                into.write(",\n" if written else "[\n")
                into.write(json.dumps(episode_of(match)))
                written += 1
            into.write("\n]\n" if written else "[]\n")
            into.flush()
            os.fsync(into.fileno())
    except OSError as error:
        raise Invalid(
            None, expected="a file that can be written", got=Verbatim(file_problem(error)), subject=file
        ) from None
    return written
