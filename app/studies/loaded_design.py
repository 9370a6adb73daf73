"""A study's file, read with the files that it names. Pure, so that it can be stored without YAML."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from app.studies.design import StudyDesign
from app.studies.warnings import Warned

FORMAT = 2  # of stored designs; in 1, an ending `inactive` that a design does not mention pays no base


class LoadedDesign(NamedTuple):
    """A design, its author's text of it, the text of each file, the pieces of its material, and warnings.

    `sha256` is the hash of what was written, in its order, and of the texts, so that a preregistration can name it.
    """

    design: StudyDesign
    written: Mapping[str, Any]
    texts: Mapping[str, str]
    material: Sequence[Any]
    warned: Sequence[Warned]
    sha256: str

    def to_json(self) -> dict[str, Any]:
        """Everything, in stored form. The design is one text because its order matters, and PostgreSQL sorts keys."""
        return {
            "format": FORMAT,
            "design": json.dumps(self.written, ensure_ascii=False),
            "texts": dict(self.texts),
            "material": list(self.material),
        }
