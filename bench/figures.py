"""Pure sums: percentiles, and whether a log holds what was acknowledged, once and without gaps."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

Move = tuple[str, str]  # match, move_id


class Row(NamedTuple):
    """One row of a log. `is_move`: an accepted move, which has a ply of its own."""

    match: str
    seq: int
    is_move: bool
    ply: int
    move_id: str | None


@dataclass(frozen=True, slots=True)
class Check:
    """A comparison of a log with what its clients sent and received. All zero: the log holds exactly that."""

    lost: int  # acknowledged, but not in the log at the acknowledged ply
    doubled: int  # moves that occur again in the log
    gaps: int  # logs with a missing or misplaced seq or ply
    strangers: int  # clients' moves in the log that no client sent

    @property
    def clean(self) -> bool:
        return not (self.lost or self.doubled or self.gaps or self.strangers)


def verify(rows: Iterable[Row], sent: set[Move], acknowledged: Mapping[Move, int]) -> Check:
    """Compare logs, ordered by match and seq, with the moves sent and the ply that each acknowledgement named."""
    plies: dict[Move, int] = {}
    times: Counter[Move] = Counter()
    gaps = 0
    for match, events in groupby(rows, lambda row: row.match):
        log = list(events)
        moves = [row for row in log if row.is_move]
        in_order = [row.seq for row in log] == list(range(len(log)))
        gaps += not (in_order and [row.ply for row in moves] == list(range(len(moves))))
        for row in moves:
            if row.move_id is not None:
                plies[match, row.move_id] = row.ply
                times[match, row.move_id] += 1
    return Check(
        lost=sum(1 for move, ply in acknowledged.items() if plies.get(move) != ply - 1),
        doubled=sum(count - 1 for count in times.values()),
        gaps=gaps,
        strangers=len(plies.keys() - sent),
    )


def shares(
    timed: Iterable[tuple[float, float]], times: Sequence[tuple[float, float]]
) -> tuple[list[float], list[float]]:
    """Values outside and inside some time spans, by the moment (of the same clock) of each value."""
    outside: list[float] = []
    inside: list[float] = []
    for at, value in timed:
        (inside if any(since <= at < until for since, until in times) else outside).append(value)
    return outside, inside


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest of the ordered values that at least `share` of them do not exceed; nan when there are none."""
    if not ordered:
        return math.nan
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def percentiles(values: Iterable[float]) -> dict[str, float]:
    """p50, p95, p99 and the maximum."""
    ordered = sorted(values)
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {name: percentile(ordered, share) for name, share in shares.items()}
