"""The claims of docs/headline-plan.md: campaigns that differ in the seed alone, measured on the test contexts.

    python -m scripts.make_base --contexts var/claims/contexts
    python -m bench.claims --seeds 101 102 103 …

Every campaign has a database of its own in the folder to work in, and goes on from its last step if it was interrupted.
Then the base and the final model play one match on each context of test: with themselves as they play and greedily, and
with `scripted` in either seat. These matches are exported and scored by `bench.last_offers`, which knows nothing of the
product. Figures and matches are kept in bench/measured/claims; of a seed that is there nothing is run again.

A campaign that stops because its filter keeps nothing of a round ends there, and its last model is measured.

Several of these commands may run side by side with different seeds, best with OMP_NUM_THREADS=1; with all of them named
it prints the tables. `--variant NAME` runs a control or another method: campaigns with the fields of that name in
bench/claims.yaml. Controls that train nothing are in `bench.claims_controls`.
"""

import argparse
import io
import itertools
import json
import re
import resource
import tarfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats

from app.core.config import ROOT
from app.core.files import temporary_beside
from app.core.yaml_reader import read_yaml
from bench.campaign_homes import flask, run_campaign
from bench.last_offers import Match, figures, matches_of

BASE = "little-base"
BASE_FOLDER = ROOT / "data" / "models" / BASE
HEADLINE = "campaign"  # the unchanged variant
SPEC = Path(__file__).with_name("claims.yaml")
MEASURED = ROOT / "bench" / "measured" / "claims"
OF_STAGE = 1_000  # added to a seed for each stage after the first
NOTHING_KEPT = "expected to keep at least one transcript"  # why a campaign stopped whose filter kept nothing
PLAYED, GREEDY, SCRIPTED = "at temperature 1", "greedy", "against scripted"
CONDITIONS = {PLAYED: ("--temperature", "1"), GREEDY: ("--greedy",), SCRIPTED: ("--temperature", "1", "--swap-seats")}
Result = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim that a figure of the final model, or its gain over the base's, reaches a target."""

    condition: str
    figure: str
    aim: float
    over_base: bool = False

    @property
    def title(self) -> str:
        return f"{self.figure.replace('_', ' ')}{' minus the base’s' if self.over_base else ''}, {self.condition}"

    def values(self, results: Sequence[Result]) -> list[float]:
        """One number per campaign."""
        last = [each["last"][self.condition][self.figure] for each in results]
        base = [each["base"][self.condition][self.figure] if self.over_base else 0.0 for each in results]
        return [a - b for a, b in zip(last, base, strict=True)]


PRIMARY = Claim(PLAYED, "points", 0.0, over_base=True)
CLAIMS = (
    PRIMARY,
    *(
        Claim(condition, figure, aim, over_base)
        for condition in (PLAYED, GREEDY)
        for figure, aim, over_base in (
            ("deals", 0.88, False), ("points", 5.4, False), ("agreed_points", 6.2, False), ("agreed_points", 0.0, True),
            ("agreed_pareto", 0.496, False), ("agreed_pareto", 0.0, True),
        )
    ),
    Claim(SCRIPTED, "own_points", -0.2, over_base=True),
)  # fmt: skip


