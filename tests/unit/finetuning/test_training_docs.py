"""docs/training.md agrees with what the methods say of themselves."""

from scripts.training_fields import PAGE, with_tables
from training.methods import all_methods


def test_the_tables_of_fields_are_those_of_the_methods() -> None:
    text = PAGE.read_text()
    assert with_tables(text) == text, "`python -m scripts.training_fields` writes them anew"


def test_every_method_is_on_the_page() -> None:
    assert [name for name in all_methods() if f"| `{name}` |" not in PAGE.read_text()] == []
