"""The part of Together's HTTP API that trains models, as its reference describes it, in place of OpenAI's.

    stub.fine_tuning = StubTogether()

Nobody has seen the vendor's own server do any of this.
"""

import json
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tests.stub_fine_tuning import BEGAN, Refused, RemoteJob, StubFineTuning

OUTPUT = "someone/Qwen3-8B"  # before the suffix, in the name of a model that was made


class StubTogether(StubFineTuning):
    """Files and jobs. A file is not `processed` before it was looked at so many times."""

    routes = (
        ("POST", r"/files/upload", "upload"),
        ("GET", r"/files", "list_files"),
        ("GET", r"/files/([^/]+)", "file"),
        ("DELETE", r"/files/([^/]+)", "delete_file"),
        ("POST", r"/fine-tunes", "create"),
        ("GET", r"/fine-tunes", "list_jobs"),
        ("GET", r"/fine-tunes/([^/]+)", "retrieve"),
        ("POST", r"/fine-tunes/([^/]+)/cancel", "cancel"),
        ("GET", r"/fine-tunes/([^/]+)/events", "events"),
        ("GET", r"/fine-tunes/([^/]+)/metrics", "metrics"),
    )
    usual = ("pending", "queued", "running", "compressing", "uploading", "completed")
    over = ("completed", "error", "cancelled")

    def __init__(self) -> None:
        super().__init__()
        self.processed = 0
        self.asked: list[dict[str, Any]] = []  # the bodies of requests for jobs

    # ---- Files ---------------------------------------------------------------------

    def _is_row(self, row: Any) -> bool:
        if set(row) == {"messages"}:
            return _is_chat(row["messages"])
        return (
            set(row) == {"input", "preferred_output", "non_preferred_output"}
            and _is_chat(row["input"]["messages"])
            and all(
                [each["role"] for each in row[name]] == ["assistant"]
                for name in ("preferred_output", "non_preferred_output")
            )
        )

    def _file_fields(self, _filename: str, said: Mapping[str, str]) -> dict[str, Any]:
        return {"filename": said["file_name"], "FileType": said["file_type"], "Processed": False, "LineCount": 0}

    def _file(self, number: str, **_: Any) -> Any:
        found = super()._file(number)
        self.processed -= 1
        return {**found, "Processed": self.processed < 0}

    # ---- Jobs ----------------------------------------------------------------------

    def _create(self, raw: bytes, **_: Any) -> Any:
        sent = json.loads(raw)
        self.asked.append(sent)
        if sent["training_file"] not in self.files or self.processed >= 0:
            raise Refused(400, "Training file upload did not finish")
        if ("model" in sent) == ("from_checkpoint" in sent) or len(sent["suffix"]) > 40:
            raise Refused(400, "Could not create the FineTune object (Binding)")
        number, now = f"ft-{len(self.jobs) + 1}", _time(BEGAN + len(self.jobs))
        body = {
            "id": number, "status": self.statuses[0], "created_at": now, "updated_at": now, "user_id": "someone",
            "model_output_name": f"{OUTPUT}-{sent['suffix']}-{number}", "token_count": 0, "total_price": 0,
            "events": [], **sent,
        }  # fmt: skip
        job = RemoteJob(body, deque(self.statuses[1:]))
        self.jobs.append(job)
        self._tell(job, "Job created", "job_pending")
        return body

    def _cancel(self, number: str, **_: Any) -> Any:
        body = super()._cancel(number)
        if body["status"] not in self.over:
            body["status"] = "cancel_requested"
        return body

    def _reach(self, job: RemoteJob, status: str) -> None:
        job.body["status"] = status
        if status == "running":
            job.body["token_count"] = 5000
            self._tell(job, "Training started", "training_start", self.steps)
        if status == "error":
            self._tell(job, (self.error or {"message": "it failed"})["message"], "job_error")

    def _tell(self, job: RemoteJob, message: str, kind: str = "warning", steps: int = 0) -> None:
        job.events.append(
            {
                "object": "fine-tune-event", "created_at": _time(BEGAN + len(job.events)), "level": None,
                "message": message, "type": kind, "param_count": 0, "token_count": 0, "total_steps": steps,
                "wandb_url": "", "step": 0, "checkpoint_path": "", "model_path": "", "training_offset": 0, "hash": "",
            }
        )  # fmt: skip

    def _events(self, number: str, **_: Any) -> Any:
        return {"data": self._job(number).events}

    def _metrics(self, number: str, query: Mapping[str, str], **_: Any) -> Any:
        begun = any(each["type"] == "training_start" for each in self._job(number).events)
        told = [
            {"timestamp": BEGAN * 10**9, "train/global_step": step, "train/loss": self.losses.get(step, 2.0 / step)}
            for step in range(1, self.steps + 1)
            if begun and step >= int(query.get("global_step_from", 0))
        ]
        return {"metrics": [*told, {"timestamp": BEGAN * 10**9, "eval/global_step": 1, "eval/loss": 3.0}]}

    def _page(self, items: list[dict[str, Any]], query: Mapping[str, str]) -> Any:
        return {"data": items[::-1]}  # the oldest first, all at once


def _is_chat(messages: Any) -> bool:
    """Whether user and assistant alternate, after a system's message if any, and weights are 0 or 1."""
    turns = [each["role"] for each in messages if each["role"] != "system"]
    return (
        turns == [("user", "assistant")[at % 2] for at in range(len(turns))]
        and all(set(each) <= {"role", "content", "weight"} for each in messages)
        and all(type(each.get("weight", 1)) is int and each.get("weight", 1) in (0, 1) for each in messages)
    )


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
