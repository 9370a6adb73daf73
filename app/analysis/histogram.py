"""A histogram of any counts, as a chart."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from app.analysis.chart import HEIGHT, WIDTH, Chart, Description, Spec
from app.analysis.distributions import Bin
from app.analysis.language import ENGLISH, Language
from app.analysis.themes import Palette

# The opacity of each group's bars, which distinguishes neighbours without their colours; none is too pale.
_OPACITIES = (1, 0.65)
_GAP = 0.08  # fraction of a bin left free on both sides where bars are side by side


def histogram(
    name: str,
    title: str,
    x: str,
    y: str,
    bins: Sequence[Bin],
    sentence: str,
    groups: Mapping[str, str] | None = None,
    group_title: str = "",
    *,
    whole: bool = True,
    stacked: bool = False,
    shades: Callable[[Palette], Sequence[str]] | None = None,
    language: Language = ENGLISH,
) -> Chart:
    """How often each number occurred, with bars side by side, or `stacked`, where bins are of several `groups`.

    `groups` has the chart's names for them, by the names in the bins. `sentence` says what is counted; the most
    frequent value is added to it. `whole`: only whole numbers occur, so that a bin of width 1 stands for one of them.
    `shades`: the colours of the groups, including any without bins.
    """
    whole = whole and all(each.low.is_integer() and each.high == each.low + 1 for each in bins)
    shift = 0.5 if whole else 0
    several = len({each.player for each in bins}) > 1
    called = groups or {}
    names = list(called.values())
    beside = list(called) if several and not stacked else []
    values = [
        {
            **_bar(each, shift, beside),
            "label": _bin_label(each, whole, language),
            "number": each.number,
            "model": called.get(each.player or "", each.player),
        }
        for each in bins
    ]

    def draw(colours: Palette) -> Spec:
        shown_as: Spec = {
            "x": {
                "field": "from",
                "type": "quantitative",
                "bin": {"binned": True},
                "title": x,
                "axis": {"tickMinStep": 1, "grid": False},
                "scale": {"domain": _axis_ends(bins, shift)},
            },
            "x2": {"field": "to"},
            "y": {"field": "number", "type": "quantitative", "title": y, "axis": {"tickMinStep": 1}},
            "tooltip": [{"field": "label", "title": x}, {"field": "number", "title": y}],
        }
        shown_as["y"]["stack"] = None if beside else "zero"
        if several:
            shown_as["color"] = {
                "field": "model",
                "type": "nominal",
                "title": group_title,
                "legend": {"orient": "top"},
                "sort": names,
                "scale": {"domain": names, **({"range": list(shades(colours))} if shades else {})},
            }
            shown_as["tooltip"].append({"field": "model", "title": group_title})
        elif shades and bins:
            shown_as["color"] = {"value": shades(colours)[list(called).index(bins[0].player or "")]}
        if several:
            scale = {"domain": names, "range": [_OPACITIES[place % 2] for place in range(len(names))]}
            shown_as["opacity"] = {**shown_as["color"], "scale": scale}
        mark = {"type": "bar", "binSpacing": 0 if beside else 1}
        return {"width": WIDTH, "height": HEIGHT, "data": {"values": values}, "mark": mark, "encoding": shown_as}

    if bins:
        most = _commonest(bins)
        commonest = language.gettext(
            "Most often: %(value)s (%(number)s times).", value=_bin_label(most, whole, language), number=most.number
        )
        sentence = f"{sentence} {commonest}"
    header = (x, group_title, y) if several else (x, y)
    rows = [
        (
            _bin_label(each, whole, language),
            *([called.get(each.player or "", "")] if several else []),
            str(each.number),
        )
        for each in bins
    ]
    data = [each._asdict() for each in bins]
    return Chart(name, title, Description(sentence, header, rows), draw, data, language)


def _bar(each: Bin, shift: float, beside: Sequence[str]) -> Spec:
    """The start and end of a bar: its whole bin, or its place among the groups beside each other."""
    if not beside:
        return {"from": each.low - shift, "to": each.high - shift}
    width = each.high - each.low
    left = each.low - shift + width * _GAP
    part = width * (1 - 2 * _GAP) / len(beside)
    place = beside.index(each.player or "")
    return {"from": left + place * part, "to": left + (place + 1) * part}


def _axis_ends(bins: Sequence[Bin], shift: float) -> list[float]:
    """The ends of the axis, which bars beside each other do not move."""
    if not bins:
        return [0, 1]
    return [min(each.low for each in bins) - shift, max(each.high for each in bins) - shift]


def _commonest(bins: Sequence[Bin]) -> Bin:
    """The fullest bin, over all groups."""
    numbers: Counter[tuple[float, float]] = Counter()
    for each in bins:
        numbers[each.low, each.high] += each.number
    (place, number_of_all), *_ = numbers.most_common(1)
    return Bin(*place, number_of_all)


def _bin_label(each: Bin, whole: bool, language: Language) -> str:
    low, high = language.shortest(each.low), language.shortest(each.high)
    return low if whole else language.gettext("%(low)s up to %(high)s", low=low, high=high)
