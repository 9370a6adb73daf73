"""The tables of the headline: every condition beside the base under the same one, and how far seeds lie apart."""

from typing import Any

from bench.headline import by_condition, by_iteration, by_seed
from tests.campaigns import made_up


def campaign(name: str, shift: float) -> dict[str, Any]:
    """What `flask campaign show --json` says of one with a model beside its base."""

    def figures(number: int, ratio: float | None) -> dict[str, Any]:
        own = {"value": ratio, "low": ratio and ratio - 1, "high": ratio and ratio + 1}
        score = {"value": shift + number, "low": None, "high": None}
        return made_up(number) | {"score_mean": score} | ({"score_ratio": own} if ratio else {})

    return {
        "name": name,
        "minutes": 12.4,
        "spec": {"config": {"objective": "self"}},
        "results": [
            {
                "iteration": number,
                "model": f"{name}-{number}",
                "figures": figures(number, number and 10.0),
                "evaluations": {
                    "greedy": {"figures": figures(number + 2, number and 1.25)},
                    "against scripted": {"figures": {"score_mean": {"value": 4.5, "low": 4.0, "high": 5.0}}},
                },
            }
            for number in (0, 1)
        ],
    }


def test_no_ratio_stands_without_its_condition_and_its_interval() -> None:
    header, _, base, model = by_iteration([campaign("self-1", 0.5)]).splitlines()
    assert header == (
        "| campaign | iteration | score, as played | ÷ base's, as played | score, greedy | ÷ base's, greedy |"
        " score, against scripted | ÷ base's, against scripted | minutes |"
    )
    assert base == "| self-1 | 0 | 0.50 | – | 2.50 | – | 4.50 (4.00 to 5.00) | – |  |"
    assert model == (
        "| self-1 | 1 | 1.50 | 10.00 (9.00 to 11.00) | 3.50 | 1.25 (0.25 to 2.25) | 4.50 (4.00 to 5.00) | – | 12 |"
    )


def test_the_base_stands_beside_the_last_model_in_every_condition() -> None:
    rows = [row.split(" | ") for row in by_condition([campaign("self-1", 0.5)]).splitlines()[2:]]
    assert [row[1:3] for row in rows[:6]] == [
        [model, label] for model in ("self-1-0", "self-1-1") for label in ("as played", "greedy", "against scripted")
    ]
    assert rows[6][0].startswith("| Lewis et al. 2017")


def test_seeds_have_a_mean_and_a_spread() -> None:
    row = by_seed([campaign("self-1", 0.5), campaign("self-2", 1.5)]).splitlines()[2]
    assert row.startswith("| self | 2 | as played | 2.00 (1.50 to 2.50) |")
