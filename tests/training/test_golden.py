"""Trainings of a fixed seed on one thread of a CPU make the very models that are recorded.

`RECORD_GOLDEN=1 pytest tests/training/test_golden.py` records anew.
"""

import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training.conftest import events_in, rows_of, write_rows
from training.marks import RENDERER

RECORDED = Path(__file__).parent.parent / "golden" / "training.json"
SHAPE = {"base": None, "width": 32, "layers": 2, "heads": 2, "length": 128, "min_count": 1, "seed": 5}
STEPS = {"epochs": 2, "batch": 8, "accumulation": 2, "learning_rate": 0.01, "eval_share": 0.2}


def processor() -> str:
    """What the bits of a result depend on: the processor, its instructions, and torch's version."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.exists() else []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    instructions = torch.backends.cpu.get_cpu_capability()
    return f"{platform.machine()} {name} {instructions} torch {torch.__version__}"


def rows_with_context(tmp_path: Path) -> Path:
    """Rows in which the first move of every other one is read and not learnt."""
    rows = rows_of(16)
    for row in rows[::2]:
        row["messages"][1]["weight"] = 0
        row["messages"].append({"role": "user", "content": "[message] no, thanks"})
        row["messages"].append({"role": "assistant", "content": "[message] i want 1 books"})
    return write_rows(tmp_path / "context.jsonl", rows)


@pytest.mark.parametrize("name", ["tiny", "sft", "sft with context"])
def test_a_training_of_a_fixed_seed_gives_the_recorded_losses_and_weights(
    name: str, config_file: Callable[..., Path], train: Callable[..., int], tmp_path: Path
) -> None:
    method = name.partition(" ")[0]
    fields: dict[str, Any] = STEPS | (SHAPE if method == "tiny" else {})
    if name == "sft with context":
        fields["data"] = str(rows_with_context(tmp_path))
    events_file = tmp_path / "events.jsonl"
    assert train(method, config_file(**fields), events_file) == 0
    events = events_in(events_file)
    made = {
        "losses": [each["loss"] for each in events if each["event"] == "step"],
        "eval_losses": [each["loss"] for each in events if each["event"] == "eval"],
        "gradient_norms": [each["gradient_norm"] for each in events if each["event"] == "step"],
        "targets": events[0]["targets"],
        "checkpoint_sha256": events[-1]["checkpoint_sha256"],
    }
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {"trainings": {}}
    if os.environ.get("RECORD_GOLDEN"):
        trainings = recorded["trainings"] | {name: made}
        recorded = {"renderer": RENDERER, "processor": processor(), "trainings": trainings}
        RECORDED.write_text(json.dumps(recorded, indent=1) + "\n")
        return
    assert recorded["renderer"] == RENDERER
    expected = recorded["trainings"][name]
    assert made["targets"] == expected["targets"]
    for figure in ("losses", "eval_losses", "gradient_norms"):
        assert made[figure] == pytest.approx(expected[figure], rel=1e-4)
    if processor() == recorded["processor"]:  # another processor rounds otherwise
        assert made == expected
