"""Reads recipes in a separate process, which is `app/recipes/recipe_command.py`."""

from app.core.documents import Document, Line
from app.core.reading_process import read_in_process
from app.recipes.loaded_recipe import WrittenRecipe


def read_recipe(content: bytes, source: str) -> WrittenRecipe:
    """The contents of a recipe. Raises RefusedFiles."""
    text = content.decode(errors="replace").replace("\r\n", "\n")  # forms send lines with the line ends of mail
    answer = read_in_process("app.recipes.recipe_command", given={"text": text, "source": source})
    lines = {tuple(path): Line(source, number) for path, number in answer["lines"]}
    return WrittenRecipe(Document(source, answer["value"], lines), text)
