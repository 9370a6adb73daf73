"""What `make test` leaves out: long forms, and of tests that differ in their database alone one of two."""

from pathlib import Path

import pytest

from tests import selection

pytest_plugins = "pytester"

TESTS = """
import pytest

@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request):
    return request.param

@pytest.mark.parametrize("number", range(8))
def test_page(database_url, number): pass

def test_alone(): pass

@pytest.mark.long
def test_soak(database_url): pass
"""


def names(items: list[pytest.Item]) -> set[str]:
    return {item.name for item in items}


@pytest.mark.parametrize("folder", ["tests/integration/test_admin_x.py", "tests/integration/test_races.py"])
def test_pages_take_one_database_and_races_take_both(pytester: pytest.Pytester, folder: str) -> None:
    path = pytester.path / folder
    path.parent.mkdir(parents=True)
    path.write_text(TESTS)
    pytester.makeini("[pytest]\nmarkers = long")
    items, _ = pytester.inline_genitems(str(path))
    chosen, left = selection.shortened(items, postgres=True)
    assert names(chosen) | names(left) == names(items)
    assert {name for name in names(left) if name.startswith("test_soak")} == {
        "test_soak[sqlite]",
        "test_soak[postgresql]",
    }
    assert "test_alone" in names(chosen)
    pages = {name for name in names(chosen) if name.startswith("test_page")}
    databases = {name.partition("[")[2].partition("-")[0] for name in pages}
    if Path(folder).name == "test_races.py":
        assert len(pages) == 16
        return
    assert len(pages) == 8
    assert len(databases) == 1
    assert {item.name for item in selection.shortened(items, postgres=False)[0] if "postgresql" in item.name} == set()


def test_what_only_postgresql_does_is_always_tested_there_and_never_on_sqlite(pytester: pytest.Pytester) -> None:
    marked = "@pytest.mark.postgresql_alone\ndef test_two_writers(database_url): pass\n"
    path = pytester.makepyfile(TESTS.partition("@pytest.mark.parametrize")[0] + marked)
    pytester.makeini("[pytest]\nmarkers = postgresql_alone")
    items, _ = pytester.inline_genitems(str(path))
    chosen, left = selection.fitting(items)
    assert (names(chosen), names(left)) == ({"test_two_writers[postgresql]"}, {"test_two_writers[sqlite]"})
    for postgres in (True, False):  # where there is none it is skipped, and its reason is printed
        assert selection.shortened(chosen, postgres=postgres) == (chosen, [])
