"""What lists of models, matches and jobs say of games and models."""

from typing import Any

from app.core.errors import Phrase
from app.core.lists import Labelled, Reference, of_other
from app.games import titles
from app.models import LanguageModel


def game_cell(name: str) -> Labelled:
    """A game in a list: pages show its title."""
    return Labelled(name, Phrase(titles().get(name, name)))


def model_cell(model: LanguageModel | None) -> Reference | None:
    """A model in a list."""
    return None if model is None else Reference("model", model.id, model.name)


def model_name(number: Any) -> Any:
    """The name of the model whose number a column has, to sort by."""
    return of_other(LanguageModel.name, LanguageModel.id == number)
