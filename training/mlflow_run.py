"""Records a training as an MLflow run, where `MLFLOW_TRACKING_URI` names a store or a server.

It follows the training's events. Any MLflow failure causes one warning, and the training continues without it.
"""

import json
import math
import os
import re
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

URI = "MLFLOW_TRACKING_URI"
_EXPERIMENT = "MLFLOW_EXPERIMENT_NAME"
_LONGEST = 500  # characters of a parameter, which every store takes
_KEPT = "mlflow.json"  # in the run folder: the run that a resumed training continues
# An unavailable server must not delay a training, which MLflow would otherwise hold up for minutes.
_PATIENCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "10"}
_NOT_MEASURED = ("step", "steps", "epoch")  # position fields of a step event
_PASSWORD = re.compile(r"//[^/@\s]+@")  # in an address that an error repeats
_ENDS = {"finished": "FINISHED", "failed": "FAILED", "interrupted": "KILLED"}


def is_wanted() -> bool:
    """Whether a place to store runs is configured."""
    return bool(os.environ.get(URI))


class MlflowRun:
    """Forwards a training's events: its settings as parameters, steps and evaluations as metrics, and its end.

    name: the run's name. tags: what it is made of, such as the hashes of base and data. resumed: whether it continues
    from a checkpoint. warn: called once with a one-line message if something goes wrong.
    """

    def __init__(
        self, folder: Path, name: str, tags: Mapping[str, Any], warn: Callable[[str], None], *, resumed: bool
    ) -> None:
        self._folder = folder
        self._name = name
        self._tags = {name: str(value)[:_LONGEST] for name, value in tags.items()}
        self._warn = warn
        self._resumed = resumed
        self._client: Any = None
        self._entities: Any = None
        self._run = ""
        self._given_up = False

    def tell(self, event: str, facts: Mapping[str, Any]) -> None:
        """Forward an event listed in docs/training.md. Raises nothing."""
        if self._given_up:
            return
        try:
            if event == "started":
                self._begin_run(facts)
            elif self._run:
                self._log_event(event, facts)
        except Exception as error:  # whatever a store, a server or the package raises: the training goes on
            self._given_up = True
            said = _PASSWORD.sub("//", " ".join(str(error).split())) or type(error).__name__
            self._warn(f"{URI}: the training goes on without MLflow: {said[:300]}")

    def _begin_run(self, facts: Mapping[str, Any]) -> None:
        if find_spec("mlflow") is None:
            raise ModuleNotFoundError("expected the package mlflow-skinny or mlflow beside Parlor, got neither")
        for name, value in _PATIENCE.items():
            os.environ.setdefault(name, value)
        self._entities = import_module("mlflow.entities")
        self._client = import_module("mlflow").MlflowClient(os.environ[URI])
        kept = self._folder / _KEPT
        if self._resumed and kept.is_file():
            self._run = json.loads(kept.read_text(encoding="utf-8"))["run_id"]
            self._client.update_run(self._run, status="RUNNING")
            return
        experiment = os.environ.get(_EXPERIMENT) or "parlor"
        found = self._client.get_experiment_by_name(experiment)
        number = self._client.create_experiment(experiment) if found is None else found.experiment_id
        self._run = self._client.create_run(number, tags=self._tags, run_name=self._name).info.run_id
        kept.write_text(json.dumps({"run_id": self._run}), encoding="utf-8")
        settings = {**facts, **facts["config"]}
        params = [
            self._entities.Param(name, str(value)[:_LONGEST])
            for name, value in sorted(settings.items())
            if value is not None and name != "config"
        ]
        self._client.log_batch(self._run, params=params)

    def _log_event(self, event: str, facts: Mapping[str, Any]) -> None:
        if event in ("step", "eval"):
            now = int(time.time() * 1000)
            metrics = [
                self._entities.Metric(f"eval_{name}" if event == "eval" else name, float(value), now, facts["step"])
                for name, value in facts.items()
                if name not in _NOT_MEASURED and isinstance(value, int | float) and math.isfinite(value)
            ]
            self._client.log_batch(self._run, metrics=metrics)
        elif event in _ENDS:
            made = {name: facts[name] for name in ("output", "checkpoint_sha256", "message") if name in facts}
            tags = [self._entities.RunTag(name, str(value)[:_LONGEST]) for name, value in made.items()]
            self._client.log_batch(self._run, tags=tags)
            self._client.set_terminated(self._run, _ENDS[event])
