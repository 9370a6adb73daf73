"""Export of a dataset's file, unchanged or in another program's format."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from app.core.errors import Invalid, Phrase, either
from app.datasets import store
from app.datasets.exporters.flat import DIALOGUE, TEMPLATES
from app.datasets.exporters.row_formats import FORMATS, PARLOR, RowFormat, export_rows
from app.models import Dataset

FORMAT_NAMES = (PARLOR, *FORMATS)


def export_dataset(home: Path, row: Dataset, name: str = PARLOR, template: str | None = None) -> Iterator[bytes]:
    """The bytes of a dataset in a format, in pieces, after a check that all rows fit the format.

    Raises Invalid if they do not, and NotFound if the file is missing, both before the first piece.
    """
    return export_pieces(lambda: store.content(home, row), row.kind, name, template)


def export_pieces(
    read: Callable[[], Iterator[bytes]], kind: str, name: str = PARLOR, template: str | None = None
) -> Iterator[bytes]:
    """The file of a dataset of this kind, as `read` returns it, in a format. Raises as `export_dataset` does."""
    form = form_of(kind, name, template)
    if form is None:
        return read()
    for _ in export_rows(_split_lines(read()), form, template or DIALOGUE):
        pass  # written output cannot be taken back, so all refusals come first
    return export_rows(_split_lines(read()), form, template or DIALOGUE)


def formats_of(row: Dataset) -> list[RowFormat]:
    """The formats available for a dataset, by its kind and by the weights and rewards of its moves."""
    weights = {weight for roles in row.spec.get("weights", {}).values() for weight in roles.values()}
    weights |= {*row.figures.get("weights", ())}  # of imported rows
    least = row.figures.get("rewards", {}).get("least", 0)
    return [
        form
        for form in FORMATS.values()
        if form.kind == row.kind and (form.any_weight or weights <= {0, 1}) and (form.any_reward or least >= 0)
    ]


def form_of(kind: str, name: str, template: str | None = None) -> RowFormat | None:
    """The format with this name for a dataset of this kind; None for our own, which is the file itself.

    Raises Invalid for a format that does not exist or does not suit the kind, and for a template that it does not use.
    """
    if name not in FORMAT_NAMES:
        raise Invalid("format", expected=either(FORMAT_NAMES), got=name)
    form = FORMATS.get(name)
    if form is not None and form.kind != kind:
        fitting = either([PARLOR, *(each.name for each in FORMATS.values() if each.kind == kind)])
        raise Invalid(
            "format",
            expected=Phrase("%(formats)s, as the dataset holds %(kind)s", formats=fitting, kind=kind),
            got=name,
        )
    if template is not None:
        if template not in TEMPLATES:
            raise Invalid("template", expected=either(TEMPLATES), got=template)
        if form is None or not form.flat:
            flat = either(each.name for each in FORMATS.values() if each.flat)
            raise Invalid("template", expected=Phrase("format %(formats)s beside it", formats=flat), got=name)
    return form


def _split_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a file that is read in pieces."""
    begun = b""
    for piece in pieces:
        *lines, begun = (begun + piece).split(b"\n")
        yield from lines
    if begun:
        yield begun
