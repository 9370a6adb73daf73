"""`flask backup` and `flask restore`: write everything in an installation to one file, and load it again."""

from pathlib import Path
from typing import Any

import click

from app.backup.archive import ArchiveReader, Manifest
from app.backup.create import create
from app.backup.restore import restore as put_back
from app.cli.base import Command, json_option, print_json, settings
from app.core.extensions import db
from app.matches.engine import readable


@click.command(cls=Command)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--overwrite", is_flag=True, help="Overwrite an existing file.")
@json_option
def backup(file: Path, overwrite: bool, as_json: bool) -> None:
    """Write a backup while Parlor runs: the whole database, and the files that its rows point to.

    All of it is as it was at one moment. The file is read again and checked before it gets its name.
    """
    manifest = create(settings(), db.engine, file, overwrite=overwrite)
    _print_summary(manifest, as_json, f"Wrote {file}")


@click.command(cls=Command)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--replace", is_flag=True, help="Replace what is there; nothing of it is kept.")
@click.option("--check", is_flag=True, help="Only read the backup and compare it with its hashes.")
@json_option
def restore(file: Path, replace: bool, check: bool, as_json: bool) -> None:
    """Restore a backup, completely or not at all. Parlor has to be stopped.

    A backup of SQLite can be put into PostgreSQL and the other way round; one of an earlier version is migrated.
    """
    if check:
        reader = ArchiveReader(file)
        reader.check()
        _print_summary(reader.manifest, as_json, f"{file} is whole")
        return
    manifest = put_back(settings(), db.engine, file, replace=replace)
    _print_summary(manifest, as_json, f"Restored {file}")


def _print_summary(manifest: Manifest, as_json: bool, what: str) -> None:
    rows = {name: entry.rows for name, entry in manifest.tables.items()}
    if as_json:
        facts: dict[str, Any] = {name: getattr(manifest, name) for name in ("created_at", "revision", "database")}
        print_json({**facts, "rows": rows, "files": len(manifest.files), "left_out": manifest.left_out})
        return
    for line in manifest.left_out:
        click.echo(f"Not in it: {readable(line)}", err=True)
    click.echo(
        f"{what}: {rows.get('match', 0)} matches, {rows.get('event', 0)} events, {sum(rows.values())} rows in all, and"
        f" {len(manifest.files)} files, as of {manifest.created_at}."
    )
