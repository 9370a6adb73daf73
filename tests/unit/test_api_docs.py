"""docs/api.md says what the API offers."""

from scripts.api_table import PAGE, with_table


def test_the_page_has_every_operation() -> None:
    assert with_table() == PAGE.read_text(encoding="utf-8"), "`python -m scripts.api_table` writes them anew"
