"""Charts in the language of the page that shows them."""

from flask_babel import get_locale, gettext

from app.analysis.language import ENGLISH, Language
from app.core.config import ENGLISH as ENGLISH_NAME


def page_language() -> Language:
    """The language of this request, and its number format. Anything made with it belongs to this request alone."""
    locale = get_locale()
    if locale is None or str(locale) == ENGLISH_NAME:
        return ENGLISH
    signs = locale.number_symbols["latn"]
    return Language(_translated, signs["decimal"], signs["group"], locale.percent_formats[None].suffix[0])


def _translated(text: str) -> str:
    return gettext(text) if text else ""
