"""The specs of imports: rows, which become a dataset, and published games, which become a round."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from app.core.errors import Invalid, check_name, either
from app.datasets.importers.training_rows import FORMATS
from app.datasets.lm_folder import LIMIT
from app.jobs.spec import JobSpec, spec_field

_AS_CALLED = "What the models are called, if unnamed."


class DatasetImportSpec(JobSpec):
    """The import of a file of rows made elsewhere as a dataset."""

    file: str = spec_field(
        "File",
        "JSON lines or a JSON array, also compressed by gzip.",
        metavar="FILE",
        argument=True,
        widget="upload",
        accept=".json,.jsonl,.gz,application/json,application/jsonl,application/gzip",
        most="DATASET_UPLOAD_MB",
        heading="File and name",
    )
    name: str | None = spec_field(
        "Name", "An existing name makes its next version.", None, unset="that of the file", metavar="NAME"
    )
    skip_bad: bool = spec_field(
        "Leave out bad rows", "Otherwise a file with a bad row is refused, and the bad rows are listed.", False
    )
    format: str = spec_field(
        "Format",
        f"What each row holds: {', '.join(FORMATS)}.",
        metavar="NAME",
        widget="registry",
        registry="row formats",
        heading="What the rows are like",
    )

    @field_validator("name")
    @classmethod
    def _name_can_be_read(cls, name: str | None) -> str | None:
        if name is not None:
            check_name("name", name)
        return name

    @field_validator("format")
    @classmethod
    def _format_is_known(cls, name: str) -> str:
        if name not in FORMATS:
            raise Invalid("format", expected=either(FORMATS), got=name)
        return name


class _GameImportSpec(JobSpec):
    @field_validator("player", check_fields=False)
    @classmethod
    def _name_can_be_read(cls, name: str) -> str:
        check_name("player", name)
        return name


class SelfplayImportSpec(_GameImportSpec):
    """The import of published self-play on Deal or No Deal as a round."""

    folder: str = spec_field(
        "Folder", "It has json_logs, results, text_logs, p0_scores and p1_scores.", metavar="DIR", argument=True
    )
    objective: Literal["self", "coop", "comp"] | Annotated[float, Field(ge=-1, le=1)] = spec_field(
        "Objective", "What a partner’s point is worth to a player: a word, or λ from −1 to 1.", "self", metavar="O"
    )
    limit: int = spec_field("Limit", "The maximum number of moves in a game.", LIMIT, metavar="N", ge=1, le=1000)
    player: str = spec_field("Player", _AS_CALLED, "imported", metavar="NAME")


class EpisodesImportSpec(_GameImportSpec):
    """The import of published games of Adversarial Taboo, judged again, as a round."""

    file: str = spec_field(
        "File", "A JSON list of {history: [{role, content}], target_word, max_turns}.", metavar="FILE", argument=True
    )
    rule: Literal["strict", "released"] = spec_field(
        "Judge", "By which rule games are judged.", "strict", metavar="NAME"
    )
    player: str = spec_field("Player", _AS_CALLED, "imported", metavar="NAME")


class DialoguesImportSpec(JobSpec):
    """The import of published dialogues of people on Deal or No Deal, scored from the choices, as a round."""

    file: str = spec_field(
        "File", "One perspective of a dialogue a line, or rows of Hugging Face as JSON.", metavar="FILE", argument=True
    )
