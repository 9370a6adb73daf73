"""The charts of a round, or of other matches: scores, differences between models, lengths, outcomes."""

from app.analysis.bootstrap import Figure
from app.analysis.chart import HEIGHT, ROW, WIDTH, Chart, Description, Spec, ends, in_lines, tooltip, whiskers
from app.analysis.histogram import histogram
from app.analysis.language import ENGLISH, Language
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
    SCORE_MEAN,
    SECOND_WINS,
    SHARE,
    WARN,
    Histogram,
    Metric,
)


def charts_of(analysis: MatchAnalysis, language: Language = ENGLISH) -> list[Chart]:
    """All charts of a round, or of other matches, that are not empty; those of seats come first."""
    if not analysis.matches:
        return []
    counted = [each for each in analysis.defined.of_matches if each.histogram]
    of_seats = [count_histogram(analysis, each, language) for each in counted if each.by_seat]
    of_matches = [
        count_histogram(analysis, each, language)
        for each in counted
        if not each.by_seat and each.histogram and analysis.distributions.get(each.histogram.name)
    ]
    versus = []
    if analysis.paired is not None and analysis.paired.pairs:
        versus = [paired_differences(analysis, analysis.paired, language)]
    return [*of_seats, outcomes(analysis, language), *versus, *of_matches]


# ---- Histograms -----------------------------------------------------------------


def count_histogram(analysis: MatchAnalysis, metric: Metric, language: Language = ENGLISH) -> Chart:
    """How often each value of a metric occurred; by model for a metric of seats in which several models sat.

    Raises ValueError for a metric without a histogram.
    """
    if metric.histogram is None:
        raise ValueError(f"expected a metric with a histogram, got {metric.name}")
    title, matches = language.translate(metric.histogram.title), language.gettext("Matches")
    if not metric.by_seat:
        said = _count_sentence(analysis, title, language.gettext("matches"), metric.histogram, language)
        mean = _mean_in_words(analysis, metric, metric.histogram.mean, language)
        return _histogram(analysis, metric.histogram, title, matches, f"{said} {mean}".rstrip(), language)
    counted = language.gettext("scores")
    if len(analysis.metrics.parts) < 2:
        title = language.gettext("%(figures)s of both seats", figures=title)
        said = _count_sentence(analysis, title, counted, metric.histogram, language)
        mean = _mean_in_words(analysis, metric, SCORE_MEAN.heading, language)
        return _histogram(
            analysis, metric.histogram, title, language.gettext("Seats"), f"{said} {mean}".rstrip(), language
        )
    own = metric.own[0] if metric.own else ""
    means = " ".join(
        language.gettext(
            "%(player)s: mean %(mean)s (%(interval)s).",
            player=language.player(part.player),
            mean=number(figure.value, metric.unit, language),
            interval=beside(figure, metric.unit, language),
        )
        for part in analysis.metrics.parts
        if (figure := part.columns.get(own)) is not None
    )
    title = language.gettext("%(figures)s by model", figures=title)
    said = _count_sentence(analysis, title, counted, metric.histogram, language)
    return _histogram(analysis, metric.histogram, title, matches, f"{said} {means}", language)


