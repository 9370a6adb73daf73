"""What the file of a recipe comes to, read with the files that it names. Loads no YAML."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.core.documents import Document
from app.core.errors import FieldError
from app.recipes.faults import RecipeFault
from app.recipes.plan import RecipePlan


@dataclass(frozen=True, slots=True)
class LoadedRecipe:
    """A recipe with the lines of its keys, its text as it was written, its steps, and the texts of other files."""

    document: Document
    text: str
    plan: RecipePlan
    files: Mapping[str, str]

    def placed(self, fault: RecipeFault) -> FieldError:
        """What is wrong, beginning with the line."""
        return fault.placed(self.document.place(fault.path))
