"""The charts of a round, or of other matches: scores, what one model has over the other, lengths, outcomes."""

from app.analysis.bootstrap import Figure
from app.analysis.chart import HEIGHT, ROW, WIDTH, Chart, Description, Spec, ends, in_lines, tooltip, whiskers
from app.analysis.histogram import histogram
from app.analysis.matches import MatchAnalysis
from app.analysis.paired import SEEDS, PairedDifference
from app.analysis.themes import Palette
from app.analysis.wording import beside, interval, number, signed, signed_beside
from app.games.metrics import (
    ABORTED,
    BAD,
    FIRST_WINS,
    GOOD,
    MODEL_SCORE,
    POINTS,
    SECOND_WINS,
    SHARE,
    WARN,
    Histogram,
    Metric,
)


def charts_of(analysis: MatchAnalysis) -> list[Chart]:
    """All charts of a round, or of other matches, that have something to show: what seats got comes first."""
    if not analysis.matches:
        return []
    counted = [each for each in analysis.defined.of_matches if each.histogram]
    of_seats = [count_histogram(analysis, each) for each in counted if each.by_seat]
    of_matches = [
        count_histogram(analysis, each)
        for each in counted
        if not each.by_seat and each.histogram and analysis.distributions.get(each.histogram.name)
    ]
    versus = (
        [] if analysis.paired is None or not analysis.paired.pairs else [paired_differences(analysis, analysis.paired)]
    )
    return [*of_seats, outcomes(analysis), *versus, *of_matches]


# ---- Histograms -----------------------------------------------------------------


def count_histogram(analysis: MatchAnalysis, metric: Metric) -> Chart:
    """How often each value of a metric occurred, by model where it is of seats and several models sat in them.

    Raises ValueError for a metric that is not counted.
    """
    if metric.histogram is None:
        raise ValueError(f"expected a metric with a histogram, got {metric.name}")
    if not metric.by_seat:
        return _histogram(analysis, metric.histogram, "Matches", "matches", _mean(analysis, metric))
    if len(analysis.metrics.parts) < 2:
        whole = metric.histogram._replace(title=f"{metric.histogram.title} of both seats", mean="Mean score")
        return _histogram(analysis, whole, "Seats", "scores", _mean(analysis, metric))
    own = metric.own[0] if metric.own else ""
    means = " ".join(
        f"{part.player}: mean {number(figure.value, metric.unit)} ({beside(figure, metric.unit)})."
        for part in analysis.metrics.parts
        if (figure := part.columns.get(own)) is not None
    )
    by_model = metric.histogram._replace(title=f"{metric.histogram.title} by model")
    return _histogram(analysis, by_model, "Matches", "scores", means)


def paired_differences(analysis: MatchAnalysis, versus: PairedDifference) -> Chart:
    """How often one model was how far ahead of the other."""
    bins = analysis.distributions["paired_difference"]
    mean = versus.columns[MODEL_SCORE.name]
    counted = "seeds" if versus.pairing == SEEDS else "matches"
    x, unit = f"{versus.first} minus {versus.second}", "points a match"
    even = "neither"
    width = bins[0].high - bins[0].low
    domain = [min(bins[0].low, -width / 2), max(bins[-1].high, width / 2)]  # with 0, where neither is ahead
    values = [
        {
            "from": each.low,
            "to": each.high,
            "middle": (each.low + each.high) / 2,
            "number": each.number,
            "ahead": each.player or even,
        }
        for each in bins
    ]

    def draw(colours: Palette) -> Spec:
        ahead = [*analysis.players, even]
        colour = {
            "field": "ahead",
            "type": "nominal",
            "title": "Ahead",
            "legend": {"orient": "top"},
            "scale": {"domain": ahead, "range": [*colours.players[: len(analysis.players)], colours.strong]},
        }
        place = {
            "field": "from",
            "type": "quantitative",
            "bin": {"binned": True},
            "title": in_lines(x, unit),
            "axis": {"grid": False, "tickMinStep": width},
            "scale": {"domain": domain, "nice": False},
        }
        marked = {"x": {"datum": mean.value}, "color": {"value": colours.ink}}
        return {
            "width": WIDTH,
            "height": HEIGHT,
            "data": {"values": values},
            "layer": [
                {
                    "mark": {"type": "bar", "binSpacing": 1},
                    "encoding": {
                        "x": place,
                        "x2": {"field": "to"},
                        "y": {
                            "field": "number",
                            "type": "quantitative",
                            "title": counted.capitalize(),
                            "stack": None,
                            "axis": {"tickMinStep": 1},
                        },
                        "color": colour,
                        "tooltip": [
                            {"field": "middle", "title": "Difference"},
                            {"field": "number", "title": counted.capitalize()},
                            {"field": "ahead", "title": "Ahead"},
                        ],
                    },
                },
                {
                    "mark": {"type": "rule", "strokeDash": [3, 3], "aria": False},
                    "encoding": {"x": {"datum": 0}, "color": {"value": colours.strong}},
                },
                {"mark": {"type": "rule", "strokeWidth": 2, "aria": False}, "encoding": marked},
            ],
        }

    first, second, level = versus.ahead()
    sentence = (
        f"Differences of {analysis.called}, {versus.first} minus {versus.second}, of {versus.pairs} {counted}: mean"
        f" {signed(mean.value, POINTS)} points a match ({signed_beside(mean, POINTS)}), the thick line."
        f" {versus.first} is ahead in {first}, {versus.second} in {second}, {level} are even."
    )
    rows = [(signed((each.low + each.high) / 2, POINTS), each.player or even, str(each.number)) for each in bins]
    title = "Paired difference of each seed" if versus.pairing == SEEDS else "Difference in each match"
    described = Description(sentence, (f"{x} ({unit})", "Ahead", counted.capitalize()), rows)
    return Chart(f"difference-{analysis.key}", title, described, draw, [each._asdict() for each in bins])


