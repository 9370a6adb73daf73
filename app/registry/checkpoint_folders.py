"""Which folders may hold a checkpoint: none of Parlor's own, as all that is in one belongs to the model."""

from pathlib import Path

from app.core.errors import Invalid, Phrase
from app.core.files import ARCHIVES, FETCHED, REMOVED
from app.players.local.engines import MERGED

_OF_JOBS = ("checkpoints", "training", "benchmarks")  # folders where checkpoints may be
_OWN = (ARCHIVES, FETCHED, REMOVED, MERGED, "broker", "datasets", "logs", "run", "uploads")


def is_for_checkpoints(home: Path, folder: Path) -> bool:
    """Whether a folder, with symbolic links followed, neither contains nor lies in one of Parlor's own."""
    own = (home / name for name in _OWN)
    return not any((home / name).is_relative_to(folder) for name in _OF_JOBS) and not any(
        each.is_relative_to(folder) or folder.is_relative_to(each) for each in own
    )


def check_checkpoint_folder(home: Path, folder: Path) -> None:
    """Raises Invalid for a folder that is Parlor's own, or contains one."""
    if not is_for_checkpoints(home, folder.resolve()):
        raise Invalid(
            "path",
            expected=Phrase("a folder of one checkpoint"),
            got=Phrase("%(folder)s, where Parlor keeps files of its own", folder=folder),
            remedy=Phrase("move the checkpoint into a folder of its own"),
        )
