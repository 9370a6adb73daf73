"""Reads a design with all the files it names: the texts that people read, and the material they play on."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel

from app.core.document_models import read_model
from app.core.documents import Document
from app.core.errors import FieldError, Invalid, Verbatim, either
from app.core.files import temporary_beside
from app.core.validation import KeyPath, is_storable
from app.core.yaml_reader import read_text_file, read_yaml
from app.games import find_game
from app.studies.arms import matches_a_person
from app.studies.checks import faults
from app.studies.design import StudyDesign, expected_form
from app.studies.loaded_design import LoadedDesign
from app.studies.markdown import DEEPEST, MOST_CHARACTERS, is_too_deep, placeholders, told_headings, unfilled
from app.studies.warnings import warnings

EXTENDS = "extends"
# The sections of a consent text, each with its own heading, by the study's language. The last one names the recipients
# of the data, which a design may list instead.
SECTIONS: Mapping[str, Sequence[str]] = {
    "en": ("Purpose", "Risks", "If you stop early", "Recipients"),
    "de": ("Zweck", "Risiken", "Wenn Sie vorzeitig aufhören", "Empfänger"),
}
# Placeholders for facts of the study in the texts that people read.
_GOAL = "goal"  # it differs between conditions, and is in the instructions for one
PLACEHOLDERS = (_GOAL, "matches", "minutes", "base", "most", "currency")
_MOST_BASES = 10

M = TypeVar("M", bound=BaseModel)
_NOT_YET: Mapping[KeyPath, str] = {("pairing",): "a study without pairs of people, who cannot play with each other yet"}


def load_design(path: Path) -> LoadedDesign:
    """Read a study's file, the files it extends, and the files beside it.

    Raises Invalid, with file, line and key, for the first error.
    """
    document = _extended(read_yaml(path), path, ())
    design = read_part(StudyDesign, document)
    for fault in faults(design):
        raise fault.error.at(Verbatim(document.place(fault.path))) from None
    texts = {name: _read_text(path.parent / name, document, key) for key, name in _named_files(design).items()}
    _check_lengths(design, texts, document)
    _check_placeholders(design, texts, document)
    _check_consent(design, texts, document)
    material = _read_material_pieces(design, texts, document)
    warned = list(warnings(design, texts))
    return LoadedDesign(design, document.value, texts, material, warned, _hash(document.value, texts))


def read_part(kind: type[M], document: Document) -> M:
    """A document's mapping as a model. Raises Invalid for the first error, with its line."""
    return read_model(kind, document, expected_form, _NOT_YET)


# ---- What a file extends -----------------------------------------------------------


def _extended(document: Document, path: Path, seen: tuple[Path, ...]) -> Document:
    """The document, with missing keys taken from the document it extends."""
    if EXTENDS not in document.value:
        return document
    name = document.value[EXTENDS]
    if not isinstance(name, str) or "/" in name:
        raise document.invalid((EXTENDS,), "the name of a study beside this one", name)
    if len(seen) == _MOST_BASES:
        raise document.invalid((EXTENDS,), f"at most {_MOST_BASES} studies that extend each other", name)
    base_path = path.parent / f"{name}.yaml"
    if base_path in (*seen, path):
        raise document.invalid((EXTENDS,), "a study that does not extend this one", name)
    if not base_path.is_file():
        raise document.invalid((EXTENDS,), f"a file {base_path.name} beside this one", Verbatim("none"))
    base = _extended(read_yaml(base_path), base_path, (*seen, path))
    own = {key: value for key, value in document.value.items() if key != EXTENDS}
    if "study" not in own:
        raise document.invalid(("study",), "a name of its own", Verbatim("none"))
    lines = {key: line for key, line in base.lines.items() if key and key[0] not in own}
    return Document(document.source, {**base.value, **own}, {**lines, **document.lines})


# ---- The files beside it -----------------------------------------------------------


def _named_files(design: StudyDesign) -> Mapping[KeyPath, str]:
    """The files that a design names, by their keys."""
    material = design.material
    return {**design.text_files, **({} if material is None else {("material", material.kind): material.file})}


def _read_text(path: Path, document: Document, key: KeyPath) -> str:
    expected = f"a text file {path.name} beside the study"
    text = read_text_file(path, expected, Verbatim(document.place(key)))
    if not is_storable(text):
        raise document.invalid(key, expected, Verbatim("one with a character that is no text"))
    if not text.strip():
        raise document.invalid(key, "a file with text in it", Verbatim(f"{path.name}, which is empty"))
    return text


