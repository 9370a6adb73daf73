"""Tasks of lm-evaluation-harness (extra `benchmarks`): their description, whether their data is here, and their scores.

Nothing is fetched while a benchmark runs; `fetch` is the only function that contacts a server. Loaded only if a task of
the harness is requested.

Source: https://github.com/EleutherAI/lm-evaluation-harness
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import version
from typing import Any, NamedTuple

import datasets
from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager
from lm_eval.tasks._index import Kind
from lm_eval.tasks._yaml_loader import load_yaml

from training.benchmarks.chats import AnswerRequest, RecordedAnswers
from training.benchmarks.config import BenchmarkConfig
from training.benchmarks.scores import TaskResult, TaskScore, headline
from training.errors import TrainingFailed, TrainingRefused, one_line

PACKAGE = "lm_eval"
GENERATE = "generate_until"
_FILES = ("json", "csv", "parquet", "text", "arrow")  # file readers, which need no data from a server
_MOST_TOKENS = 256  # per answer, unless a task says otherwise


class HarnessTask(NamedTuple):
    """A task or group of the harness: the kinds of output it scores, and the data missing on this machine."""

    name: str
    outputs: frozenset[str]
    missing: Sequence[str]

    @property
    def generates(self) -> bool:
        """Whether it scores only answers, as a model behind an API can give them."""
        return self.outputs == {GENERATE}


def source() -> str:
    """The program that scores these tasks, with its version."""
    return f"{PACKAGE} {version(PACKAGE)}"


def data_folder() -> str:
    """Where the data of tasks is: HF_DATASETS_CACHE."""
    return str(datasets.config.HF_DATASETS_CACHE)


def find_task(name: str) -> HarnessTask | None:
    """A task or group by its name; None where the harness knows none, or several under one tag."""
    entry = _manager().task_index.get(name)
    if entry is None or entry.kind is Kind.TAG:
        return None
    configs = [*_configs(name)]
    sets = dict.fromkeys((each.get("dataset_path"), each.get("dataset_name")) for each in configs)
    missing = ["/".join(filter(None, each)) for each in sets if not _is_here(*each)]
    return HarnessTask(name, frozenset(each.get("output_type", GENERATE) for each in configs), missing)


def fetch(names: Sequence[str]) -> None:
    """Load tasks with their data, from a server if it is not here yet. Raises TrainingRefused."""
    try:
        _manager().load([*names])
    except Exception as error:  # whatever the readers of a hundred formats raise
        raise TrainingRefused(f"tasks: expected data that can be fetched, got {one_line(error)}") from None


def evaluate(name: str, model: Any, config: BenchmarkConfig) -> TaskResult:
    """The scores of a task or group. Raises TrainingRefused where it cannot be loaded, and what the model raises."""
    try:
        loaded = _manager().load([name])
    except Exception as error:  # as above
        raise TrainingRefused(f"{name}: expected a task that can be loaded, got {one_line(error)}") from None
    found: Any = simple_evaluate(
        model=model,
        tasks=[loaded["groups"].get(name) or loaded["tasks"][name]],
        task_manager=_manager(),
        num_fewshot=config.shots,
        limit=config.limit,
        log_samples=False,
    )
    own = {**found["results"], **found.get("groups", {})}[name]
    scores = _task_scores(own)
    if not scores:
        raise TrainingRefused(f"{name}: expected one score of the whole group, got none; name its parts instead")
    numbers = [metric for metric, score in scores.items() if score.value is not None]
    if not numbers:
        raise TrainingFailed(f"{name}: expected a score that is a finite number, got none for {', '.join(scores)}")
    items = sum(found["n-samples"][each]["effective"] for each in loaded["tasks"])
    task_version = found["versions"].get(name)
    return TaskResult(
        name, items, headline(numbers), scores, source(), "" if task_version is None else f"{task_version}"
    )


def language_model(model: Any, tokenizer: Any, batch: int) -> Any:
    """A loaded checkpoint in the form that the harness takes."""
    wrapper = import_module("lm_eval.models.huggingface").HFLM  # loads torch, which recorded answers do without
    return wrapper(pretrained=model, tokenizer=tokenizer, backend="causal", batch_size=batch)


class AnsweringModel(LM):
    """Recorded answers in the form of a model for the harness. Raises AnswersMissing for missing ones."""

    def __init__(self, answers: RecordedAnswers) -> None:
        super().__init__()
        self._answers = answers

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:  # noqa: ARG002
        """Each answer up to the first of its stop texts."""
        asked = [each.args for each in requests]
        chats = [AnswerRequest(text, int(more.get("max_gen_toks", _MOST_TOKENS))) for text, more in asked]
        return [
            _until(answer, more.get("until") or [])
            for answer, (_, more) in zip(self._answers.of(chats), asked, strict=True)
        ]

    def loglikelihood(self, requests: Sequence[Any]) -> list[tuple[float, bool]]:
        """Raises TrainingRefused: an answer says nothing of how likely others were."""
        raise TrainingRefused(f"{requests[0].task_name}: expected a task of answers alone, got one of log-likelihoods")

    loglikelihood_rolling = loglikelihood


@cache
def _manager() -> TaskManager:
    return TaskManager()


def _configs(name: str) -> Iterator[Mapping[str, Any]]:
    """The configs of all tasks under a name, without their functions."""
    index = _manager().task_index
    entry = index[name]
    if entry.kind is Kind.TAG:
        for each in sorted(entry.tags):
            yield from _configs(each)
        return
    config = load_yaml(entry.yaml_path, resolve_func=False) if entry.yaml_path else entry.cfg or {}
    if entry.kind is not Kind.GROUP:
        yield config
        return
    for each in config.get("task") or []:
        if isinstance(each, str):
            yield from _configs(each)
        elif (inner := each.get("task") or each.get("group")) in index:
            yield from ({**found, **each} for found in _configs(inner))
        else:
            yield each


def _is_here(path: str | None, part: str | None) -> bool:
    if path is None or path in _FILES:
        return True
    try:
        datasets.load_dataset_builder(path, part)
    except Exception:  # any error means that it is missing
        return False
    return True


def _task_scores(own: Mapping[str, Any]) -> dict[str, TaskScore]:
    """Scores by metric, from results such as `acc,none` and `acc_stderr,none`; of several filters the last one counts.

    A score that is no finite number, such as from a model that computes NaN, has the value None.
    """
    found = {}
    for key, value in own.items():
        metric, mark, chosen = key.partition(",")
        if mark and not metric.endswith("_stderr") and isinstance(value, int | float):
            error = own.get(f"{metric}_stderr,{chosen}")
            found[metric] = TaskScore(_finite(value), _finite(error))
    return found


def _finite(value: Any) -> float | None:
    """The value if it is a finite number; the harness gives "N/A" for an unknown standard error."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _until(text: str, ends: Sequence[str] | str) -> str:
    for end in [ends] if isinstance(ends, str) else ends:
        text = text.partition(end)[0] if end else text
    return text
