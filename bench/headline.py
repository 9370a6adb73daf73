"""The papers' headline effect on our own small model: what campaigns make of `tiny-base`, on a CPU.

    python -m bench.headline            three campaigns for `self` and one for `coop`, some two hours on two cores
    python -m bench.headline --seeds 1  one of each

Prints the tables of docs/results.md, and draws the first campaign of each objective into docs/images. Each campaign is
what `flask campaign run --game negotiation --base tiny-base` does: rounds of 500 matches against itself, the
transcripts above the average, a training on them, and 500 held-out contexts to evaluate each model on: as it plays (at
temperature 1), greedily, and against `scripted`, whom it was not trained with. The baseline is the base's own score
under the same condition in the same run. What was interrupted goes on from its last step.
"""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app.analysis.campaign_charts import Point, figure
from app.analysis.drawing import draw
from app.analysis.wording import in_words, number
from app.core.config import ROOT
from app.games import metrics_of
from app.games.metrics import AS_PLAYED, Use
from bench.campaign_homes import run_campaign

LEWIS = "Lewis et al. 2017, likelihood model against itself"  # Source: docs/papers.md
_ANCHOR = {"score_mean": "5.4", "agreement_rate": "87.9 %", "agreed_score_mean": "6.2", "agreed_pareto_rate": "49.6 %"}
_SHOWN = {each.name: each for each in metrics_of("negotiation").shown(Use.EVALUATION)}


def main() -> None:
    """Run the missing campaigns, one after the other, and print the results of all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="of the campaigns for self [1 2 3]")
    parser.add_argument("--coop", type=int, nargs="*", default=[1], help="seeds of the campaigns for coop [1]")
    parser.add_argument("--rounds", type=int, default=5, help="iterations [5]")
    parser.add_argument("--matches", type=int, default=500, help="of each round and of each evaluation [500]")
    parser.add_argument("--train", nargs="*", default=[], metavar="K=V", help="fields of the training")
    parser.add_argument("--work", type=Path, default=ROOT / "var" / "headline", help="folder to work in")
    parser.add_argument("--figures", type=Path, default=ROOT / "docs" / "images", help="where to draw")
    asked = parser.parse_args()
    asked.figures.mkdir(parents=True, exist_ok=True)  # now rather than after two hours
    wanted = [("self", seed) for seed in asked.seeds] + [("coop", seed) for seed in asked.coop]
    found = [_campaign(asked, objective, seed) for objective, seed in wanted]
    for title, table in (("By iteration", by_iteration), ("By condition", by_condition), ("By seed", by_seed)):
        print(f"\n{title}\n\n{table(found)}")
    for objective in ("self", "coop"):
        first = next((each for each, (asked_for, _) in zip(found, wanted, strict=True) if asked_for == objective), None)
        if first is not None:
            _draw(first, asked.figures / f"campaign-{objective}.svg")


def _campaign(asked: argparse.Namespace, objective: str, seed: int) -> dict[str, Any]:
    """The output of `flask campaign run --json` for one, with its `minutes`, None if it was interrupted."""
    kept = asked.work / f"{objective}-{seed}.json"
    if kept.exists():
        return dict(json.loads(kept.read_text(encoding="utf-8")))
    began = time.monotonic()
    training = ["--train", *asked.train] if asked.train else []
    found, begun = run_campaign(
        asked.work / f"{objective}-{seed}", f"{objective}-{seed}",
        "--game", "negotiation", "--base", "tiny-base", "--rounds", str(asked.rounds),
        "--matches", str(asked.matches), "--evaluation", str(asked.matches), "--config", f"objective={objective}",
        "--temperature", "1", "--seed", str(seed), *training,
    )  # fmt: skip
    found["minutes"] = None if begun else (time.monotonic() - began) / 60
    kept.write_text(json.dumps(found), encoding="utf-8")
    return found


def _draw(found: Mapping[str, Any], path: Path) -> None:
    points = [Point(each["iteration"], each["model"], each["figures"], _further(each)) for each in found["results"]]
    chart = figure(path.stem, f"campaign {found['name']}", "negotiation", found["iterations"], points)
    if chart is not None:
        path.write_bytes(draw(chart, path.suffix.removeprefix(".")))
        print(f"Drawn: {path}")


def _further(result: Mapping[str, Any]) -> dict[str, Any]:
    return {label: found["figures"] for label, found in result["evaluations"].items()}


def _figure(result: Mapping[str, Any], label: str, column: str) -> Mapping[str, Any] | None:
    """A figure of an iteration's model in an evaluation; None where there is none."""
    figures = result["figures"] if label == AS_PLAYED else _further(result).get(label, {})
    found: Mapping[str, Any] | None = figures.get(column)
    return found