def paired_differences(analysis: MatchAnalysis, versus: PairedDifference, language: Language = ENGLISH) -> Chart:
    """How often, and by how much, each model was ahead of the other."""
    bins = analysis.distributions["paired_difference"]
    mean = versus.columns[MODEL_SCORE.name]
    by_seed = versus.pairing == SEEDS
    counted, y = (
        (language.gettext("seeds"), language.gettext("Seeds"))
        if by_seed
        else (language.gettext("matches"), language.gettext("Matches"))
    )
    x = language.gettext("%(first)s minus %(second)s", first=versus.first, second=versus.second)
    unit = language.gettext("points per match")
    even, ahead_title = language.gettext("neither"), language.gettext("Ahead")
    width = bins[0].high - bins[0].low
    domain = [min(bins[0].low, -width / 2), max(bins[-1].high, width / 2)]  # includes 0, where neither is ahead
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
            "title": ahead_title,
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
                            "title": y,
                            "stack": None,
                            "axis": {"tickMinStep": 1},
                        },
                        "color": colour,
                        "tooltip": [
                            {
                                "field": "middle",
                                "title": language.gettext("Difference"),
                                "type": "quantitative",
                                "format": "~g",
                            },
                            {"field": "number", "title": y},
                            {"field": "ahead", "title": ahead_title},
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
    sentence = language.gettext(
        "Differences of %(matches)s, %(first)s minus %(second)s, of %(pairs)s %(counted)s: mean %(mean)s points per"
        " match (%(interval)s), the thick line. %(first)s is ahead in %(ahead)s, %(second)s in %(behind)s, %(level)s"
        " are even.",
        matches=language.phrase(analysis.called),
        first=versus.first,
        second=versus.second,
        pairs=versus.pairs,
        counted=counted,
        mean=signed(mean.value, POINTS, language),
        interval=signed_beside(mean, POINTS, language),
        ahead=first,
        behind=second,
        level=level,
    )
    rows = [
        (signed((each.low + each.high) / 2, POINTS, language), each.player or even, str(each.number)) for each in bins
    ]
    title = (
        language.gettext("Paired difference of each seed") if by_seed else language.gettext("Difference in each match")
    )
    described = Description(sentence, (f"{x} ({unit})", ahead_title, y), rows)
    data = [each._asdict() for each in bins]
    return Chart(f"difference-{analysis.key}", title, described, draw, data, language)


def _count_sentence(analysis: MatchAnalysis, title: str, counted: str, of: Histogram, language: Language) -> str:
    return language.gettext(
        "%(title)s of %(matches)s: %(number)s %(counted)s.",
        title=title,
        matches=language.phrase(analysis.called),
        number=sum(each.number for each in analysis.distributions.get(of.name, ())),
        counted=counted,
    )


def _histogram(analysis: MatchAnalysis, of: Histogram, title: str, y: str, sentence: str, language: Language) -> Chart:
    bins = analysis.distributions.get(of.name, ())
    present = {each.player for each in bins}
    groups = {name: language.player(name) for name in analysis.players if name in present}
    return histogram(
        f"{of.name}-{analysis.key}".replace("_", "-"),
        title,
        language.translate(of.x),
        y,
        bins,
        sentence,
        groups,
        language.gettext("Model"),
        whole=_whole_points(analysis, of.name),
        language=language,
    )


def _whole_points(analysis: MatchAnalysis, name: str) -> bool:
    return name != "score" or analysis.partner_weight is None or float(analysis.partner_weight).is_integer()


# ---- Outcomes -------------------------------------------------------------------


def outcomes(analysis: MatchAnalysis, language: Language = ENGLISH) -> Chart:
    """How often matches ended with each outcome."""
    found = analysis.metrics.outcomes
    values = [{"reason": language.translate(each.reason), "number": each.matches, **ends(each.share)} for each in found]

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
                "domain": [each["reason"] for each in values],
                "range": [shades.get(tones.get(each.reason, ""), colours.strong) for each in found],
            },
        }
        places: Spec = {"field": "reason", "type": "nominal", "sort": None, "title": None}
        title = language.gettext("Share of matches")
        share = {"field": "value", "type": "quantitative", "title": title, "axis": {"format": ".0%"}}
        hover = tooltip("reason", language.gettext("Outcome"), ".1%", language)
        return {
            "width": WIDTH - 160,
            "height": ROW * len(values),
            "data": {"values": values},
            "encoding": {"y": places},
            "layer": [
                {
                    "mark": {"type": "bar", "height": {"band": 0.7}},
                    "encoding": {"x": share, "color": colour, "tooltip": hover},
                },
                *whiskers(colours, values),
            ],
        }

    shares = [number(each.share.value, SHARE, language) for each in found]
    rows = [
        (
            language.translate(each.reason),
            language.gettext("%(done)s of %(all)s", done=each.matches, all=each.share.n),
            share,
            interval(each.share, SHARE, language),
        )
        for each, share in zip(found, shares, strict=True)
    ]
    data = [{"reason": each.reason, "matches": each.matches, **each.share._asdict()} for each in found]
    sentence = language.gettext(
        "How %(number)s matches of %(matches)s ended: %(shares)s.",
        number=analysis.matches,
        matches=language.phrase(analysis.called),
        shares="; ".join(f"{row[0]} {share}" for row, share in zip(rows, shares, strict=True)),
    )
    header = (
        language.gettext("Outcome"),
        language.gettext("Matches"),
        language.gettext("Share"),
        language.gettext("95 %% interval"),
    )
    title = language.gettext("Outcomes, with 95 %% intervals")
    described = Description(sentence, header, rows)
    return Chart(f"outcomes-{analysis.key}", title, described, draw, data, language)


# ---- Words ----------------------------------------------------------------------


def _mean_in_words(analysis: MatchAnalysis, metric: Metric, called: str, language: Language) -> str:
    figure = analysis.metrics.columns.get(metric.name, Figure(None))
    if not analysis.distributions.get(metric.histogram.name if metric.histogram else ""):
        return ""
    value = f"{number(figure.value, metric.unit, language)} {language.translate(metric.unit)}"
    more = beside(figure, metric.unit, language)
    return f"{language.translate(called)} {value}{f' ({more})' if more else ''}."
