"""The sides of the benchmark of trainings compute the same loss, the plain recipe's."""

import random

import pytest

import bench.training as bench
import training.onednn as onednn
from bench.training import Bench, measured, sides_of_offline_po, sides_of_stable_alignment, table


@pytest.fixture
def short_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few words and short texts, and a model of a few thousand weights by the name `small`."""
    for name, value in {"WORDS": 40, "RULES": 9, "MOVE": 3, "REPLY": 4, "RESPONSE": 6}.items():
        monkeypatch.setattr(bench, name, value)
    monkeypatch.setitem(bench.SIZES, "small", (32, 48, 2, 4, 2))


@pytest.mark.long
@pytest.mark.usefixtures("short_rows")
@pytest.mark.parametrize("by_onednn", [False, True])
def test_all_sides_of_the_benchmark_compute_one_loss(by_onednn: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onednn, "_LEAST", 0)
    for module in (bench, onednn):
        monkeypatch.setattr(module, "is_onednn_faster", lambda: by_onednn)
    small = Bench("small", "cpu")
    for sides, differing in ((sides_of_offline_po(small, 2), ()), (sides_of_stable_alignment(small, 2), (1,))):
        found = measured(small, sides, repeats=1)
        assert any("oneDNN" in side.name for side in sides) == by_onednn
        half = next(at for at, side in enumerate(sides) if "bfloat16" in side.name)
        assert table("tried", sides, found).count("\n") == len(sides) + 1
        for at, (side, figures) in enumerate(zip(sides, found, strict=True)):
            if at not in differing:  # without the query they share, the responses answer to other ones
                bound = 1e-5 if at < half else 0.05
                assert abs(figures.loss - found[0].loss) <= bound, side.name


@pytest.mark.usefixtures("short_rows")
def test_the_memory_of_a_side_is_counted_with_its_own_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    small, kept = Bench("small", "cpu"), []

    def before(_: object) -> float:
        models = (small.model, small.plain, small.model_by_onednn)
        kept.append(any(weights.grad is not None for model in models for weights in model.parameters()))
        return 0.0

    monkeypatch.setattr(bench, "_memory_before", before)
    sides = sides_of_stable_alignment(small, 2)
    measured(small, sides, repeats=2)
    assert kept == [False] * 2 * len(sides)


def test_the_rows_of_a_match_are_those_of_its_moves() -> None:
    items = bench.matches(1, random.Random(0))
    rows = bench.moves_of(items, random.Random(1))
    [whole] = items[0].sequences
    assert sorted(len(row.sequences[0].ids) for row in rows) == [280, 426, 572, 718, 864]
    assert all(whole.ids[: len(row.sequences[0].ids)] == row.sequences[0].ids for row in rows)
