"""`flask KIND tag` and `note`, for jobs of every kind, models and datasets."""

from collections.abc import Callable, Sequence

import click
from sqlalchemy.orm import Session

from app.cli.base import Group, ensure_database, json_option, print_json
from app.core.errors import Invalid, Phrase
from app.core.extensions import writing
from app.core.validation import whole_number
from app.jobs import tags as service

_BY = "command line"
_LARGEST = 2**31 - 1

tag_option = click.option("--tag", metavar="TAG", help="Only those that have this tag.")


def whole(text: str) -> int:
    """The number of a job from typed text. Raises Invalid."""
    return whole_number(text, "number", 1, _LARGEST)


def add_tag_commands(group: Group, kind: str, find: Callable[[Session, str], int]) -> None:
    """Add `tag` and `note` to a group. `find` returns the number for a given name; raises NotFound."""
    what = click.argument("which", metavar=kind.upper())

    @group.command("tag", help="Add or remove tags, and show all tags.")
    @what
    @click.argument("names", metavar="[TAG]...", nargs=-1)
    @click.option("--remove", is_flag=True, help="Remove these tags.")
    @json_option
    def tag(which: str, names: Sequence[str], remove: bool, as_json: bool) -> None:
        ensure_database()
        with writing() as session:
            number = find(session, which)
            if remove:
                service.remove_tags(session, kind, number, names)
            else:
                service.add_tags(session, kind, number, names, _BY)
            found = service.tags_of(session, kind, [number]).get(number, [])
        if as_json:
            print_json({"number": number, "tags": found})
        else:
            click.echo(", ".join(found) or "No tags.")

    @group.command("note", help="Add or delete a note, and show all notes.")
    @what
    @click.argument("text", required=False)
    @click.option("--remove", type=int, metavar="NOTE", help="Delete the note of that number.")
    @json_option
    def note(which: str, text: str | None, remove: int | None, as_json: bool) -> None:
        if text is not None and remove is not None:
            raise Invalid("--remove", expected=Phrase("it or a text"), got=Phrase("both"))
        ensure_database()
        with writing() as session:
            number = find(session, which)
            if remove is not None:
                service.remove_note(session, kind, number, remove)
            elif text is not None:
                service.add_note(session, kind, number, text, _BY)
            found = service.notes_of(session, kind, [number]).get(number, [])
        if as_json:
            print_json({"number": number, "notes": [each.as_json() for each in found]})
        else:
            lines = [f"{each.id}  {each.at:%Y-%m-%d %H:%M}  {each.by}: {each.text}" for each in found]
            click.echo("\n".join(lines) or "No notes.")