def conditions(campaigns: Sequence[Mapping[str, Any]]) -> list[str]:
    """The conditions under which these campaigns' models were evaluated."""
    labels = (label for found in campaigns for each in found["results"] for label in each["evaluations"])
    return list(dict.fromkeys((AS_PLAYED, *labels)))


def by_iteration(campaigns: Sequence[Mapping[str, Any]]) -> str:
    """All models of all campaigns in every condition: score, its ratio to the base's, deals and what they yield."""
    labels = conditions(campaigns)
    scores = [f"{title}, {label}" for label in labels for title in ("score", "÷ base's")]
    lines = [["campaign", "iteration", *scores, "minutes"]]
    for found in campaigns:
        for each in found["results"]:
            cells = [_cell(each, label, column) for label in labels for column in ("score_mean", "score_ratio")]
            last = each is found["results"][-1] and found["minutes"] is not None
            lines.append([found["name"], str(each["iteration"]), *cells, f"{found['minutes']:.0f}" if last else ""])
    return _markdown(lines)


def by_condition(campaigns: Sequence[Mapping[str, Any]]) -> str:
    """The base and the final model of every campaign and condition, beside the published model on the same game."""
    titles = [column.title for column in _SHOWN.values()]
    lines = [["campaign", "model", "evaluated", *titles]]
    for found in campaigns:
        for each in (found["results"][0], found["results"][-1]):
            for label in conditions(campaigns):
                cells = [_cell(each, label, name) for name in _SHOWN]
                lines.append([found["name"], each["model"], label, *cells])
    lines.append([LEWIS, "", "", *(_ANCHOR.get(name, "") for name in _SHOWN)])
    return _markdown(lines)


def by_seed(campaigns: Sequence[Mapping[str, Any]]) -> str:
    """How campaigns of one objective vary when only the seed differs: mean, lowest and highest."""
    lines = [["objective", "seeds", "evaluated", *(column.title for column in _SHOWN.values())]]
    objectives = dict.fromkeys(found["spec"]["config"]["objective"] for found in campaigns)
    for objective in objectives:
        last = [each["results"][-1] for each in campaigns if each["spec"]["config"]["objective"] == objective]
        for label in conditions(campaigns):
            cells = [spread([_figure(each, label, name) for each in last], _SHOWN[name].unit) for name in _SHOWN]
            lines.append([objective, str(len(last)), label, *cells])
    return _markdown(lines)


def spread(figures: Sequence[Mapping[str, Any] | None], unit: str) -> str:
    """The mean of these campaigns' figures; with several, also the lowest and the highest."""
    values = [each["value"] for each in figures if each is not None and each["value"] is not None]
    if not values:
        return "–"
    mean = number(sum(values) / len(values), unit)
    return mean if len(values) == 1 else f"{mean} ({number(min(values), unit)} to {number(max(values), unit)})"


def _cell(result: Mapping[str, Any], label: str, column: str) -> str:
    return in_words(_figure(result, label, column), _SHOWN[column].unit)


def _markdown(lines: Sequence[Sequence[str]]) -> str:
    rows = [lines[0], ["---"] * len(lines[0]), *lines[1:]]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    main()
