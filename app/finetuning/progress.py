"""A job's progress: figures for its page and its live updates, and its events as log lines. Pure."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from app.games.base import JSON
from app.jobs import states

LATELY = 20  # events used to compute the pace
OF_LOSS = ("reward", "kl", "clip_fraction", "penalty")  # extra training metrics, which a method's loss computes
# How rows that were too long were handled, as counted in the event `started`.
TOO_LONG = {"shortened": "shortened", "cut": "cut", "skipped": "left out as too long"}
_OF_STEP = ("epoch", "lr", "gradient_norm", "tokens_per_second", "memory_mb", *OF_LOSS)


def left(events: Sequence[Mapping[str, Any]]) -> float | None:
    """The seconds that the remaining steps will take, at the pace of a job's latest `events`, given in order."""
    steps: list[Mapping[str, Any]] = []
    for each in (each for each in reversed(events) if each["event"] == "step"):
        if steps and each["step"] >= steps[-1]["step"]:
            break  # before it was resumed
        steps.append(each)
    if len(steps) < 2 or steps[0]["at"] <= steps[-1]["at"]:
        return None
    pace = (steps[0]["step"] - steps[-1]["step"]) / (steps[0]["at"] - steps[-1]["at"])
    return float((steps[0]["steps"] - steps[0]["step"]) / pace)


def figures(
    row: Any,
    state: str,
    events: Sequence[Mapping[str, Any]],
    held_out: Mapping[str, Any] | None,
    best: Mapping[str, Any] | None,
    cost: float | None = None,
) -> JSON:
    """A job's figures by name, from its latest `events`, its latest evaluation `held_out` and its `best` one.

    `cost` is what a vendor has charged so far, in US dollars, or None if unknown. Unknown figures are None, as is
    `left` (in seconds) when the job is not running.
    """
    last, saved = _last(events, "step"), _last(events, "saved")
    seconds = left(events) if state == states.RUNNING else None
    return {
        "status": state,
        "step": row.step or 0,
        "steps": row.steps,
        "percent": 100 * (row.step or 0) // max(1, row.steps or 0),
        "loss": _short(row.loss),
        "eval_loss": _short(held_out["loss"]) if held_out else None,
        "eval_step": held_out["step"] if held_out else None,
        "best_loss": _short(best["loss"]) if best else None,
        "best_step": best["step"] if best else None,
        "registered_step": row.registered_step,
        **{name: _short(last.get(name)) for name in _OF_STEP},
        "saved": saved.get("step"),
        "left": None if seconds is None else round(seconds),
        "device": row.device,
        "remote_status": row.remote_status,
        "trained_tokens": row.trained_tokens,
        "cost": cost,
        "error": row.error,
    }


def _last(events: Sequence[Mapping[str, Any]], kind: str) -> Mapping[str, Any]:
    return next((each for each in reversed(events) if each["event"] == kind), {})


def line(event: Mapping[str, Any]) -> str:
    """An event as a log line, prefixed with the time of day in UTC."""
    at = datetime.fromtimestamp(event.get("at", 0), UTC)
    return f"{at:%H:%M:%S}  {_event_words(event)}"


def _event_words(event: Mapping[str, Any]) -> str:
    kind = event["event"]
    if kind == "started":
        gone_on = f", goes on from {event['resumed_from']}" if event.get("resumed_from") else ""
        mixed_in = f" ({event['sft_rows']} of them supervised)" if event.get("sft_rows") else ""
        too_long = "".join(f", {event[name]} {words}" for name, words in TOO_LONG.items() if event.get(name))
        weights = "" if event["parameters"] is None else f", {event['parameters']} weights"  # unknown at a vendor
        return (
            f"started on {event['device']}: {event['rows']} rows{mixed_in}{too_long}, {event['targets']} tokens to"
            f" learn{weights}{_reference(event)}{gone_on}"
        )
    if kind == "created":
        return f"created {event['job']} at {event['device']}, of the file {event['file']}"
    if kind == "step" and "lr" not in event:  # a vendor reports only this
        return f"step {event['step']} of {event['steps']}  loss {_digits(event['loss'])}"
    if kind == "step":
        return (
            f"step {event['step']} of {event['steps']}  loss {_digits(event['loss'])}  lr {_digits(event['lr'])}"
            f"  {event['tokens_per_second']:.0f} tokens/s"
        )
    if kind == "eval":
        return f"step {event['step']} of {event['steps']}  held-out loss {_digits(event['loss'])}"
    if kind == "saved":
        return f"saved {event['checkpoint']}"
    if kind == "finished":
        of = f" of {event['steps']}" if "steps" in event else ""
        loss = event.get("metrics", {}).get("eval_loss")
        best = "" if loss is None else f", whose held-out loss was the best: {_digits(loss)}"
        return f"finished with the weights of step {event['step']}{of}{best}"
    return f"{kind}: {event['message']}" if "message" in event else str(kind)


def _reference(event: Mapping[str, Any]) -> str:
    if "stored_reference_rows" not in event:
        return ""
    stored, computed = event["stored_reference_rows"], event["computed_reference_rows"]
    return f", reference of {stored} rows from play and of {computed} computed"


def _digits(value: float | None) -> str:
    return "no number" if value is None else f"{value:.4g}"


def _short(value: float | None) -> float | None:
    """A value rounded to four digits: enough for a page, and small to send."""
    return None if value is None else float(f"{value:.4g}")
