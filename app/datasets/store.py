"""Storage of datasets: each in a file named by the hash of its bytes, and a row that describes it.

A file is written beside its place and renamed when complete; a file in its place is always complete and never changes.
Until its row exists a mark lies beside it, which tells the remains of a killed process from files in use.
"""

import contextlib
import hashlib
import json
import os
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import Conflict, Invalid, NotFound, Phrase, Verbatim
from app.core.files import private_file, private_folder
from app.datasets.build import DatasetBuild, TrainingRow, refuse_nothing
from app.datasets.reward_tally import DatasetTally
from app.datasets.spec import DatasetSpec
from app.games.base import JSON
from app.matches.filter import in_words
from app.models import Dataset, DatasetRow
from app.models.types import list_holds
from training.methods.base import CONVERSATIONS

FOLDER = "datasets"  # in PARLOR_HOME
_PIECE = 1 << 20  # bytes
_UNREGISTERED = ".unregistered"
_MARK, _DRAFT = re.compile(rf"\.([0-9a-f]{{64}}){re.escape(_UNREGISTERED)}"), re.compile(r"\.[0-9a-f]{16}\.part")
LATEST_FIRST = select(Dataset).where(Dataset.complete).order_by(Dataset.id.desc())


@dataclass(frozen=True, slots=True)
class UnregisteredDataset:
    """A dataset whose file exists, but not yet its row in the database.

    `origins` are the matches of its rows, in the order of the file, each with the seats of its rows; None for rows
    without a match here.
    """

    path: Path
    spec: JSON
    sha256: str
    size: int
    rows: int
    words: int
    own_words: int
    figures: JSON
    origins: Sequence[tuple[str | None, Sequence[int | None]]]
    kind: str = CONVERSATIONS


# ---- Writing -----------------------------------------------------------------


def write(home: Path, reading: DatasetBuild, found: Iterable[list[TrainingRow]]) -> UnregisteredDataset:
    """Write the rows of `build.training_rows` to a file of its own.

    Raises Invalid if nothing was kept, which leaves no file, and if the file cannot be written.
    """
    tally = _Tally()

    def lines() -> Iterator[bytes]:
        for cuts in found:
            yield from (cut.line for cut in cuts)
            tally.add(cuts)
        refuse_nothing(reading)

    path = write_file(home, lines(), tally)
    spec = {**reading.spec.to_json(), "prompts": dict(reading.prompts)}
    if reading.spec.has_rewards:
        spec["weights"] = tally.rewards.weights
    return unregistered(path, tally, spec, tally.figures(reading), tally.origins)


def unregistered(
    path: Path,
    tally: DatasetTally,
    spec: JSON,
    figures: JSON,
    origins: Sequence[tuple[str | None, Sequence[int | None]]],
    kind: str = CONVERSATIONS,
) -> UnregisteredDataset:
    """The dataset in a file whose rows were counted."""
    return UnregisteredDataset(
        path, spec, tally.sha256, tally.size, tally.rows, tally.words, tally.own_words, figures, origins, kind
    )


