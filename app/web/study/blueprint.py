"""Common parts of all pages of a study: their addresses, the format of amounts, and headers that prevent caching."""

import math
from datetime import timedelta
from decimal import Decimal
from typing import Any

from flask import Blueprint, Response, url_for
from flask_babel import format_currency, get_locale, ngettext
from markupsafe import Markup

from app.web.headers import never_stored

blueprint = Blueprint("study", __name__, url_prefix="/s")


@blueprint.after_request
def _private(response: Response) -> Response:
    """Mark a page as belonging to one person: not cached, and not indexed by search engines."""
    response.headers["X-Robots-Tag"] = "noindex, nofollow"
    return never_stored(response)


@blueprint.app_template_filter("money")
def money(amount: Decimal, currency: str) -> str:
    """An amount in the page's language: to the cent, or more precisely for a rate."""
    if amount == amount.quantize(Decimal("0.01")):
        return str(format_currency(amount, currency))
    pattern = get_locale().currency_formats["standard"].pattern.replace("0.00", "0.00####")
    return str(format_currency(amount, currency, pattern, currency_digits=False))


@blueprint.app_template_filter("duration")
def duration(time: timedelta | float) -> str:
    """A time in words: in seconds up to two minutes, else in minutes, rounded up to whole ones."""
    seconds = math.ceil(time.total_seconds() if isinstance(time, timedelta) else time)
    if seconds < 120 and seconds % 60:
        return str(ngettext("%(num)s second", "%(num)s seconds", seconds))
    return str(ngettext("%(num)s minute", "%(num)s minutes", math.ceil(seconds / 60)))


@blueprint.app_template_filter("plain_text")
def plain_text(text: Any) -> Markup:
    """An author's text of several lines, with its line breaks."""
    return Markup("<br>").join(Markup.escape(line) for line in str(text).splitlines())


def private_url(token: str) -> str:
    """The URL of a person's pages, which is also the private link."""
    return url_for("study.page", token=token)
