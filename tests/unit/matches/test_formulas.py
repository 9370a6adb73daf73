"""Which texts a spreadsheet would run as a formula."""

import pytest

from app.core.csv_tables import guarded, looks_like_formula


@pytest.mark.parametrize(
    "text",
    [
        "=1",
        "+1",
        "-1",
        "@A",
        "\tx",
        "\rx",
        "\nx",
        " =1",
        "\u3000=1",
        "\u00a0\u200b=1",
        "\ufeff=1",
        "＝1",
        " ＋1",
        "－1",
        "＠A",
        "−1",
    ],
)
def test_a_formula_is_seen_behind_blanks_and_in_full_width(text: str) -> None:
    assert looks_like_formula(text)


@pytest.mark.parametrize("text", ["", " ", "a=1", "1", "'=1", "[message] =1", "{", "(1)", "hello"])
def test_other_text_is_left_alone(text: str) -> None:
    assert not looks_like_formula(text)


@pytest.mark.parametrize(
    "text",
    ["0012345678", "00123", "00.5", "12345678e9", "1.5E+10", "1-2", "1/2", "3/4/2026", "2026-11-25", "1.2.2026",
     "1 1/2", "12:30", "9:15 pm", "5 May", "1-Mar", "MARCH1", "Sept 2, 2026", "3. Mai", "1234567890123456",
     " 1-2 ", "=1"],
)  # fmt: skip
def test_text_that_a_spreadsheet_would_change_is_guarded(text: str) -> None:
    assert guarded(text) == f"'{text}"


@pytest.mark.parametrize(
    "text",
    ["", "0", "12", "0.5", "1.5", "1,200", "p12345678e9", "e9", "maybe 3", "marathon", "1-2-3-4", "may", "a 1/2"],
)
def test_plain_numbers_and_words_are_not_guarded(text: str) -> None:
    assert guarded(text) == text
