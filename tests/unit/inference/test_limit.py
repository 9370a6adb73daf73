"""How many answers are made at once after memory has run out."""

from app.inference.limit import BatchLimit


def made_until_free(limit: BatchLimit, wanted: int) -> int:
    """How many answers are made, as many at once as the limit allows, until it allows as many as are wanted."""
    made = 0
    while limit.of(wanted) < wanted:
        made += limit.of(wanted)
        limit.grow(limit.of(wanted), wanted)
        assert made < 100_000
    return made


def test_as_many_as_are_wanted_until_memory_runs_out() -> None:
    limit = BatchLimit()
    limit.grow(1000, 64)
    assert (limit.of(64), limit.of(1), limit.at_once) == (64, 1, None)


def test_memory_that_ran_out_halves_what_was_tried_down_to_one() -> None:
    limit = BatchLimit()
    found = []
    for tried in (64, 32, 3, 1, 1):
        limit.shrink(tried)
        found.append(limit.of(64))
    assert found == [32, 16, 1, 1, 1]
    assert limit.of(8) == 1


def test_answers_that_were_made_let_it_grow_until_all_are_made_at_once_again() -> None:
    limit = BatchLimit()
    limit.shrink(64)
    limit.grow(31, 64)
    assert limit.of(64) == 32
    limit.grow(1, 64)
    assert limit.of(64) == 48
    made_until_free(limit, 64)
    assert limit.at_once is None
    limit.shrink(1)
    assert limit.of(64) == 1
    assert made_until_free(limit, 64) > 0


def test_memory_that_runs_out_again_and_again_is_tried_less_often_and_never_given_up() -> None:
    limit = BatchLimit()
    tries = []
    for _ in range(12):
        limit.shrink(64)
        tries.append(made_until_free(limit, 64))
    assert tries[1] > 1.5 * tries[0]
    assert tries[0] < tries[5] < 50 * tries[0]
    assert tries[-1] == tries[-2]
