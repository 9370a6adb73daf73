"""Reads the file of a recipe. Errors name the file, line and key."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.core.errors import Invalid
from app.core.yaml_reader import parse_yaml, read_text_file
from app.recipes.loaded_recipe import LoadedRecipe, ReadFile, WrittenRecipe, load_written


def load_recipe(
    path: Path, given: Mapping[str, Any] | None = None, swept: Mapping[str, Any] | None = None
) -> LoadedRecipe:
    """Read the file of a recipe and the files that it names. Raises Invalid for the first error."""
    text = read_text_file(path, "a text file that can be read", path.name)
    return parse_recipe(text, path.name, given, lambda name: _file_beside(path.parent, name), swept)


def parse_recipe(
    text: str,
    source: str,
    given: Mapping[str, Any] | None = None,
    read_file: ReadFile | None = None,
    swept: Mapping[str, Any] | None = None,
) -> LoadedRecipe:
    """Read the text of a recipe; `read_file` returns the text of a file beside it. Raises Invalid."""
    return load_written(read_written(text, source), given, read_file, swept)


def read_written(text: str, source: str) -> WrittenRecipe:
    """The parsed contents of a recipe's text. Raises Invalid if it is not strict YAML."""
    try:
        return WrittenRecipe(parse_yaml(text, source), text)
    except Invalid as error:
        if error.parts["expected"] != "YAML" or not ("${" in text or " in [" in text):
            raise
        remedy = 'within [ ] and { }, references and loops have to be in quotes: "${base}", "seed in [1, 2]"'
        raise Invalid(None, **{**error.parts, "remedy": remedy}) from None


def _file_beside(folder: Path, name: str) -> str:
    return read_text_file(folder / name, "a text file that can be read", name)
