"""Pull a model or a dataset from the hub or a folder. A checkpoint is inspected with torch, in a process of its own,
before it is registered. For pages, the whole pull runs in a process of its own (`pulling.py`).

Every file is compared with the manifest's hash. Nothing is registered before everything is fetched and checked; what
was fetched from the hub before a failure is not fetched again.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.config import Settings
from app.core.errors import Conflict, Invalid, NotFound, Phrase, Verbatim
from app.core.extensions import Transact
from app.core.files import FETCHED, private_folder, temporary_beside
from app.datasets import row_import
from app.datasets.importers.spec import DatasetImportSpec
from app.finetuning.config import check_model_name
from app.finetuning.files import CHECKPOINTS
from app.games import GAMES
from app.models import Dataset, LanguageModel
from app.players.local.options import read_options, resolve
from app.players.prompts import USUAL_STYLE, styles
from app.publication.bundle import (
    CARD,
    DATASET,
    MANIFEST,
    MODEL,
    SAFE,
    SAMPLING,
    BundleManifest,
    check_files,
    read_manifest,
)
from app.publication.card import ROWS
from app.publication.hub import Hub
from app.publication.places import PublicationPlace
from app.publication.spec import DatasetPullSpec, ModelPullSpec
from app.registry import add_local_model
from app.registry.adapters import find_base
from training.hashes import PROVENANCE, checkpoint_hash

_CHECKS = Phrase("Checking and registering the files.")
_ROOM = 2  # as many bytes as are fetched, and as many again for the checkpoint

Look = Callable[[Path], Mapping[str, Any]]  # a separate process's findings about a checkpoint
Tell = Callable[[Phrase], None]


@dataclass(frozen=True, slots=True)
class _Pulled:
    """The fetched files: a folder, its manifest (None if it was not made here), and where it is from."""

    folder: Path
    manifest: BundleManifest | None
    source: str
    names: Sequence[str]


def pull_model(
    transact: Transact,
    settings: Settings,
    spec: ModelPullSpec,
    *,
    look: Look,
    tell: Tell,
) -> int:
    """Register a published checkpoint; return the model's number. Raises AppError.

    The name is checked before anything is fetched.
    """
    name = spec.name
    if name:
        transact(lambda session: _check_new(session, settings.home, name))
    with _fetched(settings, spec.source, MODEL, tell) as found:
        tell(_CHECKS)
        about = {} if found.manifest is None else found.manifest.about
        called = name or (
            found.manifest.name if found.manifest else spec.source.repository.rpartition("/")[2] or "model"
        )
        transact(lambda session: _check_new(session, settings.home, called))
        output = settings.home / _checkpoint_path(called)
        private_folder(output.parent)
        with _reporting_full_disk(found.source), temporary_beside(output) as draft:
            _assemble(found, draft)
            adapter_of = about.get("adapter_of")
            if adapter_of is not None:
                transact(lambda session: _join_base(session, settings.home, draft, str(adapter_of)))
            wanted = about.get("checkpoint_sha256")
            if wanted is not None and (got := checkpoint_hash(draft)) != wanted:
                expected = Phrase("a checkpoint with the hash %(sha256)s", sha256=Verbatim(wanted))
                raise Invalid(None, expected=expected, got=got, subject=found.source)
            facts = look(draft)
        try:
            return transact(lambda session: _register(session, called, facts, about, [*spec.games], found.source))
        except BaseException:  # it may come just after the commit, for example when the process ends
            if not transact(lambda session: _is_registered(session, called)):
                shutil.rmtree(output, ignore_errors=True)
            raise


def pull_dataset(
    transact: Transact,
    database: Callable[[], Any],
    settings: Settings,
    spec: DatasetPullSpec,
    *,
    tell: Tell,
) -> int:
    """Register published rows; return the dataset's number. Raises AppError."""
    with _fetched(settings, spec.source, DATASET, tell) as found:
        tell(_CHECKS)
        if found.manifest is None or ROWS not in found.manifest.files:
            raise NotFound("manifest", expected=Phrase("a dataset that was pushed from Parlor"), got=Phrase("none"))
        imported = DatasetImportSpec(file=found.source, format="parlor", name=spec.name or found.manifest.name)
        with (found.folder / ROWS).open("rb") as file, database() as session:
            wanted = row_import.RowImport(file, imported)
            read = row_import.read_import(session, settings.home, wanted)
        return row_import.register_read(transact, wanted, read)


# ---- Fetching ------------------------------------------------------------------------


@contextmanager
def _fetched(settings: Settings, place: PublicationPlace, kind: str, tell: Tell) -> Iterator[_Pulled]:
    """The files of a place, compared with its manifest. Those from the hub are deleted on success."""
    if place.folder is not None:
        yield _from_folder(place.folder, kind, tell)
        return
    hub = Hub(settings.HF_ENDPOINT, settings.HF_TOKEN, kind)
    commit, names, size = hub.commit_of(place)
    key = hashlib.sha256(f"{settings.HF_ENDPOINT} {kind} {place.repository} {commit}".encode()).hexdigest()[:32]
    folder = settings.home / FETCHED / key
    source = f"{place.repository}@{commit[:12]}"
    with _reporting_full_disk(source):
        private_folder(folder.parent)
        private_folder(folder)
        os.utime(folder)  # files already there are not fetched again, and its age would have it deleted
        raw = hub.manifest(place, commit, folder)
        manifest = None if raw is None else read_manifest(raw, source, kind)
        wanted = [*manifest.files] if manifest else [each for each in names if _is_of_checkpoint(each)]
        if manifest is not None:
            size = sum(each.size for each in manifest.files.values())
        free = shutil.disk_usage(folder.parent).free
        if free < size * _ROOM:
            expected = Phrase("room for %(size)s bytes, twice", size=size)
            raise Conflict(None, expected=expected, got=free, remedy=Phrase("make room"), subject=source)
        tell(Phrase("Fetching %(files)s files with %(size)s bytes of %(source)s.",
                    files=len(wanted), size=size, source=Verbatim(source)))  # fmt: skip
        hub.fetch(place, commit, folder, wanted)
    if manifest is not None:
        check_files(folder, manifest, source)
    yield _Pulled(folder, manifest, source, wanted)
    shutil.rmtree(folder, ignore_errors=True)