def _check_consent(design: StudyDesign, texts: Mapping[str, str], document: Document) -> None:
    """Raises Invalid if the consent text lacks something that people have to know."""
    told = told_headings(texts[design.consent.text])
    *needed, recipients = SECTIONS[design.language]
    if not design.privacy.recipients:
        needed.append(recipients)
    missing = [each for each in needed if each.casefold() not in told]
    if missing:
        expected = f"text under the headings {', '.join(needed)} in {design.consent.text}"
        got = f"none of {either(missing)}" if len(missing) > 1 else f"no {missing[0]}"
        raise document.invalid(("consent", "text"), expected, Verbatim(got))


def _check_lengths(design: StudyDesign, texts: Mapping[str, str], document: Document) -> None:
    """Raises Invalid for a text that is too long, or too deeply nested, for pages to show."""
    for key, name in design.text_files.items():
        if (length := len(texts[name])) > MOST_CHARACTERS:
            raise document.invalid(key, f"at most {MOST_CHARACTERS} characters in {name}", Verbatim(str(length)))
        if is_too_deep(texts[name]):
            expected = f"at most {DEEPEST // 2 - 1} lists and quotes inside each other in {name}"
            raise document.invalid(key, expected, Verbatim("more"))


def _check_placeholders(design: StudyDesign, texts: Mapping[str, str], document: Document) -> None:
    """Raises Invalid for a placeholder that is unknown, or that is not filled at its position."""
    for key, name in design.text_files.items():
        filled = [each for each in PLACEHOLDERS if each != _GOAL or key == ("instructions",)]
        unknown = [each for each in placeholders(texts[name]) if each not in filled]
        if unknown:
            known = get_close_matches(unknown[0], filled, 1) or filled
            expected = f"{either(f'{{{each}}}' for each in known)} in {name}"
            raise document.invalid(key, expected, Verbatim(f"{{{unknown[0]}}}"))
        if misplaced := unfilled(texts[name]):
            expected = f"placeholders in words that {name} shows, not in the address or title of a link"
            raise document.invalid(key, expected, Verbatim(f"{{{misplaced[0]}}}"))


def _read_material_pieces(design: StudyDesign, texts: Mapping[str, str], document: Document) -> Sequence[Any]:
    """The pieces of the design's material. Raises Invalid where there are fewer than a person plays."""
    kind = find_game(design.game).material
    if design.material is None or kind is None:
        return ()
    key = ("material", design.material.kind)
    try:
        pieces = kind.read(texts[design.material.file].splitlines(), design.material.file)
    except FieldError as error:
        raise error.at(Verbatim(document.place(key))) from None
    needed = matches_a_person(design)
    # Two pieces with the same key are the same for their players.
    found = len({json.dumps(kind.held_out_key(piece)) for piece in pieces})
    if found < needed:
        expected = f"at least {needed} different pieces, one for each match of a person"
        raise document.invalid(key, expected, Verbatim(str(found)))
    return pieces


def _hash(written: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    """The hash of what was written, without defaults: a default that is added later does not change it."""
    whole = {"design": written, "texts": dict(texts)}
    return hashlib.sha256(json.dumps(whole, ensure_ascii=False).encode()).hexdigest()


# ---- Writing -----------------------------------------------------------------------


def write_design(folder: Path, design: Mapping[str, Any], texts: Mapping[str, str]) -> Path:
    """Write a stored design and its files into a new folder, and return the path of the study's file.

    `load_design` reads the same design from it. Raises Invalid if the folder exists or cannot be written.
    """
    if folder.exists():
        raise Invalid("--out", expected="a folder that is not there yet", got=Verbatim(str(folder)))
    name = f"{design['study']}.yaml"
    try:
        with temporary_beside(folder) as draft:
            draft.mkdir(parents=True)
            (draft / name).write_text(
                yaml.safe_dump(dict(design), sort_keys=False, allow_unicode=True, width=100), encoding="utf-8"
            )
            for file, text in texts.items():
                (draft / file).parent.mkdir(parents=True, exist_ok=True)
                (draft / file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise Invalid("--out", expected="a folder that can be written", got=Verbatim(str(error))) from None
    return folder / name
