"""Tables as R reads them by the lines that Parlor prints, compared with what Python's csv reads."""

import csv
import math
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.core.csv_tables import Column, with_short_names

needs_r = pytest.mark.skipif(
    shutil.which("Rscript") is None, reason="R is not installed: `make r` installs it on a Debian"
)
# Each frame of the workspace: its name, rows and columns; then each column by its name and class, and its cells, text
# as code points, so that no locale has a part in it.
_DUMP = """
cells <- function(x) {
  if (is.numeric(x)) sprintf("%.17g", x)
  else if (is.logical(x)) as.character(x)
  else if (inherits(x, "POSIXct")) sprintf("%.3f", as.numeric(x))
  else if (inherits(x, "Date")) as.character(as.numeric(x))
  else vapply(as.character(x), function(s) if (is.na(s)) "NA" else paste(utf8ToInt(enc2utf8(s)), collapse = " "), "")
}
for (name in Filter(function(n) is.data.frame(get(n)), ls())) {
  frame <- get(name)
  cat("frame", name, nrow(frame), "\\n")
  for (column in names(frame)) {
    x <- frame[[column]]
    cat("column", column, class(x)[1], "\\n")
    if (length(x)) writeLines(ifelse(is.na(x), "NA", cells(x)))
  }
}
"""
_CLASSES = {"integer": "numeric", "number": "numeric", "boolean": "logical", "time": "POSIXct", "date": "Date"}

Frame = Mapping[str, tuple[str, list[str]]]  # the class and the cells of each column


def run_lines(folder: Path, lines: str) -> Mapping[str, tuple[int, Frame]]:
    """The frames that these lines make in a folder, each with its number of rows; R warns of nothing."""
    (folder / "lines.R").write_text(f"options(warn = 2)\n{lines}\n{_DUMP}", encoding="utf-8")
    done = subprocess.run(
        ["Rscript", "--vanilla", "lines.R"], cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )
    (folder / "lines.R").unlink()
    assert done.returncode == 0, done.stderr
    frames: dict[str, tuple[int, dict[str, tuple[str, list[str]]]]] = {}
    columns: dict[str, tuple[str, list[str]]] = {}
    cells: list[str] = []
    for line in done.stdout.splitlines():
        match line.split(" "):
            case ["frame", name, rows, *_]:
                columns = {}
                frames[name] = int(rows), columns
            case ["column", name, kind, *_]:
                cells = []
                columns[name] = kind, cells
            case _:
                cells.append(line)
    return frames


def check_frame(file: Path, columns: Sequence[Column], rows: int, frame: Frame) -> None:
    """Whether a frame has the rows, the columns, the types and the values of a file."""
    with file.open(encoding="utf-8-sig", newline="") as opened:
        expected = list(csv.DictReader(opened))
    described = {column.name: column for column in with_short_names(columns)}
    assert rows == len(expected), file.name
    if expected:
        assert list(frame) == list(expected[0]) == list(described), file.name
    for name, (kind, cells) in frame.items():
        column = described[name]
        assert kind == ("factor" if column.levels else _CLASSES.get(column.type, "character")), (file.name, name)
        for row, cell in zip(expected, cells, strict=True):
            assert _is_same(column, row[name], cell), (file.name, name, row[name], cell)


def _is_same(column: Column, text: str, cell: str) -> bool:
    if column.type in _CLASSES and re.fullmatch(r"\.[a-z]", text):  # a reason why an answer is missing
        return cell == "NA"
    if cell == "NA" or not text:
        return cell == "NA" and not text
    match column.type:
        case "integer" | "number":
            return math.isclose(float(text), float(cell), rel_tol=1e-15)
        case "boolean":
            return cell == text.upper()
        case "time":
            return abs(datetime.fromisoformat(text).timestamp() - float(cell)) < 0.002
        case "date":
            return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() / 86_400 == float(cell)
    # R reads every end of a line as a line feed.
    return text.replace("\r\n", "\n").replace("\r", "\n") == "".join(chr(int(code)) for code in cell.split(" "))
