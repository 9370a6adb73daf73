"""The base of every game's config: a pydantic model whose JSON Schema feeds forms, the command line and the API.

A field is described once, in its game's `Config`: type, bounds, default, title, one sentence of help and, in
`json_schema_extra`, what JSON Schema cannot express:

- `drawn`: True if each match draws its own; neither guests nor a campaign's shared config may fix it;
- `form`: False if forms leave it out, as they do with all drawn fields;
- `labels`: a form's label for each of the words that the field may be;
- `other`: for a field that may be a word or a number, the number's own field in a form: its `name`,
  `title`, `description`, `default`, and the `word` and the `label` of the choice that shows it.

A field with its own `BeforeValidator` reads raw values itself, and raises Invalid.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from app.core.errors import Invalid, Phrase, Verbatim, shown
from app.core.validation import fields_of, invalid_of, read_value

LENIENT = "lenient"  # the field of every config that says whether models' moves are read leniently


class GameConfig(BaseModel):
    """A validated config. `to_json` gives the mapping that `read` takes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    lenient: bool = Field(
        default=False,
        title="Lenient reading of moves",
        description="Whether a model’s move may have a code fence, quotes or a label around it.",
        json_schema_extra={"form": False},
    )

    @classmethod
    def read(cls, raw: Mapping[str, Any], game: str) -> Self:
        """The config from a mapping; numbers may be given as text. Raises Invalid, naming the field."""
        if unknown := sorted(set(raw) - set(cls.model_fields)):
            raise Invalid(
                "config",
                expected=Phrase("only %(names)s", names=", ".join(sorted(cls.model_fields, key=LENIENT.__eq__))),
                got=Verbatim(", ".join(map(shown, unknown))),
                subject=Phrase("config of %(game)s", game=game),
            )
        schemas = fields_of(cls)
        given = {
            name: value if _reads_itself(cls, name) else read_value(schemas[name], value, name)
            for name, value in raw.items()
        }
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            fault = error.errors()[0]
            raise invalid_of(str(fault["loc"][0]) if fault["loc"] else "config", fault) from None

    def to_json(self) -> dict[str, Any]:
        """The config as JSON; `lenient` is left out when off, as in configs from before lenient reading existed."""
        found = self.model_dump(mode="json", exclude_none=True)
        return found if self.lenient else {name: value for name, value in found.items() if name != LENIENT}


@lru_cache
def _reads_itself(config: type[GameConfig], name: str) -> bool:
    return any(isinstance(each, BeforeValidator) for each in config.model_fields[name].metadata)
