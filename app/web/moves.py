"""How pages show the texts of moves: with a mark for characters that are invisible or reverse the text around them."""

from flask import Flask
from markupsafe import Markup

from app.matches.invisible import invisible, visible


def register(app: Flask) -> None:
    """Register the template filters `visible` and `invisible`."""
    app.add_template_filter(_visible, "visible")
    app.add_template_filter(invisible, "invisible")


def _visible(text: str) -> str:
    """The text with visible marks; escaped text stays escaped."""
    return Markup(visible(text)) if isinstance(text, Markup) else visible(text)  # noqa: S704
