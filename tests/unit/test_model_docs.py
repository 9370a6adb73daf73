"""docs/models.md says what is made of the answers of each server."""

from scripts.answer_tables import PAGE, with_table


def test_the_page_has_every_answer_that_is_tested() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_table(text) == text, "`python -m scripts.answer_tables` writes the table anew"
