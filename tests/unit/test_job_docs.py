"""docs/jobs.md says what can be asked of jobs, and docs/recipes.md what of steps that are none."""

from pathlib import Path

import pytest

from scripts.spec_tables import specs_of_pages, with_tables


@pytest.mark.parametrize("page", specs_of_pages(), ids=lambda page: page.stem)
def test_the_page_has_the_fields_of_every_spec(page: Path) -> None:
    written = page.read_text(encoding="utf-8")
    assert with_tables(page) == written, "`python -m scripts.spec_tables` writes them anew"
