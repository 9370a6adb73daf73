"""Errors in a recipe, each with the key at fault; the caller that has the file adds the line. Pure."""

from app.core.errors import FieldError
from app.core.validation import KeyPath


class RecipeFault(Exception):
    """An error in a recipe: its key, and what was expected there. `turn` is the iteration of its loops."""

    def __init__(self, path: KeyPath, error: FieldError, turn: str = "") -> None:
        self.path, self.error, self.turn = path, error, turn
        super().__init__(error.message)

    def placed(self, place: str) -> FieldError:
        """The error, prefixed with its location."""
        own, turn = self.error.parts["subject"], f" ({self.turn})" if self.turn else ""
        subject = f"{place}{turn}" if own is None else f"{place}{turn}: {own}"
        return type(self.error)(None, **{**self.error.parts, "subject": subject})
