"""What was played as CSV, streamed by pages and the API: the same bytes that `flask export` writes."""

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
    """The CSV format options in `given`: each of FLAGS."""
    return {flag: given.get(flag) == "1" for flag in FLAGS}


def csv_download(name: str, given: Mapping[str, str]) -> Response:
    """The table of that name, with the rows and format that `given` asks for.

    Raises NotFound for an unknown table or player, Invalid for an impossible filter.
    """
    options = csv_flags(given)
    if name == CODEBOOK:
        pieces = codebook(**options)
    elif name in export.TABLES:
        choice = read_choice(given)
        with reading() as session:
            check_known(session, choice)
        pieces = _export_csv_pieces(db.engine, export.TABLES[name], choice, options)
    else:
        expected = Phrase("%(names)s or codebook", names=", ".join(export.TABLES))
        raise NotFound("export", expected=expected, got=name)
    return download(pieces, f"{name}.csv", "text/csv")


def _export_csv_pieces(
    engine: Engine, table: export.ExportTable, choice: MatchFilter, options: Mapping[str, bool]
) -> Iterator[bytes]:
    """The pieces of a CSV. They are requested after the request has ended, so the database is passed in."""
    with reading(engine) as session:
        try:
            yield from to_csv(table.columns, export.rows(session, table, choice), **options)
        except GeneratorExit:
            log.info("a download was given up", table=table.name)
            raise
