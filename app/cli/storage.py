"""`flask storage`: what Parlor keeps on disk."""

import click

from app.cli.base import Command, ensure_database, print_result, settings
from app.cli.tables import aligned
from app.core.disk import MB
from app.core.extensions import reading
from app.spend.storage import KINDS, read_storage


@click.command(cls=Command)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; sizes are in bytes.")
def storage(as_json: bool) -> None:
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
