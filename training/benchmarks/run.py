"""A benchmark run: one task after the other, each reported as soon as it is done, so that a kill costs one task."""

import time
from functools import cached_property, partial
from importlib import import_module
from typing import Any

from training.benchmarks.chats import RecordedAnswers
from training.benchmarks.config import LETTERS, BenchmarkConfig, BenchmarkTask
from training.benchmarks.questions import score_choices, score_letters
from training.benchmarks.scores import TaskResult
from training.benchmarks.tasks import describe_tasks, load_harness
from training.errors import TrainingRefused
from training.progress import Progress

PROGRESS_EVERY = 1.0  # seconds


def run(config: BenchmarkConfig, progress: Progress) -> None:
    """Score every task. Raises TrainingRefused before anything is computed, and AnswersMissing."""
    names = [each.name for each in config.tasks if each.questions is None]
    if names and (refused := describe_tasks(names, answers=config.checkpoint is None).refused):
        raise TrainingRefused(refused)
    _BenchmarkRun(config, progress).work()


class _BenchmarkRun:
    """See `run`. A checkpoint is loaded once, and the harness only if one of its tasks is requested."""

    def __init__(self, config: BenchmarkConfig, progress: Progress) -> None:
        self._config = config
        self._progress = progress
        self._told_at = 0.0

    def work(self) -> None:
        """Score the tasks in their order."""
        if self._config.checkpoint is not None:
            model = self._checkpoint[0]
            self._progress.tell("started", device=str(model.device), parameters=model.num_parameters())
        for task in self._config.tasks:
            began = time.perf_counter()
            result = self._score(task)
            self._progress.tell(
                "task",
                **{name: value for name, value in result._asdict().items() if name != "scores"},
                scores={name: score._asdict() for name, score in result.scores.items()},
                seconds=round(time.perf_counter() - began, 3),
            )
        self._progress.tell("finished")

    def _score(self, task: BenchmarkTask) -> TaskResult:
        limit = self._config.limit
        if task.questions is None:
            found: TaskResult = load_harness().evaluate(task.name, self._harness_model, self._config)
            return found
        if task.form == LETTERS:
            return score_letters(task.name, task.questions, limit, self._answers.of)
        if self._config.checkpoint is None:
            raise TrainingRefused(f"{task.name}: expected a checkpoint, whose log-likelihoods it scores, got answers")
        likelihoods = import_module("training.benchmarks.likelihoods").LogLikelihoods
        tell = partial(self._tell_items, task.name)
        return score_choices(task.name, task.questions, limit, likelihoods(*self._checkpoint, self._config.batch, tell))

    def _tell_items(self, task: str, done: int, of: int) -> None:
        if done == of or time.monotonic() - self._told_at >= PROGRESS_EVERY:
            self._told_at = time.monotonic()
            self._progress.tell("progress", task=task, done=done, of=of)

    @cached_property
    def _checkpoint(self) -> Any:
        """Model and tokenizer."""
        return import_module("training.benchmarks.likelihoods").load_checkpoint(self._config.checkpoint)

    @cached_property
    def _answers(self) -> RecordedAnswers:
        if self._config.answers is None:
            raise TrainingRefused("answers: expected a file with those of a chat model, got none")
        return RecordedAnswers(self._config.answers)

    @cached_property
    def _harness_model(self) -> Any:
        if self._config.checkpoint is None:
            return load_harness().AnsweringModel(self._answers)
        return load_harness().language_model(*self._checkpoint, self._config.batch)
