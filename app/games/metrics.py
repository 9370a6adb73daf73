"""The definition of a metric, and the metrics of every game. Pure; each game's own are in its package, `metrics.py`.

A metric is defined once: analysis, charts, campaigns, comparisons, tiles, lists, CSV, codebook and docs/analysis.md
read these definitions. Each is computed on a whole table of matches at once, so that 100,000 of them take no longer
than NumPy needs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Flag, auto
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from app.games.talk import MESSAGES, LanguageMetric

if TYPE_CHECKING:  # NumPy is loaded where figures are worked out
    from app.games.match_table import Booleans, Floats, MatchTable

ABORTED = "aborted"  # how a match ends, in any game, when a model or we could not continue

POINTS, MOVES, TOKENS, WORDS, TURNS, SHARE = "points", "moves", "tokens", "words", "turns", "share"
OF_THE_BEST = "of the best"  # a fraction of the maximum, from 0 to 1
TIMES = "times"  # a multiple of another figure
MEAN, MEDIAN, PART, RATIO = "mean", "median", "share", "ratio"  # aggregates
WILSON, BOOTSTRAP = "Wilson", "bootstrap"  # intervals
EITHER, FIRST, SECOND, ABOVE = "either", "first", "second", "above"  # of which seats a metric is taken
# Colours of outcomes.
GOOD, WARN, BAD, FIRST_WINS, SECOND_WINS = "good", "warn", "bad", "first", "second"
AS_PLAYED = "as played"  # label of a campaign model's first evaluation beside others

Value = Callable[["MatchTable"], "Floats | Booleans"]
Condition = Callable[["MatchTable"], "Booleans"]


class Use(Flag):
    """Where a metric is shown, besides the full table of all metrics."""

    NOWHERE = 0
    HEADLINE = auto()  # the most telling one: lists, and charts without a chosen column
    TILE = auto()  # a tile of a round's page
    COMPARISON = auto()  # a chart of rounds side by side
    EVALUATION = auto()  # a column of a campaign's page
    CONDITION = auto()  # a column where a campaign's models are evaluated in other conditions
    WHOLE = auto()  # kept in evaluations against another player, although it covers both
    RESULT = auto()  # of a model: a column in the first table of a round's page
    DIFFERENCE = auto()  # of a model: also one model's lead over the other
    SETTINGS = auto()  # a column of models side by side: in self-play, in cross-play and with people


class Histogram(NamedTuple):
    """How often each value of a metric occurred. `name` is its key in JSON, `most` the maximum number of bins."""

    name: str
    title: str
    x: str
    mean: str = "Mean"
    most: int | None = None


class Panel(NamedTuple):
    """A panel of a campaign's figure.

    A `compared` panel also has a line for each further evaluation; a panel that is not shown `alone` appears only with
    these.
    """

    title: str
    compared: bool = False
    alone: bool = True


class PanelLine(NamedTuple):
    """A metric as a line of a panel, with its label in the legend."""

    panel: Panel
    label: str = AS_PLAYED


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """A figure of matches. `name` is its CSV column and JSON key; that of a share ends in _rate or _share.

    `value` gives a number or a boolean for each match, (n,), NaN if a match has none; if `by_seat`, for each of its
    seats, (n, 2). A share is taken of booleans, or of numbers that are 0 or 1; a median only of seats. `among` filters
    matches, `seats` filters seats. Without a `value` it is the share of seats that pass `seats`. Raises ValueError for
    a name or an aggregate that does not fit.
    """

    name: str
    title: str  # as it is written within a sentence
    unit: str
    explanation: str  # what docs/analysis.md and the codebook say
    value: Value | None
    aggregate: str = MEAN
    by_seat: bool = False
    among: Condition | None = None
    seats: str = EITHER
    above: bool = False  # whether it is also taken of the transcripts above the average, as above_NAME
    rank: int | None = None  # where space is limited, the lowest ranks come first
    uses: Use = Use.NOWHERE
    own: tuple[str, str | None] | None = None  # of a model against another player: which metric of a model, which role
    note: str = ""  # a sentence below tables that show it
    histogram: Histogram | None = None
    lines: tuple[PanelLine, ...] = ()
    references: tuple[str, ...] = ()  # the names of metrics to compare it with: lines of its charts

    def __post_init__(self) -> None:
        if self.name.endswith(("_rate", "_share")) != (self.unit == SHARE):
            raise ValueError(f"expected _rate or _share at the end of a share's name alone, got {self.name}")
        if (self.unit == SHARE) != (self.aggregate == PART):
            raise ValueError(f"expected a share to be measured as one, got {self.aggregate} in {self.unit}")
        if self.aggregate == MEDIAN and not self.by_seat:
            raise ValueError(f"expected a median of seats, got {self.name}, which is of matches")

    @property
    def heading(self) -> str:
        """The title as a column heading."""
        return self.title[:1].upper() + self.title[1:]

    @property
    def interval(self) -> str:
        """How its 95 % interval is computed."""
        return WILSON if self.aggregate == PART else BOOTSTRAP

    @property
    def pooled(self) -> bool:
        """Whether it mixes both seats' values: when two models differ, it describes neither."""
        return self.by_seat and self.seats == EITHER


