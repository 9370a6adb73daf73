"""The models that estimate ratings: a Bradley–Terry model with ties, and an additive model of points. Pure.

Both are fitted to sums over blocks of contexts, so that a resample of contexts is a weighted sum of these. `resampled`
(r, b) says how often each of b blocks was drawn.

Source: Bradley & Terry 1952, Rank analysis of incomplete block designs; Davidson 1970, On extending the Bradley–Terry
model to accommodate ties in paired comparison experiments (ties, and an effect of the order).
"""

import math
from dataclasses import dataclass

import numpy as np

from app.analysis.bootstrap import Booleans, Floats, Integers
from app.analysis.results import FIRST, SECOND, TIE, Results

PRIOR = 0.01  # the log-likelihood penalty per strength²; keeps ratings finite for players who won everything
POINTS_TO_TEN = 400  # between two players of whom one wins ten times as often as it loses
MIDDLE = 1_000  # the rating of the average player
_STEPS, _LONGEST_STEP, _NEAR = 60, 2.0, 1e-9
_RIDGE = 1e-9  # times the matches: effects that a resample cannot separate become 0 rather than arbitrary


@dataclass(frozen=True, slots=True)
class PairedWins:
    """A Bradley–Terry model with ties and an advantage for who begins, of k players in c pairs that have met.

    log(P(first wins) / P(second wins)) = strength of the first − strength of the second + advantage. If roles are rated
    separately (`by_role`), a player has a strength in each place; otherwise it has one.
    """

    cells: Integers  # (c, 2) who begins, and the other
    wins: Floats  # (b, c, 3) matches by who got more
    players: int
    by_role: bool
    prior: float = PRIOR

    def strengths(self, resampled: Floats) -> Floats:
        """(r, 2, k) The strengths in each place, on the log scale; 0 is the average player."""
        return self._fitted_parameters(resampled)[:, : 2 * self.players].reshape(-1, 2, self.players)

    def residuals(self) -> tuple[Floats, Floats, Floats]:
        """(c,) Matches, the mean score of who begins (a tie is half a win), and its excess over the fitted score."""
        counts = self.wins.sum(0)
        likely = _probabilities(self._fitted_parameters(np.ones((1, len(self.wins)))), self.cells, self.players)[0]
        number = counts.sum(1)
        observed = (counts[:, FIRST] + counts[:, TIE] / 2) / number
        return number, observed, observed - (likely[:, FIRST] + likely[:, TIE] / 2)

    def _fitted_parameters(self, resampled: Floats) -> Floats:
        """(r, 2k + 2) Strengths by place, the advantage, and the log of how likely ties are, by Newton's method."""
        blocks = len(self.wins)
        counts = (resampled @ self.wins.reshape(blocks, -1)).reshape(len(resampled), -1, 3)
        found = np.zeros((len(resampled), 2 * self.players + 2))
        join, penalty = self._shared(), self._penalty()
        for _ in range(_STEPS):
            gradient, information = self._derivatives(counts, found)
            free = found @ join / join.sum(0)
            step = np.linalg.solve(
                join.T @ information @ join + np.diag(penalty), (gradient @ join - penalty * free)[..., None]
            )
            step = step[..., 0]
            step *= np.minimum(1, _LONGEST_STEP / np.maximum(np.abs(step).max(1), _NEAR))[:, None]
            found += step @ join.T
            if np.abs(step).max() < _NEAR:
                break
        return found

    def _shared(self) -> Floats:
        """(2k + 2, free) Which strengths are shared."""
        count, whole = self.players, np.eye(2 * self.players + 2)
        return whole if self.by_role else np.hstack([whole[:, :count] + whole[:, count : 2 * count], whole[:, -2:]])

    def _penalty(self) -> Floats:
        """(free,) The penalties; the advantage has a tiny one, so that it is 0 where there is no evidence of it."""
        strengths = self.players * (2 if self.by_role else 1)
        return np.array([2 * self.prior] * strengths + [_RIDGE, 2 * self.prior])

    def _derivatives(self, counts: Floats, at: Floats) -> tuple[Floats, Floats]:
        """The gradient of the log-likelihood and its information: (r, 2k + 2) and (r, 2k + 2, 2k + 2)."""
        number, size = counts.sum(2), 2 * self.players + 2
        likely = _probabilities(at, self.cells, self.players)
        ahead = (likely[..., FIRST] - likely[..., SECOND]) / 2
        lead = (counts[..., FIRST] - counts[..., SECOND]) / 2 - number * ahead
        ties = counts[..., TIE] - number * likely[..., TIE]
        spread = number * ((1 - likely[..., TIE]) / 4 - ahead**2)
        both = -number * ahead * likely[..., TIE]
        tied = number * likely[..., TIE] * (1 - likely[..., TIE])
        design = np.zeros((len(self.cells), size))  # of the lead alone
        places = np.arange(len(self.cells))
        design[places, self.cells[:, 0]] = 1
        design[places, self.players + self.cells[:, 1]] = -1
        design[:, -2] = 1
        gradient = lead @ design
        gradient[:, -1] = ties.sum(1)
        information = np.zeros((len(counts), size, size))
        self._add_spread(information, spread)
        information[:, -1, :] = both @ design
        information[:, :, -1] = information[:, -1, :]
        information[:, -1, -1] = tied.sum(1)
        return gradient, information

    def _add_spread(self, information: Floats, spread: Floats) -> None:
        """Add design' × spread × design, which is nearly all 0."""
        first, second, order = self.cells[:, 0], self.players + self.cells[:, 1], information.shape[1] - 2
        for row, row_sign in ((first, 1), (second, -1), (np.full_like(first, order), 1)):
            for column, sign in ((first, 1), (second, -1), (np.full_like(first, order), 1)):
                np.add.at(information.transpose(1, 2, 0), (row, column), row_sign * sign * spread.T)


