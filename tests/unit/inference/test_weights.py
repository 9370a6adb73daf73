"""The memory that there is for weights, and the GPU that a worker uses."""

import os
from pathlib import Path

import pytest

from app.core.config import load_settings
from app.core.errors import Invalid
from app.inference import scheduler, weights


@pytest.mark.parametrize(("limit", "expected"), [("1048576\n", 1 << 20), ("max\n", None), (f"{1 << 60}\n", None)])
def test_a_container_may_have_less_memory_than_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, expected: int | None
) -> None:
    monkeypatch.setattr(weights, "_CONTAINER_LIMIT", tmp_path / "none")
    whole = weights.machine_memory()
    assert whole > 1 << 20
    (tmp_path / "memory.max").write_text(limit)
    monkeypatch.setattr(weights, "_CONTAINER_LIMIT", tmp_path / "memory.max")
    assert weights.machine_memory() == (expected or whole)


def test_a_worker_uses_the_gpu_that_is_set_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    scheduler.use_gpu("")
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0,1"
    scheduler.use_gpu("1")
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "1"
    with pytest.raises(Invalid, match="WORKER_GPU"):
        load_settings({"WORKER_GPU": "0,1"})
