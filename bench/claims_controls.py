"""Controls that train nothing: how the base and the final models of `bench.claims` do under other conditions.

    python -m bench.claims_controls base-temperature               the base at its best temperature: sharpening alone
    python -m bench.claims_controls exchanged-talk --seeds 101 102 …
    python -m bench.claims_controls cross-play --seeds 101 102 …
    python -m bench.claims_controls trained        the campaigns of all variants that are there, beside the headline's

`base-temperature` plays the base at each temperature on the contexts of development, and at the best of them, by
points a player, on those of test. `exchanged-talk` lets each final model read, in place of what its partner says, what
the partner said in the next match: it should lose what it gains by reading. In `cross-play` each final model plays with
that of the next seed in either seat, the last one with that of the first: a convention that two copies of a model
share and nobody else is worth nothing there. Both need the folders of `bench.claims` with these models. `trained` plays
nothing. All matches are played at temperature 1 unless stated otherwise. Figures and matches are kept in
bench/measured/claims.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import scipy.stats

from app.core.config import ROOT
from app.core.yaml_reader import read_yaml
from bench.campaign_homes import flask
from bench.claims import (
    BASE,
    BASE_FOLDER,
    GREEDY,
    HEADLINE,
    PLAYED,
    SPEC,
    Result,
    as_markdown,
    interval,
    kept_by_seed,
    kept_round,
    played_round,
    register,
)

TEMPERATURES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
BASE_SEED = 1
EXCHANGED, CROSS = "exchanged-talk", "cross-play"
KEPT_OF = {EXCHANGED: f"-{EXCHANGED}-on", CROSS: r"-with-\d+-on"}  # what follows the seed in their files' names
_SHOWN = ("deals", "points", "agreed_points", "agreed_pareto", "last_offer_deals")


def main() -> None:
    """Play what is missing, and print it beside what it is compared with."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("do", choices=("base-temperature", EXCHANGED, CROSS, "trained"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[], help="whose final models")
    parser.add_argument("--measured-on", choices=("test", "development"), default="test", help="contexts [test]")
    parser.add_argument("--work", type=Path, default=ROOT / "var" / "claims", help="folder to work in [var/claims]")
    asked = parser.parse_args()
    work = asked.work.resolve()
    contexts = work / "contexts" / f"{asked.measured_on}.txt"
    if asked.do == "base-temperature":
        print(_base_at_temperatures(work, contexts))
    elif asked.do == "trained":
        print(of_variants(asked.measured_on))
    elif len(asked.seeds) < 2:
        parser.error("--seeds: expected two or more, as each is compared over them")
    else:
        play = _exchanged_talk if asked.do == EXCHANGED else _cross_play
        print(beside_own(play(work, contexts, asked.seeds), asked.do, asked.measured_on))


def _base_at_temperatures(work: Path, contexts: Path) -> str:
    home, tried = work / "base-temperature", contexts.with_name("development.txt")
    register(home, BASE, BASE_FOLDER)

    def played(temperature: float, on: Path) -> Mapping[str, float]:
        how = ("--temperature", str(temperature), "--seed", str(BASE_SEED))
        return kept_round(home, f"base-at-{temperature:g}-on-{on.stem}", lambda: played_round(home, [BASE], on, *how))

    found = {temperature: played(temperature, tried) for temperature in TEMPERATURES}
    best = max(found, key=lambda temperature: found[temperature]["points"])
    lines = [[f"{temperature:g}", tried.stem, *_cells(figures)] for temperature, figures in found.items()]
    lines.append([f"{best:g}", contexts.stem, *_cells(played(best, contexts))])
    return as_markdown([["temperature", "contexts", *_titles()], *lines])


def _exchanged_talk(work: Path, contexts: Path, seeds: Sequence[int]) -> dict[int, Mapping[str, float]]:
    def played(seed: int) -> Mapping[str, float]:
        home, how = work / f"{HEADLINE}-{seed}", ("--seed", str(seed), "--temperature", "1")

        def play() -> str:
            own = played_round(home, [_last(home)], contexts, *how)
            return played_round(home, [_last(home)], contexts, *how, "--talk-of", own)

        return kept_round(home, f"{HEADLINE}-{seed}-{EXCHANGED}-on-{contexts.stem}", play)

    return {seed: played(seed) for seed in seeds}


