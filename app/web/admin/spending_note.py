"""Whether the installation's budget is used up, for the pages of experimenters that say so."""

import time
from collections.abc import Iterable
from typing import NamedTuple

from flask import current_app

from app.core.extensions import db, reading
from app.models import LanguageModel
from app.registry.spending import InstallationSpending, spending_of_period
from app.web.seats import settings

_EVERY = 30.0  # seconds between two sums of all calls in the period: pages that refresh themselves ask often


class _LastSum(NamedTuple):
    """The last result, and when it was found by the clock of `time.monotonic`."""

    at: float
    found: InstallationSpending | None


def used_up_budget() -> InstallationSpending | None:
    """The amount spent, if the installation may spend no more for now; it may be half a minute old."""
    if not settings().SPENDING_LIMIT_USD:
        return None
    last: _LastSum | None = current_app.extensions.get(__name__)
    if last is None or time.monotonic() > last.at + _EVERY:
        with reading(db.engine) as session:
            last = _LastSum(time.monotonic(), spending_of_period(session, settings()))
        current_app.extensions[__name__] = last
    return last.found if last.found is not None and last.found.line is not None else None


def used_up_for(models: Iterable[LanguageModel]) -> InstallationSpending | None:
    """The same if one of these models is behind an API, so that matches with it would exceed the budget."""
    return used_up_budget() if any(model.kind == "api" for model in models) else None
