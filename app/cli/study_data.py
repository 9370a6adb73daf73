"""`flask study export-data`: what people did in a study, as one archive. `app/cli/study.py` adds it to its group."""

from pathlib import Path

import click

from app.cli.base import Command, counted, ensure_database, print_json, unwritable
from app.core.errors import Invalid, Verbatim
from app.core.extensions import reading, writing
from app.studies.export.archive import note_ids, read_one_moment, write_archive
from app.studies.export.scope import find_scope


@click.command("export-data", cls=Command)
@click.argument("reference", metavar="STUDY[:WAVE]")
@click.option("--out", required=True, metavar="FILE.zip", type=Path, help="Where to write.")
@click.option("--with-ids", is_flag=True, help="Add ids.csv with the recruiter's ids; that is kept in the log.")
@click.option("--public", is_flag=True, help="Leave out what people wrote in their own words.")
@click.option("--bom", is_flag=True, help="Begin CSVs with a byte order mark, by which Excel knows UTF-8.")
@click.option("--guard", is_flag=True, help="Keep spreadsheets from running text and rounding seeds.")
@click.option("--since-freeze", is_flag=True, help="Write what came after the waves were frozen: pay, consent, log.")
@click.option("--json", "as_json", is_flag=True, help="Print the files of the archive as one JSON object.")
def export_data(
    reference: str,
    out: Path,
    with_ids: bool,
    public: bool,
    bom: bool,
    guard: bool,
    since_freeze: bool,
    as_json: bool,
) -> None:
    """Write the data of a study, or of one wave of it, with a codebook; the same data gives the same bytes.

    Once a wave is frozen its data stay as they are; later adjustments of pay are written with --since-freeze.
    """
    if with_ids and since_freeze:
        raise Invalid("--since-freeze", expected="it without --with-ids", got=Verbatim("both"))
    if with_ids and public:
        raise Invalid("--public", expected="it without --with-ids", got=Verbatim("both"))
    ensure_database()
    if with_ids:
        with writing() as session:
            note_ids(session, find_scope(session, reference), "command line")
    with reading() as session:
        read_one_moment(session)
        scope = find_scope(session, reference, public=public, with_ids=with_ids, since_freeze=since_freeze)
        try:
            files = write_archive(session, scope, out.resolve(), guard=guard, bom=bom)
        except OSError as error:
            raise unwritable(out, error) from None
    if as_json:
        print_json({"file": str(out), "files": [each._asdict() for each in files]})
    elif since_freeze:
        click.echo(f"Wrote what came since the freeze to {out}.")
    else:
        people = next(each.rows for each in files if each.name == "analysis.csv")
        click.echo(f"Wrote {counted(people, 'person', 'people')} to {out}.")
