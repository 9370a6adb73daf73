"""The best rated response to each query, as conversations for supervised training."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.core.errors import Invalid, Phrase, Verbatim
from app.datasets import store
from app.datasets.import_tally import ImportTally
from app.datasets.importers.training_rows import FORMATS
from app.datasets.row_files import RawRow
from app.datasets.store import UnregisteredDataset, write_file
from app.models import Dataset
from training.methods.base import COMPARISONS


def best_responses(home: Path, row: Dataset) -> UnregisteredDataset:
    """A dataset file with the best response to each query of a dataset of comparisons, the first of several.

    Raises NotFound if its file is missing, and Invalid for a dataset of another kind.
    """
    if row.kind != COMPARISONS:
        expected = Phrase("a dataset of comparisons")
        raise Invalid("dataset", expected=expected, got=Verbatim(f"{row.reference}, which is of {row.kind}"))
    tally = ImportTally(FORMATS["parlor"])
    with store.path_of(home, row).open("rb") as rows:
        conversations = (
            RawRow(number, _best_response_conversation(json.loads(raw))) for number, raw in enumerate(rows, 1)
        )
        path = write_file(home, tally.lines(conversations), tally)
    found = tally.draft(path, {}, set())
    source = {"dataset_id": row.id, "dataset": row.reference}
    return replace(found, spec={"best_of": source, "rounds": [], "prompts": {}, "style": None})


def _best_response_conversation(row: dict[str, Any]) -> dict[str, Any]:
    best = max(range(len(row["scores"])), key=lambda place: row["scores"][place])
    said = [*({**each, "weight": 0} if each["role"] == "assistant" else each for each in row.get("history", ()))]
    asked, learnt = {"role": "user", "content": row["query"]}, {"role": "assistant", "content": row["responses"][best]}
    return {"messages": [*said, asked, learnt], **({"group": row["group"]} if "group" in row else {})}
