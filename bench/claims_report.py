"""The results of the campaigns of `bench.claims` as tables, from the files that it keeps; plays nothing.

    python -m bench.claims_report                               # all seeds that are kept
    python -m bench.claims_report --measured-on development

Prints the claims; the points of base and final model, with those of a random split, the demand rule and the best joint
split in the same contexts; the share of the headroom, which is the gain divided by the best joint score minus the
base's; measures of the talk; the controls; and the number of matches that the product scored differently from
`bench.last_offers`, which shares no code with it. Intervals are 95 % intervals by Student's t over campaigns.
"""

import argparse
import itertools
import re
import tarfile
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from statistics import mean

from app.games.base import Event
from app.games.negotiation import measures
from app.games.negotiation.contexts import Context, three
from bench.claims import (
    GREEDY,
    HEADLINE,
    MEASURED,
    PLAYED,
    Result,
    as_markdown,
    by_seed,
    interval,
    kept_by_seed,
    of_claims,
    round_name,
)
from bench.claims_controls import KEPT_OF, beside_own, of_variants
from bench.last_offers import Match, matches_of, scored_otherwise

_TALK = {
    measures.UNSPOKEN: "deals never said in the talk",
    measures.FIRST_GROUNDED: "first proposals of the last split named",
    measures.SECOND_GROUNDED: "second proposals of the last split named",
    measures.MISQUOTED: "acceptances that name another split",
    measures.LAST_OFFER_AGREED: "had both proposed the last split named: deals",
    measures.LAST_OFFER_SCORE: "points of all matches, if so",
}
_REFERENCES = {
    measures.RANDOM_SCORE: "a random complementary split",
    measures.DEMAND_SCORE: "the demand rule",
    measures.BEST_SCORE: "best joint score",
}
_BOTH = ("base", "last")
_SEEDS = re.compile(r"-\d+(?=-|$)")
Measured = dict[tuple[int, str, str], list[Mapping[str, float]]]  # by seed, model and condition, one mapping per match


def main() -> None:
    """Print all tables, one after the other, each under its title."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--measured-on", choices=("test", "development"), default="test", help="contexts [test]")
    on = parser.parse_args().measured_on
    results = list(kept_by_seed(HEADLINE, on).values())
    if not results:
        raise SystemExit(
            f"expected campaigns on {on} contexts in {MEASURED}, got none; python -m bench.claims runs them"
        )
    rounds = {path.name.removesuffix(".tar.xz"): rounds_in(path) for path in sorted(MEASURED.glob(f"*{on}.tar.xz"))}
    measured: Measured = {}
    for seed in (each["seed"] for each in results):
        for which, condition in itertools.product(_BOTH, (PLAYED, GREEDY)):
            played = rounds[f"{HEADLINE}-{seed}-{on}"][round_name(which, condition, on)]
            measured[seed, which, condition] = [measures_of(match) for match in played]
    controls = {what: kept_by_seed(HEADLINE, on, name) for what, name in KEPT_OF.items()}
    for title, table in (
        ("Claims", of_claims(results)),
        ("Points", _points(results, measured)),
        ("Talk", _talk(measured)),
        ("By seed", by_seed(results)),
        ("Controls that train", of_variants(on)),
        *((what, beside_own(found, what, on)) for what, found in controls.items() if found),
        ("Scored by other code", _scored(rounds)),
    ):
        print(f"**{title}**\n\n{table}\n")


def measures_of(match: Match) -> Mapping[str, float]:
    """The product's measures of an exported match, with objective `self`."""
    moves = [Event("message", seat, text) for seat, text in match.messages]
    proposed = [(seat, match.proposed[seat]) for seat in match.proposers]
    moves += [Event("proposal", seat, "", {"allocation": share}) for seat, share in proposed if share is not None]
    first, second = match.values
    context = Context(three(match.counts), (three(first), three(second)))
    began = match.messages[0][0] if match.messages else 0
    return measures.measures_of(context, Fraction(0), began, moves)


def _points(results: Sequence[Result], measured: Measured) -> str:
    """Base, final model, gain and headroom, and reference lines, which are the same for all."""
    shown = ("deals", "points", "agreed_points", "agreed_pareto")
    lines = [["", "played", *(name.replace("_", " ") for name in shown)]]
    for condition in (PLAYED, GREEDY):
        found = {which: {name: [each[which][condition][name] for each in results] for name in shown} for which in _BOTH}
        for which, by_name in found.items():
            lines.append([which, condition, *map(with_interval, by_name.values())])
        gains = {
            name: [last - base for base, last in zip(found["base"][name], found["last"][name], strict=True)]
            for name in shown
        }
        lines.append(["last minus base", condition, *map(with_interval, gains.values())])
        best = [mean_of(measures.BEST_SCORE, measured[each["seed"], "base", condition]) for each in results]
        headroom = [
            gain / (most - base)
            for gain, most, base in zip(gains["points"], best, found["base"]["points"], strict=True)
        ]
        lines.append(["share of the headroom", condition, "", with_interval(headroom), "", ""])
    some = measured[results[0]["seed"], "base", PLAYED]
    for name, title in _REFERENCES.items():
        lines.append([title, "", "1.000", *[f"{mean_of(name, some):.3f}"] * 2, ""])
    return as_markdown(lines)


def _talk(measured: Measured) -> str:
    """The measures of the talk, as means over campaigns."""
    seeds = sorted({seed for seed, _, _ in measured})
    of = list(itertools.product((PLAYED, GREEDY), _BOTH))
    lines = [["", *(f"{which}, {condition}" for condition, which in of)]]
    for name, title in _TALK.items():
        by_seed_of = ([mean_of(name, measured[seed, which, condition]) for seed in seeds] for condition, which in of)
        lines.append([title, *map(with_interval, by_seed_of)])
    return as_markdown(lines)


def _scored(rounds: Mapping[str, Mapping[str, Sequence[Match]]]) -> str:
    """For all matches of these archives, by what played them, how many the product scored differently."""
    of_kind: dict[str, list[Match]] = {}
    for archive, by_round in rounds.items():
        kind = _SEEDS.sub("", archive.rpartition("-")[0].removesuffix("-on"))
        of_kind.setdefault(kind, []).extend(itertools.chain.from_iterable(by_round.values()))
    lines = [["played by", "matches", "scored otherwise"]]
    lines += [[kind, f"{len(matches):,}", str(scored_otherwise(matches))] for kind, matches in of_kind.items()]
    return as_markdown(lines)


def rounds_in(archive: Path) -> dict[str, list[Match]]:
    """The matches of every round in an archive written by `bench.claims.pack`, by the round's name."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
        return {each.name: list(matches_of(each)) for each in sorted(Path(folder).iterdir())}


def mean_of(name: str, measured: Iterable[Mapping[str, float]]) -> float:
    """The mean over the matches that have this measure; 0 if none has."""
    found = [float(each[name]) for each in measured if name in each]
    return mean(found) if found else 0.0


def with_interval(values: Sequence[float]) -> str:
    """The mean and its interval, such as 3.412 (3.201 to 3.623)."""
    low, high = interval(values)
    return f"{mean(values):.3f} ({low:.3f} to {high:.3f})"


if __name__ == "__main__":
    main()
