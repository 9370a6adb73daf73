"""The file of a recipe as written: inputs, and steps with what each does. Pure.

Every key is documented in docs/recipes.md; app/recipes/plan.py turns the file into steps.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from app.recipes.expressions import NAME, RESERVED

MOST_STEPS = 100  # in the file; loops repeat them
_SLUG = r"^[a-z0-9][a-z0-9-]{0,39}$"
_IDENTIFIER = rf"^{NAME}$"
_FORMS = {
    _SLUG: "at most 40 small letters, digits and hyphens",
    _IDENTIFIER: "at most 40 small letters, digits and underscores, a letter first",
}
FORMAT = 1  # of the files that this release reads

Identifier = Annotated[str, StringConstraints(pattern=_IDENTIFIER)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=4000)]
ShortText = Annotated[str, StringConstraints(min_length=1, max_length=500)]
Value = bool | int | float | Annotated[str, StringConstraints(max_length=500)]


class RecipePart(BaseModel):
    """A mapping in the file; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class WrittenStep(RecipePart):
    """A step as written: what it does, with which fields, in which loops, and on what condition."""

    name: Identifier
    do: ShortText
    loops: Annotated[list[ShortText], Field(max_length=5)] | ShortText = Field(default=[], alias="for")
    when: ShortText | None = None
    fields: dict[str, Any] = Field(default={}, alias="with")

    @property
    def clauses(self) -> list[str]:
        """The clauses of its loops, outermost first."""
        return [self.loops] if isinstance(self.loops, str) else list(self.loops)


class RecipeFile(RecipePart):
    """A recipe: its name, the inputs that a run can override, and its steps in order.

    `sweep` has the fields that take several values, and the seeds (app/recipes/sweep.py).
    """

    recipe: Annotated[str, StringConstraints(pattern=_SLUG)]
    version: Literal[1]
    about: Text | None = None
    inputs: Annotated[
        dict[Identifier, Value | Annotated[list[Value], Field(min_length=1, max_length=1000)]], Field(max_length=100)
    ] = Field(default={})
    sweep: Annotated[dict[ShortText, Value | list[Value]], Field(max_length=10)] = Field(default={})
    steps: Annotated[list[WrittenStep], Field(min_length=1, max_length=MOST_STEPS)]

    @model_validator(mode="after")
    def _names_can_be(self) -> Self:
        for name in self.inputs:
            if name in RESERVED:
                raise PydanticCustomError("reserved", "other names of inputs than {name}", {"name": name})
        return self


def expected_form(error: ErrorDetails) -> str:
    """What pydantic expected of a value of the right type, worded to follow “expected”."""
    if error["type"] == "string_pattern_mismatch":
        return _FORMS[error["ctx"]["pattern"]]
    if error["type"] == "literal_error":
        return f"{FORMAT}, the version of the format that this release reads"
    if error["type"] == "too_short":
        return "at least one"
    message = error["msg"]
    return message.removeprefix("Input should be ").removeprefix("Value should have ")
