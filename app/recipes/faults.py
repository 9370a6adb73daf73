"""What is wrong with a recipe, and at which of its keys; whoever has the file says in which line. Pure."""

from app.core.errors import FieldError
from app.core.validation import KeyPath


class RecipeFault(Exception):
    """Something in a recipe that cannot be: where, and what was expected there. `turn`: in which turn of its loops."""

    def __init__(self, path: KeyPath, error: FieldError, turn: str = "") -> None:
        self.path, self.error, self.turn = path, error, turn
        super().__init__(error.message)

    def placed(self, place: str) -> FieldError:
        """The error, beginning with a place."""
        own, turn = self.error.parts["subject"], f" ({self.turn})" if self.turn else ""
        subject = f"{place}{turn}" if own is None else f"{place}{turn}: {own}"
        return type(self.error)(None, **{**self.error.parts, "subject": subject})
