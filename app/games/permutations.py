"""Orders of item types: which games are the same game when their item types are exchanged for each other. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Order = tuple[int, ...]  # which item type each of them becomes: (1, 0, 2) exchanges the first two


class Permutations(NamedTuple):
    """How a match reads when the item types of its game are exchanged. The rules and the scores stay the same.

    `orders` are all but the usual one. `of_config` gives the resolved config in an order, `of_move` the kind, the text
    and the data of an accepted move as (text, data), and `of_text` other words, such as reasoning; both are None where
    the items are named in a way that cannot be exchanged.
    """

    orders: Sequence[Order]
    of_config: Callable[[Mapping[str, Any], Order], dict[str, Any]]
    of_move: Callable[[str, str, Mapping[str, Any], Order], tuple[str, dict[str, Any]] | None]
    of_text: Callable[[str, Order], str | None]
