"""Figures of a society: means with intervals by iteration, and what its data holds by type of row and model."""

import pytest

from app.core.csv_tables import to_csv
from app.society.comparisons import IMITATION, REALIGNMENT, SELF_CRITICISM, MixingRatio, rated_rows
from app.society.statistics import DATA_COLUMNS, FEW_RATINGS, ITERATION_COLUMNS, data_figures, iteration_figures
from tests.unit.society.worlds import feedback, interaction, many


def test_each_iteration_has_its_means_and_all_of_them_stand_last() -> None:
    every = [
        interaction(iteration=number, agent=agent, before=2.0 + agent % 2, after=5.0 + number)
        for number in (1, 0)
        for agent in range(12)
    ]
    first, second, whole = iteration_figures(every)
    assert [each.iteration for each in (first, second, whole)] == [0, 1, None]
    assert (first.alignment.before.value, first.alignment.after.value, first.alignment.change.value) == (2.5, 5.0, 2.5)
    assert (second.alignment.after.value, whole.alignment.after.value) == (6.0, 5.5)
    assert (whole.interactions, whole.alignment.before.n) == (24, 24)
    low, high = first.alignment.before.low, first.alignment.before.high
    assert low is not None
    assert high is not None
    assert 2.0 <= low < 2.5 < high <= 3.0


def test_the_interval_of_all_iterations_takes_an_agents_answers_together() -> None:
    """Ten agents that never change tell no more in a hundred iterations than in one."""
    every = [
        interaction(iteration=number, agent=agent, before=1.0 + agent % 5)
        for number in range(20)
        for agent in range(10)
    ]
    *single, whole = iteration_figures(every)
    first = single[0].alignment.before
    assert (whole.alignment.before.low, whole.alignment.before.high) == pytest.approx((first.low, first.high))
    assert whole.alignment.before.n == 200


def test_what_could_not_be_read_is_in_no_mean() -> None:
    (found, _) = iteration_figures([interaction(before=None, after=6.0), interaction(agent=1, before=3.0, after=None)])
    assert (found.alignment.before.value, found.alignment.before.n) == (3.0, 1)
    assert (found.alignment.change.value, found.alignment.change.n) == (None, 0)
    assert found.alignment.after.no_interval == FEW_RATINGS
    assert iteration_figures([]) == []


def test_the_data_of_each_model_is_counted_by_type_and_together() -> None:
    every = [
        interaction(agent=0, model="a", feedback=[feedback(1, 3), feedback(1, None)]),
        interaction(agent=1, model="b", question="Why?", feedback=[]),
    ]
    found = data_figures(rated_rows(every, MixingRatio(1, 9, 9)))
    assert [(each.row_type, each.model, each.tally.found, each.tally.kept) for each in found] == [
        (IMITATION, "a", 2, 2), (IMITATION, "b", 2, 2), (IMITATION, None, 4, 4),
        (SELF_CRITICISM, "b", 2, 1),
        (REALIGNMENT, "a", 2, 1),
    ]  # fmt: skip
    assert found[2].tally.mean_rating == 4.5


@pytest.mark.parametrize("seed", range(3))
def test_the_tables_have_a_cell_for_every_column(seed: int) -> None:
    every = many(60, seed)
    for columns, rows in (
        (ITERATION_COLUMNS, iteration_figures(every)),
        (DATA_COLUMNS, data_figures(rated_rows(every))),
    ):
        head, *lines = b"".join(to_csv(columns, rows)).decode().splitlines()
        assert len(lines) == len(rows) > 1
        assert all(line.count(",") == head.count(",") for line in lines)