def write_file(home: Path, lines: Iterable[bytes], tally: DatasetTally) -> Path:
    """Write a new file of rows, which `tally` has counted when all lines are taken.

    Raises Invalid if it cannot be written, and whatever `lines` raise, which leaves no file.
    """
    folder = home / FOLDER
    draft = folder / f".{secrets.token_hex(8)}.part"
    try:
        private_folder(folder)
        with draft.open("xb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        path = folder / f"{tally.sha256}.jsonl"
        private_file(mark_of(path))
        if path.exists():
            draft.unlink()
        else:
            draft.chmod(0o400)
            draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise Invalid(
            None,
            expected=Phrase("a folder that can be written to"),
            got=Verbatim(error.strerror),
            remedy=Phrase("nothing was left there"),
            subject=folder,
        ) from None
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return path


def mark_of(path: Path) -> Path:
    """The empty file beside a dataset's file, from before the file gets its name until a row refers to it."""
    return path.with_name(f".{path.stem}{_UNREGISTERED}")


def left_files(home: Path, before: datetime) -> tuple[list[Path], list[Path]]:
    """Remains of killed builds that have not changed since `before`: files whose marks still exist, whether or not a
    row refers to them by now, and drafts. Only files with names given by Parlor are included.
    """
    folder = home / FOLDER
    files, drafts = list[Path](), list[Path]()
    for path in sorted(folder.glob(".*")):
        mark = _MARK.fullmatch(path.name)
        with contextlib.suppress(FileNotFoundError):
            if (mark or _DRAFT.fullmatch(path.name)) and path.stat().st_mtime < before.timestamp():
                (files if mark else drafts).append(folder / f"{mark[1]}.jsonl" if mark else path)
    return files, drafts


class _Tally(DatasetTally):
    """Counts kept while a dataset's rows are built."""

    def __init__(self) -> None:
        super().__init__()
        self.origins: list[tuple[str | None, Sequence[int | None]]] = []
        self._kept: Counter[float] = Counter()
        self._rounds: Counter[int | None] = Counter()

    def add(self, cuts: Sequence[TrainingRow]) -> None:
        """Count the rows of a match."""
        if cuts:
            self.origins.append((cuts[0].match_id, tuple(cut.seat for cut in cuts)))
        for cut in cuts:
            self.add_row(cut.line, cut.words, cut.own_words, cut.own_moves)
            self._rounds[cut.round_id] += 1
            for reward in cut.rewards:
                self.rewards.add(cut.game, cut.role, reward, cut.weight)
            if cut.rewards and cut.policy is not None:
                self.rewards.add_policy(cut.policy)
        for _, score in {(cut.seat, cut.score) for cut in cuts}:
            self._kept[score] += 1

    def figures(self, reading: DatasetBuild) -> JSON:
        """Counts as lists, because JSON names cannot be numbers."""
        rewards = {"rewards": self.rewards.figures()} if reading.spec.has_rewards else {}
        permuted = {"permuted": reading.left["permuted"]} if reading.spec.permutations else {}
        return {
            "matches": len(self.origins),
            "seats": reading.seats.total(),
            "left": {step: reading.left[step] for step in ("matches", "filter", "source", "model", "consent")},
            "means": [[*pool, mean] for pool, mean in sorted(reading.means.items(), key=str)],
            "scores": [[score, number, self._kept[score]] for score, number in sorted(reading.seats.items())],
            **self.lengths(),
            "rounds": [[number, rows] for number, rows in sorted(self._rounds.items(), key=lambda each: each[0] or 0)],
            **permuted,
            **rewards,
        }


def default_name(spec: DatasetSpec) -> str:
    """The default name of a dataset."""
    kept = f"{spec.filter} {spec.rewards}" if spec.has_rewards else spec.filter
    if not spec.rounds:
        return f"{spec.matches.game if spec.of_game_alone else in_words(spec.matches)} {kept}"[-80:].lstrip(" ,")
    numbers = ", ".join(map(str, spec.rounds))
    return f"round{'s' if len(spec.rounds) > 1 else ''} {numbers} {kept}"[-80:].lstrip(" ,")


# ---- Reading -----------------------------------------------------------------


def list_datasets(session: Session) -> Sequence[Dataset]:
    """All datasets that may be used for training, the latest first. Their figures are loaded on access."""
    return session.scalars(LATEST_FIRST.where(Dataset.unusable_at.is_(None), Dataset.removed_at.is_(None))).all()


def get_dataset(session: Session, dataset_id: int, field: str = "dataset") -> Dataset:
    """The dataset with this number. Raises NotFound, naming the field."""
    row = session.get(Dataset, dataset_id) if 0 < dataset_id < 2**31 else None
    if row is None or not row.complete:
        raise NotFound(
            field,
            expected=Phrase("the number of one that exists"),
            got=dataset_id,
            remedy=Phrase("`flask dataset list` shows them"),
        )
    return row


def find_dataset(session: Session, called: str, field: str = "dataset") -> Dataset:
    """A dataset by its number, its name (the latest version) or name@version. Raises NotFound, naming the field."""
    if called.isascii() and called.isdecimal() and len(called) < 11:
        return get_dataset(session, int(called), field)
    name, mark, version = called.rpartition("@")
    named = select(Dataset).where(Dataset.complete)
    row = session.scalar(named.where(Dataset.name == called).order_by(Dataset.version.desc()).limit(1))
    if row is None and mark and version.isascii() and version.isdecimal() and len(version) < 11:
        row = session.scalar(named.where(Dataset.name == name, Dataset.version == int(version)))
    if row is None:
        raise NotFound(
            field,
            expected=Phrase("the number, name or name@version of one that exists"),
            got=called,
            remedy=Phrase("`flask dataset list` shows them"),
        )
    return row


def datasets_of_round(session: Session, round_id: int) -> Sequence[Dataset]:
    """The datasets built from a round, possibly among others, the latest first."""
    return session.scalars(LATEST_FIRST.where(list_holds(Dataset.spec["rounds"], round_id))).all()


def datasets_of_match(session: Session, match_id: str) -> list[tuple[Dataset, int]]:
    """The datasets with rows of a match, the latest first, each with the seat that they came from."""
    rows = (
        select(Dataset, DatasetRow.seat)
        .join(DatasetRow, DatasetRow.dataset_id == Dataset.id)
        .where(DatasetRow.match_id == match_id, Dataset.complete)
        .distinct()
        .order_by(Dataset.id.desc(), DatasetRow.seat)
    )
    return [(row, seat) for row, seat in session.execute(rows) if seat is not None]


def check_usable(row: Dataset, field: str = "dataset") -> None:
    """Raises Conflict, naming the field, for a dataset that holds withdrawn data, or that was removed."""
    if row.unusable_at is not None:
        raise Conflict(
            field,
            expected=Phrase("one that may be trained on"),
            got=Phrase("one with data that a person withdrew on %(day)s", day=Verbatim(f"{row.unusable_at:%Y-%m-%d}")),
            remedy=None
            if "imported" in row.spec
            else Phrase("`flask dataset rebuild %(number)s` builds it without that", number=row.id),
            subject=Phrase("dataset %(number)s", number=row.id),
        )
    if row.removed_at is not None:
        raise Conflict(
            field,
            expected=Phrase("one whose file exists"),
            got=Phrase("one that was removed on %(day)s", day=f"{row.removed_at:%Y-%m-%d}"),
            remedy=Phrase("`flask storage removed` says how to put it back"),
            subject=Phrase("dataset %(number)s", number=row.id),
        )


def path_of(home: Path, row: Dataset, field: str = "dataset") -> Path:
    """The path of a dataset's file. Raises NotFound, naming the field, if it is missing, and Conflict for an unusable
    dataset.
    """
    check_usable(row, field)
    path = home / FOLDER / f"{row.sha256}.jsonl"
    if not path.is_file():
        raise NotFound(
            field,
            expected=Phrase("its file %(path)s", path=path),
            got=Phrase("none"),
            remedy=Phrase("build it again from its spec"),
            subject=Phrase("dataset %(number)s", number=row.id),
        )
    return path


def can_be_asked_for(row: Dataset) -> bool:
    """Whether a dataset was built from matches as a form or a command requests it, and not by a job."""
    return "filter" in row.spec and not row.spec.get("models")


def first_row(home: Path, row: Dataset) -> dict[str, Any]:
    """The first row of a dataset. Raises NotFound if its file is missing."""
    with path_of(home, row).open("rb") as file:
        found: dict[str, Any] = json.loads(file.readline())
    return found


def pieces_of(path: Path) -> Iterator[bytes]:
    """The bytes of a file in pieces."""
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def content(home: Path, row: Dataset) -> Iterator[bytes]:
    """The bytes of a dataset in pieces. Raises Invalid at their end when they are not those that were written."""
    seen = hashlib.sha256()
    for piece in pieces_of(path_of(home, row)):
        seen.update(piece)
        yield piece
    if seen.hexdigest() != row.sha256:
        raise Invalid(
            "dataset",
            expected=Phrase("bytes with the hash %(sha256)s", sha256=row.sha256),
            got=Verbatim(seen.hexdigest()),
            subject=Phrase("dataset %(number)s", number=row.id),
        )


def checked_path(session: Session, home: Path, dataset_id: int) -> str:
    """The file of a dataset, after a check of its hash. Raises NotFound and Invalid."""
    dataset = session.get_one(Dataset, dataset_id)
    for _ in content(home, dataset):
        pass
    return str(path_of(home, dataset))


def sample(home: Path, row: Dataset, number: int) -> list[bytes]:
    """Up to `number` lines of a dataset, spread evenly over its bytes, including the first one; fewer if it has
    fewer.
    """
    found: dict[int, bytes] = {}
    with path_of(home, row).open("rb") as file:
        for place in range(number):
            if place and row.rows > number:
                file.seek(row.size * place // number)
                file.readline()  # skip the rest of a line that began earlier
            start = file.tell()
            if line := file.readline():
                found[start] = line
    return [found[start] for start in sorted(found)]
