"""Tables of steps, and those of sweeps in words."""

from app.recipes.sweep import Sweep
from app.recipes.sweep_results import SweepResults, table_in_words
from app.recipes.tables import ComparedStep, table_of


def test_a_step_that_seeds_miss_keeps_its_figures_and_has_no_number_of_seeds() -> None:
    own = {"score_mean": {"value": 3.0, "low": 2.0, "high": 4.0, "n": 40}}
    found = {"score_mean": {"value": 1.0, "n": 40}}
    some = {**found, "agreement_rate": {"value": 1.0, "n": 40}}
    steps = [
        ComparedStep("base", {}, "mine", own),
        ComparedStep("measure", {"seed": 1}, "mine-1", some),
        ComparedStep("measure", {"seed": 2}, "mine-2", found),
    ]
    table = table_of(steps, "seed", ())
    assert table["rows"][0]["figures"] == own
    words = table_in_words(SweepResults(Sweep((), (1, 2)), (), table))
    assert [(line[0], line[-1]) for line in words.lines] == [("base", ""), ("measure", "1")]
    assert words.lines[0][1] == "3 (2 to 4)"