@dataclass(frozen=True, eq=False)
class GameMetrics:
    """The metrics of a game: those of all matches, and those of each model in them.

    Each kind has one headline; a model always has its mean score. Raises ValueError if one of these is missing.
    """

    of_matches: tuple[Metric, ...]
    of_models: tuple[Metric, ...]
    tones: Mapping[str, str]  # colours of outcomes
    claims_version: int | None = None  # the reading of words that some depend on
    of_settings: tuple[Metric, ...] = ()  # only of models side by side
    language: tuple[LanguageMetric, ...] = MESSAGES

    def __post_init__(self) -> None:
        for kind in (self.of_matches, self.of_models):
            if sum(Use.HEADLINE in each.uses for each in kind) != 1:
                raise ValueError(f"expected one headline of these, got {', '.join(each.name for each in kind)}")
        if MODEL_SCORE.name not in self.models:
            raise ValueError(f"expected {MODEL_SCORE.name} of a model, got {', '.join(self.models)}")

    @cached_property
    def columns(self) -> Mapping[str, Metric]:
        """An analysis's metrics of all matches, by name, in the order of the CSV; ratios are not included."""
        found = [each for each in self.of_matches if each.aggregate != RATIO]
        return {each.name: each for each in (*found, *(_above(each) for each in found if each.above))}

    @cached_property
    def ratios(self) -> Mapping[str, Metric]:
        """The further metrics of a campaign's evaluation: the model's mean divided by that of the base."""
        return {each.name: each for each in self.of_matches if each.aggregate == RATIO}

    @cached_property
    def everything(self) -> Mapping[str, Metric]:
        """The columns and the ratios."""
        return {**self.columns, **self.ratios}

    @cached_property
    def models(self) -> Mapping[str, Metric]:
        """An analysis's metrics of each model, by name."""
        return {each.name: each for each in self.of_models}

    @cached_property
    def ranked(self) -> Sequence[Metric]:
        """The metrics of matches in reading order: by rank, then in the order of definition."""
        return sorted(self.of_matches, key=_rank)

    @property
    def headline(self) -> Metric:
        """The most informative metric of matches."""
        return next(each for each in self.of_matches if Use.HEADLINE in each.uses)

    @property
    def model_headline(self) -> Metric:
        """The most informative metric of a model."""
        return next(each for each in self.of_models if Use.HEADLINE in each.uses)

    @cached_property
    def histograms(self) -> Mapping[str, Metric]:
        """The metrics with a histogram, by its name: those common to all games, then the game's own."""
        own = (each for each in self.of_matches if each.histogram)
        return {each.histogram.name: each for each in (*COUNTED, *own) if each.histogram}

    def shown(self, use: Use) -> list[Metric]:
        """The metrics of matches with that use, in reading order."""
        return [each for each in self.ranked if use in each.uses]

    def shown_of_models(self, use: Use) -> list[Metric]:
        """The metrics of a model with that use, in order."""
        return [each for each in self.of_models if use in each.uses]

    @cached_property
    def side_by_side(self) -> Sequence[Metric]:
        """The metrics for models side by side, in each setting: those of a model, then of its matches."""
        return *self.shown_of_models(Use.SETTINGS), *self.of_settings, *self.shown(Use.SETTINGS)

    def texts(self) -> Iterator[str]:
        """The texts of these metrics that pages show."""
        for said in self.language:
            yield from (said.heading, said.unit)
        for each in (*self.of_matches, *self.of_models, *self.of_settings):
            yield each.heading
            yield each.unit
            if each.note:
                yield each.note
            if each.histogram:
                yield from (each.histogram.title, each.histogram.x, each.histogram.mean)
            for line in each.lines:
                yield from (line.panel.title, line.label)


def _rank(metric: Metric) -> tuple[bool, int]:
    return metric.rank is None, metric.rank or 0


def _above(metric: Metric) -> Metric:
    """The metric, restricted to the transcripts above average."""
    return replace(
        metric,
        name=f"above_{metric.name}",
        title=f"above average: {metric.title}",
        explanation=f"{metric.name} of the transcripts above average alone",
        seats=ABOVE,
        above=False,
        rank=None,
        uses=Use.NOWHERE,
        own=None,
        note="",
        histogram=None,
        lines=(),
        references=(),
    )