def _from_folder(folder: Path, kind: str, tell: Tell) -> _Pulled:
    path = folder / MANIFEST
    if not path.is_file():
        expected = Phrase("a folder with %(name)s, as a push writes it", name=Verbatim(MANIFEST))
        remedy = Phrase("`flask model add-local` takes any checkpoint") if kind == MODEL else None
        raise NotFound("place", expected=expected, got=Verbatim(folder), remedy=remedy)
    manifest = read_manifest(path.read_bytes(), str(folder), kind)
    check_files(folder, manifest, str(folder))
    size = sum(each.size for each in manifest.files.values())
    tell(Phrase("Taking %(files)s files with %(size)s bytes from %(source)s.",
                files=len(manifest.files), size=size, source=Verbatim(folder)))  # fmt: skip
    return _Pulled(folder, manifest, folder.name, [*manifest.files])


def _is_of_checkpoint(name: str) -> bool:
    """Whether a file of a repository without a manifest belongs to a checkpoint and cannot run code."""
    path = PurePosixPath(name)
    return path.suffix in SAFE and len(path.parts) == 1 and name not in (CARD, PROVENANCE)


# ---- A model -------------------------------------------------------------------------


def _check_new(session: Session, home: Path, name: str) -> None:
    """Raises Invalid and Conflict for a name that a pulled model and its folder cannot have.

    A manifest is somebody else's: its name could lead out of the folder of checkpoints.
    """
    check_model_name(name)
    if session.scalar(select(LanguageModel.id).where(LanguageModel.name == name)) is not None:
        expected = Phrase("a name that no model has")
        raise Conflict("name", expected=expected, got=name, remedy=Phrase("give another name"))
    output = home / _checkpoint_path(name)
    if output.exists():
        expected, remedy = Phrase("one without a checkpoint"), Phrase("remove it, or give another name")
        raise Conflict("name", expected=expected, got=Verbatim(output), remedy=remedy)


def _assemble(found: _Pulled, draft: Path) -> None:
    """Assemble the checkpoint with the original names of its files, without the card."""
    for name in found.names:
        called = name if found.manifest is None else found.manifest.files[name].name
        if name == CARD:
            continue
        path = draft / called
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(found.folder / name, path)


def _join_base(session: Session, home: Path, draft: Path, sha256: str) -> None:
    """Write the path of the base into the adapter's provenance. Raises NotFound if the base is not registered here."""
    base = find_base(session, sha256)
    if base is None:
        expected = Phrase("the base checkpoint of the adapters, with the hash %(sha256)s", sha256=sha256)
        remedy = Phrase("pull or add that model first")
        raise NotFound("base", expected=expected, got=Phrase("none in the registry"), remedy=remedy)
    folder = resolve(home, read_options(base.options).path)
    path = draft / PROVENANCE
    said = json.loads(path.read_text(encoding="utf-8"))
    said["adapter_of"] = {"path": os.path.relpath(folder.resolve(), draft.parent.resolve() / "x"), "sha256": sha256}
    path.write_text(json.dumps(said, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _register(
    session: Session,
    name: str,
    facts: Mapping[str, Any],
    about: Mapping[str, Any],
    games: Sequence[str],
    source: str,
) -> int:
    played = [*games] or [game for game in about.get("games", ()) if game in GAMES]
    style = about.get("prompt_style") or USUAL_STYLE
    if style not in styles(played):
        style = USUAL_STYLE
    sampling = {name: value for name, value in about.get("options", {}).items() if name in SAMPLING}
    options = {**sampling, "path": _checkpoint_path(name), "sha256": facts["sha256"]}
    row = add_local_model(session, name, None, played, options, prompt_style=style, adapter_of=facts.get("adapter_of"))
    row.notes = f"Pulled from {source}."
    session.flush()
    return row.id


def _is_registered(session: Session, name: str) -> bool:
    row = session.scalar(select(LanguageModel).where(LanguageModel.name == name))
    return row is not None and row.options.get("path") == _checkpoint_path(name)


def _checkpoint_path(name: str) -> str:
    """The path in PARLOR_HOME for the checkpoint of a model with this name."""
    return f"{CHECKPOINTS}/{name}"


# ---- Room ----------------------------------------------------------------------------


@contextmanager
def _reporting_full_disk(source: str) -> Iterator[None]:
    """Report in one line that the disk is full or cannot be written."""
    try:
        yield
    except OSError as error:
        got = Verbatim(error.strerror or type(error).__name__)
        expected, remedy = Phrase("room in PARLOR_HOME that can be written"), Phrase("make room and try again")
        raise Conflict(None, expected=expected, got=got, remedy=remedy, subject=source) from None


def described(row: LanguageModel | Dataset) -> dict[str, Any]:
    """A pulled model or dataset, as JSON."""
    if isinstance(row, LanguageModel):
        return {"model_id": row.id, "name": row.name, "sha256": row.options["sha256"], "notes": row.notes}
    return {"dataset_id": row.id, "name": row.name, "version": row.version, "rows": row.rows, "sha256": row.sha256}
