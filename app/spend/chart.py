"""The chart of spend: US dollars by day, stacked by model."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import date

from app.analysis.chart import HEIGHT, WIDTH, Chart, Description, Spec
from app.analysis.language import ENGLISH, Language
from app.analysis.themes import Palette
from app.models import LanguageModel
from app.spend.figures import Spend

MOST_MODELS = 6  # shown separately, one per colour: if there are more, the most expensive, and the others together
_MOST_MARKED_DAYS = 35  # with bars wide enough for the models' numbers
_LEAST_MARKED = 0.08  # of the most expensive day: a smaller part of a bar has no room for a number
_TICKS = 6  # days named on the axis


def spend_chart(found: Spend, language: Language = ENGLISH) -> Chart:
    """Each model's cost on each day of a period, in US dollars; without data if nothing had a cost.

    Models are numbered in the legend and in their parts of the bars, so the chart can be read without the colours.
    """
    gettext = language.gettext
    names = {_id_of_model(model): _name_of_model(model, language) for model, sums in found.by_model() if sums.usd > 0}
    told_apart = [*names][: MOST_MODELS if len(names) <= MOST_MODELS else MOST_MODELS - 1]
    labels = {key: f"{place} {names[key]}" for place, key in enumerate(told_apart, 1)}
    others = gettext("%(place)s all other models", place=len(labels) + 1)
    groups = [*labels.values(), *([others] if len(labels) < len(names) else [])]
    usd = {key: sums.usd for key, sums in found.by_day_and_model.items() if sums.usd > 0}
    bars = {day: dict.fromkeys(groups, 0.0) for day, _ in reversed(found.by_day())}
    for (day, key), amount in usd.items():
        bars[day][labels.get(key, others)] += amount
    header = (gettext("Day, UTC"), *groups, gettext("All models"))
    rows = [
        (day.isoformat(), *(_amount_text(each, language) for each in (*bar.values(), sum(bar.values()))))
        for day, bar in bars.items()
    ]
    order = {key: place for place, key in enumerate(names)}
    data = [
        {"day": day.isoformat(), "model": names[key], "usd": round(amount, 6)}
        for (day, key), amount in sorted(usd.items(), key=lambda each: (each[0][0], order[each[0][1]]))
    ]
    described = Description(_sentence(bars, language), header, rows)

    def draw(colours: Palette) -> Spec:
        return _spend_chart_spec(bars, colours, language) if data else {}

    return Chart("spend-by-day", gettext("Spend by day"), described, draw, data, language)


def _spend_chart_spec(bars: Mapping[date, Mapping[str, float]], colours: Palette, language: Language) -> Spec:
    groups = list(next(iter(bars.values())))
    most = max(sum(bar.values()) for bar in bars.values())
    values = [
        {
            "day": day.isoformat(),
            "model": group,
            "place": place,
            "usd": round(amount, 6),
            "mark": str(place + 1) if len(bars) <= _MOST_MARKED_DAYS and amount >= _LEAST_MARKED * most else "",
        }
        for day, bar in bars.items()
        for place, (group, amount) in enumerate(bar.items())
        if amount  # otherwise its edge would cut the axis
    ]
    title = language.gettext("US dollars")
    days = [day.isoformat() for day in bars]
    every = -(-len(days) // _TICKS)
    x: Spec = {
        "field": "day",
        "type": "ordinal",
        "title": language.gettext("Day, UTC"),
        "axis": {"values": days[::-1][::every][::-1], "labelAngle": 0, "labelOverlap": True, "ticks": False},
        "scale": {"domain": days, "paddingInner": 0.15},
    }
    y: Spec = {"field": "usd", "type": "quantitative", "title": title, "axis": {"tickCount": 5}}
    colour: Spec = {
        "field": "model",
        "type": "nominal",
        "title": None,
        "legend": {"orient": "top", "columns": 2, "labelLimit": 0} if len(groups) > 1 else None,
        "scale": {"domain": groups, "range": _fills(colours)[: len(groups)]},
        "sort": groups,
    }
    order = {"field": "place", "type": "quantitative"}
    hover = [
        {"field": "day", "title": language.gettext("Day, UTC")},
        {"field": "model", "title": language.gettext("Model")},
        {"field": "usd", "type": "quantitative", "title": title, "format": ",.4~f"},
    ]
    # An edge in the background colour separates the models of a bar.
    edge: Spec = {"stroke": colours.surface, "strokeWidth": 1} if len(groups) > 1 else {}
    marks: Spec = {
        "mark": {"type": "text", "color": colours.surface, "fontSize": 11, "fontWeight": "bold", "aria": False},
        "encoding": {
            "y": {**y, "stack": "zero", "bandPosition": 0.5},
            "detail": {"field": "model"},
            "text": {"field": "mark"},
            "order": order,
        },
    }
    bar: Spec = {
        "mark": {"type": "bar", **edge},
        "encoding": {"y": {**y, "stack": "zero"}, "color": colour, "order": order, "tooltip": hover},
    }
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "data": {"values": values},
        "encoding": {"x": x},
        "layer": [bar, *([marks] if len(groups) > 1 and any(each["mark"] for each in values) else [])],
    }


def _fills(colours: Palette) -> list[str]:
    """One colour per model, on each of which text in the background colour is readable."""
    return [colours.first, colours.second, colours.warn, colours.good, colours.bad, colours.soft]


def _sentence(bars: Mapping[date, Mapping[str, float]], language: Language) -> str:
    by_day = {day: sum(bar.values()) for day, bar in bars.items()}
    total = sum(by_day.values())
    if not total:
        return language.gettext("No model call or training has cost anything in this period.")
    dearest = max(by_day, key=lambda day: by_day[day])
    sentence = language.gettext(
        "%(usd)s US dollars from %(first)s to %(last)s, UTC; %(most)s of them on %(day)s.",
        usd=_amount_text(total, language),
        first=min(by_day),
        last=max(by_day),
        most=_amount_text(by_day[dearest], language),
        day=dearest,
    )
    by_group: dict[str, float] = defaultdict(float)
    for bar in bars.values():
        for group, amount in bar.items():
            by_group[group] += amount
    parts = "; ".join(f"{group}: {_amount_text(amount, language)}" for group, amount in by_group.items())
    by_model = language.gettext("By model: %(parts)s.", parts=parts)
    return f"{sentence} {by_model}"


def _id_of_model(model: LanguageModel | None) -> int | None:
    return None if model is None else model.id


def _name_of_model(model: LanguageModel | None, language: Language) -> str:
    return language.gettext("no registered model") if model is None else model.name


def _amount_text(usd: float, language: Language) -> str:
    """An amount to the cent, or to a hundredth of a cent below one dollar."""
    return language.decimals(usd, 2 if usd >= 1 or not usd else 4)
