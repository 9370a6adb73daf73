"""Permutations of item types: games that stay the same when their item types are exchanged. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Order = tuple[int, ...]  # which item type each of them becomes: (1, 0, 2) exchanges the first two


class Permutations(NamedTuple):
    """How a match reads when its game's item types are permuted. The rules and the scores stay the same.

    `orders` are all but the usual one. `of_config` gives the resolved config in an order, `of_move` takes the kind, the
    text and the data of an accepted move and gives (text, data), and `of_text` gives other words, such as reasoning;
    the last two are None if the items are named in a way that cannot be exchanged.
    """

    orders: Sequence[Order]
    of_config: Callable[[Mapping[str, Any], Order], dict[str, Any]]
    of_move: Callable[[str, str, Mapping[str, Any], Order], tuple[str, dict[str, Any]] | None]
    of_text: Callable[[str, Order], str | None]
