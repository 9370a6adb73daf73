"""Jobs: created from their specs, listed, followed until they are over, cancelled and resumed."""

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from parlor_client._types import JobBudget
from parlor_client.connection import Connection, ConnectionLost, lines_of
from parlor_client.errors import JobFailed, NotReachable
from parlor_client.progress import ProgressBar
from parlor_client.tables import pages

_OVER = ("done", "failed", "cancelled")
_INTERRUPTED = "interrupted"
_USUAL_RETRY = 2.0  # seconds before a follower reconnects, until a stream says otherwise
_LONGEST_RETRY = 30.0


class Job:
    """A job of a Parlor, in the state that was last fetched.

    kind: its plural, such as `rounds`. status: waiting, running, done, failed, cancelling, cancelled; interrupted when
    it ran in a terminal that is gone. figures: everything known about it, by name. created_with: the other jobs created
    with it, such as a cross-play's other rounds.
    """

    def __init__(self, connection: Connection, kind: str, number: int, figures: Mapping[str, Any]) -> None:
        self._connection = connection
        self.kind, self.number = kind, number
        self.figures: dict[str, Any] = dict(figures)
        self.created_with: tuple[Job, ...] = ()

    def __repr__(self) -> str:
        done, of = self.figures.get("done"), self.figures.get("of")
        return f"<{self.kind}[{self.number}]: {self.status}{'' if of is None else f', {done} of {of}'}>"

    @property
    def status(self) -> str:
        """The last fetched status."""
        return str(self.figures["status"])

    @property
    def error(self) -> str | None:
        """Why it failed; None if it has not."""
        found: str | None = self.figures.get("error")
        return found

    @property
    def is_over(self) -> bool:
        """Whether it is done, failed or cancelled."""
        return self.status in _OVER

    def refresh(self) -> "Job":
        """Fetch its current state; returns itself. Raises Refused, NotReachable."""
        self.figures = self._connection.get(self._job_path)
        return self

    def wait(self, *, progress: bool | None = None) -> "Job":
        """Follow it until it is done; returns itself. For a cross-play, until all rounds are done.

        A lost connection is restored for as long as the lab has patience. progress: whether to show a bar; None: in a
        terminal and in a notebook. Raises JobFailed when it fails, or is cancelled or interrupted; Refused,
        NotReachable. If the program ends meanwhile, the job continues.
        """
        for job in (self, *self.created_with):
            job._follow_until_over(progress)
        for job in (self, *self.created_with):
            if job.status != "done":
                raise JobFailed(job.kind, job.number, job.status, job.error)
        return self

    def cancel(self) -> "Job":
        """Stop it; its results so far are kept. Returns itself. Raises Refused, also when it is done; NotReachable."""
        return self._post_and_refresh("cancel", {})

    def resume(self, *, budget: JobBudget | None = None) -> "Job":
        """Resume it after it failed or was cancelled or interrupted, with a higher budget if necessary.

        Returns itself. Raises Refused, NotReachable.
        """
        return self._post_and_refresh("resume", {} if budget is None else {"budget": budget})

    @property
    def _job_path(self) -> str:
        return f"/{self.kind}/{self.number}"

    def _post_and_refresh(self, what: str, body: Mapping[str, Any]) -> "Job":
        self._connection.post(f"{self._job_path}/{what}", body)
        return self.refresh()

    def _follow_until_over(self, progress: bool | None) -> None:
        bar = ProgressBar(f"{self.kind}[{self.number}]", progress)
        try:
            for event in _job_events(self._connection, f"{self._job_path}/events"):
                self.figures.update(event.figures)
                bar.show(self.status, self.figures.get("done") or 0, self.figures.get("of"))
                if self.is_over or self.status == _INTERRUPTED:
                    break
        finally:
            bar.close()
        self.refresh()


class Jobs:
    """The jobs of a kind: `lab.rounds[3]` is one of them, `lab.rounds.list()` lists all, the latest first."""

    def __init__(self, connection: Connection, kind: str) -> None:
        self._connection = connection
        self.kind = kind

    def __getitem__(self, number: int) -> Job:
        """The job with this number. Raises Refused with the code `not_found` if there is none."""
        return Job(self._connection, self.kind, number, self._connection.get(f"/{self.kind}/{number:d}"))

    def __iter__(self) -> Iterator[Job]:
        return self.list()

    def list(self, *, sort: str | None = None) -> Iterator[Job]:
        """All jobs, read page by page. sort: a column of the list, prefixed with - for descending order."""
        column = self._connection.description().job_columns[self.kind]
        for row in pages(self._connection, f"/{self.kind}", {"sort": sort}):
            yield Job(self._connection, self.kind, row[column], row)

    def _create(self, spec: Mapping[str, Any]) -> Job:
        """Create a job from its spec, in which a Path stands for the text of a file. Raises Refused, NotReachable."""
        body = {name: text_file(value) if isinstance(value, Path) else value for name, value in spec.items()}
        made = self._connection.post(f"/{self.kind}", body)
        job, *others = (self[number] for number in made["ids"])
        job.created_with = tuple(others)
        return job


class OtherJobs(Jobs):
    """Jobs of a kind that the client has no types for."""

    def run(self, **spec: Any) -> Job:
        """Create a job from its spec. Raises Refused, NotReachable."""
        return self._create(spec)


def text_file(path: Path) -> dict[str, str]:
    """A file in the API's form: its text, and its name for error messages."""
    return {"text": path.read_text(encoding="utf-8"), "name": path.name}


class _Event(NamedTuple):
    id: str
    figures: dict[str, Any]


def _job_events(connection: Connection, path: str) -> Iterator[_Event]:
    """The events of a job over any number of connections, until there are no more. Raises NotReachable, Refused."""
    last, retry = "", _USUAL_RETRY
    alive = time.monotonic()
    while True:
        pause = retry
        try:
            with connection.stream(path, headers={"Last-Event-ID": last} if last else {}) as response:
                if response.status_code == 204:
                    return
                fields: dict[str, str] = {}
                for line in (line.rstrip("\r\n") for line in lines_of(response)):
                    alive = time.monotonic()
                    name, _, value = line.partition(":")
                    if name == "retry" and value.strip().isdigit():
                        retry = int(value) / 1000
                    elif name:
                        fields[name] = value.removeprefix(" ")
                    elif not line:
                        if "data" in fields:
                            last = fields["id"]
                            yield _Event(last, json.loads(fields["data"]))
                        fields = {}
        except ConnectionLost as error:
            away = time.monotonic() - alive
            if away > connection.patience:
                raise NotReachable(f"{error}; expected an answer within {connection.patience:g} s, got none") from None
            pause = max(error.retry_after, min(max(retry, away), _LONGEST_RETRY))
        time.sleep(pause)
