"""Output of commands to a file or stdout: `--out`, `--json` beside it, and the writing."""

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from app.cli.base import unwritable
from app.core.errors import Invalid, Verbatim
from app.core.files import replace_file, write_all

STDOUT = "-"

out_option = click.option("--out", default=STDOUT, metavar="FILE", help="Where to write; - or nothing: to stdout.")
json_with_out_option = click.option(
    "--json", "as_json", is_flag=True, help="Print what was written as JSON; needs --out FILE."
)


def check_target(out: str, as_json: bool, what: str) -> None:
    """Raises Invalid if JSON and the output would both go to stdout; `what` is the output's part of the message."""
    if as_json and out == STDOUT:
        expected = f"--out FILE with it, because {what} to stdout"
        raise Invalid("--json", expected=expected, got=Verbatim("none"))


def write_out(pieces: Iterable[bytes], out: str) -> None:
    """Write all pieces to stdout, or to a file, which is replaced completely or left as it was. Raises Invalid."""
    if out == STDOUT:
        write_all(pieces, sys.stdout.buffer)
        return
    path = Path(out).resolve()  # what a link points at is replaced, not the link
    try:
        if path.is_dir():
            raise Invalid("--out", expected="a file", got=Verbatim(f"the folder {out}"))
        if path.exists() and not path.is_file():
            with path.open("wb") as device:  # a pipe or a device is written to, never replaced
                write_all(pieces, device)
        else:
            replace_file(path, pieces)
    except OSError as error:
        raise unwritable(out, error) from None
