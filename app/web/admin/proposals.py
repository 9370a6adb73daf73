"""The proposals of both seats of a negotiation for experimenters: by item, together, and in points. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from app.games.base import JSON, Event
from app.games.negotiation.contexts import ITEMS
from app.matches.events import Ended

Share = Mapping[str, int]  # the number of each item


class Proposals(NamedTuple):
    """The proposals made so far. `asked` and `points` are by seat, None for a seat that has made none.

    `over` is what both together ask for beyond the available items, `left` what nobody asks for; both are empty if the
    proposals fit, and if there are fewer than two.
    """

    counts: Share
    asked: tuple[Share | None, Share | None]
    points: tuple[int | None, int | None]  # the worth of a seat's own proposal to itself
    over: Share
    left: Share

    @property
    def both(self) -> bool:
        return None not in self.asked


def items_asked_for(event: Any) -> Share | None:
    """The items that a proposal asks for; None for any other event."""
    if isinstance(event, Event) and "allocation" in event.data:
        return dict(zip(ITEMS, event.data["allocation"], strict=True))
    return None


def shares(event: Any) -> Sequence[Share]:
    """Each seat's share of a deal, from the event that ended its match; empty for any other event."""
    if isinstance(event, Ended):
        return [dict(zip(ITEMS, each, strict=True)) for each in event.facts.get("allocations", ())]
    return ()


def proposals_of(events: Sequence[Any], views: Sequence[JSON]) -> Proposals | None:
    """The proposals among the events of a match, with the private views of both seats; None without any proposal."""
    latest: list[Share | None] = [None, None]
    for event in events:
        if (asked := items_asked_for(event)) is not None:
            latest[event.seat] = asked
    first, second = latest
    if first is None and second is None:
        return None
    counts: Share = views[0]["facts"]["counts"]
    values = [view["secret"]["values"] for view in views]
    gap = {}
    if first is not None and second is not None:
        gap = {item: first[item] + second[item] - counts[item] for item in ITEMS}
    return Proposals(
        counts,
        (first, second),
        (_points_of_share(first, values[0]), _points_of_share(second, values[1])),
        {item: more for item, more in gap.items() if more > 0},
        {item: -less for item, less in gap.items() if less < 0},
    )


def _points_of_share(share: Share | None, values: Share) -> int | None:
    return None if share is None else sum(share[item] * values[item] for item in ITEMS)