def _histogram(analysis: MatchAnalysis, of: Histogram, y: str, counted: str, mean: str) -> Chart:
    bins = analysis.distributions.get(of.name, ())
    total = sum(each.number for each in bins)
    sentence = f"{of.title} of {analysis.called}: {total} {counted}." + (f" {mean}" if bins else "")
    groups = [name for name in analysis.players if any(each.player == name for each in bins)]
    chart = f"{of.name}-{analysis.key}".replace("_", "-")
    return histogram(chart, of.title, of.x, y, bins, sentence, groups, "Model", whole=_whole_points(analysis, of.name))


def _whole_points(analysis: MatchAnalysis, name: str) -> bool:
    return name != "score" or analysis.lam is None or float(analysis.lam).is_integer()


# ---- Outcomes -------------------------------------------------------------------


def outcomes(analysis: MatchAnalysis) -> Chart:
    """How often matches ended in which way."""
    found = analysis.metrics.outcomes
    values = [{"reason": each.reason, "number": each.matches, **ends(each.share)} for each in found]

    def draw(colours: Palette) -> Spec:
        tones = {ABORTED: WARN, **analysis.defined.tones}
        shades = {
            GOOD: colours.good,
            BAD: colours.bad,
            FIRST_WINS: colours.first,
            SECOND_WINS: colours.second,
            WARN: colours.warn,
        }
        colour = {
            "field": "reason",
            "type": "nominal",
            "legend": None,
            "scale": {
                "domain": [each.reason for each in found],
                "range": [shades.get(tones.get(each.reason, ""), colours.strong) for each in found],
            },
        }
        places: Spec = {"field": "reason", "type": "nominal", "sort": None, "title": None}
        share = {"field": "value", "type": "quantitative", "title": "Share of matches", "axis": {"format": ".0%"}}
        return {
            "width": WIDTH - 160,
            "height": ROW * len(values),
            "data": {"values": values},
            "encoding": {"y": places},
            "layer": [
                {
                    "mark": {"type": "bar", "height": {"band": 0.7}},
                    "encoding": {"x": share, "color": colour, "tooltip": tooltip("reason", "Outcome", ".1%")},
                },
                *whiskers(colours, values),
            ],
        }

    listed = "; ".join(f"{each.reason} {number(each.share.value, SHARE)}" for each in found)
    rows = [
        (each.reason, f"{each.matches} of {each.share.n}", number(each.share.value, SHARE), interval(each.share, SHARE))
        for each in found
    ]
    data = [{"reason": each.reason, "matches": each.matches, **each.share._asdict()} for each in found]
    description = Description(
        f"How {analysis.matches} matches of {analysis.called} ended: {listed}.",
        ("Outcome", "Matches", "Share", "95 % interval"),
        rows,
    )
    return Chart(f"outcomes-{analysis.key}", "Outcomes, with 95 % intervals", description, draw, data)


# ---- Words ----------------------------------------------------------------------


def _mean(analysis: MatchAnalysis, metric: Metric) -> str:
    figure = analysis.metrics.columns.get(metric.name, Figure(None))
    more = beside(figure, metric.unit)
    words = metric.histogram.mean if metric.histogram else "Mean"
    return f"{words} {number(figure.value, metric.unit)} {metric.unit}{f' ({more})' if more else ''}."
