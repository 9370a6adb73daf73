"""System prompts and personas: texts given to models in addition to the rules, by name and version."""

import hashlib
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import String, func, select
from sqlalchemy.orm import Session

from app.core.errors import Invalid, NotFound, Phrase, Verbatim
from app.core.lists import COMMANDS, Code, ListColumn, Listing, Reference, attribute
from app.core.validation import is_storable
from app.games.base import JSON
from app.models import PromptRow

MOST_CHARACTERS = 8000
NO_PROMPT = "none"  # in place of a prompt's name
COMMAND_LINE = "the command line"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


def add_prompt(session: Session, name: str, text: str, by: str) -> PromptRow:
    """Add a prompt, or the next version of one. If the text is that of the newest version, return that version.

    Raises Invalid.
    """
    text = text.replace("\r\n", "\n").strip()
    if _NAME.fullmatch(name) is None or name == NO_PROMPT:
        expected = Phrase("at most 40 lower-case letters, digits and hyphens, and not %(word)s", word=NO_PROMPT)
        raise Invalid("name", expected=expected, got=name)
    if not is_storable(text):
        raise Invalid("text", expected=Phrase("characters that can be stored"), got=ascii(text[:80]))
    if not 1 <= len(text) <= MOST_CHARACTERS:
        raise Invalid("text", expected=Phrase("1 to %(most)s characters", most=MOST_CHARACTERS), got=len(text))
    newest = _versions_of_prompt(session, name)[-1:]
    if newest and newest[0].text == text:
        return newest[0]
    row = PromptRow(
        name=name,
        version=newest[0].version + 1 if newest else 1,
        text=text,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        created_at=datetime.now(UTC),
        created_by=by,
    )
    session.add(row)
    session.flush()
    return row


def find_prompt(session: Session, named: str, field: str | None = "prompt") -> PromptRow:
    """A prompt by NAME@VERSION, or the newest of a NAME. Raises NotFound."""
    name, _, version = named.partition("@")
    rows = [each for each in _versions_of_prompt(session, name) if version in ("", str(each.version))]
    if not rows:
        raise NotFound(
            field,
            expected=Phrase("the name of an existing prompt, or NAME@VERSION"),
            got=named,
            remedy=Phrase("`flask prompt list` shows them"),
        )
    return rows[-1]


def settled_prompts(session: Session, named: Sequence[str]) -> list[str | None]:
    """The prompts of two models as NAME@VERSION or None; a single one is for both. Raises NotFound, Invalid."""
    if len(named) > 2:
        raise Invalid("prompts", expected=Phrase("one prompt, or one for each of two models"), got=len(named))
    found = [None if each == NO_PROMPT else find_prompt(session, each, "prompts").reference for each in named]
    return found * (3 - len(found)) if found else []


def player_prompt(session: Session, named: str | None) -> JSON | None:
    """A prompt as passed to a player; None for none. Raises NotFound."""
    if named is None:
        return None
    row = find_prompt(session, named)
    return {"prompt": row.reference, "text": row.text}


def _versions_of_prompt(session: Session, name: str) -> Sequence[PromptRow]:
    """All versions of a prompt, the newest last."""
    return session.scalars(select(PromptRow).where(PromptRow.name == name).order_by(PromptRow.version)).all()


class PromptListItem(NamedTuple):
    """A version of a prompt in a list."""

    row: PromptRow


def _link_to_matches(each: PromptListItem) -> Reference:
    # Without their number: that would read all seats, which have no index by prompt.
    named = each.row.reference
    return Reference("matches of prompt", named, Phrase("matches with %(prompt)s", prompt=Verbatim(named)))


LIST: Listing[PromptRow] = Listing(
    name="prompts",
    table=PromptRow,
    columns=(
        ListColumn(
            "prompt",
            Phrase("Prompt"),
            lambda each: each.row.reference,
            sort=func.lower(PromptRow.name, type_=String),
            notes=lambda each: [_link_to_matches(each)],
        ),
        ListColumn("text", Phrase("Text"), lambda each: each.row.text),
        ListColumn(
            "sha256", Phrase("SHA-256"), lambda each: Code(each.row.sha256[:12]), sort=PromptRow.sha256, seen=COMMANDS
        ),
        attribute(PromptRow.created_at, Phrase("Added, UTC"), numeric=True),
        attribute(PromptRow.created_by, Phrase("By")),
    ),
    items=lambda _session, rows: [PromptListItem(row) for row in rows],
)