def _cross_play(work: Path, contexts: Path, seeds: Sequence[int]) -> dict[int, Mapping[str, float]]:
    def played(seed: int, other: int) -> Mapping[str, float]:
        home, partner = (work / f"{HEADLINE}-{each}" for each in (seed, other))

        def play() -> str:
            name = f"last-of-{other}"
            register(home, name, _folder(partner))
            models = [_last(home), name]
            return played_round(home, models, contexts, "--seed", str(seed), "--temperature", "1", "--swap-seats")

        return kept_round(home, f"{HEADLINE}-{seed}-with-{other}-on-{contexts.stem}", play)

    return {seed: played(seed, other) for seed, other in zip(seeds, [*seeds[1:], seeds[0]], strict=True)}


def of_variants(on: str) -> str:
    """The mean of each variant's final models over its seeds, and how its points differ from the headline's."""
    variants = [HEADLINE, *read_yaml(SPEC).value.get("variants", {})]
    found = {variant: list(kept_by_seed(variant, on).values()) for variant in variants}
    lines = [["variant", "seeds", "played", *_titles(), "points minus the headline’s, 95 %"]]
    for condition in (PLAYED, GREEDY):
        for variant, results in found.items():
            if results:
                last = [each["last"][condition] for each in results]
                means = {name: sum(each[name] for each in last) / len(last) for name in _SHOWN}
                apart = "" if variant == HEADLINE else _apart(results, found[HEADLINE], condition)
                lines.append([variant, str(len(results)), condition, *_cells(means), apart])
    return as_markdown(lines)


def _apart(results: Sequence[Result], others: Sequence[Result], condition: str) -> str:
    """The difference in mean points of campaigns with different seeds, with its interval by Welch's test."""
    ours, theirs = ([each["last"][condition]["points"] for each in some] for some in (results, others))
    if min(len(ours), len(theirs)) < 2:
        return "too few seeds"
    interval_of = scipy.stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval()
    mean = sum(ours) / len(ours) - sum(theirs) / len(theirs)
    return f"{mean:+.3f} ({interval_of.low:+.3f} to {interval_of.high:+.3f})"


def _last(home: Path) -> str:
    """The name of a campaign's final model. Raises SystemExit where it is missing."""
    kept = home / "campaign.json"
    if not kept.exists():
        raise SystemExit(f"expected a finished campaign in {home}, got none; python -m bench.claims makes it")
    return str(json.loads(kept.read_text(encoding="utf-8"))["models"]["last"])


def _folder(home: Path) -> Path:
    """The folder of a campaign's final model."""
    name = _last(home)
    [model] = [each for each in json.loads(flask(home, "model", "list", "--json")) if each["name"] == name]
    return home / str(model["options"]["path"])


def beside_own(found: Mapping[int, Mapping[str, float]], what: str, on: str) -> str:
    """For each seed, these figures and those of the model with itself; then the mean difference with its interval."""
    seeds = list(found)
    own = {seed: each["last"][PLAYED] for seed, each in kept_by_seed(HEADLINE, on).items()}
    lines = [["seed", "played", *_titles()]]
    for seed in seeds:
        lines += [[str(seed), "with itself", *_cells(own[seed])], [str(seed), what, *_cells(found[seed])]]
    differences = []
    for name in _SHOWN:
        values = [found[seed][name] - own[seed][name] for seed in seeds]
        low, high = interval(values)
        differences.append(f"{sum(values) / len(values):+.3f} ({low:+.3f} to {high:+.3f})")
    return as_markdown([*lines, ["all", "difference, 95 %", *differences]])


def _titles() -> list[str]:
    return [name.replace("_", " ") for name in _SHOWN]


def _cells(figures: Mapping[str, float]) -> list[str]:
    return [f"{figures[name]:.3f}" for name in _SHOWN]


if __name__ == "__main__":
    main()
