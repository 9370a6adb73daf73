"""Benchmarks for tests: jobs, results as if models had been scored, and tasks that wait to be read."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select

from app.benchmarks import tasks
from app.benchmarks.job import BENCHMARK
from app.benchmarks.lifecycle import create
from app.benchmarks.spec import BenchmarkSpec
from app.benchmarks.tasks import ShippedTask
from app.core.extensions import reading, writing
from app.models import BenchmarkJob, BenchmarkResult

SHIPPED = tasks.SHIPPED["everyday-reasoning"].file


def make_benchmark(engine: Engine, model: str, tasks: str = "everyday-reasoning", **spec: Any) -> int:
    """A benchmark that waits; gives its number."""
    with writing(engine) as session:
        return create(session, BenchmarkSpec.read({"model": model, "tasks": tasks, **spec}), queued=False).id


def score(
    engine: Engine, number: int, scores: Mapping[str, float], *, version: str = "1", metric: str = "acc", **values: Any
) -> None:
    """Write down what tasks of a benchmark have come to, as if a worker had scored them, with 100 items each."""
    with writing(engine) as session:
        for task, value in scores.items():
            error = abs(value * (1 - value) / 99) ** 0.5
            session.add(
                BenchmarkResult(
                    job_id=number, task=task, metric=metric, value=value, stderr=error, n=100, seconds=1.5,
                    source="lm_eval 0.4.13", version=version,
                    scores={metric: {"value": value, "stderr": error}, "nan": {"value": None, "stderr": None}},
                )
            )  # fmt: skip
        row = BENCHMARK.get(session, number)
        for name, changed in {"status": "done", **values}.items():
            setattr(row, name, changed)


def row_of(engine: Engine, number: int) -> BenchmarkJob:
    with reading(engine) as session:
        return BENCHMARK.get(session, number)


def results_of(engine: Engine, number: int) -> dict[str, BenchmarkResult]:
    """The results of a benchmark by task."""
    with reading(engine) as session:
        found = session.scalars(select(BenchmarkResult).where(BenchmarkResult.job_id == number))
        return {each.task: each for each in found}


class SlowTask:
    """A task whose questions whoever reads them waits for, until `release` was called.

    `name` is good for a benchmark.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.name = "slow"
        self._path = folder / "slow.jsonl"
        os.mkfifo(self._path)
        known = {**tasks.SHIPPED, self.name: ShippedTask(self.name, self._path, answers=False)}
        monkeypatch.setattr(tasks, "SHIPPED", known)

    def release(self) -> None:
        """From now on the questions can be read; a process that waits for them is none the wiser."""
        self._path.unlink()
        self._path.write_bytes(SHIPPED.read_bytes())
