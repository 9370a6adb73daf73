"""The options of a push (what is published, where, and under which licence) and of a pull."""

from typing import ClassVar, Literal, Self

from pydantic import field_validator, model_validator

from app.core.errors import Invalid, Phrase, Verbatim
from app.core.validation import choice_of
from app.games import GAMES
from app.jobs.spec import JobSpec, spec_field
from app.publication.licences import OTHER, Licence
from app.publication.places import PublicationPlace, read_place

PRIVATE, PUBLIC = "private", "public"


class PublicationSpec(JobSpec):
    """A local model or a dataset, a place, and a licence."""

    version: ClassVar[int] = 1

    model: str | None = spec_field(
        "Model",
        "A local model: its checkpoint is published with its card.",
        None,
        unset="none: a dataset",
        metavar="MODEL",
        widget="model",
        use="weights",
        heading="What is published",
    )
    dataset: str | None = spec_field(
        "Dataset",
        "Its rows are published with its card.",
        None,
        unset="none: a model",
        metavar="DATASET",
        widget="dataset",
    )
    to: str = spec_field(
        "To",
        "OWNER/NAME of a hub repository, created if it does not exist. On the command line also the path of a folder.",
        metavar="PLACE",
        max_length=400,
        heading="Where to",
    )
    revision: str | None = spec_field(
        "Branch", "In the repository; created if it does not exist.", None, unset="main", metavar="BRANCH"
    )
    visibility: Literal["private", "public"] = spec_field(
        "New repository", "Who may see a newly created repository. An existing one stays as it is.", PRIVATE,
        labels={PRIVATE: "private: its owners alone", PUBLIC: "public: everybody"}, metavar="private|public",
    )  # fmt: skip
    licence: Licence = spec_field(
        "Licence",
        "Under which it may be used. You have to choose it; the card says which licences it has inherited.",
        metavar="LICENCE",
        labels={"": "none chosen yet"},
    )
    licence_link: str | None = spec_field(
        "Text of the licence", "Its address, where the licence is other.", None, unset="none", metavar="URL",
        max_length=400,
    )  # fmt: skip

    @property
    def place(self) -> PublicationPlace:
        """Where it is pushed to. Raises Invalid."""
        return read_place(self.to, self.revision)

    @model_validator(mode="after")
    def _fields_fit(self) -> Self:
        if (self.model is None) == (self.dataset is None):
            got = Phrase("none") if self.model is None else Phrase("both")
            raise Invalid("model", expected=Phrase("a model or a dataset"), got=got)
        if (self.licence == OTHER) != (self.licence_link is not None):
            expected = Phrase("the address of its text if, and only if, the licence is other")
            raise Invalid("licence_link", expected=expected, got=Verbatim(self.licence_link or "none"))
        _ = self.place
        return self


class DatasetPullSpec(JobSpec):
    """The place of a published dataset, and its name here."""

    place: str = spec_field(
        "Repository or folder",
        "OWNER/NAME of a repository on the hub, or a folder that was pushed to; its path begins with / or ./.",
        metavar="REPOSITORY|FOLDER",
        argument=True,
        max_length=400,
    )
    revision: str | None = spec_field(
        "Revision", "A branch, a tag or a commit of a repository.", None, unset="main", metavar="REVISION",
        max_length=120,
    )  # fmt: skip
    name: str | None = spec_field(
        "Name", "What it is called here.", None, unset="its name at the source", metavar="NAME", max_length=80
    )

    @property
    def source(self) -> PublicationPlace:
        """Where it is pulled from. Raises Invalid."""
        return read_place(self.place, self.revision, "place")

    @model_validator(mode="after")
    def _place_can_be_read(self) -> Self:
        _ = self.source
        return self


class ModelPullSpec(DatasetPullSpec):
    """The place of a published checkpoint, its name here, and what it plays."""

    games: tuple[str, ...] = spec_field(
        "Plays",
        "The games that it is to play, if its manifest names none.",
        (),
        unset="the games that its manifest names",
        option="game",
        metavar="GAME",
        widget="several",
        of="games",
    )

    @field_validator("games")
    @classmethod
    def _games_are_known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            choice_of(GAMES, name, "games")
        return names