# ---- What matches yield ----------------------------------------------------------


def scores(matches: "MatchTable") -> "Floats":
    """(n, 2) The score of each seat."""
    return matches.utility


def moves(matches: "MatchTable") -> "Floats":
    """(n,) Accepted moves of both seats."""
    return matches.ply


def tokens(matches: "MatchTable") -> "Floats":
    """(n,) Tokens of the accepted moves, NaN where no server counted them."""
    return matches.tokens


def words(matches: "MatchTable") -> "Floats":
    """(n,) Words of the accepted moves."""
    return matches.words


def own_violations(matches: "MatchTable") -> "Floats":
    """(n, 2) Refused moves of each seat. Raises ValueError where only the sum of both was read."""
    if matches.seat_violations is None:
        raise ValueError("expected the refused moves of each seat, got those of both")
    return matches.seat_violations


def ended_as(reason: str) -> Value:
    """(n,) Whether a match ended for that reason."""
    return lambda matches: matches.ended(reason)


# ---- Of every game ---------------------------------------------------------------

LENGTH = Panel("Length of matches")

SCORE_MEAN = Metric(
    "score_mean", "mean score", POINTS, "scores of both seats over all matches", scores, by_seat=True, rank=1,
    uses=Use.HEADLINE | Use.TILE | Use.COMPARISON | Use.EVALUATION | Use.CONDITION, own=("score_mean", None),
    histogram=Histogram("score", "Scores", "Score (points)"),
    lines=(PanelLine(Panel("Mean score", compared=True), "mean score"),),
)  # fmt: skip
MESSAGES_MEAN = Metric(
    "messages_mean", "messages in a match", MOVES, "accepted moves of both seats", moves, rank=60,
    uses=Use.TILE | Use.EVALUATION | Use.WHOLE | Use.SETTINGS,
    histogram=Histogram("messages", "Length of matches in moves", "Length (accepted moves of both seats)",
                        "Mean length"),
    lines=(PanelLine(LENGTH, "length"),),
)  # fmt: skip
TOKENS_MEAN = Metric(
    "tokens_mean", "tokens in a match", TOKENS, "tokens of the accepted moves, as the models' servers count them",
    tokens, uses=Use.SETTINGS,
)  # fmt: skip
WORDS_MEAN = Metric(
    "words_mean", "words in a match", WORDS, "words of the accepted moves", words, uses=Use.SETTINGS,
    histogram=Histogram("words", "Length of matches in words", "Length (words of both seats)", "Mean length", 30),
)  # fmt: skip
ABORT_RATE = Metric(
    "abort_rate", "aborted", SHARE, "matches that a model's fifth refused attempt, or its silence, ended",
    ended_as(ABORTED), PART, rank=70, uses=Use.TILE | Use.WHOLE | Use.SETTINGS,
)  # fmt: skip
VIOLATIONS_MEAN = Metric(
    "violations_mean", "refused moves in a match", MOVES, "refused moves of both seats",
    lambda matches: matches.violations, rank=90, uses=Use.TILE | Use.WHOLE,
)  # fmt: skip
FIRST_PROPOSAL_MEAN = Metric(
    "first_proposal_mean", "moves before the first proposal", MOVES,
    "accepted moves before the first proposal, of matches that have one", lambda matches: matches.first_proposal,
    histogram=Histogram("first_proposal", "First proposals", "Accepted moves before it"),
)  # fmt: skip
MODEL_SCORE = Metric(
    "score_mean", "mean score", POINTS, "what the model got", scores, by_seat=True,
    uses=Use.HEADLINE | Use.RESULT | Use.DIFFERENCE | Use.SETTINGS,
)  # fmt: skip

# Only where models are compared side by side.
PARTNER_SCORE = Metric(
    "partner_score_mean", "mean score of the partner", POINTS, "what its partners got",
    lambda matches: matches.utility[:, ::-1], by_seat=True,
)  # fmt: skip
OWN_VIOLATIONS_MEAN = Metric(
    "own_violations_mean", "its refused moves in a match", MOVES,
    "refused moves of the model itself, in each of its seats", own_violations, by_seat=True,
)  # fmt: skip

COUNTED = (SCORE_MEAN, MESSAGES_MEAN, WORDS_MEAN, FIRST_PROPOSAL_MEAN)  # counted in every game

# The metrics of a game that defines none of its own.
COMMON = GameMetrics(
    (SCORE_MEAN, MESSAGES_MEAN, TOKENS_MEAN, WORDS_MEAN, ABORT_RATE, VIOLATIONS_MEAN),
    (MODEL_SCORE,),
    {},
    of_settings=(PARTNER_SCORE, OWN_VIOLATIONS_MEAN),
)
