"""`flask storage`: show what Parlor keeps on disk, and free space, which can be undone."""

from collections.abc import Sequence
from typing import Any

import click

from app.cleanup import remove as removing
from app.cleanup import restore as restoring
from app.cleanup.listing import AT_MOST, REMOVALS, CleanupFilter, candidate_list, candidates, dependent_in_words
from app.cleanup.remove import RemovalPreview
from app.cli.base import WHOLE, Command, Group, counted, ensure_database, json_option, print_result, settings
from app.cli.lists import list_options, print_list
from app.cli.tables import aligned
from app.core.disk import MB
from app.core.errors import Invalid, Verbatim
from app.core.extensions import db, reading
from app.core.lists import plain
from app.spend.stop import COMMAND_LINE
from app.spend.storage import KINDS, read_storage

_FILTER = (
    click.option("--kind", metavar="KIND", help="Only these; a wrong one lists them all. [default: all]"),
    click.option("--older-than", "days", type=click.FloatRange(min=0), default=0, help="Made so many days ago."),
    click.option("--at-least", "megabytes", type=click.FloatRange(min=0), default=0, help="With so many MB of files."),
)  # fmt: skip


def _filter_options(command: Any) -> Any:
    for option in reversed(_FILTER):
        command = option(command)
    return command


class _Storage(Group):
    """The group, which prints the overview if it is called without a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ["show", *args] if args in ([], ["--json"]) else args)


@click.group(cls=_Storage)
def storage() -> None:
    """Show disk use, and free disk space; this can be undone."""


@storage.command(cls=Command)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; sizes are in bytes.")
def show(as_json: bool) -> None:
    """Show what Parlor keeps on disk, by kind, and how much is free."""
    ensure_database()
    with reading() as session:
        found = read_storage(session, settings())
    lines = [(str(KINDS[each.kind]), f"{each.size / MB:.1f}", str(each.files)) for each in found.kinds]
    print_result(
        as_json,
        {"kinds": [each._asdict() for each in found.kinds], "free": found.free, "disk": found.disk},
        *aligned([("kind", "MB", "files"), *lines], right={1, 2}),
        f"Together {found.size / MB:.1f} MB; {found.free / MB:.0f} of {found.disk / MB:.0f} MB of the disk are free.",
    )


@storage.command("list", cls=Command)
@_filter_options
@list_options
def list_(kind: str | None, days: float, megabytes: float, **given: Any) -> None:
    """List what could be removed, the largest first, with what depends on it and what cannot go.

    Of what matches, the oldest 50 are examined, or with --limit and --offset as many as these need.
    """
    choice = CleanupFilter(kind, days, megabytes * MB).check()
    listing = candidate_list(settings().home, choice, max(AT_MOST, given["offset"] + (given["limit"] or 0)))
    print_list(
        listing,
        "flask storage list",
        "Nothing matches the filter.",
        described=lambda _session, found: [described(each) for each in found],
        **given,
    )


@storage.command(cls=Command)
@click.argument("things", nargs=-1, metavar="[KIND:NUMBER]...")
@_filter_options
@click.option("--needed", is_flag=True, help="With a filter, also remove what something else was made from.")
@click.option("--no-archive", is_flag=True, help="Keep the files for as long as it can be undone, and no longer.")
@click.option("--check", is_flag=True, help="Only say what would go, what depends on it, and what cannot go.")
@json_option
def clean(
    things: Sequence[str],
    kind: str | None,
    days: float,
    megabytes: float,
    needed: bool,
    no_archive: bool,
    check: bool,
    as_json: bool,
) -> None:
    """Remove things, such as round:12, or those of a filter that nothing depends on; `flask storage undo` undoes it."""
    if bool(things) == bool(kind or days or megabytes):
        raise Invalid("clean", expected="things such as round:12, or a filter", got=Verbatim("neither or both"))
    ensure_database()
    home = settings().home
    with reading() as session:
        if things:
            found = removing.together(removing.preview(session, home, *_thing(each)) for each in things)
        else:
            chosen = candidates(session, home, CleanupFilter(kind, days, megabytes * MB).check())
            found = [each for each in chosen if not each.keepers and (needed or not each.dependents)]
    if kept := [each for each in found if each.keepers and not check]:
        removing.refuse_kept(kept[0])  # before any is removed
    removals = []
    for each in found:
        if not check:
            removal = removing.remove(
                settings(), db.engine, each.kind, each.number, COMMAND_LINE, archive_files=not no_archive
            )
            removals.append(removal)
    size = sum(each.size for each in found)
    said = {"removed": not check, "things": [described(each) for each in found], "removals": [r.id for r in removals]}
    what = f"{counted(len(found), 'thing')} with {size / MB:.1f} MB of files"
    last = f"Would remove {what}." if check else f"Removed {what}."
    if removals:
        numbers = ", ".join(str(removal.id) for removal in removals)
        last += f" `flask storage undo NUMBER` puts back what removal {numbers} took."
    print_result(as_json, said, *_removal_preview_lines(found), last)


@storage.command(cls=Command)
@list_options
def removed(**options: Any) -> None:
    """List what was removed, when and by whom, and until when that can be undone."""
    print_list(REMOVALS, "flask storage removed", "Nothing was removed.", **options)


@storage.command(cls=Command)
@click.argument("number", metavar="REMOVAL", type=WHOLE)
@json_option
def undo(number: int, as_json: bool) -> None:
    """Put back what a removal took: the same rows and files, under the same numbers."""
    ensure_database()
    removal = restoring.restore(settings(), db.engine, number, COMMAND_LINE)
    said = {"removal": number, "kind": removal.kind, "number": removal.number, "name": removal.name}
    print_result(as_json, said, f"Put back {removal.kind} {removal.number}, {removal.name}.")


@storage.command("delete-archive", cls=Command)
@click.argument("number", metavar="REMOVAL", type=WHOLE)
def delete_archive(number: int) -> None:
    """Delete the archive of a removal, after which nothing can put back what it took."""
    ensure_database()
    restoring.delete_archive(settings(), db.engine, number)
    click.echo(f"Deleted the archive of removal {number}.")


def described(each: RemovalPreview) -> dict[str, Any]:
    """The effect of removing a model or dataset, as JSON."""
    return {
        "kind": each.kind,
        "number": each.number,
        "name": each.name,
        "bytes": each.size,
        "files": len(each.files),
        "shared_with": each.shared,
        "can_go": not each.keepers,
        "dependents": [
            {**dict(zip(("kind", "number", "name"), map(plain, one.what[:3]), strict=True)), "why": str(one.why),
             "keeps": one.keeps}
            for one in each.dependents
        ],
    }  # fmt: skip


def _thing(text: str) -> tuple[str, int]:
    kind, _, number = text.partition(":")
    if not (number.isascii() and number.isdecimal() and len(number) < 11):
        raise Invalid("clean", expected="a kind and a number, such as round:12", got=text)
    return kind, int(number)


def _removal_preview_lines(found: Sequence[RemovalPreview]) -> list[str]:
    lines = []
    for each in found:
        size = f"{each.size / MB:.1f} MB in {counted(len(each.files), 'file')}"
        shared = f"; {counted(each.shared, 'other thing')} with the same files" if each.shared else ""
        lines.append(f"{each.name} ({each.kind}:{each.number}): {size}{shared}")
        lines += [f"  {'cannot go' if one.keeps else 'needed'}: {dependent_in_words(one)}" for one in each.dependents]
    return lines
