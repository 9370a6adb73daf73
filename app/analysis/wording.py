"""How figures are written where people read them."""

from collections.abc import Mapping
from typing import Any

from app.analysis.bootstrap import Figure
from app.analysis.language import ENGLISH, Language
from app.games.metrics import SHARE, Metric


def number(value: float | None, unit: str, language: Language = ENGLISH) -> str:
    """A figure as people read it: a percentage with one decimal, anything else with two."""
    if value is None:
        return "–"
    return f"{language.decimals(value * 100, 1)} %" if unit == SHARE else language.decimals(value, 2)


def interval(figure: Figure, unit: str, language: Language = ENGLISH) -> str:
    """Both ends of an interval, or nothing where there is none."""
    if figure.low is None or figure.high is None:
        return ""
    low = number(figure.low, unit, language).removesuffix(" %")
    return language.gettext("%(low)s to %(high)s", low=low, high=number(figure.high, unit, language))


def beside(figure: Figure, unit: str, language: Language = ENGLISH) -> str:
    """What is beside a figure: its interval, or why it has none, and its n; nothing where there is no figure."""
    uncertainty = interval(figure, unit, language)
    if not uncertainty and figure.no_interval:
        uncertainty = language.gettext("no interval of %(number)s", number=language.translate(figure.no_interval))
    return ", ".join(each for each in (uncertainty, f"n = {figure.n}" if figure.n else "") if each)


def signed(value: float | None, unit: str, language: Language = ENGLISH) -> str:
    """A difference as people read it, with its sign; one of shares in percentage points."""
    text = number(value, unit, language).replace(" %", " pp")
    return text if value is None or text.startswith("−") else f"+{text}"


def signed_beside(figure: Figure, unit: str, language: Language = ENGLISH) -> str:
    """What is beside a difference."""
    if figure.low is None or figure.high is None:
        return beside(figure, unit, language)
    low = signed(figure.low, unit, language).removesuffix(" pp")
    return language.gettext("%(low)s to %(high)s", low=low, high=signed(figure.high, unit, language))


def with_unit(metric: Metric) -> str:
    """A title with its unit, which a share, and a title that names its unit, go without."""
    return metric.title if metric.unit == SHARE or metric.unit in metric.title else f"{metric.title} ({metric.unit})"


def heading(metric: Metric) -> str:
    """A title with its unit as the head of a column."""
    text = with_unit(metric)
    return text[:1].upper() + text[1:]


def figure_in_words(figure: Figure | None, unit: str, language: Language = ENGLISH) -> str:
    """A figure as people read it: "5.42 (5.20 to 5.63, n = 500)"; a dash where there is none."""
    if figure is None:
        return "–"
    more = beside(figure, unit, language)
    return number(figure.value, unit, language) + (f" ({more})" if more else "")


def signed_in_words(figure: Figure, unit: str, language: Language = ENGLISH) -> str:
    """A difference as people read it: "+0.40 (+0.10 to +0.71)"; a dash where there is none."""
    more = signed_beside(figure, unit, language)
    return signed(figure.value, unit, language) + (f" ({more})" if more else "")


def in_words(figure: Mapping[str, Any] | None, unit: str, language: Language = ENGLISH) -> str:
    """A figure that is kept as JSON as people read it; None is a dash."""
    return figure_in_words(None if figure is None else Figure(**figure), unit, language)


def p_words(p: float | None, language: Language = ENGLISH) -> str:
    """A p value as people read it."""
    if p is None:
        return "–"
    return (
        language.gettext("p < %(bound)s", bound=language.decimals(0.001, 3))
        if p < 0.001
        else (language.gettext("p = %(value)s", value=language.decimals(p, 3)))
    )
