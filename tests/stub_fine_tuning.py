"""The part of OpenAI's HTTP API that trains models, for `tests/stub_openai.py`: files, jobs, events and their failures.

A job goes one status further whenever it is looked at. What calls come to can be scripted:

    stub.fine_tuning.statuses = ["validating_files", "failed"]
    stub.fine_tuning.answer("create", LOST)          # it is carried out, and the answer is lost
    stub.fine_tuning.answer("retrieve", rate_limited(), Reply("", status=500))
"""

import email
import email.policy
import json
import re
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.stack import PATIENCE

BEGAN = 2_000_000_000  # seconds since 1970, by the vendor's clock
USUAL = ("validating_files", "queued", "running", "succeeded")
OVER = ("succeeded", "failed", "cancelled")
LOST = "lost"  # a call that is carried out, and whose answer never comes
LATE = "late"  # likewise, but it is carried out when the test says `arrive()`
_ROUTES = (
    ("POST", r"/files", "upload"),
    ("GET", r"/files", "list_files"),
    ("GET", r"/files/([^/]+)", "file"),
    ("DELETE", r"/files/([^/]+)", "delete_file"),
    ("POST", r"/fine_tuning/jobs", "create"),
    ("GET", r"/fine_tuning/jobs", "list_jobs"),
    ("GET", r"/fine_tuning/jobs/([^/]+)", "retrieve"),
    ("POST", r"/fine_tuning/jobs/([^/]+)/cancel", "cancel"),
    ("GET", r"/fine_tuning/jobs/([^/]+)/events", "events"),
)


