"""`flask report`: a page with the results of a run, study, society or tournament, and the data and figures behind
it.
"""

import importlib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import click

from app.cli.base import Command, counted, ensure_database, json_option, print_json, settings, unwritable
from app.core.commit import program_commit
from app.core.errors import Invalid, Verbatim
from app.core.extensions import reading
from app.core.files import replace_file, temporary_beside
from app.core.zip_files import zipped
from app.reports.files import files_of, html_of
from app.reports.origins import ReportContext
from app.reports.subjects import SUBJECTS, build_report

_DRAWING = "app.analysis.drawing"  # loaded by name, only to draw: commands are part of the web process


def _subject_options(command: click.Command) -> click.Command:
    for name, subject in reversed([*SUBJECTS.items()]):
        command = click.option(f"--{name}", metavar=subject.metavar, help=subject.help)(command)
    return command


@click.command(cls=Command)
@_subject_options  # type: ignore[arg-type]
@click.option(
    "--control",
    metavar="C",
    help="What it is compared with: another campaign's number, or an arm of a recipe, such as filter=all.",
)
@click.option("--out", metavar="PATH", type=Path, help="NAME.zip, NAME.html or a new folder; by default report-….zip.")
@json_option
def report(out: Path | None, control: str | None, as_json: bool, **given: str | None) -> None:
    """Write a report: figures with intervals, tables, methods, versions, seeds, hashes, prompts, how to reproduce it.

    report.html loads nothing from elsewhere. The archive or folder has the CSV behind every figure and table in data/,
    and each figure as SVG, PDF and PNG in figures/; a path that ends in .html gets the page alone. The same data give
    the same bytes, but for the line with the date. What people wrote is never in it.
    """
    name, reference = _chosen_subject(given)
    if out is not None and out.exists():
        raise Invalid("--out", expected="a path that is not there yet", got=Verbatim(str(out)))
    ensure_database()
    context = ReportContext(settings().home, program_commit(), control)
    with reading() as session:
        found = build_report(session, name, reference, context)
    path, draw, now = out or Path(f"{found.name}.zip"), importlib.import_module(_DRAWING).draw_specs, datetime.now(UTC)
    if path.exists():
        raise Invalid("--out", expected="a path that is not there yet", got=Verbatim(str(path)))
    try:
        if path.suffix == ".html":
            files = {path.name: html_of(found, draw, now)}
            replace_file(path, files.values())
        else:
            files = files_of(found, draw, now)
            if path.suffix == ".zip":
                replace_file(path, [zipped(found.name, files)])
            else:
                _write_folder(path, files)
    except OSError as error:
        raise unwritable(path, error) from None
    if as_json:
        print_json({"report": str(path), "files": sorted(files)})
        return
    click.echo(f"{found.finding}\nWrote {counted(len(files), 'file')} to {path}.")


def _chosen_subject(given: Mapping[str, str | None]) -> tuple[str, str]:
    """The kind and name of the report's subject, given by one option. Raises Invalid."""
    chosen = [(name, reference) for name, reference in given.items() if reference is not None]
    if len(chosen) != 1:
        options = ", ".join(f"--{name}" for name in SUBJECTS)
        got = " and ".join(f"--{name}" for name, _ in chosen) or "none"
        raise Invalid(None, expected=f"one of {options}", got=Verbatim(got), subject="report")
    return chosen[0]


def _write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    with temporary_beside(folder) as draft:
        for name, content in files.items():
            path = draft / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
