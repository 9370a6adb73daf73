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


@pytest.mark.long
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

    def config_of(name: str, batch: int) -> Path:
        method = "offline-po" if name.startswith("offline-po") else "sft"
        lora = {"lora_rank": 4} if "lora" in name else {}
        return config_file(name, data=str(rows[method]), base=str(same), batch=batch, **lora, **FIELDS)

    for name in ("sft-one", "offline-po-one", "lora-one"):
        method = "offline-po" if name == "offline-po-one" else "sft"
        assert train(method, config_of(name, 8), tmp_path / f"{name}.jsonl") == 0
    # Trainings that are killed are gone on with by the same command; from the first with FSDP on, all are with it.
    ways = (
        ("sft-ddp", ""), ("offline-po-ddp", "killed"), ("offline-po-ddp", ""), ("sft-fsdp", "fsdp killed"),
        ("sft-fsdp", ""), ("lora-fsdp", "killed"), ("lora-fsdp", ""), ("sft-nan", "nan"), ("sft-broken", "broken"),
    )  # fmt: skip
    runs = {name: tmp_path / name / "model.run" for name in ("sft-nan", "sft-broken")}
    runs["sft-broken"].mkdir(parents=True)
    (runs["sft-broken"] / ".failed-1").write_text("of an earlier training")
    (code, printed), (other, said) = in_two_processes(
        *(
            ("offline-po" if name == "offline-po-ddp" else "sft", config_of(name, 4), tmp_path / f"{name}.jsonl", way)
            for name, way in ways
        )
    )

    for name in ("sft-ddp", "offline-po-ddp", "sft-fsdp", "lora-fsdp"):
        how = name.rpartition("-")[2].upper()
        one = f"{name.removesuffix(f'-{how.lower()}')}-one"
        events, alone = (events_in(tmp_path / f"{each}.jsonl") for each in (name, one))
        begun = [each for each in events if each["event"] == "started"]
        assert [each["resumed_from"] for each in begun] == [None, "checkpoint-3"][: 1 + ((name, "") != ways[0])]
        for each in begun:
            assert (each["processes"], each["rows"]) == (2, 36)
            assert each["device"].startswith(f"2 × cpu (1 threads), {how}")
        told, wanted = (
            {(each["event"], each["step"]): each for each in told if "loss" in each} for told in (events, alone)
        )
        assert told.keys() == wanted.keys()
        for figure in ("loss", "gradient_norm", "kl", "reward", "clip_fraction"):
            found, expected = ([each.get(figure) for each in those.values()] for those in (told, wanted))
            assert found == pytest.approx(expected, abs=1e-5), (name, figure)
        folders = [tmp_path / each / "model" for each in (name, one)]
        assert {path.name for path in folders[0].iterdir()} == {path.name for path in folders[1].iterdir()}
        models = [checkpoints.load(folder)[0] for folder in folders]
        for own, others in zip(*(model.parameters() for model in models), strict=True):
            assert (own - others).abs().max() <= 1e-5

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
