"""How fast a local checkpoint plays: Parlor's engine beside plain loops and the servers of transformers.

    python -m bench.local                                  # all sides, a fresh checkpoint of some ten million weights
    python -m bench.local --sides generate parlor --width 512 --layers 12

All play the same matches of Adversarial Taboo, the slow ones fewer of them: five turns each, 32 tokens a move, in
float32, on as many threads. The baseline is what reference play loops do: one match after the other, every prompt
computed again from its first token, and a cache within a move (`model.generate`). A second of processor time is one of
one core; where others are busy, too, it is the better measure. docs/results.md has figures.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench import local_sides
from bench.processes import ROOT, yardstick_ms


class Side(NamedTuple):
    """One variant to measure: what plays the matches, how many, and how many at once."""

    title: str
    name: str
    matches: int
    at_once: int


SIDES = (
    Side("generate, one at a time", "generate", 2, 1),
    Side("generate, 8 in one batch", "generate", 8, 8),
    Side("transformers serve, 8 at once", "serve", 8, 8),
    Side("the same with continuous batching", "serve_batching", 8, 8),
    Side("continuous batching, 8 at once", "continuous_batching", 8, 8),
    Side("continuous batching, 32 at once", "continuous_batching", 32, 32),
    Side("Parlor, 8 at once", "parlor", 8, 8),
    Side("Parlor, 64 at once", "parlor", 64, 64),
)
PLAIN, BATCH = SIDES[:2]


def measure(side: Side, checkpoint: Path, threads: int, limit: float) -> dict[str, Any]:
    """The results of a side's process, or under `error` why there are none."""
    arguments = [side.name, str(checkpoint), str(side.matches), str(side.at_once)]
    command = [sys.executable, "-m", local_sides.__name__, *arguments]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        out, complaints = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return {"error": f"no result within {limit:g} s"}
    if process.returncode:
        return {"error": complaints.decode(errors="replace").strip().rpartition("\n")[2]}
    found: dict[str, Any] = json.loads(out)
    return found


def table(found: dict[str, dict[str, Any]]) -> str:
    """All sides, for a terminal; each move beside those of the two plain loops."""
    heading = f"{'s a move':34} {'clock':>7} {'CPU':>7} {'× one':>6} {'× 8':>6} {'MiB':>6} {'same':>7}"
    lines = [heading]
    plain, batch = (_cpu(found.get(side.title, {})) for side in (PLAIN, BATCH))
    said = _most(found)
    for title, side in found.items():
        if "error" in side:
            lines.append(f"{title:34} {side['error']}")
            continue
        cpu = _cpu(side)
        ratios = (f"{base / cpu:.1f}" if base and cpu else "" for base in (plain, batch))
        same = sum(one == other for one, other in zip(side["said"], said, strict=False))
        lines.append(
            f"{title:34} {side['seconds'] / side['moves']:>7.3f} {cpu:>7.3f} {next(ratios):>6} {next(ratios):>6}"
            f" {side['peak_mib']:>6.0f} {same:>3}/{len(side['said'])}"
        )
    return "\n".join(lines)


def _cpu(side: dict[str, Any]) -> float | None:
    return side["cpu"] / side["moves"] if "cpu" in side else None


def _most(found: dict[str, dict[str, Any]]) -> Sequence[str]:
    """What was said in each match of the side that played the most."""
    return max((side["said"] for side in found.values() if "said" in side), key=len, default=[])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.local", description="What a move of a local model costs.")
    parser.add_argument("--sides", nargs="+", choices=local_sides.SIDES, default=list(local_sides.SIDES))
    parser.add_argument("--width", type=int, default=256, help="of the checkpoint (256)")
    parser.add_argument("--layers", type=int, default=8, help="of the checkpoint (8)")
    parser.add_argument("--heads", type=int, default=4, help="of the checkpoint (4)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of each side (one a core)")
    parser.add_argument("--limit", type=float, default=900, metavar="SECONDS", help="for a side (900)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="parlor-bench-"))
    try:
        weights = local_sides.make_checkpoint(folder, options.width, options.layers, options.heads)
        before, found = yardstick_ms(), {}
        for side in SIDES:
            if side.name in options.sides:
                print(f"{side.title} …", file=sys.stderr, flush=True)
                found[side.title] = measure(side, folder, options.threads, options.limit)
        yardstick = before, yardstick_ms()
    finally:
        shutil.rmtree(folder)
    if options.json:
        print(json.dumps({"weights": weights, "sides": found, "yardstick_ms": yardstick}))
        return
    print(f"{weights:,} weights, {options.threads} threads\n{table(found)}")
    print(f"a fixed piece of Python before / after, ms: {yardstick[0]:.1f} / {yardstick[1]:.1f}")


if __name__ == "__main__":
    main()
