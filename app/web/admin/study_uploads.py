"""The files of a study as a browser sends them: several at once, or one archive."""

import io
import re
import tempfile
import zipfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath

from werkzeug.datastructures import FileStorage

from app.core.errors import AppError, Invalid, Phrase, Verbatim
from app.core.zip_files import BROKEN, check_entries, check_tree
from app.studies.design import FILE_NAME
from app.studies.design_process import read_design
from app.studies.loaded_design import LoadedDesign
from app.web.threads import off_loop

MOST_FILES = 100
MOST_BYTES = 5_000_000  # unpacked, in total
_YAML = (".yaml", ".yml")
_STUDY = re.compile(rb"^study\s*:", re.MULTILINE)  # a key of every design, but of no wave
_EXTENDS = re.compile(rb"^extends\s*:\s*['\"]?([a-z0-9-]+)", re.MULTILINE)


def read_upload(files: Sequence[FileStorage]) -> Mapping[str, bytes]:
    """The files by name; those of an archive without their common folder. Raises Invalid."""
    chosen = [file for file in files if file.filename]
    if not chosen:
        raise Invalid("files", expected=Phrase("the files of a study"), got=Phrase("none"))
    if len(chosen) == 1 and str(chosen[0].filename).lower().endswith(".zip"):
        found = off_loop(_unpacked, chosen[0].read())
    else:
        # Some browsers send the folder, too; a design's texts/consent.md has to come in an archive.
        names = [PureWindowsPath(str(file.filename)).name for file in chosen]
        check_tree(names, "files")
        found = {name: file.read() for name, file in zip(names, chosen, strict=True)}
    check_names(found)
    return _without_folder(found)


def check_names(names: Collection[str]) -> None:
    """Raises Invalid for file names that the files of one study cannot have together."""
    if len(names) > MOST_FILES:
        raise _too_much()
    for name in names:
        if re.fullmatch(FILE_NAME, name) is None or len(name) > 200:
            raise Invalid("files", expected=Phrase("names of letters, digits, dots and hyphens"), got=name)
    check_tree(list(names), "files")


def _unpacked(packed: bytes) -> Mapping[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir() and _is_meant(entry.filename)]
            if len(entries) > MOST_FILES or sum(entry.file_size for entry in entries) > MOST_BYTES:
                raise _too_much()
            check_entries(entries, "files")
            found = {entry.filename: archive.read(entry) for entry in entries}
            if any(len(found[entry.filename]) != entry.file_size for entry in entries):
                raise EOFError("a file is shorter than it says")
            return found
    except AppError:
        raise
    except BROKEN as error:
        got = Verbatim(str(error)[:200] or type(error).__name__)
        raise Invalid("files", expected=Phrase("a zip archive"), got=got) from None


def _too_much() -> Invalid:
    expected = Phrase("at most %(files)s files of 5 MB together", files=MOST_FILES)
    return Invalid("files", expected=expected, got=Phrase("more"))


def _without_folder(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """The files without their common folder, if there is one."""
    tops = {name.partition("/")[0] for name in files}
    if len(tops) != 1 or not all("/" in name for name in files):
        return files
    return {name.partition("/")[2]: content for name, content in files.items()}


def _is_meant(name: str) -> bool:
    """Whether a file was put into an archive by a person, not by their system."""
    parts = PurePosixPath(name).parts
    return not any(part == "__MACOSX" or (part.startswith(".") and not part.startswith("..")) for part in parts)


def study_file(files: Mapping[str, bytes]) -> str:
    """The name of the study's own file: the one that no other file extends. Raises Invalid."""
    designs = {name: text for name, text in files.items() if name.endswith(_YAML) and _STUDY.search(text)}
    bases = {f"{base[1].decode()}.yaml" for text in designs.values() if (base := _EXTENDS.search(text))}
    found = [name for name in designs if name not in bases]
    if len(found) != 1:
        raise Invalid(
            "files",
            expected=Phrase("one .yaml file with the key study"),
            got=Verbatim(", ".join(sorted(found))) if found else Phrase("none"),
        )
    return found[0]


def read_files(files: Mapping[str, bytes], name: str) -> LoadedDesign:
    """The study in the file of that name, with the others beside it. Raises RefusedFiles."""
    with tempfile.TemporaryDirectory() as folder:
        for each, content in files.items():
            path = Path(folder) / each
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return read_design(Path(folder) / name)


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, followed by a number if it is taken."""
    return next(free for at in range(1, len(taken) + 2) if (free := f"{name}-{at}" if at > 1 else name) not in taken)
