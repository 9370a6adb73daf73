"""Transcripts: a search of matches by words and figures, and one match to read beside the list."""

from collections.abc import Mapping
from typing import Any

from flask import render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import lazy_gettext
from sqlalchemy.orm import Session

from app.core.errors import AppError, Invalid, NotFound
from app.core.extensions import reading
from app.core.validation import whole_number
from app.matches import transcripts
from app.matches.codings import MOST_MATCHES, open_codings
from app.matches.filter import EVERYTHING, NAMES, MatchFilter, check_known, read_choice
from app.matches.words import TextQuery, read_query
from app.web.admin.blueprint import blueprint
from app.web.translations import game_titles

_ORDERS = {
    "-began": lazy_gettext("Newest first"), "lower_score": lazy_gettext("Lowest score first"),
    "-lower_score": lazy_gettext("Best lower score first"), "joint_score": lazy_gettext("Lowest joint score first"),
    "-joint_score": lazy_gettext("Best joint score first"), "-refused": lazy_gettext("Most refused moves first"),
    "-moves": lazy_gettext("Most moves first"), "-words": lazy_gettext("Most words first"),
    "began": lazy_gettext("Oldest first"),
}  # fmt: skip
_READY_MADE = (
    ("lower_score", lazy_gettext("Lowest scores")), ("-joint_score", lazy_gettext("Best together")),
    ("-refused", lazy_gettext("Most refused moves")), ("-words", lazy_gettext("Longest")),
)  # fmt: skip
_FACETS = {
    "game": lazy_gettext("Game"), "player": lazy_gettext("Who plays"), "source": lazy_gettext("Source"),
    "reason": lazy_gettext("Ended as"),
}  # fmt: skip
_ASKED = (*NAMES, "sort", "page", "read")
_FIELDS = ("text", "figures", "since", "until")  # the form's fields


@blueprint.get("/matches/transcripts")
def transcript_search() -> ResponseReturnValue:
    """The matches that a search finds, one page at a time, and the match to read, by default the first."""
    return transcripts_page({name: text for name in _ASKED if (text := request.args.get(name, ""))})


def transcripts_page(asked: Mapping[str, str], refused: AppError | None = None) -> ResponseReturnValue:
    """The page for a search, and the reason why an action on its matches was refused."""
    with reading() as session:
        try:
            page = _search_fields(session, {name: text for name, text in asked.items() if name in _ASKED})
        except (Invalid, NotFound) as error:
            refused, page = error, {"found": None}
        fields = {**_form_fields(asked), **page}
        return render_template("admin/transcripts.html", **fields, refused=refused), refused.status if refused else 200


def address(asked: Mapping[str, str], **changed: Any) -> str:
    """The URL of the page with its current parameters, some of them changed; None removes one."""
    return url_for("admin.transcript_search", **{**asked, **changed})


def _form_fields(asked: Mapping[str, str]) -> dict[str, Any]:
    return {
        "asked": asked, "address": lambda **changed: address(asked, **changed), "orders": _ORDERS,
        "ready_made": _READY_MADE, "titles": game_titles(),
        "kept": {name: asked[name] for name in NAMES if name in asked and name not in _FIELDS},
    }  # fmt: skip


def _search_fields(session: Session, asked: Mapping[str, str]) -> dict[str, Any]:
    choice = read_choice(asked)
    check_known(session, choice)
    number = whole_number(asked.get("page", "1"), "page", 1, transcripts.MOST_PAGES)
    found = transcripts.search(session, choice, asked.get("sort", transcripts.NEWEST), number)
    ids = [hit.item.match.id for hit in found.hits]
    read = asked.get("read") or (ids[0] if ids else None)
    return {
        "found": found,
        "first": (number - 1) * transcripts.PAGE + 1,
        "number": number,
        "pages": -(-found.total // transcripts.PAGE),
        "facets": [(name, _FACETS[name], values) for name, values in transcripts.facets(session, choice).items()],
        "filtered": choice != EVERYTHING,
        "codings": open_codings(session),
        "most": MOST_MATCHES,
        "names": NAMES,
        "reader": None if read is None else _transcript_to_read(session, read, choice),
        **_neighbour_addresses(asked, ids, read, number, found.total),
    }


def _transcript_to_read(session: Session, match_id: str, choice: MatchFilter) -> transcripts.Transcript:
    query = TextQuery((), ()) if choice.text is None else read_query(choice.text)
    return transcripts.transcript(session, match_id, query)


def _neighbour_addresses(
    asked: Mapping[str, str], ids: list[str], read: str | None, number: int, total: int
) -> dict[str, str | None]:
    """The URLs of the matches before and after the one being read, including those on adjacent pages."""
    place = ids.index(read) if read in ids else None
    before = after = None
    if place is not None and place > 0:
        before = address(asked, read=ids[place - 1], _anchor="read")
    elif place == 0 and number > 1:
        before = address(asked, read=None, page=number - 1, _anchor="read")
    if place is not None and place + 1 < len(ids):
        after = address(asked, read=ids[place + 1], _anchor="read")
    elif place is not None and number * transcripts.PAGE < total:
        after = address(asked, read=None, page=number + 1, _anchor="read")
    return {"before": before, "after": after}
