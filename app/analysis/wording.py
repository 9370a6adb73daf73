"""How figures are written for people."""

from collections.abc import Mapping
from typing import Any

from app.analysis.bootstrap import Figure
from app.analysis.language import ENGLISH, Language
from app.games.metrics import SHARE, Metric


def number(value: float | None, unit: str, language: Language = ENGLISH) -> str:
    """A figure for people: a percentage with one decimal, anything else with two."""
    if value is None:
        return "–"
    return f"{language.decimals(value * 100, 1)} %" if unit == SHARE else language.decimals(value, 2)


def interval(figure: Figure, unit: str, language: Language = ENGLISH) -> str:
    """Both ends of an interval, or an empty text if there is none."""
    if figure.low is None or figure.high is None:
        return ""
    low = number(figure.low, unit, language).removesuffix(" %")
    return language.gettext("%(low)s to %(high)s", low=low, high=number(figure.high, unit, language))


def beside(figure: Figure, unit: str, language: Language = ENGLISH) -> str:
    """The addition to a figure: its interval, or why it has none, and its n; empty if there is no figure."""
    uncertainty = interval(figure, unit, language)
    if not uncertainty and figure.no_interval:
        uncertainty = language.gettext("no interval for %(number)s", number=language.translate(figure.no_interval))
    return ", ".join(each for each in (uncertainty, f"n = {figure.n}" if figure.n else "") if each)


def signed(value: float | None, unit: str, language: Language = ENGLISH) -> str:
    """A difference for people, with its sign; one of shares in percentage points."""
    text = number(value, unit, language).replace(" %", " pp")
    return text if value is None or text.startswith("−") else f"+{text}"


def signed_beside(figure: Figure, unit: str, language: Language = ENGLISH) -> str:
    """The addition to a difference, as in `beside`."""
    if figure.low is None or figure.high is None:
        return beside(figure, unit, language)
    low = signed(figure.low, unit, language).removesuffix(" pp")
    return language.gettext("%(low)s to %(high)s", low=low, high=signed(figure.high, unit, language))


def with_unit(metric: Metric) -> str:
    """A title with its unit; the unit is left out for a share, and if the title names it."""
    return metric.title if metric.unit == SHARE or metric.unit in metric.title else f"{metric.title} ({metric.unit})"


def heading(metric: Metric) -> str:
    """A title with its unit as a column heading."""
    text = with_unit(metric)
    return text[:1].upper() + text[1:]


def figure_in_words(figure: Figure | None, unit: str, language: Language = ENGLISH) -> str:
    """A figure for people: "5.42 (5.20 to 5.63, n = 500)"; a dash if there is none."""
    if figure is None:
        return "–"
    more = beside(figure, unit, language)
    return number(figure.value, unit, language) + (f" ({more})" if more else "")


def signed_in_words(figure: Figure, unit: str, language: Language = ENGLISH) -> str:
    """A difference for people: "+0.40 (+0.10 to +0.71)"; a dash if there is none."""
    more = signed_beside(figure, unit, language)
    return signed(figure.value, unit, language) + (f" ({more})" if more else "")


def in_words(figure: Mapping[str, Any] | None, unit: str, language: Language = ENGLISH) -> str:
    """A figure stored as JSON, for people; a dash for None."""
    return figure_in_words(None if figure is None else Figure(**figure), unit, language)


def p_words(p: float | None, language: Language = ENGLISH) -> str:
    """A p value for people."""
    if p is None:
        return "–"
    return (
        language.gettext("p < %(bound)s", bound=language.decimals(0.001, 3))
        if p < 0.001
        else (language.gettext("p = %(value)s", value=language.decimals(p, 3)))
    )
