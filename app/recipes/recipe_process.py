"""Reads recipes in a process of its own, for the web process: YAML takes long to read, and those who play meanwhile do
not wait. `app/recipes/recipe_command.py` is that process.
"""

import json
import subprocess
import sys

from app.core.config import ROOT
from app.core.documents import Document, Line
from app.core.errors import AppError, Phrase, Unavailable
from app.recipes.loaded_recipe import WrittenRecipe

_SECONDS = 60  # that a file may take
_MODULE = "app.recipes.recipe_command"


class RefusedRecipe(AppError):
    """A recipe cannot be read; the text says where and why."""

    code = "invalid"
    status = 400


def read_recipe(content: bytes, source: str) -> WrittenRecipe:
    """What a recipe holds. Raises RefusedRecipe."""
    text = content.decode(errors="replace").replace("\r\n", "\n")  # forms send lines as they end in mail
    try:
        done = subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-m", _MODULE],
            input=json.dumps({"text": text, "source": source}).encode(),
            capture_output=True,
            cwd=ROOT,
            timeout=_SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise RefusedRecipe(Phrase("The recipe took longer than %(most)s seconds to read.", most=_SECONDS)) from None
    except subprocess.CalledProcessError as error:
        last = error.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise Unavailable(Phrase("The recipe could not be read: %(why)s", why="".join(last))) from None
    answer = json.loads(done.stdout)
    if "refused" in answer:
        raise RefusedRecipe(answer["refused"])
    lines = {tuple(path): Line(source, number) for path, number in answer["lines"]}
    return WrittenRecipe(Document(source, answer["value"], lines), text)
