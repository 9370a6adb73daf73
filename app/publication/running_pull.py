"""A pull that runs in a process of its own while pages show it: its progress and its result."""

import os
import pickle
import threading
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Engine

from app.core.config import Settings
from app.core.errors import AppError, Phrase, Unavailable, Verbatim
from app.core.files import FETCHED
from app.core.module_process import BrokeOffError, ModuleProcess
from app.publication.spec import DatasetPullSpec

_MODULE = "app.publication.pulling"


class PullRequest(NamedTuple):
    """What was requested: a model or a dataset, its source and its name here, and who requested it."""

    kind: str
    spec: DatasetPullSpec
    by: str


class RunningPull:
    """A pull, from its start. `step` is its current step, `answer` the number of what it registered, or the error that
    explains why it registered nothing; None while it is running.
    """

    def __init__(self, request: PullRequest, settings: Settings, database: Engine) -> None:
        self.request, self.begun_at = request, datetime.now(UTC)
        self.step: Phrase | None = None
        self.answer: int | AppError | None = None
        self._home, self.is_cancelled = settings.home, False
        self._before = _bytes_below(self._home / FETCHED)
        given: dict[str, Any] = {
            "settings": settings.model_dump(mode="json"),
            "database": database.url.render_as_string(hide_password=False),
            "kind": request.kind,
            "spec": request.spec.to_json(),
        }
        self._process = ModuleProcess(_MODULE)
        self._process.give(given)
        self._follower = threading.Thread(target=self._follow_pull_process, daemon=True)
        self._follower.start()

    @property
    def error(self) -> AppError | None:
        """Why it has registered nothing, if it is over."""
        return self.answer if isinstance(self.answer, AppError) else None

    @property
    def goes_on(self) -> bool:
        """Whether it is still running."""
        return self.answer is None

    @property
    def fetched(self) -> int:
        """The bytes that have come from the hub so far."""
        return max(0, _bytes_below(self._home / FETCHED) - self._before)

    def cancel(self) -> None:
        """End it, unless it is over. What was fetched stays, so that the same pull starts with it."""
        self.is_cancelled = True
        self._process.let_go()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until it is over."""
        self._follower.join(seconds)

    def _follow_pull_process(self) -> None:
        try:
            while True:
                said: Phrase | int | AppError = pickle.load(self._process.output)  # noqa: S301 - our own process writes it
                if not isinstance(said, Phrase):
                    self.answer = said
                    self._process.let_go()
                    return
                self.step = said
        except EOFError:
            broke_off = None
        except Exception:  # pickle raises anything for data that is no pickle
            self._process.kill()
            broke_off = Phrase("The pull broke off: what its process answered cannot be read.")
        why = ""
        try:
            self._process.check()
        except BrokeOffError as error:
            why = str(error)
        if self.is_cancelled:
            broke_off = Phrase("The pull was cancelled. Fetched files are kept, and the same pull resumes with them.")
        self.answer = Unavailable(broke_off or Phrase("The pull broke off: %(why)s", why=Verbatim(why)))


def _bytes_below(folder: Path) -> int:
    found = 0
    for parent, _, names in os.walk(folder):  # skips folders that are deleted meanwhile
        for name in names:
            with suppress(OSError):  # it has just been renamed
                found += Path(parent, name).stat().st_size
    return found
