"""The sides of the benchmark of trainings compute the same loss, the plain recipe's."""

import random

import pytest
import torch

import bench.training as bench
from bench.training import Bench, measured, sides_of_offline_po, sides_of_stable_alignment, table


def test_all_sides_of_the_benchmark_compute_one_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"WORDS": 40, "RULES": 9, "MOVE": 3, "REPLY": 4, "RESPONSE": 6}.items():
        monkeypatch.setattr(bench, name, value)
    monkeypatch.setitem(bench.SIZES, "small", (32, 48, 2, 4, 2))
    small = Bench("small", "cpu")
    for sides, differing in ((sides_of_offline_po(small, 2), ()), (sides_of_stable_alignment(small, 2), (1,))):
        found = measured(sides, torch.device("cpu"), repeats=1)
        assert table("tried", sides, found).count("\n") == len(sides) + 1
        for at, (side, figures) in enumerate(zip(sides, found, strict=True)):
            if at not in differing:  # without the query they share, the responses answer to other ones
                bound = 1e-5 if "bfloat16" not in side.name and at < 6 else 0.05
                assert abs(figures.loss - found[0].loss) <= bound, side.name


def test_the_rows_of_a_match_are_those_of_its_moves() -> None:
    items = bench.matches(1, random.Random(0))
    rows = bench.moves_of(items, random.Random(1))
    [whole] = items[0].sequences
    assert sorted(len(row.sequences[0].ids) for row in rows) == [280, 426, 572, 718, 864]
    assert all(whole.ids[: len(row.sequences[0].ids)] == row.sequences[0].ids for row in rows)
