"""Times and amounts of money as a design writes them. Pure."""

import re
from datetime import timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

_UNITS = {"s": "seconds", "min": "minutes", "h": "hours", "day": "days", "days": "days"}
_TIME = re.compile(r"(\d+(?:\.\d+)?) ?(s|min|h|days?)")
_SHORTEST = {"days": 86_400, "h": 3600, "min": 60}
CENT = Decimal("0.01")
_MOST = Decimal(1_000_000)
_LONGEST = timedelta(days=3660)  # adding it to a date still gives a date
_PLAIN = re.compile(r"[0-9]+(?:\.[0-9]+)?")  # no exponent, and no digits of other scripts
# ISO 4217: currencies without a minor unit. No amount here has more than two decimals.
_WHOLE = (
    "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF",
    "XPF",
)  # fmt: skip


def _time(raw: Any) -> timedelta:
    found = _TIME.fullmatch(raw) if isinstance(raw, str) else None
    try:
        time = timedelta(**{_UNITS[found[2]]: float(found[1])}) if found else timedelta(0)
    except OverflowError:
        time = timedelta(0)
    if not timedelta(0) < time <= _LONGEST:
        raise PydanticCustomError("time", "a time such as 90 s, 10 min, 2 h or 30 days")
    return time


def time_text(time: timedelta) -> str:
    """A time as a design writes it, in the largest unit that gives a whole number."""
    seconds = time.total_seconds()
    for unit, size in _SHORTEST.items():
        if seconds % size == 0:
            count = int(seconds // size)
            return f"{count} {'day' if unit == 'days' and count == 1 else unit}"
    return f"{seconds:g} s"


def _exact_amount(raw: Any) -> Decimal:
    """The number as it is written: 9.00 and 0.1 are exact."""
    try:
        if isinstance(raw, bool) or not isinstance(raw, str | int | float | Decimal):
            raise InvalidOperation
        if isinstance(raw, str) and _PLAIN.fullmatch(raw) is None:
            raise InvalidOperation
        amount = Decimal(str(raw))
        if not 0 <= amount <= _MOST:
            raise InvalidOperation
    except InvalidOperation:
        raise PydanticCustomError("amount", "an amount of money such as 8.50") from None
    return amount


def _money(raw: Any) -> Decimal:
    amount = _exact_amount(raw)
    if amount != amount.quantize(CENT):
        raise PydanticCustomError("money", "an amount of money with two decimals at most")
    return amount.quantize(CENT)


def places_of(currency: str) -> int:
    """The number of decimals in a typed amount of a currency."""
    return 0 if currency in _WHOLE else 2


def rounded(amount: Decimal) -> Decimal:
    """An amount in whole cents, half a cent up."""
    return amount.quantize(CENT, ROUND_HALF_UP)


Time = Annotated[
    timedelta,
    BeforeValidator(_time),
    PlainSerializer(time_text, return_type=str),
    WithJsonSchema({"type": "string", "pattern": _TIME.pattern}),
]
Money = Annotated[Decimal, BeforeValidator(_money), PlainSerializer(str, return_type=str)]
Rate = Annotated[Decimal, BeforeValidator(_exact_amount), PlainSerializer(str, return_type=str)]
