"""The definition of a training method: its fields, rows, loss and needs. Loads no torch.

A field of a config is described once, here or in its method's module: type, bounds, default, title, one sentence of
help and, in `json_schema_extra`, what JSON Schema cannot express:

- `given_by`: "job" for files, folders and switches that a training job sets itself; all other fields may
  be given to a job;
- `unit`: the unit of a number;
- `unset`: what applies while the field is null;
- `needs`: fields of which at least one must be given with this one;
- `rank`: its position among the fields that a form shows first.

The JSON Schema feeds the form, the command line, the table in docs/training.md and the validation of jobs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema, model_validator

from training.errors import shown

# How to handle moves that are too long.
TRUNCATE: Final = "truncate"
SKIP: Final = "skip"
REFUSE: Final = "refuse"
LARGEST = 1e6  # absolute value of a reward, weight or log-probability in a row: none should be larger
# Fields without a meaning where a vendor holds the weights: what they are computed on, and how they are kept.
HERE_ONLY = (
    "keep", "log_every", "device", "precision", "packing", "gradient_checkpointing", "threads", "lora_alpha",
    "lora_dropout", "lora_targets", "keep_adapters",
)  # fmt: skip
RENAMED = {"clip": "max_grad_norm"}  # field names from before 0.2, which files and checkpoints still have

Batch = Annotated[
    int,
    Field(
        ge=1,
        title="Batch",
        description="Rows per device and forward pass.",
        json_schema_extra={"unit": "rows", "rank": 3},
    ),
]
Epochs = Annotated[
    float,
    Field(
        gt=0,
        allow_inf_nan=False,
        title="Epochs",
        description="How often each row is seen.",
        json_schema_extra={"rank": 1},
    ),
]
LearningRate = Annotated[
    float,
    Field(
        gt=0,
        allow_inf_nan=False,
        title="Learning rate",
        description="Peak value; large models need lower rates than small ones.",
        json_schema_extra={"rank": 2},
    ),
]


# Forms and command lines know words and numbers.
Switch = Annotated[bool, WithJsonSchema({"type": "string", "enum": ["false", "true"]})]
Packing = Annotated[
    Switch,
    Field(
        title="Packing",
        description="Whether the sequences of a batch are put into one row without padding, if the model allows it.",
    ),
]


class FieldFault(ValueError):
    """An invalid field: its name, what was expected, what was given, and what to do. Its text is one line."""

    def __init__(self, field: str, *, expected: str, got: str, remedy: str | None = None) -> None:
        self.field, self.expected, self.got, self.remedy = field, expected, got, remedy
        line = f"{field}: expected {expected}, got {got}"
        super().__init__(line if remedy is None else f"{line}; {remedy}")


def with_new_names(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The fields under their current names. Raises FieldFault where one is given under both names."""
    for old, new in RENAMED.items():
        if old in raw and new in raw:
            expected = f"{new} alone, which is its new name"
            raise FieldFault(old, expected=expected, got="both", remedy=f"leave {old} out")
    return {RENAMED.get(name, name): value for name, value in raw.items()}


