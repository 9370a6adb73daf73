"""The answers of training vendors, as far as they are used here. Pure.

The fields are OpenAI's; other vendors' answers are read into them. A compatible server may leave fields out or send
them in another form. Only an id is required of an answer: a field that is absent or of the wrong type is None.
"""

import json
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
)
from pydantic import WrapValidator as Wrap

A = TypeVar("A", bound="VendorAnswer")
TOKEN = "parlor_token"  # noqa: S105 - the key of a job's metadata that says which of our jobs it is
_LARGEST = 2**53  # of numbers, which a database and a page can take
_LONGEST = 200  # characters in the vendor's names for things


def or_none(value: Any, read: ValidatorFunctionWrapHandler, _info: ValidationInfo) -> Any:
    """The value, or None if it is not of the field's type."""
    try:
        return read(value)
    except ValidationError:
        return None


def _error_or_none(value: Any, read: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    """An error, or None; a string is taken as its message."""
    return or_none({"message": value} if isinstance(value, str) else value, read, info)


def _check_printable(name: str) -> str:
    if not name.isprintable():  # such as a NUL, which databases reject
        raise ValueError("expected printable characters")
    return name


Identifier = Annotated[str, Field(min_length=1, max_length=_LONGEST), AfterValidator(_check_printable)]
Text = Annotated[str | None, Wrap(or_none)]
Name = Annotated[Identifier | None, Wrap(or_none)]
Whole = Annotated[Annotated[int, Field(ge=0, le=_LARGEST)] | None, Wrap(or_none)]
Number = Annotated[Annotated[float, Field(ge=-_LARGEST, le=_LARGEST, allow_inf_nan=False)] | None, Wrap(or_none)]


class VendorAnswer(BaseModel):
    """An answer with an id, its only required field."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    id: Identifier


class VendorFile(VendorAnswer):
    """An uploaded file."""

    filename: Text = None
    status: Text = None
    expires_at: Number = None  # seconds since 1970


class VendorError(BaseModel):
    """Why a job failed."""

    model_config = VendorAnswer.model_config

    message: Text = None
    code: Text = None


class VendorJob(VendorAnswer):
    """A fine-tuning job."""

    status: Text = None
    created_at: Number = None  # seconds since 1970
    metadata: Annotated[dict[str, Any] | None, Wrap(or_none)] = None
    training_file: Name = None
    fine_tuned_model: Name = None
    trained_tokens: Whole = None
    error: Annotated[VendorError | None, Wrap(_error_or_none)] = None


class StepFigures(BaseModel):
    """A training step's figures, in an event."""

    model_config = VendorAnswer.model_config

    step: Whole = None
    total_steps: Whole = None
    train_loss: Number = None


class VendorEvent(VendorAnswer):
    """An event of a job."""

    created_at: Number = None  # seconds since 1970
    level: Text = None
    message: Text = None
    data: Annotated[StepFigures | None, Wrap(or_none)] = None


def read_json(content: bytes) -> Any:
    """The JSON of an answer. Raises ValueError if it is not JSON."""
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("expected JSON, got lists in lists without end") from None


def read_answer(kind: type[A], answer: Any) -> A:
    """An answer of a kind. Raises ValueError where it has no id."""
    try:
        return kind.model_validate(answer)
    except ValidationError:
        raise ValueError(f"expected an object with an id, got {_unexpected_answer_text(answer)}") from None


def _unexpected_answer_text(answer: Any) -> str:
    """What came in place of an object with an id: the message if it is an error."""
    error = answer.get("error") if isinstance(answer, dict) else None
    said = error.get("message") if isinstance(error, dict) else error
    return f"the error: {said}" if isinstance(said, str) and said else json.dumps(answer)[:120]
