"""Faults that are made to measure the tests: one line each, in what functions do, and the same ones every time."""

from pathlib import Path

from bench.mutation import ALONE, LINES, PACKAGES, draw, faults_of, in_parts

SOURCE = '''LIMIT = 3

def first(values: list[int] | None, most: int | None = None) -> int | None:
    """The first of some values, 1 or more."""
    found: int | None = None
    for value in values or ():
        if value > 0 and value < LIMIT:
            found = value + 1
            break
    return found
'''


def test_each_fault_changes_one_line_of_what_a_function_does() -> None:
    faults = list(faults_of("app/first.py", SOURCE))
    assert {each.line for each in faults} == {6, 7, 8, 9}
    lines = SOURCE.splitlines()
    for each in faults:
        changed = each.made_in(SOURCE).splitlines()
        assert [number for number, pair in enumerate(zip(lines, changed, strict=True), 1) if len({*pair}) == 2] == [
            each.line
        ]
        compile("\n".join(changed), each.path, "exec")


def test_the_same_tree_gives_the_same_faults_and_no_line_twice(tmp_path: Path) -> None:
    for package in PACKAGES:
        (tmp_path / package).mkdir(parents=True)
        for number in range(5):
            (tmp_path / package / f"module_{number}.py").write_text(SOURCE)
    drawn = draw(tmp_path)
    assert drawn == draw(tmp_path)
    assert len({(each.path, each.line) for each in drawn}) == len(drawn) == LINES * len(PACKAGES)


def test_a_fault_meets_quick_tests_first_and_of_these_the_ones_that_come_by_few_lines() -> None:
    few = {f"tests.integration.test_few.test_{number}" for number in range(9)}
    many = {f"tests.integration.test_many.test_{number}" for number in range(sum(ALONE))}
    slow = {"tests.browser.test_page.test_it"}
    first, second = in_parts(few | many | slow, [few | many, many, slow])
    assert (len(first), len(second)) == ALONE
    assert few < first
    assert not slow & (first | second)
    assert in_parts(few | slow, [few]) == [few | slow]
    assert in_parts(set(), [few]) == []