class Config(BaseModel):
    """The fields of every method. Relative paths start at the current directory."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    data: Path = Field(title="Data", description="Rows to train on.", json_schema_extra={"given_by": "job"})
    output: Path = Field(
        title="Output",
        description="The checkpoint folder to make; it must not exist yet, and appears when it is whole.",
        json_schema_extra={"given_by": "job"},
    )
    run: Path | None = Field(
        default=None,
        title="Run folder",
        description="What is needed to go on after a kill, and `tensorboard/`.",
        json_schema_extra={"given_by": "job", "unset": "`output` + `.run`"},
    )
    chat_template: Path | None = Field(
        default=None,
        title="Chat template",
        description="A file with a Jinja template to use, and to save with the model.",
        json_schema_extra={"given_by": "job", "unset": "the model's own"},
    )
    template_arguments: dict[str, Any] = Field(
        default_factory=dict,
        title="Arguments of the chat template",
        description="Further variables of the chat template, such as `enable_thinking`.",
        json_schema_extra={"given_by": "job", "unset": "none"},
    )
    max_length: int | None = Field(
        default=None,
        ge=8,
        title="Maximum sequence length",
        description="Tokens in a sequence, at most.",
        json_schema_extra={"unit": "tokens", "unset": "the model's own"},
    )
    too_long: Literal["truncate", "skip", "refuse"] = Field(
        default=TRUNCATE,
        title="Moves that are too long",
        description="What happens to a move or response that does not fit even without older turns before it: its end "
        "is cut, it is left out, or the training is refused.",
    )

    seed: int = Field(
        default=0,
        ge=0,
        lt=2**32,
        title="Seed",
        description="For the order of rows, held-out rows, weight initialization and dropout.",
        json_schema_extra={"rank": 5},
    )
    epochs: Epochs = 1.0
    max_steps: int | None = Field(
        default=None,
        ge=1,
        title="Maximum steps",
        description="Optimizer steps, whatever `epochs` says.",
        json_schema_extra={"unit": "steps", "unset": "none"},
    )
    batch: Batch = 8
    accumulation: int = Field(
        default=1,
        ge=1,
        title="Accumulation",
        description="Batches in an optimizer step; 8 × 1 and 1 × 8 give the same gradients.",
        json_schema_extra={"unit": "batches"},
    )
    learning_rate: LearningRate = 5e-5
    schedule: Literal["cosine", "linear", "constant"] = Field(
        default="cosine", title="Schedule", description="How the learning rate goes down after the warm-up."
    )
    warmup: float = Field(
        default=0.03,
        ge=0,
        lt=1,
        title="Warm-up",
        description="Share of the steps in which the learning rate rises; never includes the last step.",
    )
    weight_decay: float = Field(
        default=0.0, ge=0, allow_inf_nan=False, title="Weight decay", description="Weight decay of AdamW."
    )
    max_grad_norm: float = Field(
        default=1.0,
        ge=0,
        allow_inf_nan=False,
        title="Gradient clipping",
        description="Gradients with a larger norm are scaled down to it; 0 turns clipping off.",
    )

    eval_data: Path | None = Field(
        default=None,
        title="Evaluation data",
        description="Rows to evaluate on.",
        json_schema_extra={"given_by": "job", "unset": "none"},
    )
    eval_share: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        title="Held out",
        description="Share of the matches that is kept aside to see how well it learns.",
        json_schema_extra={"rank": 4},
    )
    eval_every: int | None = Field(
        default=None,
        ge=1,
        title="Steps between evaluations",
        description="Steps between evaluations; each is saved, and the best becomes the output.",
        json_schema_extra={"unit": "steps", "unset": "each epoch", "needs": ["eval_data", "eval_share"]},
    )
    patience: int = Field(
        default=0,
        ge=0,
        title="Patience",
        description="Evaluations without a better loss after which training ends; 0 is never.",
        json_schema_extra={"unit": "evaluations", "needs": ["eval_data", "eval_share"]},
    )

    save_every: int | None = Field(
        default=None,
        ge=1,
        title="Steps between checkpoints",
        description="Steps between checkpoints for resuming.",
        json_schema_extra={"unit": "steps", "unset": "each epoch"},
    )
    keep: int = Field(
        default=2,
        ge=1,
        title="Checkpoints",
        description="Checkpoints to keep for resuming, beside the best.",
        json_schema_extra={"unit": "checkpoints"},
    )
    log_every: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        default=1,
        title="Steps per log event",
        description="Steps per `step` event; `auto`: as many as it takes for at most 300 events.",
        json_schema_extra={"unit": "steps"},
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        default="auto", title="Device", description="`auto` takes the GPU if there is one; `cuda` is refused without."
    )
    precision: Literal["float32", "bfloat16", "float16", "tf32"] = Field(
        default="float32",
        title="Precision",
        description="Of forward and backward passes; weights are float32. The last two need a GPU.",
    )
    packing: Packing = False
    gradient_checkpointing: Switch = Field(
        default=False,
        title="Recompute activations",
        description="Whether activations are computed again in the backward pass: less memory, a third more time.",
    )
    threads: int | None = Field(
        default=None,
        ge=1,
        title="Threads",
        description="Threads of the CPU.",
        json_schema_extra={"unit": "threads", "unset": "torch's own"},
    )
    resume: bool = Field(
        default=True,
        title="Resume",
        description="False deletes the checkpoints in `run` and starts over.",
        json_schema_extra={"given_by": "job"},
    )

    @model_validator(mode="before")
    @classmethod
    def _old_names_are_read(cls, raw: Any) -> Any:
        return with_new_names(raw) if isinstance(raw, Mapping) else raw

    @model_validator(mode="after")
    def _fields_fit_together(self) -> Self:
        if self.eval_data is not None and self.eval_share:
            raise FieldFault("eval_share", expected="eval_data or eval_share", got="both", remedy="leave one out")
        for name, others in needs(type(self)).items():
            if getattr(self, name) and not any(getattr(self, other) for other in others):
                expected = f"{' or '.join(others)} beside it"
                raise FieldFault(name, expected=expected, got="neither", remedy="name one")
        return self

    @property
    def evaluates(self) -> bool:
        """Whether the training evaluates on rows that it does not train on."""
        return self.eval_data is not None or self.eval_share > 0

    @property
    def uses_adapters(self) -> bool:
        """Whether adapters are trained in place of the weights themselves."""
        return False

    @property
    def run_folder(self) -> Path:
        """The folder for a training's logs and for what it needs to resume after a kill."""
        return self.run or self.output.with_name(self.output.name + ".run")


