"""`python -m app.recipes.yaml_command`: the process that writes a document, given as JSON, as YAML."""

import json
import sys
from typing import Any

import yaml


def answer(document: dict[str, Any]) -> dict[str, str]:
    """The answer to the parent process: the text."""
    return {"text": yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)}


if __name__ == "__main__":
    print(json.dumps(answer(json.load(sys.stdin))))
