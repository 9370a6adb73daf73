"""Tinker's API through its SDK: every failure is one line without the key, and every state's name gives its step.

Source: the package `tinker` 0.38, its types and docstrings.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from training.errors import TrainingFailed, TrainingRefused, one_line
from training.tinker.config import TinkerPlace

INSTALL = "pip install -c constraints.txt -e '.[tinker]'"
STEP, FINAL = "step-", "final"  # names of checkpoints
SCHEME, SAMPLER, STATE = "tinker://", "/sampler_weights/", "/weights/"
_KEPT_SECONDS = 30 * 24 * 3600  # how long a saved state stays if nobody resumes
_REFUSED = {400, 401, 402, 403, 404, 422}


class SavedState(NamedTuple):
    """A state to resume from: the step after which it was saved, and its path."""

    step: int
    path: str


class TinkerService:
    """One session at Tinker. Calls raise TrainingRefused for what Tinker rejects, and TrainingFailed for other
    failures.
    """

    def __init__(self, place: TinkerPlace) -> None:
        """Raises TrainingRefused without the SDK or a key."""
        if find_spec("tinker") is None:
            raise TrainingRefused(
                f"tinker: expected the package to be installed where the job runs, got none; {INSTALL}"
            )
        self._sdk: Any = import_module("tinker")
        self._key = os.environ.get(place.key_env, "").strip()
        if not self._key:
            raise TrainingRefused(f"expected a key in the environment variable {place.key_env}, got none")
        self._place = place
        self._host = urlsplit(place.service).hostname or place.service
        self.types: Any = self._sdk.types
        self._guard = import_module("training.tinker.connections").ConnectionGuard(place.service)
        self._guard.install()
        self._rest: Any = self.ask(lambda: self._sdk.RestClient(base_url=place.service, api_key=self._key))
        self._service: Any = None

    def close(self) -> None:
        """End the session."""
        if self._service is not None:
            with suppress(Exception):
                self._service.close("success").result(timeout=10)

    def ask(self, call: Callable[[], Any]) -> Any:
        """The result of a call; waits for a future."""
        try:
            found = call()
            return found.result() if hasattr(found, "result") else found
        except (TrainingRefused, TrainingFailed):
            raise
        except Exception as error:  # the SDK raises its own errors, ValueError and those of its transports
            if self._guard.refused is not None:
                raise TrainingRefused(f"{self._host}: {self._guard.refused}") from None
            cause = error.__cause__ if getattr(error.__cause__, "status_code", None) else error
            line = f"{self._host}: expected an answer, got {one_line(error, 300)}".replace(self._key, "[key]")
            is_of_key = isinstance(error, self._sdk.TinkerError) and "api_key" in str(error)
            refused = is_of_key or getattr(cause, "status_code", None) in _REFUSED
            raise (TrainingRefused if refused else TrainingFailed)(line) from None

    # ---- Models ------------------------------------------------------------------

    def longest(self) -> int | None:
        """How many tokens the base takes, if the service says so. Raises Refused for a model that it does not train."""
        models = self.ask(self._rest.get_server_capabilities).supported_models
        if self._place.model.startswith(SCHEME):
            return None
        known = {each.model_name: each for each in models if each.model_name and each.trainable is not False}
        if self._place.model not in known:
            names = ", ".join(sorted(known)[:20]) or "none"
            raise TrainingRefused(f"base: expected a model that {self._host} trains ({names}), got {self._place.model}")
        longest = known[self._place.model].max_context_length
        return None if longest is None else int(longest)

    def begin(self, rank: int, seed: int) -> Any:
        """A training client with the weights of the base: fresh adapters, or those of its checkpoint."""
        metadata = {"parlor": self._place.label}
        if self._place.model.startswith(SCHEME):
            path = self._place.model.rpartition(";")[2].replace(SAMPLER, STATE)
            return self.ask(lambda: self._session().create_training_client_from_state(path, user_metadata=metadata))
        return self.ask(
            lambda: self._session().create_lora_training_client(
                self._place.model, rank=rank, seed=seed, user_metadata=metadata
            )
        )

    def resume(self, path: str) -> Any:
        """A training client with the weights and the optimizer state of a saved state."""
        metadata = {"parlor": self._place.label}
        return self.ask(
            lambda: self._session().create_training_client_from_state_with_optimizer(path, user_metadata=metadata)
        )

    def _session(self) -> Any:
        if self._service is None:
            metadata = {"parlor": self._place.label}
            self._service = self._sdk.ServiceClient(metadata, base_url=self._place.service, api_key=self._key)
        return self._service

    # ---- Checkpoints ---------------------------------------------------------------

    def save_state(self, client: Any, step: int) -> SavedState:
        """Save a state to resume from."""
        saved = self.ask(lambda: client.save_state(f"{STEP}{step}", ttl_seconds=_KEPT_SECONDS))
        return SavedState(step, saved.path)

    def save_result(self, client: Any) -> str:
        """Save the weights both to resume from and to sample from; returns the path of the latter."""
        self.ask(lambda: client.save_state(FINAL, overwrite=True))
        path: str = self.ask(lambda: client.save_weights_for_sampler(FINAL)).path
        return path

    def saved(self, runs: Sequence[str]) -> tuple[SavedState | None, str | None]:
        """The last state of these runs, and the path of the result for sampling, where there is one."""
        states, result = [], None
        for run in runs:
            for path in (paths := self._paths_of(run)):
                name = path.rpartition("/")[2]
                if STATE in path and name.startswith(STEP):
                    states.append(SavedState(int(name.removeprefix(STEP)), path))
                if path.endswith(f"{SAMPLER}{FINAL}") and path.replace(SAMPLER, STATE) in paths:
                    result = path
        return max(states, default=None), result

    def _paths_of(self, run: str) -> list[str]:
        """The checkpoints of a run; none for one that the service does not know."""
        try:
            return [each.tinker_path for each in self.ask(lambda: self._rest.list_checkpoints(run)).checkpoints]
        except TrainingRefused:
            return []

    def delete_but(self, runs: Sequence[str], result: str) -> None:
        """Delete everything these runs have saved, except the result for sampling and its state to resume from."""
        kept = {result, result.replace(SAMPLER, STATE)}
        for run in runs:
            for path in self._paths_of(run):
                if path not in kept:
                    self.delete(path)

    def delete(self, path: str) -> None:
        """Delete a state that is no longer needed to resume; it would also expire."""
        with suppress(TrainingRefused, TrainingFailed):
            self.ask(lambda: self._rest.delete_checkpoint_from_tinker_path(path))
