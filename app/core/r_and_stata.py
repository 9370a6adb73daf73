"""R and Stata code that reads a table's CSV with the types of its columns. Pure.

It reads files written without `guard`, with or without a byte order mark. An empty cell is missing; all else is kept as
written, including "NA" and leading zeros.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from app.core.csv_tables import Column, with_short_names

_LONGEST_LABEL = 80  # characters of a variable's label, as Stata takes it
_WIDTH = 110


def r_lines(file: str, columns: Sequence[Column]) -> str:
    """R code, using base R only, that reads the file into a data frame named after it.

    Everything is read as text first: `read.csv` would take a long integer or an unknown word for an error.
    """
    frame, columns = re.sub(r"\W+", "_", file.rpartition(".")[0]), with_short_names(columns)

    def each(names: Sequence[str], value: str) -> str:
        listed = _wrapped(f"for (column in intersect(names({frame}), c(", ", ".join(map(_r_text, names)).split(" "))
        return f"{listed}))) {{\n  {value}\n}}"

    cell = f"{frame}[[column]]"
    options = 'quote = "\\"", comment.char = "", check.names = FALSE, blank.lines.skip = FALSE'
    reading = f'{frame} <- read.csv("{file}", colClasses = "character", na.strings = "", encoding = "UTF-8"'
    lines = [f"{reading},\n  {options})"]
    # Numbers of either type become doubles: R's integers end at 2,147,483,647, which token sums exceed. Survey answers
    # have codes like .n for missing values, which Stata knows and R does not.
    for types, value in (
        (("integer", "number"), f'as.numeric(sub("^[.][a-z]$", NA, {cell}))'),
        (("boolean",), f"as.logical({cell})"),
        (("date",), f"as.Date({cell})"),
        (("time",), f'as.POSIXct({cell}, format = "%Y-%m-%dT%H:%M:%OSZ", tz = "UTC")'),
    ):
        if names := [column.name for column in columns if column.type in types]:
            lines.append(each(names, f"{cell} <- {value}"))
    if factors := [column for column in columns if column.levels]:
        known = [f"{column.name} = c({', '.join(map(_r_text, column.levels))})" for column in factors]
        lines.append("known <- list(\n" + ",\n".join(f"  {one}" for one in known) + "\n)")
        lines.append(
            f"for (column in intersect(names({frame}), names(known))) {{\n"
            f"  {cell} <- factor({cell}, union(known[[column]], na.omit({cell})))\n}}"
        )
    return "\n".join(lines) + "\n"


def stata_lines(file: str, columns: Sequence[Column]) -> str:
    """Stata code (14 or later) that reads the file as the data in memory, with labels of variables and values."""
    columns = with_short_names(columns)
    options = "bindquote(strict) maxquotedrows(unlimited) stringcols(_all) clear"
    lines = [f'import delimited using "{file}", varnames(1) case(preserve) encoding("UTF-8") ///\n    {options}']

    def each(names: Iterable[str], *body: str) -> None:
        if names := list(names):
            listed = _wrapped("foreach column in", names, " ///")
            lines.append("\n".join([f"{listed} {{", *(f"    {line}" for line in body), "}"]))

    def of_type(*types: str) -> list[str]:
        return [column.name for column in columns if column.type in types]

    exchanged = ("drop `column'", "rename parlor_value `column'")
    each(of_type("integer", "number"), "destring `column', replace")
    if of_type("boolean"):
        lines.append('label define yes_no 0 "false" 1 "true", replace')
    each(
        of_type("boolean"),
        'generate byte parlor_value = cond(`column\' == "true", 1, cond(`column\' == "false", 0, .))',
        "label values parlor_value yes_no",
        *exchanged,
    )
    each(
        of_type("time"),
        'generate double parlor_value = clock(substr(`column\', 1, 10) + " " + substr(`column\', 12, 12), "YMDhms")',
        "format parlor_value %tcCCYY-NN-DD_HH:MM:SS.sss",
        *exchanged,
    )
    each(of_type("date"), 'generate parlor_value = date(`column\', "YMD")', "format parlor_value %td", *exchanged)
    factors = [column for column in columns if column.levels]
    for column in factors:
        values = [f'{number} "{level}"' for number, level in enumerate(column.levels, 1)]
        lines.append(f"{_wrapped(f'label define {column.name}', values, ' ///')}, replace")
    each(  # an undefined word gets the next number and is not lost
        (column.name for column in factors),
        "encode `column', generate(parlor_value) label(`column')",
        *exchanged,
    )
    lines += [f'label variable {column.name} "{_stata_text(column.meaning)}"' for column in columns]
    lines.append(_wrapped("order", [column.name for column in columns], " ///"))
    return "\n".join(lines) + "\n"


PROGRAMS: Mapping[str, Callable[[str, Sequence[Column]], str]] = {"r": r_lines, "stata": stata_lines}


def line_files(tables: Mapping[str, Sequence[Column]]) -> Mapping[str, bytes]:
    """The files with the code for all tables of an archive, by name; `tables` are the columns by the table's file.

    R reads all tables one after the other. Stata holds one table in memory, so each is saved beside its CSV.
    """
    stata = (
        f'{stata_lines(file, columns)}save "{file.removesuffix(".csv")}", replace\n' for file, columns in tables.items()
    )
    return {
        "read.R": "\n".join(r_lines(*each) for each in tables.items()).encode(),
        "read.do": "\n".join(stata).encode(),
    }


def _wrapped(begin: str, items: Iterable[str], at_the_end: str = "") -> str:
    """A command and its arguments, wrapped between arguments; `at_the_end` ends each line but the last."""
    lines = [begin]
    for item in items:
        if len(lines[-1]) + 1 + len(item) > _WIDTH:
            lines[-1] += at_the_end
            lines.append("   ")
        lines[-1] += item if lines[-1].endswith("(") else f" {item}"
    return "\n".join(lines)


def _r_text(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _stata_text(text: str) -> str:
    """Text within quotes, on one line; characters that Stata reads as a closing quote or a macro are replaced."""
    return " ".join(text.split()).translate({ord('"'): "'", ord("`"): "'", ord("$"): "USD"})[:_LONGEST_LABEL]
