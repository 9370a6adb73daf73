"""`python -m app.recipes.yaml_command`: the process that writes a document, given as JSON, as YAML."""

import json
import sys

import yaml


def main() -> None:
    """Print one JSON object with the text."""
    text = yaml.safe_dump(json.load(sys.stdin.buffer), sort_keys=False, allow_unicode=True, width=100)
    print(json.dumps({"text": text}))


if __name__ == "__main__":
    main()
