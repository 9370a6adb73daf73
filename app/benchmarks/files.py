"""The location of a benchmark's files."""

from datetime import UTC
from pathlib import Path

from app.models import BenchmarkJob

FOLDER = "benchmarks"  # in PARLOR_HOME


def folder_of(home: Path, row: BenchmarkJob) -> Path:
    """The folder of a job's files. Its name includes the date, as a new database may reuse the job's number."""
    return home / FOLDER / f"{row.id}-{row.created_at.astimezone(UTC):%Y%m%dT%H%M%S%f}"
