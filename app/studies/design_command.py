"""`python -m app.studies.design_command read FILE | write FOLDER`: the process of `app/studies/design_process.py`.

Prints one JSON object: what was read, or why it was `refused`.
"""

import json
import sys
from pathlib import Path
from typing import Any

from app.core.errors import AppError
from app.studies.design_files import load_design, write_design


def answer(action: str, path: Path, given: Any) -> dict[str, Any]:
    """The answer for the other process."""
    try:
        if action == "write":
            return {"path": str(write_design(path, given["written"], given["texts"]))}
        found = load_design(path)
    except AppError as error:
        return {"refused": error.message}
    return {
        "written": found.written,
        "texts": found.texts,
        "material": found.material,
        "warned": found.warned,
        "sha256": found.sha256,
    }


if __name__ == "__main__":
    print(json.dumps(answer(sys.argv[1], Path(sys.argv[2]), json.load(sys.stdin))))
