"""Commands that write jobs as archives."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from sqlalchemy.orm import Session

from app.cli.base import WHOLE, Command, ensure_database, unwritable
from app.core.errors import Invalid, Verbatim
from app.core.extensions import reading
from app.core.files import replace_file
from app.jobs.kind import JobKind


def write_archive(out: str, content: bytes) -> None:
    """Write an archive to a new file. Raises Invalid if it exists or cannot be written."""
    path = Path(out)
    if path.exists():
        raise Invalid("--out", expected="a file that is not there yet", got=Verbatim(str(path)))
    try:
        replace_file(path, [content])
    except OSError as error:
        raise unwritable(path, error) from None


def export_command(kind: JobKind[Any], archive_of: Callable[[Session, Any], bytes], about: str) -> click.Command:
    """The command that writes a job of a kind as a recipe file; `about` is its help text."""

    @click.command("export", cls=Command, help=about)
    @click.argument("number", metavar=kind.name.upper(), type=WHOLE)
    @click.option("--out", metavar="FILE", help="The archive to write; by default NAME.zip.")
    def export(number: int, out: str | None) -> None:
        ensure_database()
        with reading() as session:
            row = kind.get(session, number)
            name, content = row.name, archive_of(session, row)
        path = out or f"{name}.zip"
        write_archive(path, content)
        click.echo(f"The recipe of {kind.subject(number)} in {path}.")

    return export