def main() -> None:
    """Run the missing campaigns, one after the other, and print the results of all that were named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, nargs="+", required=True)
    parser.add_argument("--measured-on", choices=("test", "development"), default="test", help="contexts [test]")
    parser.add_argument("--spec", type=Path, default=SPEC, help="fields of a campaign [bench/claims.yaml]")
    parser.add_argument(
        "--variant", default=HEADLINE, metavar="NAME", help=f"a control's name in the spec [{HEADLINE}]"
    )
    parser.add_argument("--work", type=Path, default=ROOT / "var" / "claims", help="folder to work in [var/claims]")
    asked = parser.parse_args()
    work = asked.work.resolve()
    contexts = work / "contexts"
    played = contexts / "campaign-development.txt"
    stages = stages_of(asked.spec, asked.variant)
    shared = ["--contexts", str(played)]
    measured = contexts / f"{asked.measured_on}.txt"
    homes = {seed: work / f"{asked.variant}-{seed}" for seed in asked.seeds}
    results = [CampaignOfSeed(home, seed, stages, shared, measured).result() for seed, home in homes.items()]
    print(f"{by_seed(results)}\n\n{of_claims(results)}")


def stages_of(spec: Path, variant: str = HEADLINE) -> list[dict[str, Any]]:
    """The fields of each stage's campaign: the shared ones, its own, and those that the variant changes.

    A variant may have `stages` of its own or only the first so many, or be `like` another one with changes to its
    `last_stage`. Raises SystemExit for a variant that is not in the spec.
    """
    fields = dict(read_yaml(spec).value)
    variants = {HEADLINE: {}, **fields.pop("variants", {})}
    if variant not in variants:
        raise SystemExit(f"--variant: expected {' or '.join(variants)}, got {variant}")
    changed = dict(variants[variant])
    if "like" in changed:
        *first, last = stages_of(spec, changed["like"])
        return [*first, {**last, **changed["last_stage"]}]
    own = fields.pop("stages")
    stages = changed.pop("stages", len(own))
    return [{**fields, **each, **changed} for each in (own[:stages] if isinstance(stages, int) else stages)]


class CampaignOfSeed:
    """Campaigns in a folder of their own, one for each stage, each starting from the final model of the previous one;
    then the matches of the base and the final model.
    """

    def __init__(
        self, home: Path, seed: int, stages: Sequence[Mapping[str, Any]], options: Sequence[str], contexts: Path
    ) -> None:
        self._home, self._seed, self._stages, self._options, self._contexts = home, seed, stages, options, contexts

    def result(self) -> Result:
        """The seed, processor minutes, memory in MiB, and all figures of the base and the final model."""
        kept = MEASURED / f"{self._home.name}-{self._contexts.stem}.json"
        if not kept.exists():
            campaign = self._campaign()
            found = campaign | {which: self._measured(which, model) for which, model in campaign["models"].items()}
            keep(kept, found, self._home / "rounds", f"*-on-{self._contexts.stem}")
        return dict(json.loads(kept.read_text(encoding="utf-8")))

    def _campaign(self) -> dict[str, Any]:
        """The models it started and ended with, and what it took; if it was interrupted, only for the last part."""
        kept = self._home / "campaign.json"
        if not kept.exists():
            register(self._home, BASE, BASE_FOLDER)
            began, before = time.monotonic(), _processor_seconds()
            model, by_iteration, interrupted, stopped = BASE, list[float](), False, None
            for stage, fields in enumerate(self._stages, 1):
                campaign, begun = self._run(stage, {**fields, "base": model})
                trained = [each for each in campaign["results"] if each["model"] is not None]
                model, interrupted = trained[-1]["model"], interrupted or begun
                by_iteration += [
                    each["figures"]["score_mean"]["value"] for each in trained if each["iteration"] or stage == 1
                ]
                if campaign["status"] != "done":
                    stopped = campaign["error"]
                    break
            found = {
                "seed": self._seed,
                "models": {"base": BASE, "last": model},
                "stages": self._stages,
                "interrupted": interrupted,
                "minutes": (time.monotonic() - began) / 60,
                "processor_minutes": (_processor_seconds() - before) / 60,
                "memory_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
                "by_iteration": by_iteration,
                "stopped": stopped,
            }
            with temporary_beside(kept) as draft:
                draft.write_text(json.dumps(found, indent=1), encoding="utf-8")
        return dict(json.loads(kept.read_text(encoding="utf-8")))

    def _run(self, stage: int, fields: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """The campaign, and whether it had been started before.

        One that stopped because its filter kept nothing of a round is over, too: the model that played it is its last.
        """
        spec = self._home / f"stage-{stage}.json"
        spec.write_text(json.dumps(fields), encoding="utf-8")
        seed = str(self._seed + OF_STAGE * (stage - 1))
        options = ("--spec", str(spec), "--seed", seed, *self._options)
        return run_campaign(self._home, f"stage-{stage}", *options, may_stop=NOTHING_KEPT)

    def _measured(self, which: str, model: str) -> dict[str, dict[str, float]]:
        """By condition: the figures of `bench.last_offers` for the exported matches, and the model's own points."""
        found = {}
        for condition, how in CONDITIONS.items():
            models = [model, SCRIPTED.split()[-1]] if condition == SCRIPTED else [model]
            name = round_name(which, condition, self._contexts.stem)
            play = partial(played_round, self._home, models, self._contexts, "--seed", str(self._seed), *how)
            matches_played = list(matches_of(export(self._home, self._home / "rounds" / name, play)))
            found[condition] = figures(matches_played) | {
                "own_points": own_points(matches_played, condition == SCRIPTED)
            }
        return found


def register(home: Path, name: str, folder: Path) -> None:
    """Add a checkpoint to an installation's models, unless one of that name exists."""
    if f'"{name}"' not in flask(home, "model", "list", "--json"):
        how = ("--prompt-style", "compact", "--game", "negotiation")
        flask(home, "model", "add-local", name, "--path", str(folder), *how)


def played_round(home: Path, models: Sequence[str], contexts: Path, *how: str) -> str:
    """The number of a new round with one match per context or, for two models, one in either seat."""
    matches = len(contexts.read_text(encoding="utf-8").splitlines()) // 2 * len(models)
    played = flask(home,
        "round", "run", "negotiation", "--models", *models, "--config", "objective=self",
        "--contexts", str(contexts), "--pick", "in-order", "--matches", str(matches), *how, "--json",
    )  # fmt: skip
    return str(json.loads(played)["round_id"])


def round_name(which: str, condition: str, on: str) -> str:
    """The folder of a model's matches (base or last) in one condition, within a campaign's archive."""
    return f"{which}-{condition.replace(' ', '-')}-on-{on}"


def kept_by_seed(variant: str, on: str, control: str = "") -> dict[int, Result]:
    """The stored results of a variant on these contexts, or of an untrained control of it, in seed order.

    `control` is a regular expression for what follows the seed in its name.
    """
    named = re.compile(rf"{variant}-(\d+){control}-{on}\.json")
    found = {int(match[1]): path for path in MEASURED.iterdir() if (match := named.fullmatch(path.name))}
    return {seed: json.loads(found[seed].read_text(encoding="utf-8")) for seed in sorted(found)}


