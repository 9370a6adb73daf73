"""The same negotiation with books, hats and balls permuted: counts, values, and the words for them.

A text is renamed as a whole or not at all. Items are named by `book`, `hat` and `ball`, in the singular or the plural;
if a text also names them by a nickname, a misspelling or a picture, or by bare numbers or positions, which stand for
items by their order, its meaning in another order is uncertain. Pure.
"""

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from app.games.negotiation.contexts import ITEMS, Counts, three
from app.games.negotiation.vocabulary import ITEMS as ITEM_WORDS
from app.games.negotiation.vocabulary import NUMBERS
from app.games.permutations import Order, Permutations

_FORMS = {f"{item}{ending}": (place, ending) for place, item in enumerate(ITEMS) for ending in ("", "s")}
_CASES: Sequence[Callable[[str], str]] = (str.lower, str.capitalize, str.upper)
_WORD = re.compile(r"[a-z]+", re.IGNORECASE)
_PROPOSED = re.compile(r"(-?[0-9]+\s+)([a-z]+)", re.IGNORECASE)
_NUMBER = rf"(?:[0-9]+|\b(?:{'|'.join(sorted(word for word in NUMBERS if len(word) > 2 and word.isalpha()))})\b)"
_BY_PLACE = re.compile(
    rf"{_NUMBER}(?:[\s,;:/|+–—-]+(?:and\s+)?{_NUMBER}){{2}}"
    r"|\b(?:first|second|third|last)\s+(?:\w+\s+)?(?:item|type|kind|thing)s?\b|\b(?:item|type|kind)s?\s*[#0-9]"
    "|[📕📖📗📘📙📚🎩👒🧢⚽🏀🎾🏐⚾🏈]",
    re.IGNORECASE,
)


def _text_with_items_renamed(text: str, order: Order) -> str | None:
    """A text with each item's words replaced by those of the item that it becomes; None if that is uncertain."""
    if _BY_PLACE.search(text):
        return None
    words = _WORD.findall(text)
    if any(word.lower() in ITEM_WORDS and not _is_usual(word) for word in words):
        return None
    return _WORD.sub(lambda found: _other_word(found[0], order), text)


def _is_usual(word: str) -> bool:
    return word.lower() in _FORMS and any(word == case(word) for case in _CASES)


def _other_word(word: str, order: Order) -> str:
    if word.lower() not in _FORMS:
        return word
    item, ending = _FORMS[word.lower()]
    case = next(case for case in _CASES if word == case(word))
    return case(f"{ITEMS[order[item]]}{ending}")


def _moved(numbers: Sequence[int], order: Order) -> Counts:
    """The numbers of each item, moved to the position of the item that it becomes."""
    return three([numbers[order.index(item)] for item in range(len(ITEMS))])


def _config_in(config: Mapping[str, Any], order: Order) -> dict[str, Any]:
    counts, values = config["counts"], config["values"]
    moved = {"counts": [*_moved(counts, order)], "values": [[*_moved(each, order)] for each in values]}
    return {**config, **moved}


def _move_in(kind: str, text: str, data: Mapping[str, Any], order: Order) -> tuple[str, dict[str, Any]] | None:
    """A message renamed; or a proposal, which names the items in their usual order, with its numbers moved."""
    if kind == "message":
        renamed = _text_with_items_renamed(text, order)
        return None if renamed is None else (renamed, dict(data))
    parts = list(_PROPOSED.finditer(text))
    words = [_FORMS.get(part[2].lower(), (None, ""))[0] for part in parts]
    if words != [*range(len(ITEMS))] or [int(part[1]) for part in parts] != [*data["allocation"]]:
        return None
    if not all(_is_usual(part[2]) for part in parts):
        return None
    moved = (f"{parts[at][1]}{_other_word(parts[at][2], order)}" for at in map(order.index, range(len(ITEMS))))
    return _PROPOSED.sub(lambda _: next(moved), text), {**data, "allocation": [*_moved(data["allocation"], order)]}


ITEM_ORDERS = Permutations(
    orders=tuple(order for order in itertools.permutations(range(len(ITEMS))) if order != (0, 1, 2)),
    of_config=_config_in,
    of_move=_move_in,
    of_text=_text_with_items_renamed,
)
