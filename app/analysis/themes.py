"""Light and dark themes for charts, in the colours of static/css/tokens.css, the only place that names any."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from app.core.config import ROOT
from app.core.errors import Invalid, either

LIGHT, DARK = "light", "dark"
THEMES = (LIGHT, DARK)
_TOKENS = ROOT / "static" / "css" / "tokens.css"
_FONT = "system-ui, 'Noto Sans', 'DejaVu Sans', 'Liberation Sans', sans-serif"


@dataclass(frozen=True, slots=True)
class Palette:
    """The colours of a theme by purpose."""

    surface: str
    ink: str
    soft: str
    line: str
    strong: str
    first: str
    second: str
    brass: str
    good: str
    warn: str
    bad: str
    scale: tuple[str, ...]  # seven, from little to much
    on_little: str
    on_much: str

    @property
    def players(self) -> list[str]:
        """One colour for each player, the first two as on every page."""
        return [self.first, self.second, self.brass, self.good, self.bad, self.strong]


@lru_cache(maxsize=len(THEMES))
def palette(theme: str) -> Palette:
    """The colours of `light` or `dark`. Raises Invalid."""
    if theme not in THEMES:
        raise Invalid("theme", expected=either(THEMES), got=theme)
    light, dark = _TOKENS.read_text(encoding="utf-8").split("@media (prefers-color-scheme: dark)")
    found = dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6})", light))
    if theme == DARK:
        found |= dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6})", dark))
    return Palette(
        surface=found["surface"],
        ink=found["ink"],
        soft=found["ink-soft"],
        line=found["line"],
        strong=found["line-strong"],
        first=found["you"],
        second=found["partner"],
        brass=found["brass-edge"],
        good=found["good"],
        warn=found["warn"],
        bad=found["bad"],
        scale=tuple(found[f"rate-{number}"] for number in range(1, 8)),
        on_little=found["on-rate-low"],
        on_much=found["on-rate-high"],
    )


def config(colours: Palette) -> dict[str, Any]:
    """The settings shared by all charts of a theme, as Vega-Lite's config."""
    return {
        "background": colours.surface,
        "font": _FONT,
        "view": {"stroke": None},
        "title": {"color": colours.ink, "anchor": "start", "fontSize": 15, "offset": 12},
        "axis": {
            "labelColor": colours.soft,
            "titleColor": colours.soft,
            "domainColor": colours.strong,
            "tickColor": colours.strong,
            "gridColor": colours.line,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "titlePadding": 8,
            "labelLimit": 240,
        },
        "axisX": {"grid": False},
        "legend": {"labelColor": colours.soft, "titleColor": colours.soft, "labelFontSize": 12, "titleFontSize": 12},
        "bar": {"color": colours.second},
        "text": {"color": colours.ink, "fontSize": 12},
        "range": {"category": colours.players},
    }
