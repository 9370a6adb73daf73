"""What `python -m bench.claims_controls` makes of rounds, with invented figures in place of played ones."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import scipy.stats

from bench import claims, claims_controls
from bench.claims import GREEDY, PLAYED

FIGURES = {"points": 2.0, "agreed_points": 5.0, "agreed_pareto": 0.5, "last_offer_deals": 0.25}


def test_the_base_plays_on_test_at_the_temperature_that_is_best_on_development(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = []

    def invented(_home: Path, name: str, _play: Callable[[], str]) -> dict[str, float]:
        played.append(name)
        return FIGURES | {"deals": 0.1, "points": 3.0 if "at-0.4" in name else 1.0}

    monkeypatch.setattr(claims_controls, "kept_round", invented)
    monkeypatch.setattr(claims_controls, "register", lambda *_: None)
    said = claims_controls._base_at_temperatures(tmp_path, tmp_path / "contexts" / "test.txt").splitlines()
    assert played[-1] == "base-at-0.4-on-test"
    assert [name.split("-on-")[1] for name in played] == ["development"] * 6 + ["test"]
    assert said[-1].startswith("| 0.4 | test | 0.100 | 3.000 |")


def test_each_model_stands_beside_itself_with_the_mean_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "MEASURED", tmp_path)
    for seed, deals in ((101, 0.75), (102, 0.5)):
        kept = {"last": {PLAYED: FIGURES | {"deals": deals}}}
        (tmp_path / f"campaign-{seed}-test.json").write_text(json.dumps(kept), "utf-8")
    found = {101: FIGURES | {"deals": 0.5}, 102: FIGURES | {"deals": 0.25}}
    lines = claims_controls.beside_own(found, "cross-play", "test").splitlines()
    assert lines[2].startswith("| 101 | with itself | 0.750 |")
    assert lines[3].startswith("| 101 | cross-play | 0.500 |")
    assert lines[-1].startswith("| all | difference, 95 % | -0.250 (-0.250 to -0.250) | +0.000 (+0.000 to +0.000) |")


def test_controls_that_train_stand_beside_the_headline_with_what_their_points_differ_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "MEASURED", tmp_path)
    points = {"campaign": {101: 4.0, 102: 4.5, 103: 5.0}, "unfiltered": {201: 1.0, 202: 2.0}, "random_rows": {201: 3.0}}
    for variant, by_seed in points.items():
        for seed, each in by_seed.items():
            figures = FIGURES | {"deals": 0.5, "points": each}
            kept = {"last": {PLAYED: figures, GREEDY: figures}}
            (tmp_path / f"{variant}-{seed}-test.json").write_text(json.dumps(kept), "utf-8")
    (tmp_path / "campaign-101-with-102-on-test.json").write_text("{}", "utf-8")
    lines = [line.split(" | ") for line in claims_controls.of_variants("test").splitlines()]
    rows = {(line[0].removeprefix("| "), line[2]): line for line in lines}
    assert rows["campaign", PLAYED][1:5] == ["3", PLAYED, "0.500", "4.500"]
    mean, low, high = (float(each) for each in re.findall(r"[-+.\d]+", rows["unfiltered", GREEDY][-1]))
    # By Welch: the variances of the means are 0.25 / 3 and 0.5 / 2, with 1.68 degrees of freedom.
    half = float(scipy.stats.t.ppf(0.975, (1 / 12 + 1 / 4) ** 2 / (1 / 288 + 1 / 16))) * (1 / 3) ** 0.5
    assert (mean, low, high) == pytest.approx((-3.0, -3.0 - half, -3.0 + half), abs=0.001)
    assert rows["random_rows", PLAYED][-1] == "too few seeds |"
    assert ("messages_alone", PLAYED) not in rows


def test_a_campaign_that_is_not_there_is_said_with_what_makes_it(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"expected a finished campaign in .*, got none; python -m bench\.claims"):
        claims_controls._last(tmp_path)
