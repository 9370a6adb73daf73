"""Which texts a spreadsheet would run as a formula."""

import pytest

from app.csv_tables import looks_like_formula


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
