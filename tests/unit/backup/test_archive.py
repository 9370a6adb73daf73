"""Backups that nobody's Parlor wrote: whatever stands in them, each is refused in one line and in little memory."""

import copy
import hashlib
import json
import tracemalloc
import zipfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.backup.archive import ArchiveReader, ArchiveWriter, Manifest
from app.core.errors import Invalid

ROWS = [[1, "a", None], [2, "b", {"c": [1, 2]}]]


def written(folder: Path) -> Path:
    """A whole archive of two tables and a file."""
    path, file = folder / "whole", folder / "content"
    file.write_bytes(b"weights")
    writer = ArchiveWriter(path, Manifest("0001", "2026-11-25T00:00:00+00:00", "0.3", "sqlite"))
    writer.add_table("match", ("id", "name", "body"), ROWS)
    writer.add_table("event", ("id",), [])
    writer.add_file("checkpoints/small/model.safetensors", file)
    writer.close()
    return path


def rewritten(path: Path, text: bytes, contents: dict[str, Iterable[bytes]] | None = None) -> Path:
    """The archive with another manifest, whose hash is right, and other contents of some entries."""
    other = path.with_name("other")
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as into:
        for name in whole.namelist():
            if name not in ("manifest.json", "manifest.sha256"):
                with into.open(name, "w") as file:
                    for piece in (contents or {}).get(name, [whole.read(name)]):
                        file.write(piece)
        into.writestr("manifest.json", text)
        into.writestr("manifest.sha256", hashlib.sha256(text).hexdigest())
    return other


