"""A dataset as JSON, for commands and the API."""

from pathlib import Path
from typing import Any

from app.datasets import store
from app.models import Dataset


def dataset_json(row: Dataset, home: Path) -> dict[str, Any]:
    """A dataset as JSON."""
    return {
        "dataset_id": row.id,
        "name": row.name,
        "version": row.version,
        "kind": row.kind,
        "rows": row.rows,
        "matches": row.figures["matches"],
        "words": row.words,
        "own_words": row.own_words,
        "size": row.size,
        "sha256": row.sha256,
        "file": str(home / store.FOLDER / f"{row.sha256}.jsonl"),
        "created_at": row.created_at.isoformat(),
        "unusable_since": row.unusable_at and row.unusable_at.isoformat(),
        "spec": row.spec,
        "figures": row.figures,
    }