def _probabilities(at: Floats, cells: Integers, players: int) -> Floats:
    """(r, c, 3) The probability of each outcome of each pair."""
    lead = (at[:, cells[:, 0]] - at[:, players + cells[:, 1]] + at[:, -2:-1]) / 2
    logs = np.stack([lead, -lead, np.broadcast_to(at[:, -1:], lead.shape)], axis=2)
    powers = np.exp(logs - logs.max(2, keepdims=True))
    likely: Floats = powers / powers.sum(2, keepdims=True)
    return likely


def as_rating(strengths: Floats) -> Floats:
    """Strengths on the rating scale."""
    return MIDDLE + strengths * POINTS_TO_TEN / math.log(10)


def paired_wins(results: Results, block: Integers, blocks: int, role: int | None) -> PairedWins:
    """The model of results; `block` (n,) is each line's block. With a `role`, the roles are rated separately."""
    count = len(results.players)
    pairs = results.player[:, 0] * count + results.player[:, 1]
    met, cell = np.unique(pairs, return_inverse=True)
    places = (block * len(met) + cell.reshape(-1)) * 3 + results.more
    wins = np.bincount(places, results.matches, minlength=blocks * len(met) * 3).astype(np.float64)
    wins = wins.reshape(blocks, len(met), 3)
    return PairedWins(np.stack([met // count, met % count], axis=1), wins, count, by_role=role is not None)


@dataclass(frozen=True, slots=True)
class AdditivePoints:
    """Points = player + partner + place + context, by least squares, of k players.

    `grams` and `products` are each block's sums of squares and products, with the effects of contexts removed. The
    columns are: players, partners, the second place, and 1 for contexts that only one pair has played, which share one
    effect because they carry no information about it.
    """

    grams: Floats  # (b, p, p)
    products: Floats  # (b, p)
    totals: Floats  # (b, p + 2) sums of the raw columns, then of points, and the number of seats
    players: int  # some may occur only as partners, others only as players
    lines: "SeatLines"

    def points(self, resampled: Floats) -> Floats:
        """(r, k) Each player's expected points with the average partner, averaged over contexts and places."""
        effects = self._fitted_parameters(resampled)
        totals = resampled @ self.totals
        both = 2 * self.players
        rest = totals[:, -2] - (totals[:, :both] * effects[:, :both]).sum(1)
        middle: Floats = (rest / totals[:, -1])[:, None]
        return effects[:, : self.players] + middle

    def residuals(self) -> Floats:
        """(m,) For each line of seats, the sum of points in excess of the fitted ones."""
        lines, effects = self.lines, self._fitted_parameters(np.ones((1, len(self.grams))))[0]
        fitted = np.append(effects, 0)[lines.columns].sum(1) * lines.number
        above = lines.points - fitted
        shared = lines.shared
        by_side = np.bincount(lines.side[shared], above[shared], minlength=lines.sides)
        number = np.bincount(lines.side[shared], lines.number[shared], minlength=lines.sides)
        own = np.divide(by_side, number, out=np.zeros(lines.sides), where=number > 0)
        left: Floats = above - np.where(shared, own[lines.side] * lines.number, 0)
        return left

    def _fitted_parameters(self, resampled: Floats) -> Floats:
        size = self.grams.shape[1]
        grams = (resampled @ self.grams.reshape(len(self.grams), -1)).reshape(-1, size, size)
        ridge = _RIDGE * (resampled @ self.totals[:, -1])
        ones = np.zeros((size, 2))  # effects of the players present sum to 0, and so do those of partners
        ones[: self.players, 0] = ones[self.players : 2 * self.players, 1] = 1
        ones[~self.totals[:, :size].any(0)] = 0
        left = grams + ones @ ones.T + ridge[:, None, None] * np.eye(size)
        return np.linalg.solve(left, (resampled @ self.products)[..., None])[..., 0].astype(np.float64)


@dataclass(frozen=True, slots=True)
class SeatLines:
    """m lines of seats: what each got in matches that are alike."""

    columns: Integers  # (m, 4) the columns that are 1; the last column of all is always 0
    side: Integers  # (m,)
    sides: int
    shared: Booleans  # (m,) whether several pairs have played this side of the context
    number: Floats  # (m,)
    points: Floats  # (m,)
    player: Integers  # (m, 2) the player and the partner


def additive_points(results: Results, block: Integers, blocks: int, role: int | None, rated: int) -> AdditivePoints:
    """The model of results; `block` (n,) is each line's block. With a `role`, only seats in that role count.

    It covers the seats of the first `rated` players, of which each line has one; the others are their partners.
    """
    count = len(results.players)
    lines, line = _seat_lines(results, role, rated)
    of_block = block[line]
    size = 2 * count + 3  # the last column stands for "none" and is removed below
    grams = _sums_of_products(lines, of_block, blocks, size)
    products = _column_sums_by_block(lines.columns, lines.points, of_block, blocks, size)
    totals = _column_sums_by_block(lines.columns, lines.number, of_block, blocks, size)[:, :-1]
    points = np.bincount(of_block, lines.points, minlength=blocks)
    number = np.bincount(of_block, lines.number, minlength=blocks)
    grams, products = grams[:, :-1, :-1], products[:, :-1]
    _take_out_contexts(grams, products, lines, of_block, size)
    return AdditivePoints(grams, products, np.column_stack([totals, points, number]), count, lines)


def _seat_lines(results: Results, role: int | None, rated: int) -> tuple[SeatLines, Integers]:
    """The seats of the first `rated` players, and the line (m,) of the results that each comes from."""
    count, places = len(results.players), [0, 1] if role is None else [role]
    none, alone = 2 * count + 2, 2 * count + 1
    place = np.repeat(places, len(results.matches))
    line = np.tile(np.arange(len(results.matches)), len(places))
    kept = results.player[line, place] < rated
    place, line = place[kept], line[kept]
    player = np.stack([results.player[line, place], results.player[line, 1 - place]], axis=1)
    side = np.unique(results.side[line, place], return_inverse=True)[1].reshape(-1)
    pair = player[:, 0] * count + player[:, 1]
    sides = int(side.max()) + 1 if len(side) else 0
    pairs_of_side = np.bincount(np.unique(side * count**2 + pair) // count**2, minlength=sides)
    shared = pairs_of_side[side] > 1
    second = np.where((place == SECOND) & (role is None), 2 * count, none)
    columns = np.stack([player[:, 0], count + player[:, 1], second, np.where(shared, none, alone)], axis=1)
    number = results.matches[line].astype(np.float64)
    return SeatLines(columns, side, sides, shared, number, results.points[line, place], player), line


def _column_sums_by_block(columns: Integers, weights: Floats, block: Integers, blocks: int, size: int) -> Floats:
    """(blocks, size) The sums of each column."""
    places = (block[:, None] * size + columns).ravel()
    sums = np.bincount(places, np.repeat(weights, columns.shape[1]), minlength=blocks * size)
    return sums.reshape(blocks, size).astype(np.float64)


def _sums_of_products(lines: SeatLines, block: Integers, blocks: int, size: int) -> Floats:
    grams = np.zeros(blocks * size * size)
    for row in lines.columns.T:
        for column in lines.columns.T:
            grams += np.bincount((block * size + row) * size + column, lines.number, minlength=len(grams))
    return grams.reshape(blocks, size, size)


def _take_out_contexts(grams: Floats, products: Floats, lines: SeatLines, block: Integers, size: int) -> None:
    """Remove the means of each shared side of a context from the sums: what its own effect would explain."""
    kept = np.flatnonzero(lines.shared)
    if not len(kept):
        return
    order = kept[np.argsort(block[kept], kind="stable")]
    edges = np.flatnonzero(np.diff(block[order], prepend=-1))
    for part in np.split(order, edges[1:]):
        sides, side = np.unique(lines.side[part], return_inverse=True)
        side = side.reshape(-1)
        sums = _column_sums_by_block(lines.columns[part], lines.number[part], side, len(sides), size)[:, :-1]
        number = np.bincount(side, lines.number[part])
        points = np.bincount(side, lines.points[part])
        where = block[part[0]]
        grams[where] -= sums.T @ (sums / number[:, None])
        products[where] -= sums.T @ (points / number)
