"""Content that was removed to free disk space, by whom, and until when it can be restored."""

from datetime import datetime

from sqlalchemy import BigInteger, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.core.extensions import Model
from app.models.types import Json, UtcDateTime


class Removal(Model):
    """The removal of a model's, a dataset's or a job's content. The row of that object stays, marked by `removed_at`.

    No foreign keys: `kind` says which table `number` belongs to.
    """

    __tablename__ = "removal"
    __table_args__ = (UniqueConstraint("kind", "number", "in_force"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str] = mapped_column(String(20))  # model | dataset | the name of a kind of job
    number: Mapped[int]
    name: Mapped[str] = mapped_column(String(200))  # its name at that time
    by: Mapped[str] = mapped_column(String(80))  # the name of an experimenter, or "the command line"
    at: Mapped[datetime] = mapped_column(UtcDateTime)
    size: Mapped[int] = mapped_column(BigInteger)  # bytes of its files
    rows: Mapped[int] = mapped_column(BigInteger)  # in the database
    files: Mapped[list[str]] = mapped_column(Json)  # relative to PARLOR_HOME
    dataset_rows: Mapped[dict[str, int]] = mapped_column(Json)  # how many rows of each dataset came from its matches
    archive: Mapped[str | None] = mapped_column(String(200))  # its file's name; None once deleted
    sha256: Mapped[str] = mapped_column(String(64))  # of the archive
    has_files: Mapped[bool]  # whether the archive holds the files, and so is kept after `undo_until`
    moved: Mapped[bool] = mapped_column(default=False)  # whether all its files are where undoing takes them from
    undo_until: Mapped[datetime] = mapped_column(UtcDateTime)
    freed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)  # when the files kept for undoing were deleted
    restored_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    restored_by: Mapped[str | None] = mapped_column(String(80))
    # None once undone: a thing has at most one removal in force, but any number of earlier ones.
    in_force: Mapped[bool | None] = mapped_column(default=True)
