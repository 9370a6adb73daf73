"""The same PDF regardless of the order in which the drawing library wrote its parts. Pure.

svg2pdf, with which vl-convert draws PDF, numbers fonts and other resources of a page in an order that changes from one
drawing to the next. Here objects are numbered as they are reached from the root, with the names of a page sorted.
"""

import re

_REFERENCE = re.compile(rb"\b(\d+) 0 R\b")
_NAMES_OF_PAGE = re.compile(rb"(/(?:Font|XObject|ExtGState|ColorSpace|Pattern|Shading) <<\n)((?: +/\w+ \d+ 0 R\n)+)")
_STREAM = b"\nstream\n"


def in_order(pdf: bytes) -> bytes:
    """A PDF with one object table, with its objects in the order in which they are reached.

    Raises ValueError for a PDF in another form.
    """
    place = int(pdf[pdf.rindex(b"startxref") :].split()[1])
    table, _, trailer = pdf[place:].partition(b"trailer")
    lines = table.splitlines()
    if lines[0] != b"xref" or not trailer:
        raise ValueError("expected a PDF with one table of its objects and a trailer, got another")
    begins = {number: int(line.split()[0]) for number, line in enumerate(lines[2:]) if line.split()[2:] == [b"n"]}
    ends = dict(zip(sorted(begins.values()), [*sorted(begins.values())[1:], place], strict=True))
    objects = {number: _sorted_names(pdf[at : ends[at]]) for number, at in begins.items()}
    root = trailer[: trailer.index(b"startxref")]
    numbers: dict[int, int] = {}
    to_visit = _referenced_numbers(root)[::-1]
    while to_visit:
        number = to_visit.pop()
        if number not in numbers:
            numbers[number] = len(numbers) + 1
            to_visit += _referenced_numbers(objects[number].partition(_STREAM)[0])[::-1]

    def renumbered(text: bytes) -> bytes:
        return _REFERENCE.sub(lambda found: b"%d 0 R" % numbers[int(found[1])], text)

    written = pdf[: min(begins.values())]
    offsets = []
    for number, new in numbers.items():
        head, mark, stream = objects[number].partition(_STREAM)
        offsets.append(len(written))
        written += b"%d 0 obj" % new + renumbered(head[head.index(b" 0 obj") + 6 :]) + mark + stream
    kept = re.sub(rb"/Size \d+", b"/Size %d" % (len(numbers) + 1), renumbered(root))
    rows = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    entries = b"xref\n0 %d\n0000000000 65535 f \n" % (len(numbers) + 1) + rows
    return b"%strailer%sstartxref\n%d\n%%%%EOF\n" % (written + entries, kept, len(written))


def _referenced_numbers(text: bytes) -> list[int]:
    return [int(found[1]) for found in _REFERENCE.finditer(text)]


def _sorted_names(text: bytes) -> bytes:
    head, mark, stream = text.partition(_STREAM)
    return _NAMES_OF_PAGE.sub(_by_name, head) + mark + stream


def _by_name(found: re.Match[bytes]) -> bytes:
    return found[1] + b"".join(sorted(found[2].splitlines(keepends=True)))
