"""How the texts of moves are shown in pages: with a mark for what would show nothing or turn the text around it."""

from flask import Flask
from markupsafe import Markup

from app.matches.invisible import invisible, visible


def register(app: Flask) -> None:
    """The template filters `visible` and `invisible`."""
    app.add_template_filter(_visible, "visible")
    app.add_template_filter(invisible, "invisible")


def _visible(text: str) -> str:
    """What was escaped before stays so."""
    return Markup(visible(text)) if isinstance(text, Markup) else visible(text)  # noqa: S704
