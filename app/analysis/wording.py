"""How figures are written where people read them."""

from collections.abc import Mapping
from typing import Any

from app.analysis.bootstrap import Figure
from app.games.metrics import SHARE, Metric


def number(value: float | None, unit: str) -> str:
    """A figure as people read it: a percentage with one decimal, anything else with two."""
    if value is None:
        return "–"
    text = f"{value * 100:.1f} %" if unit == SHARE else f"{value:.2f}"
    return text.replace("-", "−")


def interval(figure: Figure, unit: str) -> str:
    """Both ends of an interval, or nothing where there is none."""
    if figure.low is None or figure.high is None:
        return ""
    return f"{number(figure.low, unit).removesuffix(' %')} to {number(figure.high, unit)}"


def beside(figure: Figure, unit: str) -> str:
    """What stands beside a figure: its interval, or why it has none, and its n; nothing where there is no figure."""
    uncertainty = interval(figure, unit) or (f"no interval of {figure.no_interval}" if figure.no_interval else "")
    return ", ".join(each for each in (uncertainty, f"n = {figure.n}" if figure.n else "") if each)


def signed(value: float | None, unit: str) -> str:
    """A difference as people read it, with its sign; one of shares in percentage points."""
    text = number(value, unit).replace(" %", " pp")
    return text if value is None or text.startswith("−") else f"+{text}"


def signed_beside(figure: Figure, unit: str) -> str:
    """What stands beside a difference."""
    if figure.low is None or figure.high is None:
        return beside(figure, unit)
    return f"{signed(figure.low, unit).removesuffix(' pp')} to {signed(figure.high, unit)}"


def with_unit(metric: Metric) -> str:
    """A title with its unit, which a share, and a title that names its unit, go without."""
    return metric.title if metric.unit == SHARE or metric.unit in metric.title else f"{metric.title} ({metric.unit})"


def in_words(figure: Mapping[str, Any] | None, unit: str) -> str:
    """A figure as people read it: "5.42 (5.20 to 5.63, n = 500)"; a dash where there is none."""
    if figure is None:
        return "–"
    found = Figure(**figure)
    more = beside(found, unit)
    return number(found.value, unit) + (f" ({more})" if more else "")
