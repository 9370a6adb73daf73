"""What was played as CSV, sent as it is read, by pages and the API: the bytes that `flask export` writes."""

from collections.abc import Iterator, Mapping

import structlog
from flask import Response
from sqlalchemy import Engine

from app.codebook import codebook
from app.core.csv_tables import to_csv
from app.core.errors import NotFound, Phrase
from app.core.extensions import db, reading
from app.matches import export
from app.matches.filter import MatchFilter, check_known, read_choice
from app.web.downloads import download

CODEBOOK = "codebook"
FLAGS = ("guard", "bom")
log = structlog.get_logger()


def csv_flags(given: Mapping[str, str]) -> dict[str, bool]:
    """What `given` says of the form of a CSV: each of FLAGS."""
    return {flag: given.get(flag) == "1" for flag in FLAGS}


def csv_download(name: str, given: Mapping[str, str]) -> Response:
    """The table of that name, with what `given` says of its rows and its form.

    Raises NotFound for another table or player, Invalid for a filter that cannot be.
    """
    options = csv_flags(given)
    if name == CODEBOOK:
        pieces = codebook(**options)
    elif name in export.TABLES:
        choice = read_choice(given)
        with reading() as session:
            check_known(session, choice)
        pieces = _pieces(db.engine, export.TABLES[name], choice, options)
    else:
        expected = Phrase("%(names)s or codebook", names=", ".join(export.TABLES))
        raise NotFound("export", expected=expected, got=name)
    return download(pieces, f"{name}.csv", "text/csv")


def _pieces(
    engine: Engine, table: export.ExportTable, choice: MatchFilter, options: Mapping[str, bool]
) -> Iterator[bytes]:
    """The pieces of a CSV; they are asked for when the request is over, so they know its database beforehand."""
    with reading(engine) as session:
        try:
            yield from to_csv(table.columns, export.rows(session, table, choice), **options)
        except GeneratorExit:
            log.info("a download was given up", table=table.name)
            raise
