"""What the matches of a round are, by their index alone."""

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.rounds import ranges
from app.rounds.plan import IN_ORDER, RANDOM, SHUFFLED, RoundPlan, setup

WORDS = tuple(f"word{number}" for number in range(10))


def words(plan: RoundPlan, matches: int) -> list[str]:
    return [setup(plan, index).config["word"] for index in range(matches)]


def test_every_match_has_a_seed_of_its_own_that_a_database_can_hold() -> None:
    seeds = {setup(RoundPlan("negotiation", {}, 1), index).seed for index in range(2000)}
    assert len(seeds) == 2000
    assert all(0 <= seed < 2**62 for seed in seeds)


def test_another_seed_is_another_round() -> None:
    one, other = RoundPlan("negotiation", {}, 1), RoundPlan("negotiation", {}, 2)
    assert not {setup(one, index).seed for index in range(100)} & {setup(other, index).seed for index in range(100)}


def test_contexts_in_order_come_as_they_stand_and_begin_again() -> None:
    contexts = [[[1, 1, 1], [1, 1, 8], [8, 1, 1]], [[2, 2, 2], [1, 2, 2], [2, 2, 1]]]
    plan = RoundPlan("negotiation", {"objective": "coop"}, 1, material=contexts)
    configs = [setup(plan, index).config for index in range(3)]
    assert [config["counts"] for config in configs] == [[1, 1, 1], [2, 2, 2], [1, 1, 1]]
    assert configs[0] == {"objective": "coop", "counts": [1, 1, 1], "values": [[1, 1, 8], [8, 1, 1]]}


def test_shuffled_words_come_once_each_before_any_comes_again() -> None:
    drawn = words(RoundPlan("taboo", {}, 5, pick=SHUFFLED, material=WORDS), 25)
    assert sorted(drawn[:10]) == sorted(drawn[10:20]) == sorted(WORDS)
    assert drawn[:10] != drawn[10:20]
    assert tuple(drawn[:10]) != WORDS
    assert max(Counter(drawn).values()) == 3


def test_random_words_are_drawn_for_each_match() -> None:
    drawn = words(RoundPlan("taboo", {}, 5, pick=RANDOM, material=WORDS), 1000)
    assert set(drawn) == set(WORDS)
    assert len(set(drawn[:10])) < 10


@pytest.mark.parametrize("pick", [IN_ORDER, SHUFFLED, RANDOM])
def test_with_swapped_seats_each_game_is_played_from_either_side(pick: str) -> None:
    plan = RoundPlan("taboo", {}, 9, swap_seats=True, pick=pick, material=WORDS)
    for index in range(0, 40, 2):
        one, other = setup(plan, index), setup(plan, index + 1)
        assert (one.seed, one.config) == (other.seed, other.config)
        assert (one.swapped, other.swapped) == (False, True)
    assert setup(plan, 0).seed != setup(plan, 2).seed


@given(matches=st.integers(1, 1_000_000))
def test_ranges_cover_every_index_once(matches: int) -> None:
    parts = list(ranges.parts(matches))
    assert parts[0].start == 0
    assert parts[-1].stop == matches
    assert all(one.stop == other.start for one, other in itertools.pairwise(parts))
    assert all(1 <= part.stop - part.start <= 500 for part in parts)
    assert len(parts) <= max(64, matches // 500 + 1)
