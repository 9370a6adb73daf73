"""The files of a push: those of a checkpoint or the rows of a dataset, a card, and a manifest with the hash of each.

A manifest maps the published name of each file to its name in the checkpoint, because the card is called README.md, a
name that a file of the checkpoint may have, too.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.core.errors import Invalid, Phrase, Verbatim
from app.datasets import store
from app.models import Dataset, LanguageModel
from app.players.local.options import PLAYED_WITH
from app.publication.card import ROWS, folder_of
from training.hashes import checkpoint_hash, file_hash

MANIFEST, CARD = "parlor-manifest.json", "README.md"
MODEL, DATASET = "model", "dataset"
_OURS = (MANIFEST, CARD, ".gitattributes")
_ORIGINAL = "original/"  # precedes a checkpoint's files that have the names of our own
# The formats of weights, tokenizers and settings; other files can contain code that runs when they are loaded.
SAFE = (".safetensors", ".json", ".jsonl", ".jinja", ".txt", ".model", ".tiktoken", ".md")
_PLAIN = ("LICENSE", "LICENCE", "NOTICE", "USE_POLICY")
SAMPLING = ("temperature", "top_k", "top_p", "max_tokens", "reasoning", "reasoning_room", "stop", *PLAYED_WITH)


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ManifestFile(_Part):
    """A file: its hash, its size in bytes, and its name in the checkpoint."""

    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    size: int = Field(ge=0)
    name: str


class BundleManifest(_Part):
    """The manifest of what is published. `about` has what is needed to register it again."""

    format: Literal[1] = 1
    kind: str = Field(pattern="^(model|dataset)$")
    name: str
    files: dict[str, ManifestFile]
    about: dict[str, Any]

    def to_bytes(self) -> bytes:
        """The content of the manifest's file."""
        return (json.dumps(self.model_dump(), indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()

    @property
    def sha256(self) -> str:
        """The hash of its file."""
        return hashlib.sha256(self.to_bytes()).hexdigest()


@dataclass(frozen=True, slots=True)
class Bundle:
    """Files to publish, by their published names: paths of files here, or bytes."""

    manifest: BundleManifest
    files: Mapping[str, Path | bytes]
    size: int  # total bytes


def bundle_of_model(home: Path, row: LanguageModel, card: str) -> Bundle:
    """The checkpoint of a local model, its card and a manifest.

    Raises NotFound if the checkpoint is gone, Invalid if it was changed or contains files that can run code.
    """
    folder = folder_of(home, row)
    if (found := checkpoint_hash(folder)) != row.options["sha256"]:
        expected = Phrase("a checkpoint with the hash %(sha256)s", sha256=row.options["sha256"])
        raise Invalid("model", expected=expected, got=Verbatim(found), subject=folder)
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    own = {path.relative_to(folder).as_posix(): path for path in paths}
    check_safe(own, str(folder))
    files: dict[str, Path | bytes] = {_ORIGINAL + name if name in _OURS else name: path for name, path in own.items()}
    about = {
        "checkpoint_sha256": row.options["sha256"],
        "games": row.games,
        "prompt_style": row.prompt_style,
        "options": {name: row.options[name] for name in SAMPLING if name in row.options},
        "adapter_of": None if row.adapter_base is None else row.adapter_base.options["sha256"],
    }
    return _bundle(MODEL, row.name, about, files, card)


def bundle_of_dataset(home: Path, row: Dataset, card: str) -> Bundle:
    """The rows of a dataset, its card and a manifest. Raises NotFound, Conflict and Invalid as `store.content`."""
    for _ in store.content(home, row):
        pass
    about = {"version": row.version, "kind": row.kind, "rows": row.rows, "sha256": row.sha256}
    return _bundle(DATASET, row.name, about, {ROWS: store.path_of(home, row)}, card)


def _bundle(kind: str, name: str, about: dict[str, Any], own: Mapping[str, Path | bytes], card: str) -> Bundle:
    files = {**own, CARD: card.encode()}
    described = {each: _manifest_entry(each, files[each]) for each in sorted(files)}
    manifest = BundleManifest(kind=kind, name=name, files=described, about=about)
    written = manifest.to_bytes()
    size = sum(each.size for each in described.values()) + len(written)
    return Bundle(manifest, {**files, MANIFEST: written}, size)


def _manifest_entry(name: str, content: Path | bytes) -> ManifestFile:
    called = name.removeprefix(_ORIGINAL) if name.removeprefix(_ORIGINAL) in _OURS else name
    if isinstance(content, bytes):
        return ManifestFile(sha256=hashlib.sha256(content).hexdigest(), size=len(content), name=called)
    return ManifestFile(sha256=file_hash(content), size=content.stat().st_size, name=called)


# ---- Reading -------------------------------------------------------------------------


def read_manifest(raw: bytes, where: str, kind: str) -> BundleManifest:
    """The manifest of something published. Raises Invalid if it is not a manifest, is of another kind, or names files
    that are outside of its folder or can run code.
    """
    try:
        found = BundleManifest.model_validate_json(raw)
    except ValidationError as error:
        fault = error.errors()[0]
        at = ".".join(map(str, fault["loc"]))
        got = Verbatim(f"{at}: {fault['msg']}" if at else fault["msg"])
        raise Invalid(None, expected=Phrase("a manifest of a push"), got=got, subject=f"{where}/{MANIFEST}") from None
    if found.kind != kind:
        raise Invalid(None, expected=Phrase("a %(kind)s", kind=kind), got=found.kind, subject=where)
    names = [name for each, file in found.files.items() for name in (each, file.name)]
    for name in names:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or "\\" in name or not name:
            raise Invalid(None, expected=Phrase("names of files inside of it"), got=name, subject=where)
    check_safe(names, where)
    return found


def check_safe(names: Sequence[str] | Mapping[str, Any], where: str) -> None:
    """Raises Invalid for a file in a format that can run code, or is not known not to."""
    for name in names:
        path = PurePosixPath(name)
        if path.suffix not in SAFE and path.name not in (*_PLAIN, ".gitattributes"):
            raise Invalid(
                None,
                expected=Phrase("safetensors, a tokenizer and settings (%(endings)s)", endings=" ".join(SAFE)),
                got=name,
                remedy=Phrase("convert it, or leave it out: other files can run code"),
                subject=where,
            )


def check_files(folder: Path, manifest: BundleManifest, where: str) -> None:
    """Raises Invalid for the first file that is missing or differs from the manifest."""
    for name, file in manifest.files.items():
        path = folder / name
        if not path.is_file():
            raise Invalid(None, expected=Phrase("the file %(name)s", name=name), got=Phrase("none"), subject=where)
        if (found := file_hash(path)) != file.sha256:
            raise Invalid(
                None,
                expected=Phrase("%(name)s with the hash %(sha256)s", name=name, sha256=file.sha256),
                got=Verbatim(found),
                remedy=Phrase("fetch it again, or ask whoever published it"),
                subject=where,
            )
