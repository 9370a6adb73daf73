"""The statistics of `python -m bench.claims`, beside an independent library's."""

from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from bench.claims import CLAIMS, CONDITIONS, holm, interval, of_claims, sign_flip_p, stages_of

TEN = (0.31, -0.12, 0.44, 0.2, 0.05, 0.63, -0.3, 0.18, 0.27, 0.09)


def test_the_interval_is_that_of_a_t_test() -> None:
    expected = scipy.stats.ttest_1samp(TEN, 0).confidence_interval(0.95)
    assert interval(TEN) == pytest.approx((expected.low, expected.high))


def test_the_p_of_signs_counts_all_signings() -> None:
    exact = scipy.stats.permutation_test(
        (np.array(TEN),), np.mean, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
    )
    assert sign_flip_p(TEN) == pytest.approx(exact.pvalue)
    assert sign_flip_p([1.0] * 6) == pytest.approx(2 / 64)  # with five campaigns none could be below 0.05
    assert sign_flip_p([0.0, 0.0]) == 1


def test_holm_multiplies_the_smallest_by_all_and_never_turns_an_order_around() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.9]) == [1.0, 1.0]


def test_a_claim_is_met_where_its_interval_reaches_the_aim() -> None:
    rows = {
        line.split(" | ")[0].removeprefix("| "): line
        for line in of_claims([_result(seed, deals) for seed, deals in enumerate((0.9, 0.92, 0.91))]).splitlines()
    }
    assert len(rows) == len(CLAIMS) + 2
    assert rows["deals, greedy"].endswith("| yes |")
    assert rows["points, greedy"].endswith("| no |")
    assert rows["agreed points minus the base’s, greedy"].endswith("| yes |")  # no less than the base's
    assert rows["points minus the base’s, at temperature 1"].endswith("| no |")
    assert rows["own points minus the base’s, against scripted"].split(" | ")[2] == "-0.500"


def _result(seed: int, deals: float) -> dict[str, object]:
    last = {"deals": deals, "points": 5.0, "agreed_points": 6.3, "agreed_pareto": 0.5, "own_points": 2.0}
    base = {**last, "own_points": 2.5}

    return {
        "seed": seed,
        **{which: dict.fromkeys(CONDITIONS, figures) for which, figures in (("base", base), ("last", last))},
    }


def test_each_stage_has_the_fields_of_all_and_its_own(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        "matches: 10\nfilter: all\nstages:\n  - iterations: 2\n  - {matches: 5, filter: nonzero}\n"
        "variants:\n  unfiltered: {filter: all}\n  short: {seed: 1, stages: [{matches: 3}]}\n"
        "  first: {stages: 1, filter: nonzero}\n"
        "  late: {like: unfiltered, last_stage: {control: random_rows}}\n",
        "utf-8",
    )
    first = {"matches": 10, "filter": "all", "iterations": 2}
    assert stages_of(spec) == [first, {"matches": 5, "filter": "nonzero"}]
    assert stages_of(spec, "unfiltered") == [first, {"matches": 5, "filter": "all"}]
    assert stages_of(spec, "short") == [{"matches": 3, "filter": "all", "seed": 1}]
    assert stages_of(spec, "first") == [{**first, "filter": "nonzero"}]
    assert stages_of(spec, "late") == [first, {"matches": 5, "filter": "all", "control": "random_rows"}]
    with pytest.raises(SystemExit, match="expected campaign or unfiltered or short or first or late, got unfilterd"):
        stages_of(spec, "unfilterd")
