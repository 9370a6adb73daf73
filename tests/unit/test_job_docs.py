"""docs/jobs.md says what can be asked of jobs."""

from scripts.spec_tables import PAGE, with_tables


def test_the_page_has_the_fields_of_every_spec() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_tables(text) == text, "`python -m scripts.spec_tables` writes them anew"