def kept_round(home: Path, name: str, play: Callable[[], str]) -> Mapping[str, float]:
    """The figures of the round that `play` plays, unless already stored; its matches are stored beside them."""
    kept = MEASURED / f"{name}.json"
    if not kept.exists():
        exported = export(home, home / "rounds" / name, play)
        found = figures(list(matches_of(exported)))
        keep(kept, found, exported.parent, name)
    return dict(json.loads(kept.read_text(encoding="utf-8")))


def keep(path: Path, found: Mapping[str, Any], rounds: Path, pattern: str) -> None:
    """Write figures as JSON, after packing their matches beside them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with temporary_beside(path.with_suffix(".tar.xz")) as draft:
        pack(rounds, pattern, draft)
    with temporary_beside(path) as draft:
        draft.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def export(home: Path, out: Path, play: Callable[[], str]) -> Path:
    """The exported matches of the round that `play` plays; if they exist already, nothing is played."""
    if not out.exists():
        out.parent.mkdir(exist_ok=True)
        number = play()
        with temporary_beside(out) as draft:
            flask(home, "export", "lm-selfplay", "--round", number, "--out", str(draft))
    return out


def pack(rounds: Path, pattern: str, archive: Path) -> None:
    """Write the files that `matches_of` reads from some rounds into one archive; equal files give equal bytes."""
    files = [path for kind in ("results/*.json", "text_logs/*_full.txt") for path in rounds.glob(f"{pattern}/{kind}")]
    with tarfile.open(archive, "w:xz") as packed:
        for path in sorted(files):
            entry = tarfile.TarInfo(path.relative_to(rounds).as_posix())
            content = path.read_bytes()
            entry.size = len(content)
            packed.addfile(entry, io.BytesIO(content))


def own_points(matches: Sequence[Match], swapped: bool) -> float:
    """Points per match of the measured model: in alternating seats if seats are swapped, else in both."""
    points = [match.points(match.proposed) or (0, 0) for match in matches]
    own = [each[number % 2] if swapped else sum(each) / 2 for number, each in enumerate(points)]
    return sum(own) / len(own)


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# ---- Tables --------------------------------------------------------------------


def by_seed(results: Sequence[Result]) -> str:
    """Base and final model of every campaign in every condition."""
    names = ("deals", "points", "agreed_points", "agreed_pareto", "last_offer_deals", "last_offer_points", "own_points")
    lines = [["seed", "model", "evaluated", *(name.replace("_", " ") for name in names), "processor minutes"]]
    for each in results:
        for which in ("base", "last"):
            for condition, found in each[which].items():
                minutes = f"{each['processor_minutes']:.0f}" if (which, condition) == ("last", PLAYED) else ""
                lines.append([str(each["seed"]), which, condition, *(f"{found[name]:.3f}" for name in names), minutes])
    return as_markdown(lines)


def of_claims(results: Sequence[Result]) -> str:
    """Each claim: mean, interval, p of the sign-flip test, and whether the interval's lower end reaches the target."""
    found = [(claim, claim.values(results)) for claim in CLAIMS]
    adjusted = holm([sign_flip_p([value - claim.aim for value in values]) for claim, values in found])
    lines = [["claim", "aim", "mean", "95 % interval", "p of signs, by Holm", "met"]]
    for (claim, values), p in zip(found, adjusted, strict=True):
        low, high = interval(values)
        mean = sum(values) / len(values)
        met = "yes" if low > claim.aim or (low == claim.aim and claim != PRIMARY) else "no"  # no gain is no gain
        lines.append([claim.title, f"{claim.aim:g}", f"{mean:.3f}", f"{low:.3f} to {high:.3f}", f"{p:.4f}", met])
    return as_markdown(lines)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the mean by Student's t over campaigns; infinite for a single campaign."""
    if len(values) < 2:
        return -np.inf, np.inf
    half = float(scipy.stats.t.ppf(0.975, len(values) - 1) * scipy.stats.sem(values))
    return float(np.mean(values)) - half, float(np.mean(values)) + half


def sign_flip_p(differences: Sequence[float]) -> float:
    """The share of all sign assignments to the differences whose mean is at least as far from 0 as the actual mean."""
    signs = np.array(list(itertools.product((1, -1), repeat=len(differences))))
    means = np.abs(signs @ np.asarray(differences))
    return float(np.mean(means >= abs(sum(differences)) - 1e-12))


def holm(values: Sequence[float]) -> list[float]:
    """p values adjusted by Holm's method, in their original order."""
    adjusted, highest = [0.0] * len(values), 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        highest = max(highest, min(1.0, (len(values) - rank) * values[place]))
        adjusted[place] = highest
    return adjusted


def as_markdown(lines: Sequence[Sequence[str]]) -> str:
    """A table whose first line is its header."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (lines[0], ["---"] * len(lines[0]), *lines[1:]))


if __name__ == "__main__":
    main()
