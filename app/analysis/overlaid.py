"""Curves of several runs over each other: smoothed, and on a log axis if requested. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.analysis.chart import HEIGHT, WIDTH, Chart, Description, Spec
from app.analysis.language import ENGLISH, Language
from app.analysis.losses import FIGURES, MOST_DRAWN, shown_figure, thinned
from app.analysis.themes import Palette

MOST = 6  # runs in one chart: as many as there are colours
EXPONENTIAL, MOVING = "exponential", "moving"
_DASHES = ([1, 0], [8, 4], [2, 3], [9, 3, 2, 3], [14, 5], [5, 2])
Points = Sequence[tuple[float | str, float]]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Smoothing:
    """The smoothing of curves: exponential, by the mean of the last `window` points or, without `way`, none.

    The exponential `weight` is that of earlier values, from 0 to 0.99.
    """

    way: str = ""
    weight: float = 0.6
    window: int = 10

    def of(self, values: Sequence[float]) -> list[float]:
        """The smoothed values, one for each value.

        The exponential mean is divided by the sum of its weights so far, so that it does not start at 0.
        """
        if self.way == MOVING:
            return [
                sum(part) / len(part)
                for end in range(1, len(values) + 1)
                for part in [values[max(0, end - self.window) : end]]
            ]
        found, kept, weights = [], 0.0, 0.0
        for value in values:
            kept = self.weight * kept + (1 - self.weight) * value
            weights = self.weight * weights + (1 - self.weight)
            found.append(kept / weights)
        return found


def overlaid(
    title: str,
    x: str,
    runs: Mapping[str, Points],
    smoothing: Smoothing,
    *,
    log: bool = False,
    language: Language = ENGLISH,
) -> Chart:
    """The curves of up to MOST runs that have points, by run name.

    Runs differ in dash as well as in colour; behind a smoothed curve is its pale original. A log axis cannot show
    values of 0 or less: the sentence says how many there are.
    """
    by_word = any(isinstance(at, str) for points in runs.values() for at, _ in points)
    smooth = bool(smoothing.way) and not by_word
    means = {run: smoothing.of([value for _, value in points]) for run, points in runs.items()}
    data: list[Row] = [
        {"run": run, "x": at, "value": value, **({"smoothed": mean} if smooth else {})}
        for run, points in runs.items()
        for (at, value), mean in zip(points, means[run], strict=True)
    ]
    shown = "smoothed" if smooth else "value"
    lost = {run: len([value for _, value in points if value <= 0]) if log else 0 for run, points in runs.items()}
    lines = {run: thinned([each for each in data if each["run"] == run], MOST_DRAWN) for run in runs}

    def drawn(name: str) -> list[Row]:
        return [
            {"run": run, "x": each["x"], "y": each[name]}
            for run, found in lines.items()
            for each in found
            if not log or each[name] > 0
        ]

    def draw(colours: Palette) -> Spec:
        names = [*runs]
        legend = {
            "orient": "top",
            "symbolType": "stroke",
            "symbolSize": 400,
            "symbolStrokeWidth": 2,
            "symbolOpacity": 1,
            "labelLimit": 260,
        }
        run: Spec = {"field": "run", "type": "nominal", "title": None, "legend": legend}
        colour = {**run, "scale": {"domain": names, "range": colours.players[: len(names)]}}
        dash = {**run, "scale": {"domain": names, "range": [*_DASHES[: len(names)]]}}
        scale = {"type": "log"} if log else {"zero": False}
        place: Spec = {"field": "x", "title": x, "type": "nominal" if by_word else "quantitative"}
        place |= (
            {"sort": None, "axis": {"labelAngle": 0, "labelLimit": 120}}
            if by_word
            else {"scale": {"nice": False}, "axis": {"format": ",~f"}}
        )
        y: Spec = {"field": "y", "type": "quantitative", "title": title, "axis": FIGURES, "scale": scale}
        hover = [
            {"field": "run", "title": language.gettext("Run")},
            {"field": "x", "title": x},
            {"field": "y", "title": title, "type": "quantitative", "format": ".5~g"},
        ]
        raw = {
            "data": {"values": drawn("value")},
            "mark": {"type": "line", "strokeWidth": 1, "opacity": 0.3, "aria": False},
            "encoding": {"detail": {"field": "run"}},
        }
        line: Spec = {
            "data": {"values": drawn(shown)},
            "mark": {"type": "line", "strokeWidth": 2},
            "encoding": {"strokeDash": dash},
        }
        points: Spec = {"data": {"values": drawn(shown)}, "mark": {"type": "point", "filled": True, "opacity": 1}}
        if by_word:  # such as tasks: a line would be meaningless; points stand side by side, distinguished by shape
            shape = {"field": "run", "type": "nominal", "title": None, "scale": {"domain": names}}
            colour["legend"] = {"orient": "top", "labelLimit": 260}
            points["mark"]["size"] = 80
            points["encoding"] = {"shape": shape, "xOffset": {"field": "run", "scale": {"domain": names}}}
            layers = [points]
        else:
            few = any(len(found) < 3 for found in lines.values())
            layers = [*([raw] if smooth else []), line, *([points] if few else [])]
        return {
            "width": WIDTH,
            "height": HEIGHT,
            "encoding": {"x": place, "y": y, "color": colour, "tooltip": hover},
            "layer": layers,
        }

    description = _by_place(title, x, runs, language) if by_word else _by_run(title, runs, language)
    said = [description.sentence]
    if smooth:
        said.append(_smoothed_words(smoothing, language))
    said += [
        language.gettext(
            "Values of %(run)s that are 0 or less, which a log axis cannot show, are missing: %(number)s.",
            run=run,
            number=number,
        )
        for run, number in lost.items()
        if number
    ]
    return Chart("compared", title, replace(description, sentence=" ".join(said)), draw, data, language)


def _by_run(title: str, runs: Mapping[str, Points], language: Language) -> Description:
    """The curves as a sentence and a table: where each starts, its range, and where it ends."""
    gettext = language.gettext
    rows = [
        (run, *(shown_figure(each, language) for each in (values[0], min(values), max(values), values[-1])))
        for run, points in runs.items()
        for values in [[value for _, value in points]]
    ]
    last = "; ".join(f"{row[0]} {row[-1]}" for row in rows)
    header = (gettext("Run"), gettext("First"), gettext("Lowest"), gettext("Highest"), gettext("Last"))
    return Description(gettext("%(figure)s, last: %(values)s.", figure=title, values=last), header, rows)


def _by_place(title: str, x: str, runs: Mapping[str, Points], language: Language) -> Description:
    """The same for values without an order, such as those of tasks: a column for each run."""
    values = {run: {at: shown_figure(value, language) for at, value in points} for run, points in runs.items()}
    places = dict.fromkeys(at for points in runs.values() for at, _ in points)
    rows = [(str(at), *(found.get(at, "–") for found in values.values())) for at in places]
    told = (f"{run} {', '.join(f'{at} {each}' for at, each in found.items())}" for run, found in values.items())
    return Description(
        language.gettext("%(figure)s: %(values)s.", figure=title, values="; ".join(told)), (x, *runs), rows
    )


def _smoothed_words(smoothing: Smoothing, language: Language) -> str:
    if smoothing.way == MOVING:
        return language.gettext("Smoothed by the mean of the last %(number)s points.", number=smoothing.window)
    weight = language.shortest(smoothing.weight)
    return language.gettext("Smoothed exponentially with weight %(weight)s.", weight=weight)
