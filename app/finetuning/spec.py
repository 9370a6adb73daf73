"""The spec of a training. The fields of methods and backends are read from where they are described."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Self

from pydantic import ConfigDict, ValidationInfo, field_validator, model_validator

from app.core.errors import FieldError, Invalid, Phrase
from app.finetuning.backends import all_backends, find_backend
from app.finetuning.config import (
    LOCAL,
    SFT_DATA,
    check_base,
    check_model_name,
    check_reference,
    check_supervised,
    find_method,
    preset_fields,
)
from app.jobs.spec import PRESET, JobBudget, JobSpec, spec_field, tokens_field, usd_field
from training.methods import all_methods
from training.methods.base import CONVERSATIONS, Need


def _with_fields(schema: dict[str, Any]) -> None:
    """Add the JSON Schema of `config`, which depends on the method and the backend."""
    schema["allOf"] = [
        {
            "if": {
                "properties": {"method": {"const": method}, "backend": {"const": name}},
                "required": [] if name == LOCAL else ["backend"],
            },
            "then": {"properties": {"config": {"properties": {**fields}, "additionalProperties": False}}},
        }
        for name, backend in all_backends().items()
        for method in all_methods()
        if (fields := backend.fields(method))
    ]


class TrainingBudget(JobBudget):
    """The budget of a training at a vendor. A local training calls nobody."""

    usd: float | None = usd_field(
        "For training at a vendor. It stops until it is resumed with more: at OpenAI and Together before anything is "
        "sent, if the estimate plus earlier tries exceeds this; at Tinker once this much is spent."
    )
    tokens: int | None = tokens_field("The same for trained tokens of all epochs, regardless of cost.")


class TrainingSpec(JobSpec):
    """A model to train on a dataset: by which method, where, and from which base."""

    model_config = ConfigDict(json_schema_extra=_with_fields, validate_default=True)
    version: ClassVar[int] = 1

    method: str = spec_field(
        "Method",
        "How it learns.",
        metavar="|".join(all_methods()),
        argument=True,
        widget="registry",
        registry="methods",
        heading="Method, data and models",
    )
    backend: str = spec_field(
        "Where it is trained", "Here, or at a vendor.", LOCAL, metavar="NAME", widget="registry", registry="backends"
    )
    dataset: str = spec_field(
        "Dataset",
        "What it learns from: a dataset’s number, its name (the latest version), or name@version.",
        metavar="D",
        widget="dataset",
        by="method",
    )
    sft_data: str | None = spec_field(
        "Supervised rows",
        "A dataset of conversations that are mixed in for supervised training, whatever rewards they have.",
        None,
        unset="none",
        metavar="D",
        widget="dataset",
        kind=CONVERSATIONS,
    )
    base: str | None = spec_field(
        "Base",
        "The model to start from: a local one or, for training at a vendor, an API model there. The new one plays the "
        "same games in the same prompt style.",
        None,
        unset="none",
        metavar="MODEL",
        widget="base",
    )
    reference: str | None = spec_field(
        "Reference",
        "The local model that it stays near. With rewards: the model that played.",
        None,
        unset="the base",
        metavar="MODEL",
        widget="base",
        backend=LOCAL,
    )
    name: str = spec_field(
        "Name",
        "For the new model: letters, digits, dots, dashes and underscores. Participants never see it.",
        metavar="NAME",
    )
    config: dict[str, Any] = spec_field(
        "Further fields",
        "Fields of the method, or of the backend that has its own. One a line, such as accumulation = 4.",
        {},
        metavar="K=V",
        preset="preset",
        widget="training",
        by="backend",
        heading="How it is trained",
    )
    budget: TrainingBudget = spec_field(
        "Budget", "For training at a vendor.", TrainingBudget(), heading="Budget", prefix="budget_"
    )

    @classmethod
    def only_with(cls) -> Mapping[str, tuple[str, Collection[str]]]:
        """Only some methods take a base, a reference model or supervised rows, and local trainings cost nothing."""
        methods = all_methods().values()
        return {
            "base": ("method", [each.name for each in methods if each.goes_on_from_base]),
            "reference": ("method", [each.name for each in methods if Need.REFERENCE_MODEL in each.needs]),
            SFT_DATA: ("method", [each.name for each in methods if each.mixes_supervised_rows]),
            "budget": ("backend", [name for name in all_backends() if name != LOCAL]),
        }

    @field_validator("method")
    @classmethod
    def _method_is_known(cls, name: str) -> str:
        return find_method(name).name

    @field_validator("backend")
    @classmethod
    def _backend_is_known(cls, name: str) -> str:
        find_backend(name)
        return name

    @field_validator("name")
    @classmethod
    def _name_is_that_of_a_model(cls, name: str) -> str:
        check_model_name(name)
        return name

    @field_validator("config")
    @classmethod
    def _fields_are_those_of_the_method(cls, given: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        """The fields for the training: the given ones on top of a preset's."""
        if "method" not in info.data or "backend" not in info.data:
            return given
        method, fields = info.data["method"], {**given}
        try:
            preset = preset_fields(method, fields.pop(PRESET, None))
            return find_backend(info.data["backend"]).read_config(method, {**preset, **fields})
        except FieldError as error:
            field = error.field if error.field == "method" else f"config.{error.field}"
            raise error.of(field) from None

    @model_validator(mode="after")
    def _method_takes_what_is_named(self) -> Self:
        check_base(self.method, self.base, find_backend(self.backend).bases)
        check_reference(self.method, self.reference)
        check_supervised(self.method, self.sft_data)
        if self.backend == LOCAL and self.budget != TrainingBudget():
            raise Invalid(
                "budget",
                expected=Phrase("none for a training here, which costs nothing"),
                got=" ".join(f"{name}={most}" for name, most in self.budget.model_dump(exclude_none=True).items()),
            )
        return self
