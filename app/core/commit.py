"""The commit of the running program, as far as git can tell."""

import subprocess
from functools import lru_cache
from typing import NamedTuple

from app.core.config import ROOT

_SECONDS = 10


class Commit(NamedTuple):
    """A commit, and whether files of the checkout differ from it."""

    sha: str
    changed: bool


@lru_cache(maxsize=1)
def program_commit() -> Commit | None:
    """The commit of the checkout; None outside of one, and without git."""
    sha = _git("rev-parse", "HEAD")
    if sha is None or _git("rev-parse", "--show-toplevel") != str(ROOT):
        return None
    return Commit(sha, bool(_git("status", "--porcelain", "--untracked-files=no")))


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - our own arguments
            ["git", *arguments],  # noqa: S607 - wherever it is
            cwd=ROOT, capture_output=True, timeout=_SECONDS, check=True, encoding="utf-8",
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
