"""Tables in a terminal, with aligned columns."""

from collections.abc import Collection, Iterator, Sequence

from app.core.lists import printed
from app.jobs.page import JobTable, is_printed


def aligned(lines: Sequence[Sequence[str]], right: Collection[int] = ()) -> Iterator[str]:
    """Lines of cells in aligned columns; the columns in `right` are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def table_lines(table: JobTable, lines: Sequence[object]) -> Iterator[str]:
    """A table of a job, with a heading."""
    columns = [column for column in table.columns if is_printed(column)]
    heads = [column.name.replace("_", " ") for column in columns]
    cells = [[*map(printed, line)] for line in table.cells(lines, columns)]
    return aligned([heads, *cells], {place for place, column in enumerate(columns) if column.numeric})
