"""A histogram as a chart, whatever it counts."""

from collections import Counter
from collections.abc import Sequence

from app.analysis.chart import HEIGHT, WIDTH, Chart, Description, Spec
from app.analysis.distributions import Bin
from app.analysis.themes import Palette


def histogram(
    name: str,
    title: str,
    x: str,
    y: str,
    bins: Sequence[Bin],
    sentence: str,
    groups: Sequence[str] = (),
    group_title: str = "",
    *,
    whole: bool = True,
) -> Chart:
    """How often each number occurred, stacked where bins are of several `groups`.

    `sentence` says what is counted; what occurred most often is added to it. `whole`: only whole numbers occur, so that
    a bin of width 1 stands for one of them.
    """
    whole = whole and all(each.low.is_integer() and each.high == each.low + 1 for each in bins)
    shift = 0.5 if whole else 0
    several = len({each.player for each in bins}) > 1
    values = [
        {
            "from": each.low - shift,
            "to": each.high - shift,
            "label": _label(each, whole),
            "number": each.number,
            "model": each.player,
        }
        for each in bins
    ]

    def draw(_colours: Palette) -> Spec:
        shown_as: Spec = {
            "x": {
                "field": "from",
                "type": "quantitative",
                "bin": {"binned": True},
                "title": x,
                "axis": {"tickMinStep": 1, "grid": False},
            },
            "x2": {"field": "to"},
            "y": {"field": "number", "type": "quantitative", "title": y, "stack": "zero", "axis": {"tickMinStep": 1}},
            "tooltip": [{"field": "label", "title": x}, {"field": "number", "title": y}],
        }
        if several:
            shown_as["color"] = {
                "field": "model",
                "type": "nominal",
                "title": group_title,
                "legend": {"orient": "top"},
                "sort": list(groups),
            }
            shown_as["tooltip"].append({"field": "model", "title": group_title})
        mark = {"type": "bar", "binSpacing": 1}
        return {"width": WIDTH, "height": HEIGHT, "data": {"values": values}, "mark": mark, "encoding": shown_as}

    if bins:
        most = _commonest(bins)
        sentence = f"{sentence} Most often: {_label(most, whole)} ({most.number} times)."
    header = (x, group_title, y) if several else (x, y)
    rows = [(_label(each, whole), *([each.player or ""] if several else []), str(each.number)) for each in bins]
    return Chart(name, title, Description(sentence, header, rows), draw, [each._asdict() for each in bins])


def _commonest(bins: Sequence[Bin]) -> Bin:
    """The fullest bin, whoever is in it."""
    numbers: Counter[tuple[float, float]] = Counter()
    for each in bins:
        numbers[each.low, each.high] += each.number
    (place, number_of_all), *_ = numbers.most_common(1)
    return Bin(*place, number_of_all)


def _label(each: Bin, whole: bool) -> str:
    low, high = (f"{value:g}".replace("-", "−") for value in (each.low, each.high))
    return low if whole else f"{low} up to {high}"