class Refused(Exception):
    """A call is answered with an error: HTTP status, message, code."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code = status, code


@dataclass
class RemoteJob:
    """A job at the vendor. `left` are the statuses that it has still to go through."""

    body: dict[str, Any]
    left: deque[str]
    events: list[dict[str, Any]] = field(default_factory=list)


class StubFineTuning:
    """Files and jobs. `calls` are the names of those that came in, in order."""

    routes: Sequence[tuple[str, str, str]] = _ROUTES
    usual: Sequence[str] = USUAL  # statuses that a job goes through
    over: Sequence[str] = OVER

    def __init__(self) -> None:
        self.files: dict[str, dict[str, Any]] = {}
        self.contents: dict[str, bytes] = {}
        self.jobs: list[RemoteJob] = []
        self.calls: list[str] = []
        self.headers: list[Mapping[str, str]] = []
        self.statuses: list[str] = [*self.usual]
        self.error: dict[str, Any] | None = None  # of jobs that fail
        self.steps = 2  # that a job tells of while it runs
        self.losses: dict[int, float] = {}  # of steps whose loss is not the usual
        self.most_rows = 10_000  # of a page
        self.alter: Callable[[str, Any], Any] = lambda _call, body: body  # what is sent instead of a usual answer
        self.late: dict[str, threading.Event] = {}  # calls that are carried out, and answered when it is set
        self.held: dict[str, threading.Event] = {}  # calls that are never carried out, and broken off when it is set
        self._on_the_way: list[Callable[[], Any]] = []
        self._scripted: dict[str, deque[Any]] = defaultdict(deque)
        self._lock = threading.Lock()

    def answer(self, call: str, *answers: Any) -> None:
        """What the next calls come to, one after the other: a Reply, LOST, LATE, or None for the usual."""
        self._scripted[call].extend(answers)

    def arrive(self) -> None:
        """Carry out what is late."""
        while self._on_the_way:
            self._on_the_way.pop(0)()

    def bodies(self) -> list[dict[str, Any]]:
        """The jobs as the vendor shows them, the oldest first."""
        return [job.body for job in self.jobs]

    def rows_of(self, file_id: str) -> list[Any]:
        """The rows of an uploaded file."""
        return [json.loads(line) for line in self.contents[file_id].splitlines()]

    def handle(self, method: str, address: str, headers: Mapping[str, str], raw: bytes) -> tuple[Any, Any] | None:
        """What a call comes to: what was scripted for it, if anything, and the usual body; None if it is no such call.

        Raises Refused.
        """
        url = urlsplit(address)
        for verb, pattern, name in self.routes:
            found = re.fullmatch(r"(?:/v1)?" + pattern, url.path) if verb == method else None
            if found is None:
                continue
            with self._lock:
                self.calls.append(name)
                self.headers.append(headers)
                scripted = self._scripted[name].popleft() if self._scripted[name] else None
            if scripted is not None and scripted not in (LOST, LATE):
                return scripted, None
            if (held := self.held.get(name)) is not None:
                held.wait(PATIENCE)
                return LOST, None
            query = {key: values[0] for key, values in parse_qs(url.query).items()}
            call = partial(getattr(self, f"_{name}"), *found.groups(), headers=headers, raw=raw, query=query)
            if scripted == LATE:
                self._on_the_way.append(call)
                return LOST, None
            with self._lock:
                body = call()
            if (late := self.late.get(name)) is not None:
                late.wait(PATIENCE)
            return scripted, self.alter(name, body)
        return None

    # ---- Files ---------------------------------------------------------------------

    def _upload(self, headers: Mapping[str, str], raw: bytes, query: Any) -> Any:
        head = b"Content-Type: " + headers["content-type"].encode() + b"\r\n\r\n"
        message = email.message_from_bytes(head + raw, policy=email.policy.HTTP)
        parts = {part.get_param("name", header="content-disposition"): part for part in message.iter_parts()}
        content = parts["file"].get_payload(decode=True)
        said = {name: part.get_payload().strip() for name, part in parts.items() if name != "file"}
        if said["purpose"] != "fine-tune":
            raise Refused(400, "Purpose is not fine-tune.")
        for number, line in enumerate(content.splitlines(), 1):
            if not self._is_row(json.loads(line)):
                raise Refused(400, f"Line {number} has a key or a weight that is not allowed.", "invalid_file")
        number = f"file-{len(self.contents) + 1}"
        self.contents[number] = content
        self.files[number] = {
            "id": number, "object": "file", "bytes": len(content), "created_at": BEGAN, "purpose": "fine-tune",
            **self._file_fields(parts["file"].get_filename(), said),
        }  # fmt: skip
        return self.files[number]

    def _is_row(self, row: Any) -> bool:
        """Whether the vendor takes a row."""
        return all(
            set(each) <= {"role", "content", "weight"} and each.get("weight", 1) in (0, 1) for each in row["messages"]
        )

    def _file_fields(self, filename: str, _said: Mapping[str, str]) -> dict[str, Any]:
        """Further fields of a file."""
        return {"filename": filename, "status": "processed"}

    def _list_files(self, query: Mapping[str, str], **_: Any) -> Any:
        return self._page([*self.files.values()][::-1], query)

    def _file(self, number: str, **_: Any) -> Any:
        if number not in self.files:
            raise Refused(404, f"No such File object: {number}")
        return self.files[number]

    def _delete_file(self, number: str, **_: Any) -> Any:
        self._file(number)
        del self.files[number]
        return {"id": number, "object": "file", "deleted": True}

    # ---- Jobs ----------------------------------------------------------------------

    def _create(self, raw: bytes, **_: Any) -> Any:
        sent = json.loads(raw)
        if sent["training_file"] not in self.files:
            raise Refused(400, f"invalid training_file: {sent['training_file']}", "invalid_file")
        body = {
            "id": f"ftjob-{len(self.jobs) + 1}", "object": "fine_tuning.job", "created_at": BEGAN + len(self.jobs),
            "status": self.statuses[0], "model": sent["model"], "training_file": sent["training_file"],
            "metadata": sent.get("metadata"), "method": sent["method"], "seed": sent.get("seed", 7),
            "suffix": sent.get("suffix"), "organization_id": "org", "result_files": [], "fine_tuned_model": None,
            "trained_tokens": None, "error": None, "hyperparameters": sent["method"]["supervised"]["hyperparameters"],
        }  # fmt: skip
        job = RemoteJob(body, deque(self.statuses[1:]))
        self.jobs.append(job)
        self._tell(job, f"Created fine-tuning job: {body['id']}")
        return body

    def _list_jobs(self, query: Mapping[str, str], **_: Any) -> Any:
        return self._page(self.bodies()[::-1], query)

    def _retrieve(self, number: str, **_: Any) -> Any:
        job = self._job(number)
        if job.left:
            self._reach(job, job.left.popleft())
        return job.body

    def _cancel(self, number: str, **_: Any) -> Any:
        job = self._job(number)
        if job.body["status"] in self.over:
            raise Refused(400, f"Job has already {job.body['status']}.")
        if job.left == deque(["cancelled"]):
            self._reach(job, job.left.popleft())
        elif "cancelled" not in job.left:
            job.left = deque(["cancelled"])
        return job.body

    def _events(self, number: str, query: Mapping[str, str], **_: Any) -> Any:
        return self._page(self._job(number).events[::-1], query)

    def _reach(self, job: RemoteJob, status: str) -> None:
        job.body["status"] = status
        if status == "running":
            for step in range(1, self.steps + 1):
                loss = self.losses.get(step, 2.0 / step)
                data = {"step": step, "total_steps": self.steps, "train_loss": loss}
                self._tell(job, f"Step {step}/{self.steps}: training loss={loss:.2f}", data)
        if status == "succeeded":
            job.body |= {"fine_tuned_model": f"ft:{job.body['model']}:org::{job.body['id']}", "trained_tokens": 5000}
        if status == "failed":
            job.body["error"] = self.error or {"code": "server_error", "message": "it failed", "param": None}

    def _tell(self, job: RemoteJob, message: str, data: Any = None) -> None:
        job.events.append(
            {
                "id": f"{job.body['id']}-event-{len(job.events) + 1}", "object": "fine_tuning.job.event",
                "created_at": BEGAN + len(job.events), "level": "info", "message": message, "data": data,
                "type": "metrics" if data else "message",
            }
        )  # fmt: skip

    def _job(self, number: str) -> RemoteJob:
        found = next((job for job in self.jobs if job.body["id"] == number), None)
        if found is None:
            raise Refused(404, f"Could not find fine tune: {number}")
        return found

    def _page(self, items: list[dict[str, Any]], query: Mapping[str, str]) -> Any:
        numbers = [each["id"] for each in items]
        first = numbers.index(query["after"]) + 1 if query.get("after") in numbers else 0
        last = first + min(int(query.get("limit", 20)), self.most_rows)
        return {"object": "list", "data": items[first:last], "has_more": last < len(items)}
