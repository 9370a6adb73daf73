"""How lists of models, matches and jobs show games and models."""

from typing import Any

from app.core.errors import Phrase
from app.core.lists import Labelled, ListColumn, Reference, of_other
from app.games import titles
from app.models import LanguageModel


def game_cell(name: str) -> Labelled:
    """A game in a list: pages show its title."""
    return Labelled(name, Phrase(titles().get(name, name)))


def model_cell(model: LanguageModel | None) -> Reference | None:
    """A model in a list."""
    return None if model is None else Reference("model", model.id, model.name)


def model_name(number: Any) -> Any:
    """The name of the model whose number is in a column, for sorting."""
    return of_other(LanguageModel.name, LanguageModel.id == number)


def model_column(name: str, title: Phrase, number: Any, **said: Any) -> ListColumn:
    """A column for items' model, held as `name` and sorted by its name; `number` is the column with its number."""
    return ListColumn(name, title, lambda item: model_cell(getattr(item, name)), sort=model_name(number), **said)
