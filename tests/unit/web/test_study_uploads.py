"""Archives of studies as somebody sends them who means no good: each is read or refused in one line."""

import io
import struct
import tracemalloc
import zipfile
from collections.abc import Sequence
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from werkzeug.datastructures import FileStorage

from app.core.errors import Invalid
from app.web.admin.study_uploads import MOST_BYTES, MOST_FILES, check_names, read_upload

STUDY = {"study/a.yaml": b"study: a\n" * 50, "study/texts/consent.md": b"# Purpose\n" * 20}


def packed(files: Sequence[tuple[str | zipfile.ZipInfo, bytes]], packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", packing) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return whole.getvalue()


def read(content: bytes, name: str = "study.zip") -> dict[str, bytes]:
    return dict(read_upload([FileStorage(io.BytesIO(content), name)]))


WHOLE = packed(list(STUDY.items()))


def link() -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo("b.md")
    entry.external_attr = 0o120777 << 16
    return entry


def with_bits(bits: int) -> bytes:
    """The archive with flags set in each entry and in the table at its end."""
    content = bytearray(WHOLE)
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = -1
        while (start := content.find(mark, start + 1)) >= 0:
            content[start + at] |= bits
    return bytes(content)


def with_size(size: int) -> bytes:
    """The archive with another size for its first file in the table at its end."""
    content = bytearray(WHOLE)
    struct.pack_into("<I", content, content.find(b"PK\x01\x02") + 24, size)
    return bytes(content)


def with_entries(count: int) -> bytes:
    """An archive whose table names one file so many times."""
    one = packed([("a.yaml", b"study: a")])
    table, end = one.find(b"PK\x01\x02"), one.find(b"PK\x05\x06")
    numbers = struct.pack(
        "<4s4H2LH", b"PK\x05\x06", 0, 0, count % 65_536, count % 65_536, (end - table) * count, table, 0
    )
    return one[:table] + one[table:end] * count + numbers


FILES, NAMES = f"at most {MOST_FILES} files of 5 MB together", "names of letters, digits, dots and hyphens"
TREE = "files and folders with names of their own, got 'a'"
REFUSED = {
    "a file that is a folder, too": (packed([("a", b"1"), ("a/b", b"2")]), TREE),
    "a name twice": (with_entries(2), "expected each file once, got 'a.yaml'"),
    "an absolute path": (packed([("/etc/passwd", b"")]), f"{NAMES}, got '/etc/passwd'"),
    "a path that leads out": (packed([("a/../../b", b"")]), NAMES),
    "a drive": (packed([("C:\\b.yaml", b"")]), NAMES),
    "a backslash": (packed([("..\\b.yaml", b"")]), NAMES),
    "a long name": (packed([("a" * 60_000, b"")]), NAMES),
    "a link": (packed([(link(), b"/etc/passwd")]), "expected files, not links, got b.md"),
    "a password": (with_bits(1), "expected files without a password, got study/a.yaml"),
    "another packing": (packed([("a.yaml", b"study: a")], zipfile.ZIP_LZMA), "files that are stored or deflated"),
    "many files": (packed([(f"{n}.md", b"") for n in range(MOST_FILES + 1)]), FILES),
    "65,536 files": (with_entries(65_536), FILES),
    "a bomb": (packed([("a.yaml", bytes(MOST_BYTES + 1))]), FILES),
    "a bomb that lies about its size": (with_size(10), "expected a zip archive"),
    "a smaller file than it says": (with_size(4_000_000), "expected a zip archive"),
    "a broken-off end": (WHOLE[:-30], "expected a zip archive"),
    "other bytes inside": (WHOLE[:60] + b"\xff" * 20 + WHOLE[80:], "expected a zip archive"),
    "no archive": (b"PK\x05\x06" + b"\xff" * 18, "expected a zip archive"),
    "nothing": (b"", "expected a zip archive"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "message"), REFUSED.values(), ids=REFUSED)
def test_an_archive_that_is_no_study_is_refused_in_one_line(content: bytes, message: str) -> None:
    with pytest.raises(Invalid) as caught:
        read(content)
    assert message in caught.value.message
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 400


@pytest.mark.parametrize("name", ["a bomb", "a bomb that lies about its size", "another packing"])
def test_an_archive_takes_no_more_memory_than_a_study_may(name: str) -> None:
    tracemalloc.start()
    with pytest.raises(Invalid):
        read(REFUSED[name][0])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 2 * MOST_BYTES


def test_folders_and_what_a_system_adds_are_left_out() -> None:
    files = [("study/", b""), ("__MACOSX/._a", b"x"), ("study/.DS_Store", b"x"), *STUDY.items()]
    assert read(packed(files)) == {name.removeprefix("study/"): content for name, content in STUDY.items()}


def test_large_numbers_of_an_archive_are_read() -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive, archive.open("a.yaml", "w", force_zip64=True) as file:
        file.write(b"study: a")
    assert read(whole.getvalue()) == {"a.yaml": b"study: a"}


def test_two_files_with_one_name_are_refused() -> None:
    sent = [FileStorage(io.BytesIO(b"study: a"), f"{folder}\\a.yaml") for folder in ("one", "two")]
    with pytest.raises(Invalid, match=r"expected each file once, got 'a\.yaml'"):
        read_upload(sent)


def test_a_draft_cannot_have_a_file_inside_a_file() -> None:
    with pytest.raises(Invalid, match="files and folders with names of their own, got 'a'"):
        check_names(["a", "b", "a/b/c"])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), max_size=6), st.integers(0, len(WHOLE)))
def test_whatever_happened_to_an_archive_it_is_read_or_refused(changes: list[tuple[int, int]], end: int) -> None:
    content = bytearray(WHOLE)
    for at, value in changes:
        content[at] = value
    for each in (bytes(content), bytes(content[:end]), bytes(content[end:])):
        with suppress(Invalid):
            assert sum(map(len, read(each).values())) <= MOST_BYTES
