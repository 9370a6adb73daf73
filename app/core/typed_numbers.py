"""Reads numbers as people type them, in digits of any script, with separators of any country. Pure.

A single separator before exactly three digits may be a thousands or a decimal separator. It is taken as a thousands
separator if the mark is one in the given language; otherwise the number is asked for again. It is never taken as a
decimal separator, unless only a zero precedes it: 0.125 cannot be thousands.
"""

import re
import unicodedata
from collections.abc import Mapping
from decimal import Decimal

from app.core.errors import Invalid, Phrase, Verbatim

ENGLISH, GERMAN = "en", "de"
_THOUSANDS: Mapping[str, str] = {ENGLISH: ",", GERMAN: "."}
_LONGEST = 40  # characters
_ALIKE: Mapping[str, str] = {
    **dict.fromkeys("-\N{HYPHEN}\N{NON-BREAKING HYPHEN}\N{FIGURE DASH}\N{EN DASH}\N{MINUS SIGN}\N{SMALL HYPHEN-MINUS}"
                    "\N{FULLWIDTH HYPHEN-MINUS}", "-"),
    **dict.fromkeys("+\N{SMALL PLUS SIGN}\N{FULLWIDTH PLUS SIGN}", "+"),
    **dict.fromkeys(",\N{ARABIC COMMA}\N{SMALL COMMA}\N{FULLWIDTH COMMA}", ","),
    **dict.fromkeys(".\N{SMALL FULL STOP}\N{FULLWIDTH FULL STOP}\N{IDEOGRAPHIC FULL STOP}"
                    "\N{HALFWIDTH IDEOGRAPHIC FULL STOP}", "."),
    **dict.fromkeys("'\N{RIGHT SINGLE QUOTATION MARK}\N{LEFT SINGLE QUOTATION MARK}\N{FULLWIDTH APOSTROPHE}"
                    "\N{MODIFIER LETTER APOSTROPHE}\N{ARABIC THOUSANDS SEPARATOR}", "'"),
    "\N{ARABIC DECIMAL SEPARATOR}": ";",  # an unambiguous mark
}  # fmt: skip
_DECIMALS = r"(?:[.,;](?P<part>\d+))?"
# Unambiguous ways to write a number.
_CLEAR = [
    re.compile(rf"(?P<whole>\d{{1,3}}(?P<mark>[ '])\d{{3}}(?:(?P=mark)\d{{3}})*){_DECIMALS}"),  # 12 000,5
    re.compile(r"(?P<whole>\d{1,3}(?:,\d{3})+)[.;](?P<part>\d+)"),  # 1,200.50
    re.compile(r"(?P<whole>\d{1,3}(?:\.\d{3})+)[,;](?P<part>\d+)"),  # 1.200,50
    re.compile(r"(?P<whole>\d{1,3}(?P<mark>[.,])\d{3}(?:(?P=mark)\d{3})+)"),  # 1,200,000
    re.compile(r"(?P<whole>\d{1,2}(?:,\d{2})+,\d{3})(?:\.(?P<part>\d+))?"),  # 1,20,000, as in India
    re.compile(r"(?P<whole>\d*);(?P<part>\d+)"),
    re.compile(r"(?P<whole>\d+)[.,]?"),
    re.compile(r"(?P<whole>0?)[.,](?P<part>\d{3})"),
    re.compile(r"(?P<whole>\d*)[.,](?P<part>\d{1,2}|\d{4,})"),
]
_THREE = re.compile(r"([1-9]\d{0,2})([.,])(\d{3})")
_PLAIN = re.compile(r"[0-9., '+-]+")
_PLAIN_WHOLE = re.compile(r"[+-]?[0-9]+")
_PLAIN_REAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

IN_DIGITS = Phrase("a number in digits alone, such as 1200 or 3.5")
_UNCLEAR = Phrase("a number without a thousands separator, such as 1200, or not with exactly three decimals")


def read_typed_number(text: str, field: str, language: str = ENGLISH) -> Decimal:
    """The number that a person typed; `language` determines the thousands separator.

    Raises Invalid for anything but a number in digits alone (a unit, a percent sign, an exponent, `1_000`, words,
    digits of two scripts), and for ambiguous text.
    """
    written = _in_ascii(text[: _LONGEST + 1])
    if written is None or len(text.strip()) > _LONGEST:
        raise Invalid(field, expected=IN_DIGITS, got=text)
    negative, digits = written.startswith("-"), written.lstrip("+-").strip()
    if len(written) - len(written.lstrip("+-")) > 1:
        raise Invalid(field, expected=IN_DIGITS, got=text)
    if (three := _THREE.fullmatch(digits)) is not None:
        if three[2] != _THOUSANDS.get(language, ","):
            raise Invalid(field, expected=_UNCLEAR, got=text)
        found = Decimal(three[1] + three[3])
    else:
        clear = next((match for each in _CLEAR if (match := each.fullmatch(digits))), None)
        if clear is None:
            raise Invalid(field, expected=IN_DIGITS, got=text)
        parts = clear.groupdict()
        found = Decimal(f"{re.sub(r'[^0-9]', '', parts['whole']) or '0'}.{parts.get('part') or '0'}")
    found = found.quantize(Decimal(1)) if found == found.to_integral_value() else found.normalize()
    return -found if negative and found else found


def read_amount(
    text: str, field: str, language: str = ENGLISH, *, places: int = 2, signed: bool = False, such: str = "12.50"
) -> Decimal:
    """An amount as an experimenter types it: ordinary digits, at most `places` decimals, a minus only if `signed`.

    Raises Invalid.
    """
    refusal = Invalid(
        field, expected=Phrase("an amount such as %(amount)s", amount=Verbatim(such)), got=text,
        remedy=Phrase("write it in plain digits with %(places)s decimals at most", places=places),
    )  # fmt: skip
    if _PLAIN.fullmatch(text.strip()) is None:
        raise refusal
    try:
        found = read_typed_number(text, field, language)
    except Invalid:
        raise refusal from None
    exponent = found.as_tuple().exponent
    if (found < 0 and not signed) or (isinstance(exponent, int) and -exponent > places):
        raise refusal
    return found.quantize(Decimal(1).scaleb(-places))


def is_plain_whole(text: str) -> bool:
    """Whether a text is a whole number in ordinary digits: not 1_000, 1e3 or digits of other scripts."""
    return _PLAIN_WHOLE.fullmatch(text.strip()) is not None


def is_plain_real(text: str) -> bool:
    """Whether a text is a finite number in ordinary digits, perhaps with an exponent, as learning rates are written."""
    return _PLAIN_REAL.fullmatch(text.strip()) is not None


def _in_ascii(text: str) -> str | None:
    """The text in ordinary digits and marks, without invisible characters; None if it has other characters."""
    found, zeros = [], set()
    for character in text:
        kind = unicodedata.category(character)
        if kind == "Nd":
            digit = unicodedata.decimal(character)
            zeros.add(ord(character) - digit)
            found.append(str(digit))
        elif kind == "Zs" or character in "\t\r\n":
            found.append(" ")
        elif character in _ALIKE:
            found.append(_ALIKE[character])
        elif kind != "Cf":  # direction marks, joiners, the byte order mark
            return None
    return "".join(found).strip() if len(zeros) == 1 else None
