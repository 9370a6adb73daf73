"""The names that the models of a round have returned; a change within the round is reported. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from app.core.errors import Phrase, Verbatim

_MOST = 10  # names kept for a model
Names = dict[str, list[str]]  # by the number of the registry row, in order of appearance


def with_calls(names: Mapping[str, list[str]] | None, calls: Iterable[Mapping[str, Any]]) -> Names:
    """The names, extended by those of further calls; a call without an answer has none."""
    found = {number: [*known] for number, known in (names or {}).items()}
    for call in calls:
        if call["error"] is None and call["language_model_id"] is not None:
            known = found.setdefault(str(call["language_model_id"]), [])
            if call["model"] not in known and len(known) < _MOST:
                known.append(call["model"])
    return found


def changes(names: Mapping[str, list[str]] | None, models: Mapping[int, str]) -> list[Phrase]:
    """A line for each model whose returned name has changed; `models` are the registry's names by number."""
    return [
        Phrase(
            "%(model)s changed in mid-round: it called itself %(names)s",
            model=Verbatim(models.get(int(number), number)),
            names=Verbatim(", ".join(known)),
        )
        for number, known in (names or {}).items()
        if len(known) > 1
    ]
