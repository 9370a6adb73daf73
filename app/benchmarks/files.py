"""Where the files of a benchmark are."""

from datetime import UTC
from pathlib import Path

from app.models import BenchmarkJob

FOLDER = "benchmarks"  # in PARLOR_HOME


def folder_of(home: Path, row: BenchmarkJob) -> Path:
    """Where a job's files are. In a new database another job may have had its number, so the name has its date too."""
    return home / FOLDER / f"{row.id}-{row.created_at.astimezone(UTC):%Y%m%dT%H%M%S%f}"
