"""The charts of a round: scores, what one model has over the other, lengths, first proposals, outcomes."""

from app.analysis.bootstrap import Figure
from app.analysis.chart import HEIGHT, ROW, WIDTH, Chart, Description, Spec, ends, in_lines, tooltip, whiskers
from app.analysis.columns import POINTS, SHARE, beside, interval, number, signed, signed_beside
from app.analysis.histogram import histogram
from app.analysis.paired import SEEDS, PairedDifference
from app.analysis.rounds import RoundAnalysis
from app.analysis.themes import Palette
from app.games.taboo.outcomes import ATTACKER_WINS, DEFENDER_WINS, RULES_BROKEN


def charts_of(analysis: RoundAnalysis) -> list[Chart]:
    """All charts of a round that have something to show."""
    scored = [score_histogram(analysis)] if analysis.game == "negotiation" else []
    versus = (
        [] if analysis.paired is None or not analysis.paired.pairs else [paired_differences(analysis, analysis.paired)]
    )
    charts = [*scored, outcomes(analysis), *versus, length_histogram(analysis), words_histogram(analysis)]
    proposed = [first_proposals(analysis)] if analysis.distributions.get("first_proposal") else []
    return [*charts, *proposed] if analysis.matches else []


# ---- Histograms -----------------------------------------------------------------


def score_histogram(analysis: RoundAnalysis) -> Chart:
    """How often seats scored what."""
    if len(analysis.metrics.parts) < 2:
        mean = _mean("Mean score", analysis, "score_mean", POINTS)
        return _histogram(analysis, "score", "Scores of both seats", "Score (points)", "Seats", "scores", mean)
    means = " ".join(
        f"{part.player}: mean {number(part.columns['score_mean'].value, POINTS)}"
        f" ({beside(part.columns['score_mean'], POINTS)})."
        for part in analysis.metrics.parts
    )
    return _histogram(analysis, "score", "Scores by model", "Score (points)", "Matches", "scores", means)


def length_histogram(analysis: RoundAnalysis) -> Chart:
    """How many accepted moves matches had."""
    mean = _mean("Mean length", analysis, "messages_mean", "moves")
    title = "Length of matches in moves"
    return _histogram(analysis, "messages", title, "Length (accepted moves of both seats)", "Matches", "matches", mean)


def words_histogram(analysis: RoundAnalysis) -> Chart:
    """How many words the moves of a match had together."""
    mean = _mean("Mean length", analysis, "words_mean", "words")
    title = "Length of matches in words"
    return _histogram(analysis, "words", title, "Length (words of both seats)", "Matches", "matches", mean)


def first_proposals(analysis: RoundAnalysis) -> Chart:
    """When matches came to their first proposal."""
    mean = _mean("Mean", analysis, "first_proposal_mean", "moves")
    title = "First proposals"
    return _histogram(analysis, "first_proposal", title, "Accepted moves before it", "Matches", "matches", mean)


def paired_differences(analysis: RoundAnalysis, versus: PairedDifference) -> Chart:
    """How often one model was how far ahead of the other."""
    bins = analysis.distributions["paired_difference"]
    mean = versus.columns["score_mean"]
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
        f"Differences of {_called(analysis)}, {versus.first} minus {versus.second}, of {versus.pairs} {counted}: mean"
        f" {signed(mean.value, POINTS)} points a match ({signed_beside(mean, POINTS)}), the thick line."
        f" {versus.first} is ahead in {first}, {versus.second} in {second}, {level} are even."
    )
    rows = [(signed((each.low + each.high) / 2, POINTS), each.player or even, str(each.number)) for each in bins]
    title = "Paired difference of each seed" if versus.pairing == SEEDS else "Difference in each match"
    described = Description(sentence, (f"{x} ({unit})", "Ahead", counted.capitalize()), rows)
    return Chart(f"difference-{analysis.round_id}", title, described, draw, [each._asdict() for each in bins])


def _histogram(analysis: RoundAnalysis, name: str, title: str, x: str, y: str, counted: str, mean: str) -> Chart:
    bins = analysis.distributions.get(name, ())
    total = sum(each.number for each in bins)
    sentence = f"{title} of {_called(analysis)}: {total} {counted}." + (f" {mean}" if bins else "")
    groups = [name for name in analysis.players if any(each.player == name for each in bins)]
    chart = f"{name}-{analysis.round_id}".replace("_", "-")
    return histogram(chart, title, x, y, bins, sentence, groups, "Model", whole=_whole_points(analysis, name))


def _whole_points(analysis: RoundAnalysis, name: str) -> bool:
    return name != "score" or analysis.lam is None or float(analysis.lam).is_integer()


# ---- Outcomes -------------------------------------------------------------------


def outcomes(analysis: RoundAnalysis) -> Chart:
    """How often matches ended in which way."""
    found = analysis.metrics.outcomes
    values = [{"reason": each.reason, "number": each.matches, **ends(each.share)} for each in found]

    def draw(colours: Palette) -> Spec:
        special = {
            "deal": colours.good,
            ATTACKER_WINS: colours.first,
            DEFENDER_WINS: colours.second,
            RULES_BROKEN: colours.bad,
            "aborted": colours.warn,
        }
        colour = {
            "field": "reason",
            "type": "nominal",
            "legend": None,
            "scale": {
                "domain": [each.reason for each in found],
                "range": [special.get(each.reason, colours.strong) for each in found],
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
        f"How {analysis.matches} matches of {_called(analysis)} ended: {listed}.",
        ("Outcome", "Matches", "Share", "95 % interval"),
        rows,
    )
    return Chart(f"outcomes-{analysis.round_id}", "Outcomes, with 95 % intervals", description, draw, data)


# ---- Words ----------------------------------------------------------------------


def _mean(words: str, analysis: RoundAnalysis, column: str, unit: str) -> str:
    figure = analysis.metrics.columns.get(column, Figure(None))
    more = beside(figure, unit)
    return f"{words} {number(figure.value, unit)} {unit}{f' ({more})' if more else ''}."


def _called(analysis: RoundAnalysis) -> str:
    return f"round {analysis.round_id} ({analysis.name})"
