"""A dataset's file, as it is or in the form of another program."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from app.core.errors import Invalid, Phrase, either
from app.datasets import store
from app.datasets.exporters.flat import DIALOGUE, TEMPLATES
from app.datasets.exporters.row_formats import FORMATS, PARLOR, RowFormat, export_rows
from app.models import Dataset

FORMAT_NAMES = (PARLOR, *FORMATS)


def export_dataset(home: Path, row: Dataset, name: str = PARLOR, template: str | None = None) -> Iterator[bytes]:
    """The bytes of a dataset in a form, piece by piece, once it is known that all rows can have that form.

    Raises Invalid where they cannot, and NotFound where the file is gone, both before the first piece.
    """
    return export_pieces(lambda: store.content(home, row), row.kind, name, template)


def export_pieces(
    read: Callable[[], Iterator[bytes]], kind: str, name: str = PARLOR, template: str | None = None
) -> Iterator[bytes]:
    """What `read` gives, which is a dataset's file of that kind, in a form. Raises as `export_dataset` does."""
    form = form_of(kind, name, template)
    if form is None:
        return read()
    for _ in export_rows(_split_lines(read()), form, template or DIALOGUE):
        pass  # what was written cannot be taken back, so whatever there is to refuse is refused first
    return export_rows(_split_lines(read()), form, template or DIALOGUE)


def formats_of(row: Dataset) -> list[RowFormat]:
    """The forms that a dataset can be had in, by its kind and by the weights and rewards of its moves."""
    weights = {weight for roles in row.spec.get("weights", {}).values() for weight in roles.values()}
    weights |= {*row.figures.get("weights", ())}  # of rows that were imported
    least = row.figures.get("rewards", {}).get("least", 0)
    return [
        form
        for form in FORMATS.values()
        if form.kind == row.kind and (form.any_weight or weights <= {0, 1}) and (form.any_reward or least >= 0)
    ]


def form_of(kind: str, name: str, template: str | None = None) -> RowFormat | None:
    """The form of that name for a dataset of that kind; None for our own, which is the file itself.

    Raises Invalid for a form that there is not or the kind cannot have, and for a template that it has no use for.
    """
    if name not in FORMAT_NAMES:
        raise Invalid("format", expected=either(FORMAT_NAMES), got=name)
    form = FORMATS.get(name)
    if form is not None and form.kind != kind:
        fitting = either([PARLOR, *(each.name for each in FORMATS.values() if each.kind == kind)])
        raise Invalid(
            "format",
            expected=Phrase("%(formats)s, as the dataset is one of %(kind)s", formats=fitting, kind=kind),
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
    """The lines of a file that comes in pieces."""
    begun = b""
    for piece in pieces:
        *lines, begun = (begun + piece).split(b"\n")
        yield from lines
    if begun:
        yield begun
