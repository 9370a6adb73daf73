"""Together's answers, read into the fields and the final statuses that all vendors share. Pure.

Source: the OpenAPI document of https://docs.together.ai/reference, and together-py, `lib/types/fine_tuning.py`.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import Field, model_validator
from pydantic import WrapValidator as Wrap

from app.finetuning.vendors.answers import TOKEN, StepFigures, VendorEvent, VendorFile, VendorJob, Whole, or_none

SUFFIX = "parlor-"  # before the token, in the name of the model that a job makes
GOING_ON = ("pending", "queued", "running", "compressing", "uploading", "cancel_requested")
_ENDS = {"completed": "succeeded", "error": "failed", "user_error": "failed"}
STEP = "step "  # before the number, in the id of an event that is a training step
_NANOSECOND = 1e-9


class TogetherFile(VendorFile):
    """An uploaded file. It can be trained on once it is processed."""

    processed: Annotated[bool | None, Wrap(or_none), Field(alias="Processed")] = None


class TogetherJob(VendorJob):
    """A fine-tuning job. Its model's name and its token count are set from the start."""

    @model_validator(mode="before")
    @classmethod
    def _in_shared_fields(cls, sent: Any) -> Any:
        if not isinstance(sent, dict):
            return sent
        suffix, status = sent.get("suffix"), sent.get("status")
        marked = isinstance(suffix, str) and suffix.startswith(SUFFIX)
        return {
            **sent,
            "status": _ENDS.get(status, status) if isinstance(status, str) else None,
            "created_at": _seconds_since_epoch(sent.get("created_at")),
            "metadata": {TOKEN: str(suffix).removeprefix(SUFFIX)} if marked else None,
            "fine_tuned_model": sent.get("model_output_name"),
            "trained_tokens": sent.get("token_count"),
        }


class TogetherEvent(VendorEvent):
    """An event of a job. It has no id, and not always a hash, so it is identified by its content."""

    total_steps: Whole = None

    @model_validator(mode="before")
    @classmethod
    def _in_shared_fields(cls, sent: Any) -> Any:
        if not isinstance(sent, dict):
            return sent
        said = json.dumps([sent.get(name) for name in ("hash", "created_at", "type", "step", "message")])
        level = "error" if str(sent.get("type")).lower() in ("job_error", "job_user_error") else sent.get("level")
        return {
            **sent,
            "id": hashlib.sha256(said.encode()).hexdigest(),
            "created_at": _seconds_since_epoch(sent.get("created_at")),
            "level": level,
            "data": None,
        }


def step_events(metrics: Any, total: int) -> Iterator[VendorEvent]:
    """The training steps among the metrics of a job of `total` steps."""
    for each in metrics if isinstance(metrics, list) else ():
        found = each if isinstance(each, Mapping) else {}
        step, at = found.get("train/global_step"), found.get("timestamp")
        whole = int(step) if isinstance(step, float) and step.is_integer() else step
        figures = StepFigures.model_validate(
            {"step": whole, "total_steps": total, "train_loss": found.get("train/loss")}
        )
        if figures.step is not None and figures.train_loss is not None:
            told = at * _NANOSECOND if isinstance(at, int | float) else None
            yield VendorEvent.model_validate({"id": f"{STEP}{figures.step}", "created_at": told, "data": figures})


def _seconds_since_epoch(text: Any) -> float | None:
    """A time in ISO 8601 as seconds since 1970; None for anything else."""
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
