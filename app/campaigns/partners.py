"""The partners that a campaign's models play with, and learn in the matches with: each in a share of the matches."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from app.core.errors import Invalid, Phrase, Verbatim
from app.core.validation import real_number


class PlayPartner(NamedTuple):
    """A model of the registry, and the share of a round's matches that are played against it."""

    name: str
    share: float


def read_play_partners(raw: Iterable[Any]) -> tuple[PlayPartner, ...]:
    """Partners from "MODEL", "MODEL=SHARE" or pairs; a model without a share gets as much as is left for itself.

    Raises Invalid.
    """
    found: dict[str, Any] = {}
    for each in raw:
        name, share = _parted(each) if isinstance(each, str) else each
        if not name or name in found:
            raise Invalid("play_with", expected=Phrase("models such as scripted=0.25, each once"), got=each)
        found[str(name)] = share
    given = {name: _share(share) for name, share in found.items() if share is not None}
    rest = 1 - round(sum(given.values()), 9)  # 0.7 + 0.1 + 0.1 + 0.1 is 1, whatever binary fractions say
    if rest <= 0:
        raise Invalid(
            "play_with",
            expected=Phrase("shares below 1 in all, as some matches are the model’s with itself"),
            got=Verbatim(f"{1 - rest:g}"),
        )
    equal = rest / (len(found) - len(given) + 1)
    return tuple(PlayPartner(name, given.get(name, equal)) for name in found)


def matches_against(partners: Sequence[PlayPartner], matches: int) -> Mapping[str, int]:
    """How many of so many matches are played against each partner: an even number, half of them from either seat."""
    return {each.name: int(matches * each.share + 1e-9) // 2 * 2 for each in partners}


def _parted(text: str) -> tuple[str, str | None]:
    name, mark, share = (part.strip() for part in text.rpartition("="))
    return (name, share) if mark else (share, None)


def _share(raw: Any) -> float:
    try:
        share = real_number(raw, "play_with", 0, 1)
    except Invalid:
        share = 0
    if not 0 < share < 1:
        raise Invalid("play_with", expected=Phrase("a share above 0 and below 1"), got=raw)
    return share
