"""Licences by their names at the hub, and the warnings that inherited licences give for the chosen one. Pure.

Source: https://huggingface.co/docs/hub/repositories-licenses
"""

from collections.abc import Sequence
from typing import Literal, get_args

from app.core.errors import Invalid, Phrase, either

OTHER = "other"  # whatever licence the experimenter has entered beside it
Licence = Literal[
    "apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "cc0-1.0", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0",
    "cc-by-nd-4.0", "cc-by-nc-sa-4.0", "cc-by-nc-nd-4.0", "odc-by", "odbl", "cdla-permissive-2.0", "gpl-3.0",
    "lgpl-3.0", "agpl-3.0", "openrail", "bigscience-openrail-m", "llama2", "llama3", "llama3.1",
    "llama3.2", "llama3.3", "gemma", "other",
]  # fmt: skip
LICENCES: tuple[str, ...] = get_args(Licence)
_FREE = ("apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "cc0-1.0", "cc-by-4.0", "odc-by", "cdla-permissive-2.0")


def check_licence(licence: str) -> str:
    """The licence, if it is one of these. Raises Invalid."""
    if licence not in LICENCES:
        raise Invalid("licence", expected=either(LICENCES), got=licence)
    return licence


def warnings(chosen: str, inherited: Sequence[tuple[str, str]]) -> list[Phrase]:
    """A warning for each inherited name and licence that does not allow passing it on under any other licence."""
    return [
        Phrase(
            "%(name)s is under %(licence)s; check whether that allows passing it on under %(chosen)s",
            name=name, licence=licence, chosen=chosen,
        )
        for name, licence in inherited
        if licence not in _FREE and licence != chosen
    ]  # fmt: skip