def manifest_of(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as whole:
        found: dict[str, Any] = json.loads(whole.read("manifest.json"))
        return found


def refusal(path: Path) -> str:
    with pytest.raises(Invalid) as caught:
        ArchiveReader(path).check()
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 500
    return caught.value.message


def test_a_whole_archive_is_read(tmp_path: Path) -> None:
    reader = ArchiveReader(written(tmp_path))
    reader.check()
    assert list(reader.table("match")) == [ROWS]
    assert list(reader.table("event")) == []
    assert reader.manifest.tables["match"].columns == ("id", "name", "body")


def at(*path: str, value: Any = None) -> Callable[[dict[str, Any]], Any]:
    """A change of a manifest: another value at a path, or none where it is left out."""

    def change(manifest: dict[str, Any]) -> Any:
        *outer, last = path
        inner = manifest
        for part in outer:
            inner = inner[part]
        if value is None:
            del inner[last]
        else:
            inner[last] = value
        return manifest

    return change


CHANGES = {
    "no format": at("format"),
    "a later format": at("format", value=2),
    "a format that is a truth value": at("format", value=True),
    "no tables": at("tables"),
    "tables in a list": at("tables", value=[]),
    "a table that is a number": at("tables", "match", value=3),
    "columns in a text": at("tables", "match", "columns", value="id"),
    "a column that is a list": at("tables", "match", "columns", value=[["id"]]),
    "rows below none": at("tables", "match", "rows", value=-1),
    "rows beyond all numbers": at("tables", "match", "rows", value=10**40),
    "rows in half": at("tables", "match", "rows", value=1.5),
    "no hash": at("tables", "match", "sha256"),
    "a hash of another form": at("tables", "match", "sha256", value="5f"),
    "a size in a text": at("files", "checkpoints/small/model.safetensors", "size", value="7"),
    "no files": at("files"),
    "a revision that is a list": at("revision", value=["0001"]),
    "a revision of several lines": at("revision", value="1\n2"),
    "another database": at("database", value="oracle"),
    "left out in a mapping": at("left_out", value={"a": 1}),
    "a list": lambda manifest: [manifest],
    "nothing": lambda _: None,
    "a number": lambda _: 1e999,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_manifest_of_another_form_is_refused(tmp_path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    path = written(tmp_path)
    text = json.dumps(change(manifest_of(path))).encode()
    assert "expected a" in refusal(rewritten(path, text))


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"\xff\xfe{\x00}\x00", b'{"format": 1, "a": "\\ud800"}', b"[" * 200_000, b'{"a":' * 200_000, b"\0",
     b"NaN", b'{"format": ' + b"9" * 100_000 + b"}"],
    ids=lambda text: repr(text[:12]),
)  # fmt: skip
def test_a_manifest_that_is_no_json_is_refused(tmp_path: Path, text: bytes) -> None:
    assert "expected a " in refusal(rewritten(written(tmp_path), text))


@pytest.mark.parametrize(
    "name",
    ["/etc/passwd", "../out", "a/../../out", "", "a//b", "a/", "./a", "parlor.db", "PARLOR.DB-wal", "run/x",
     ".restore-1/a", "a\\b", "a\0b", "a" * 300, "checkpoints/small/model.safetensors/x"],
)  # fmt: skip
def test_a_file_that_belongs_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    path = written(tmp_path)
    manifest = manifest_of(path)
    manifest["files"][name] = manifest["files"]["checkpoints/small/model.safetensors"]
    assert "expected a whole backup" in refusal(rewritten(path, json.dumps(manifest).encode()))


def with_rows(path: Path, pieces: Callable[[], Iterable[bytes]], rows: int) -> Path:
    """The archive with other bytes as the rows of its first table, of which the manifest says the truth."""
    seen, size = hashlib.sha256(), 0
    for piece in pieces():
        seen.update(piece)
        size += len(piece)
    manifest = manifest_of(path)
    manifest["tables"]["match"].update(sha256=seen.hexdigest(), size=size, rows=rows)
    return rewritten(path, json.dumps(manifest).encode(), {"tables/match.jsonl": pieces()})


@pytest.mark.parametrize(
    ("rows", "count"),
    [(b"[1]\n", 1), (b"3\n", 1), (b'{"id": 1}\n', 1), (b"[1,2,3,4]\n", 1), (b"[1,2,\n", 1), (b"\n", 1), (b"[1,2,3]", 1),
     (b"[1,2,3]\n", 2), (b"\xff\n", 1), (b"[" * 100_000 + b"\n", 1), (b"[1,2," + b"9" * 5000 + b"]\n", 1)],
)  # fmt: skip
def test_rows_of_another_form_are_refused(tmp_path: Path, rows: bytes, count: int) -> None:
    assert "expected a whole backup" in refusal(with_rows(written(tmp_path), lambda: [rows], count))


def peak(read: Callable[[], object]) -> int:
    """Bytes of memory that it takes at the most."""
    tracemalloc.start()
    with suppress(Invalid):
        read()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def test_a_small_archive_of_a_large_manifest_takes_little_memory(tmp_path: Path) -> None:
    path = rewritten(written(tmp_path), b" " * (96 << 20))
    assert path.stat().st_size < 1 << 20
    assert peak(lambda: ArchiveReader(path)) < 64 << 20
    assert "no manifest" in refusal(path)


@pytest.mark.parametrize("row", ["a long one", "many values", "many rows"])
def test_a_small_archive_of_large_rows_takes_little_memory(tmp_path: Path, row: str) -> None:
    pieces: dict[str, tuple[Callable[[], Iterable[bytes]], int]] = {
        "a long one": (lambda: (b"a" * (1 << 20) for _ in range(70)), 1),
        "many values": (lambda: [b"[1,2,[" + b"[],[],[],[],[],[],[],[],[],[],\n"[:-1] * 1_000_000 + b"0]]\n"], 1),
        "many rows": (lambda: (b'[1,2,"' + b"a" * (1 << 20) + b'"]\n' for _ in range(60)), 60),
    }
    path = with_rows(written(tmp_path), *pieces[row])
    assert path.stat().st_size < 1 << 20
    reader = ArchiveReader(path)
    assert peak(reader.check) < 220 << 20
    if row != "many rows":
        assert "expected a whole backup" in refusal(path)


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=st.integers(0, 40), value=JSONS, leave_out=st.booleans())
def test_whatever_stands_in_a_manifest_it_is_read_or_refused(
    tmp_path: Path, where: int, value: Any, leave_out: bool
) -> None:
    path = tmp_path / "whole" if (tmp_path / "whole").exists() else written(tmp_path)
    manifest = manifest_of(path)
    places = [*_places(manifest)]
    inner, key = places[where % len(places)]
    if leave_out:
        del inner[key]
    else:
        inner[key] = copy.deepcopy(value)
    with suppress(Invalid):
        ArchiveReader(rewritten(path, json.dumps(manifest).encode())).check()


def _places(value: Any) -> Iterable[tuple[Any, Any]]:
    for key in value if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])