class FromCheckpoint(Config):
    """The fields of a method that starts from a checkpoint, which must have the hash if one is given."""

    base: Path = Field(
        title="Base", description="The checkpoint folder to continue from.", json_schema_extra={"given_by": "job"}
    )
    base_sha256: str | None = Field(
        default=None,
        title="Hash of the base",
        description="The hash that the base must have.",
        json_schema_extra={"given_by": "job", "unset": "any"},
    )

    lora_rank: int = Field(
        default=0,
        ge=0,
        title="LoRA rank",
        description="Trains adapters of this rank and no other weight. 0 is off.",
    )
    lora_alpha: int | None = Field(
        default=None,
        ge=1,
        title="LoRA alpha",
        description="What the adapters add is multiplied by alpha / rank.",
        json_schema_extra={"unset": "twice the rank", "needs": ["lora_rank"]},
    )
    lora_dropout: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        title="LoRA dropout",
        description="Dropout of what goes into the adapters.",
        json_schema_extra={"needs": ["lora_rank"]},
    )
    lora_targets: str | None = Field(
        default=None,
        title="LoRA targets",
        description="Names of the layers that get adapters, with commas between.",
        json_schema_extra={"unset": "all linear layers but the head", "needs": ["lora_rank"]},
    )
    keep_adapters: Switch = Field(
        default=False,
        title="Keep adapters unmerged",
        description="Whether the output is the adapters alone, which need the base; else they are merged into it.",
        json_schema_extra={"needs": ["lora_rank"]},
    )

    @property
    def uses_adapters(self) -> bool:
        """Whether adapters are trained in place of the weights themselves."""
        return self.lora_rank > 0


class Need(StrEnum):
    """A requirement of a method beyond a model and conversations."""

    REFERENCE_MODEL = "reference model"
    REWARDS = "rewards"
    COMPARISONS = "comparisons"


CONVERSATIONS, COMPARISONS = "conversations", "comparisons"  # kinds of datasets
SUPERVISED = "sft"  # the type of a supervised row, among rows with rewards
SUPERVISED_DATA = "sft_data"  # the field of a file of such rows
SAMPLED = "sample"  # the type of a row with rewards, which may be omitted


