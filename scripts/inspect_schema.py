"""Writes the part of the log schema of Inspect that Parlor's logs use, in an environment that has inspect_ai.

    ENVIRONMENT/bin/python scripts/inspect_schema.py > tests/golden/inspect-log.schema.json

Parlor cannot have inspect_ai beside it: they need different releases of fsspec. So its tests compare logs with what is
stored, and `make test-long` compares that with the schema of inspect_ai and has it read the logs. The schema follows
from inspect_ai, which is under the MIT licence (Copyright (c) 2024 UK AI Security Institute).
"""

import json
import sys
from typing import Any

from inspect_ai import __version__
from inspect_ai.log import EvalLog, EvalSampleSummary

# What is kept of each definition. All else is neither written nor allowed, so that a misspelt field is found.
KEPT = {
    "EvalLog": "version status eval plan results stats error samples",
    "EvalSpec": (
        "eval_id run_id task_id created task task_version task_args dataset model model_roles config packages metadata"
    ),
    "EvalDataset": "name samples shuffled",
    "EvalConfig": "epochs",
    "EvalPlan": "name steps",
    "EvalPlanStep": "solver params",
    "EvalResults": "total_samples completed_samples scores",
    "EvalScore": "name scorer metrics scored_samples",
    "EvalMetric": "name value metadata",
    "EvalStats": "started_at completed_at model_usage",
    "EvalError": "message traceback traceback_ansi",
    "ModelConfig": "model",
    "ModelUsage": (
        "input_tokens output_tokens total_tokens input_tokens_cache_read input_tokens_cache_write"
        " reasoning_tokens total_cost"
    ),
    "EvalSample": (
        "id epoch input target messages output scores metadata events model_usage started_at"
        " completed_at total_time uuid error"
    ),
    "EvalSampleSummary": (
        "id epoch input target metadata scores model_usage started_at completed_at total_time uuid"
        " error completed message_count"
    ),
    "Score": "value",
    "ModelOutput": "model choices completion usage time",
    "ChatCompletionChoice": "message stop_reason",
    "ChatMessageUser": "role content metadata",
    "ChatMessageAssistant": "role content metadata source model",
    "ChatMessageSystem": "role content",
    "ContentText": "type text",
    "ContentReasoning": "type reasoning",
    "ModelEvent": (
        "event timestamp working_start model role input tools tool_choice config output retries"
        " error working_time metadata"
    ),
    "InfoEvent": "event timestamp working_start source data",
    "GenerateConfig": "temperature top_p max_tokens seed stop_seqs",
}
_LEFT_OUT = {"description", "title", "examples", "default", "discriminator"}


def schema() -> dict[str, Any]:
    """The schema: of a whole log at its root, and of all else under `$defs`."""
    whole = EvalLog.model_json_schema()
    summary = EvalSampleSummary.model_json_schema()
    found = {**summary.pop("$defs"), **whole.pop("$defs"), "EvalLog": whole, "EvalSampleSummary": summary}
    definitions = {name: _cut(name, found[name]) for name in sorted(KEPT)}
    definitions["JsonValue"] = {}
    return {
        "$comment": f"From inspect_ai {__version__}, MIT licence, by scripts/inspect_schema.py.",
        "$ref": "#/$defs/EvalLog",
        "$defs": definitions,
    }


def _cut(name: str, definition: dict[str, Any]) -> dict[str, Any]:
    kept = {field: _kept(definition["properties"][field]) for field in KEPT[name].split()}
    required = [field for field in definition.get("required", ()) if field in kept]
    return {"type": "object", "properties": kept, "required": required, "additionalProperties": False}


def _kept(part: Any) -> Any:
    """A part without its words, and without what refers to a definition that is not kept."""
    if isinstance(part, list):
        return [_kept(each) for each in part if not _is_gone(each)]
    if not isinstance(part, dict):
        return part
    return {key: {} if _is_gone(value) else _kept(value) for key, value in part.items() if key not in _LEFT_OUT}


def _is_gone(part: Any) -> bool:
    return isinstance(part, dict) and "$ref" in part and part["$ref"].rpartition("/")[2] not in (*KEPT, "JsonValue")


if __name__ == "__main__":
    json.dump(schema(), sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")
