"""Numbers as people type them: read in one way, or asked for again."""

from decimal import Decimal

import pytest

from app.core.errors import Invalid
from app.core.typed_numbers import read_amount, read_typed_number
from app.core.validation import real_number, whole_number


@pytest.mark.parametrize(
    ("typed", "english", "german"),
    [
        ("3,5", "3.5", "3.5"),
        ("3.5", "3.5", "3.5"),
        ("1,200", "1200", None),
        ("1.200", None, "1200"),
        ("1234.567", None, None),
        ("01.200", None, None),
        ("0.125", "0.125", "0.125"),
        (",125", "0.125", "0.125"),
        ("1,200.50", "1200.5", "1200.5"),
        ("1.200,50", "1200.5", "1200.5"),
        ("1,200,000", "1200000", "1200000"),
        ("1,20,000", "120000", "120000"),
        ("12 000", "12000", "12000"),
        ("12\u00a0000,5", "12000.5", "12000.5"),
        ("1\u202f200", "1200", "1200"),
        ("1\u2019200", "1200", "1200"),
        ("12 00", None, None),
        ("1 2", None, None),
        ("1_000", None, None),
        ("1e3", None, None),
        ("0x10", None, None),
        ("nan", None, None),
        ("inf", None, None),
        ("50%", None, None),
        ("5 km", None, None),
        ("\u00bd", None, None),
        ("\u00b2", None, None),
        ("twelve", None, None),
        ("1-2", None, None),
        ("--5", None, None),
        ("", None, None),
        (".", None, None),
        ("9" * 41, None, None),
        ("\u0661\u0662\u0660\u0660", "1200", "1200"),  # Arabic-Indic digits
        ("\u0661\u066c\u0662\u0660\u0660", "1200", "1200"),
        ("\u0663\u066b\u0665", "3.5", "3.5"),
        ("\u06f5", "5", "5"),
        ("\u0967\u0968", "12", "12"),  # Devanagari
        ("\uff13\uff0e\uff15", "3.5", "3.5"),  # full-width, of Japanese input methods
        ("\uff13\u30025", None, None),  # digits of two scripts
        ("\u22125", "-5", "-5"),
        ("\u20135", "-5", "-5"),
        ("\uff0d\uff15", "-5", "-5"),
        ("- 5", "-5", "-5"),
        (" +7 ", "7", "7"),
        ("007", "7", "7"),
        ("\u200e42\u200f", "42", "42"),
        ("5.", "5", "5"),
    ],
)  # fmt: skip
def test_a_typed_number_is_read_in_one_way_or_asked_for_again(
    typed: str, english: str | None, german: str | None
) -> None:
    for language, expected in (("en", english), ("de", german)):
        if expected is None:
            with pytest.raises(Invalid):
                read_typed_number(typed, "q", language)
        else:
            assert str(read_typed_number(typed, "q", language)) == expected


def test_no_separator_before_three_digits_is_ever_a_decimal() -> None:
    for whole in range(1, 1000, 37):
        for part in range(0, 1000, 91):
            for mark in ",.":
                for language in ("en", "de"):
                    try:
                        found = read_typed_number(f"{whole}{mark}{part:03}", "q", language)
                    except Invalid:
                        continue
                    assert found == 1000 * whole + part


@pytest.mark.parametrize(
    "typed",
    ["1e3", "1_000", "nan", "inf", "\u0661\u0662", "\uff11\uff12", "\u22125", "1.505", "0x10", "", "5 km", "\u00b9"],
)
def test_an_amount_takes_plain_digits_and_the_decimals_of_its_currency(typed: str) -> None:
    with pytest.raises(Invalid, match="an amount such as"):
        read_amount(typed, "amount", signed=True)


def test_amounts_are_exact() -> None:
    assert read_amount("1.50", "amount") == Decimal("1.50")
    assert read_amount("1,50", "amount", "de") == Decimal("1.50")
    assert read_amount("1.000", "amount", "de") == Decimal(1000)
    assert read_amount("-0.25", "amount", signed=True) == Decimal("-0.25")
    for typed, places in (("-1", 2), ("1.5", 0)):
        with pytest.raises(Invalid):
            read_amount(typed, "amount", places=places)


@pytest.mark.parametrize("typed", ["1_000", "1e3", "\u0661\u0662", "\uff11\uff12", "1,000", "0x10", "\u00b2"])
def test_forms_and_commands_take_whole_numbers_in_plain_digits(typed: str) -> None:
    with pytest.raises(Invalid):
        whole_number(typed, "places", 0, 10_000)
    assert whole_number(" 12 ", "places", 0, 100) == 12


@pytest.mark.parametrize("typed", ["1_000.5", "nan", "inf", "-Infinity", "\u0661", "\uff11", "1,5", ""])
def test_forms_and_commands_take_finite_numbers_in_plain_digits(typed: str) -> None:
    with pytest.raises(Invalid):
        real_number(typed, "share", -1e300, 1e300)
    assert real_number("1e-5", "learning rate", 0, 1) == 1e-5
