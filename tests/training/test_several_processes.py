"""Two processes, which share rows or weights, make the very model that one makes."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.training.conftest import events_in, write_rows
from training import checkpoints

ROOT = Path(__file__).parents[2]
# Of 46 rows 36 are trained on: in steps of 16, the last one of an epoch has none for the second process.
FIELDS = {"accumulation": 2, "epochs": 2, "learning_rate": 0.01, "eval_share": 0.2}


def in_two_processes(*trainings: tuple[Any, ...]) -> list[tuple[int, str]]:
    """The exit code and stderr of each of two processes that run these trainings."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    group = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    words = " , ".join(" ".join(map(str, each)) for each in trainings).split()
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.training.one_of_several", *words],
            cwd=ROOT,
            env=os.environ | group | {"RANK": number, "LOCAL_RANK": number},
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in ("0", "1")
    ]
    printed = [each.communicate()[1] for each in started]
    return [(each.returncode, text) for each, text in zip(started, printed, strict=True)]


def test_two_processes_make_the_model_of_one_and_fail_together(
    base: Path,
    data: Path,
    data_of: dict[str, Path],
    config_file: Callable[..., Path],
    train: Callable[..., int],
    tmp_path: Path,
) -> None:
    same = tmp_path / "base"
    shutil.copytree(base, same)
    config = json.loads((same / "config.json").read_text())
    (same / "config.json").write_text(
        json.dumps(config | {"attention_dropout": 0.0})
    )  # each process would draw its own
    rows = {}
    for method, whole in (("sft", data), ("offline-po", data_of["offline-po"])):
        lines = [json.loads(line) for line in whole.read_text().splitlines()]
        rows[method] = write_rows(tmp_path / f"{method}.jsonl", lines[:46])

    def config_of(method: str, name: str, batch: int) -> Path:
        return config_file(name, data=str(rows[method]), base=str(same), batch=batch, **FIELDS)

    for method in ("sft", "offline-po"):
        assert train(method, config_of(method, f"{method}-one", 8), tmp_path / f"{method}-one.jsonl") == 0
    names = {"sft-ddp": "sft", "offline-po-ddp": "offline-po", "sft-fsdp": "sft", "sft-nan": "sft", "sft-broken": "sft"}
    ways = {"sft-fsdp": ("fsdp",), "sft-nan": ("nan",), "sft-broken": ("broken",)}
    runs = {name: tmp_path / name / "model.run" for name in ("sft-nan", "sft-broken")}
    runs["sft-broken"].mkdir(parents=True)
    (runs["sft-broken"] / ".failed-1").write_text("of an earlier training")
    (code, printed), (other, said) = in_two_processes(
        *(
            (method, config_of(method, name, 4), tmp_path / f"{name}.jsonl", *ways.get(name, ()))
            for name, method in names.items()
        )
    )

    for name in ("sft-ddp", "offline-po-ddp", "sft-fsdp"):
        events, alone = (events_in(tmp_path / f"{each}.jsonl") for each in (name, f"{names[name]}-one"))
        begun = events[0]
        assert (begun["processes"], begun["rows"]) == (2, 36)
        assert begun["device"].startswith("2 × cpu (1 threads), " + name.rpartition("-")[2].upper())
        assert [each["event"] for each in events] == [each["event"] for each in alone]
        for figure in ("loss", "gradient_norm", "kl", "reward", "clip_fraction"):
            found, wanted = ([each.get(figure) for each in told if "loss" in each] for told in (events, alone))
            assert found == pytest.approx(wanted, abs=1e-5), (name, figure)
        folders = [tmp_path / each / "model" for each in (name, f"{names[name]}-one")]
        assert {path.name for path in folders[0].iterdir()} == {path.name for path in folders[1].iterdir()}
        (model, _), (wanted, _) = (checkpoints.load(folder) for folder in folders)
        for one, two in zip(model.parameters(), wanted.parameters(), strict=True):
            assert (one - two).abs().max() <= 1e-5

    last = events_in(tmp_path / "sft-nan.jsonl")[-1]
    assert last["event"] == "failed"
    assert last["message"].startswith("step 1: expected a loss that is a number, got NaN or infinity on ")
    assert f"error: {last['message']}" in printed.splitlines()
    assert "NaN" not in said

    assert (code, other) == (1, 1)
    last = events_in(tmp_path / "sft-broken.jsonl")[-1]
    assert (last["event"], last["message"]) == ("failed", "process 1 of 2: its disk cannot be read")
    assert printed.splitlines()[-1] == f"error: {last['message']}"
    assert said.splitlines()[-1] == "error: its disk cannot be read"
    assert [path for run in runs.values() for path in run.glob(".failed*")] == []
