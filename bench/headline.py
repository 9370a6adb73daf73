"""The papers' headline effect on our own small model: what campaigns make of `tiny-base`, on a CPU.

    python -m bench.headline            three campaigns for `self` and one for `coop`, about an hour on two cores
    python -m bench.headline --seeds 1  one of each

Prints the table of docs/results.md, and draws the first campaign of each objective into docs/images. Each campaign is
what `flask campaign run --game negotiation --base tiny-base` does: rounds of 500 matches against itself, the
transcripts above the average, a training on them, and 500 held-out contexts to evaluate each model on. The baseline is
the base's own score in the same run.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app.analysis.campaign_charts import Point, figure
from app.analysis.campaigns import COLUMNS, in_words
from app.analysis.drawing import draw
from app.config import ROOT

LEWIS = "Lewis et al. 2017, likelihood model against itself"  # Source: docs/papers.md
_ANCHOR = {"score_mean": "5.4", "agreement_rate": "87.9 %", "agreed_score_mean": "6.2", "agreed_pareto_rate": "49.6 %"}
_SHOWN = COLUMNS["negotiation"]


def main() -> None:
    """Run the campaigns that are not there yet, one after the other, and print what came of all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="of the campaigns for self [1 2 3]")
    parser.add_argument("--coop", type=int, nargs="*", default=[1], help="seeds of the campaigns for coop [1]")
    parser.add_argument("--rounds", type=int, default=5, help="iterations [5]")
    parser.add_argument("--train", nargs="*", default=[], metavar="K=V", help="fields of the training")
    parser.add_argument("--work", type=Path, default=ROOT / "var" / "headline", help="folder to work in")
    parser.add_argument("--figures", type=Path, default=ROOT / "docs" / "images", help="where to draw")
    asked = parser.parse_args()
    wanted = [("self", seed) for seed in asked.seeds] + [("coop", seed) for seed in asked.coop]
    found = [_campaign(asked, objective, seed) for objective, seed in wanted]
    print(table(found))
    for objective, lam in (("self", 0.0), ("coop", 1.0)):
        first = next((each for each, (asked_for, _) in zip(found, wanted, strict=True) if asked_for == objective), None)
        if first is not None:
            _draw(first, lam, asked.figures / f"campaign-{objective}.svg")


def _campaign(asked: argparse.Namespace, objective: str, seed: int) -> dict[str, Any]:
    """What `flask campaign run --json` says of one, and its `minutes`."""
    kept = asked.work / f"{objective}-{seed}.json"
    if kept.exists():
        return dict(json.loads(kept.read_text(encoding="utf-8")))
    home = asked.work / f"{objective}-{seed}"
    shutil.rmtree(home, ignore_errors=True)  # of a run that was interrupted
    asked.work.mkdir(parents=True, exist_ok=True)
    training = ["--train", *asked.train] if asked.train else []
    command = (
        sys.executable, "-m", "flask", "campaign", "run", "--game", "negotiation", "--base", "tiny-base",
        "--rounds", str(asked.rounds), "--config", f"objective={objective}", "--seed", str(seed),
        "--name", f"{objective}-{seed}", "--json", *training,
    )  # fmt: skip
    environment = {**os.environ, "PARLOR_HOME": str(home), "DATABASE_URL": "", "REDIS_URL": ""}
    began = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found = {**json.loads(done.stdout), "minutes": (time.monotonic() - began) / 60}
    kept.write_text(json.dumps(found), encoding="utf-8")
    return found


def _draw(found: Mapping[str, Any], lam: float, path: Path) -> None:
    points = [Point(each["iteration"], each["model"], each["figures"]) for each in found["results"]]
    chart = figure(path.stem, f"campaign {found['name']}", "negotiation", lam, found["iterations"], points)
    if chart is not None:
        path.write_bytes(draw(chart, path.suffix.removeprefix(".")))
        print(f"Drawn: {path}")


def table(campaigns: Sequence[Mapping[str, Any]]) -> str:
    """All models of all campaigns as a Markdown table, beside the published model on the same game."""
    titles = ["campaign", "iteration", *(column.title for column in _SHOWN.values()), "score ÷ base's", "minutes"]
    lines = [titles, ["---"] * len(titles)]
    for found in campaigns:
        base = found["results"][0]["figures"]["score_mean"]["value"]
        for each in found["results"]:
            figures = each["figures"]
            ratio = f"{figures['score_mean']['value'] / base:.1f}" if base else "–"
            cells = [in_words(figures[name], column.unit) for name, column in _SHOWN.items()]
            last = each is found["results"][-1]
            minutes = f"{found['minutes']:.0f}" if last else ""
            lines.append([found["name"], str(each["iteration"]), *cells, ratio, minutes])
    lines.append([LEWIS, "", *(_ANCHOR.get(name, "") for name in _SHOWN), "", ""])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
