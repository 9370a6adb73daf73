"""The target of a push or the source of a pull: a repository of the hub, or a folder."""

import re
from pathlib import Path
from typing import NamedTuple

from app.core.errors import Invalid, Phrase

MAIN = "main"
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_REVISION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,98}[A-Za-z0-9_-])?")
_FOLDER = ("/", "./", "../", "~")  # the beginnings of folders; everything else is a repository


class PublicationPlace(NamedTuple):
    """A folder, or a repository with its revision (a branch, a tag or a commit)."""

    repository: str = ""
    revision: str = MAIN
    folder: Path | None = None

    def __str__(self) -> str:
        at = "" if self.revision == MAIN else f"@{self.revision}"
        return f"{self.repository}{at}" if self.folder is None else str(self.folder)


def read_place(raw: str, revision: str | None = None, field: str = "to") -> PublicationPlace:
    """The place that a text names. Raises Invalid."""
    if raw.startswith(_FOLDER) or raw in (".", ".."):
        if revision is not None:
            raise Invalid("revision", expected=Phrase("none with a folder"), got=revision)
        try:
            return PublicationPlace(folder=Path(raw).expanduser().absolute())
        except RuntimeError:  # ~NAME without such a user
            raise Invalid(field, expected=Phrase("a folder of a user of this machine"), got=raw) from None
    if not _REPOSITORY.fullmatch(raw) or ".." in raw or "--" in raw or raw.endswith((".git", ".", "-")):
        raise Invalid(
            field,
            expected=Phrase("OWNER/NAME of a repository, or a folder that begins with / or ./"),
            got=raw,
        )
    if revision and (not _REVISION.fullmatch(revision) or ".." in revision or "//" in revision):
        expected = Phrase("a branch, a tag or a commit, in at most 100 characters without spaces")
        raise Invalid("revision", expected=expected, got=revision)
    return PublicationPlace(raw, revision or MAIN)
