"""Several scores in one figure: the geometric mean, its standard error, and the tasks that it goes over."""

import math
import random
from statistics import fmean, stdev

import pytest

from app.benchmarks.scores import MeasuredScore, common_tasks, geometric_mean, is_share
from app.benchmarks.tasks import PRESETS, SHIPPED, read_tasks
from app.core.errors import Invalid


def test_the_mean_is_that_of_the_logarithms() -> None:
    assert geometric_mean([MeasuredScore(0.25, None), MeasuredScore(1.0, None)]) == (0.5, None)
    assert geometric_mean([MeasuredScore(0.3, 0.02)]) == pytest.approx((0.3, 0.02))


def test_its_standard_error_is_how_far_means_of_measured_scores_scatter() -> None:
    scores = [MeasuredScore(0.6, 0.02), MeasuredScore(0.3, 0.015), MeasuredScore(0.8, 0.01)]
    rng = random.Random(1)
    drawn = [
        math.exp(fmean(math.log(rng.gauss(each.value, each.stderr)) for each in scores if each.stderr))
        for _ in range(20_000)
    ]
    mean = geometric_mean(scores)
    assert mean.value == pytest.approx(fmean(drawn), rel=2e-3)
    assert mean.stderr == pytest.approx(stdev(drawn), rel=0.03)


def test_a_score_of_0_makes_the_mean_0_without_a_standard_error() -> None:
    assert geometric_mean([MeasuredScore(0.0, 0.0), MeasuredScore(0.5, 0.1)]) == (0.0, None)


def test_a_score_without_a_standard_error_leaves_the_mean_without_one() -> None:
    assert geometric_mean([MeasuredScore(0.5, None), MeasuredScore(0.5, 0.1)]) == (pytest.approx(0.5), None)


def test_an_interval_stays_between_0_and_1() -> None:
    assert MeasuredScore(0.99, 0.1).interval == (pytest.approx(0.794, abs=1e-3), 1.0)
    assert MeasuredScore(0.99, None).interval is None


def test_only_shares_are_given_in_percent() -> None:
    shares = ("acc", "acc_norm", "exact_match", "r@1", "f1", "bleu_acc", "prompt_level_strict_acc")
    others = ("word_perplexity", "bits_per_byte", "mcc", "bleu_max", "brier_score", "rougeL_diff", "ter")
    assert [is_share(name, 0.4) for name in (*shares, *others)] == [True] * len(shares) + [False] * len(others)
    assert (is_share("f1", 61.5), is_share("acc", 0.0), is_share("acc", 1.0)) == (False, True, True)


def test_models_are_compared_on_the_tasks_that_all_of_them_have() -> None:
    score = MeasuredScore(0.5, None)
    assert common_tasks([{"a": score, "b": score, "c": score}, {"c": score, "a": score}]) == ["a", "c"]
    assert common_tasks([]) == []


def test_presets_are_written_out_and_each_task_counts_once() -> None:
    assert read_tasks("piqa, spag") == ["piqa", *(name for name in PRESETS["spag"] if name != "piqa")]
    assert read_tasks("everyday-reasoning everyday-reasoning") == ["everyday-reasoning"]
    assert all(task.file.is_file() for task in SHIPPED.values())


@pytest.mark.parametrize("text", ["", " , ", "arc easy;rm", "../secret", "x" * 121])
def test_what_is_no_name_of_a_task_is_refused(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        read_tasks(text)
    assert refused.value.field == "tasks"
    assert "\n" not in refused.value.message