@dataclass(frozen=True, slots=True)
class RowSchema:
    """The rows that a method requires: the kind of dataset, and the keys of each move to be learnt.

    `keys` are keys of an assistant's message besides `role` and `content`; `weight` is always allowed.
    """

    kind: str
    keys: tuple[str, ...]

    def missing(self, row: Mapping[str, Any]) -> str | None:
        """A key that some move of the row lacks; None if none is missing.

        A move of weight 0 needs none, nor does a supervised row.
        """
        if row.get("type") == SUPERVISED:
            return None
        moves = [each for each in row.get("messages", ()) if each.get("role") == "assistant" and each.get("weight", 1)]
        return next((key for key in self.keys for each in moves if each.get(key) is None), None)


@dataclass(frozen=True, slots=True)
class Method:
    """A training method. `loss` is a module of `training.losses`, loaded by name when the training starts; empty for a
    method that only vendors train with.

    `new_model` is the module with a `make(config)` that makes model and tokenizer; None for a method whose config is a
    `FromCheckpoint`. `presets` maps the name of a preset's source to its fields.
    """

    name: str
    title: str
    summary: str
    config: type[Config]
    loss: str
    new_model: str | None = None
    needs: frozenset[Need] = frozenset()
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)

    @property
    def goes_on_from_base(self) -> bool:
        """Whether a training starts from a checkpoint."""
        return issubclass(self.config, FromCheckpoint)

    @property
    def fields(self) -> Mapping[str, Mapping[str, Any]]:
        """The JSON Schema of each field."""
        return fields_of(self.config)

    @property
    def job_fields(self) -> Mapping[str, Mapping[str, Any]]:
        """The JSON Schema of each field that a training job may be given."""
        return {name: schema for name, schema in self.fields.items() if schema.get("given_by") != "job"}

    @property
    def mixes_supervised_rows(self) -> bool:
        """Whether it takes a second file, of supervised rows."""
        return SUPERVISED_DATA in self.config.model_fields

    @property
    def rows(self) -> RowSchema:
        """The rows that the method requires."""
        kind = COMPARISONS if Need.COMPARISONS in self.needs else CONVERSATIONS
        return RowSchema(kind, ("reward",) if Need.REWARDS in self.needs else ())

    def fault(self, given: Mapping[str, Any]) -> FieldFault | None:
        """What is wrong with a job's fields; None if they are valid.

        Files and folders, which are not yet known, count as given.
        """
        required = [name for name, field in self.config.model_fields.items() if field.is_required()]
        try:
            self.config.model_validate({**dict.fromkeys(required, "."), **given})
        except ValidationError as error:
            return first_fault(self.config, error)
        return None


@cache
def fields_of(config: type[BaseModel]) -> Mapping[str, Mapping[str, Any]]:
    """The JSON Schema of each field, cached: one page asks for every method's fields hundreds of times."""
    found: Mapping[str, Mapping[str, Any]] = config.model_json_schema()["properties"]
    return found


def needs(config: type[Config]) -> Mapping[str, Sequence[str]]:
    """For each field that needs another, the fields of which at least one must be given with it."""
    extras = {name: field.json_schema_extra for name, field in config.model_fields.items()}
    return {name: extra["needs"] for name, extra in extras.items() if isinstance(extra, dict) and "needs" in extra}  # type: ignore[misc]


def first_fault(config: type[BaseModel], error: ValidationError) -> FieldFault:
    """The first fault of a config."""
    fault = error.errors()[0]
    name = str(fault["loc"][0]) if fault["loc"] else ""
    if fault["type"] == "extra_forbidden":
        return FieldFault(name, expected=f"one of {', '.join(config.model_fields)}", got="something else")
    if fault["type"] == "missing":
        return FieldFault(name, expected="a value", got="none")
    if fault["type"] == "value_error" and isinstance(own := fault["ctx"]["error"], FieldFault):
        return own
    expected = fault["msg"].removeprefix("Input should be ")
    return FieldFault(name, expected=expected, got=shown(fault["input"]))
