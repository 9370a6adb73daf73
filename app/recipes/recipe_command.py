"""`python -m app.recipes.recipe_command`: the process started by `app/recipes/recipe_process.py`.

Prints one JSON object: what was read, or why it was `refused`.
"""

import json
import sys
from typing import Any

from app.core.errors import AppError
from app.recipes.reader import read_written


def answer(given: dict[str, Any]) -> dict[str, Any]:
    """The answer to the parent process."""
    try:
        document = read_written(given["text"], given["source"]).document
    except AppError as error:
        return {"refused": error.message}
    return {"value": document.value, "lines": [[list(path), line.number] for path, line in document.lines.items()]}


if __name__ == "__main__":
    print(json.dumps(answer(json.load(sys.stdin))))
