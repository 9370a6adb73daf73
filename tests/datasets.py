"""Datasets for tests: cut, kept, and read again."""

import io
import json
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, select

from app.core.extensions import reading, transact
from app.datasets import build, register, row_import, store
from app.datasets import rounds as imported
from app.datasets.importers.spec import DatasetImportSpec
from app.datasets.records import check
from app.datasets.spec import read_spec
from app.games.base import Event
from app.matches.stored import load
from app.models import Dataset, MatchRow


def cut(engine: Engine, home: Path, name: str = "mine", **spec: Any) -> Dataset:
    """Cut a dataset as the command line does."""
    with reading(engine) as session:
        found = build.prepare(session, read_spec(spec))
        draft = store.write(home, found, build.training_rows(session, found))
    number = register.save(transact(engine), draft, name)
    with reading(engine) as session:
        row = store.get_dataset(session, number)
        session.refresh(row, ["figures"])
        session.expunge(row)
    return row


def import_rows(engine: Engine, home: Path, row_format: str, *rows: Any, name: str = "rows") -> int:
    """Import rows as the command line does; the dataset's number."""
    file = io.BytesIO("\n".join(map(json.dumps, rows)).encode())
    with reading(engine) as session:
        wanted = row_import.RowImport(file, DatasetImportSpec(file=f"{name}.jsonl", format=row_format))
        found = row_import.read_import(session, home, wanted)
    return row_import.register_read(transact(engine), wanted, found)


def take_in(engine: Engine, wanted: imported.Import, player: str = "gpt-4") -> int:
    """Import games as the command line does; the round's number."""
    return imported.take_in(transact(engine), wanted, wanted.source, check(wanted.source), player, 15)


def rows_of(home: Path, dataset: Dataset) -> list[dict[str, Any]]:
    """Its rows, as a trainer reads them."""
    return [json.loads(line) for line in b"".join(store.content(home, dataset)).decode().split("\n")[:-1]]


def seat_of(row: dict[str, Any]) -> tuple[str, int]:
    """The match and the seat that a row came from."""
    match, _, seat = row["group"].rpartition(":")
    return match, int(seat)


def said(row: dict[str, Any]) -> list[str]:
    """What is to be learned."""
    return [each["content"] for each in row["messages"] if each["role"] == "assistant"]


def own_moves(engine: Engine, row: dict[str, Any]) -> list[str]:
    """The accepted moves of the seat that a row came from, by the match's log."""
    match, seat = seat_of(row)
    with reading(engine) as session:
        log = load(session, match).log
    return [each.event.text for each in log if isinstance(each.event, Event) and each.event.seat == seat]


def matches_of(engine: Engine, round_id: int) -> dict[str, MatchRow]:
    with reading(engine) as session:
        return {row.id: row for row in session.scalars(select(MatchRow).where(MatchRow.round_id == round_id))}
