"""All matches, with filters, and one match event by event."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import format_decimal, gettext, lazy_gettext
from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from app.core.errors import Invalid, NotFound, Phrase
from app.core.extensions import reading
from app.datasets.store import datasets_of_match
from app.games import GAMES
from app.games.base import JSON, Event
from app.matches.blinding import blinded_conditions, blinded_of
from app.matches.events import Violated
from app.matches.filter import CONSENTS, EVERYTHING, SOURCES, STATUSES, check_known, read_choice
from app.matches.listing import LIST, scores_of
from app.matches.overview import MatchListItem, leaves_out_rehearsals, reasons
from app.matches.stored import StoredMatch, load
from app.matches.timeline import TimelineStep, timeline_of, views_after
from app.models import MatchRow, RoundRow
from app.registry import PERSON, list_models
from app.rounds.job import ROUND
from app.rounds.listing import list_items
from app.web.admin.blueprint import blueprint
from app.web.admin.job_pages import headed, job_name
from app.web.admin.lists import ListFilter, ListPage, add_address, add_list
from app.web.admin.proposals import items_asked_for, proposals_of, shares
from app.web.translations import N_, game_titles

_SEATS = (lazy_gettext("First seat"), lazy_gettext("Second seat"))
_NAMES = ("first", "second")
_SELDOM = {
    "match": N_("Match"), "round": N_("Round"), "campaign": N_("Campaign"), "study": N_("Study"), "arm": N_("Arm"),
    "prompt": N_("System prompt"),
}  # fmt: skip
_MATCH = re.compile(r"[A-Za-z0-9_-]{1,22}")


# ---- The list ----------------------------------------------------------------


def _filters(session: Session) -> list[ListFilter]:
    players = [PERSON, *(model.name for model in list_models(session))]
    roles = dict.fromkeys(role for game in GAMES.values() for role in game.roles)
    return [
        *(
            ListFilter(name, gettext(title), type="number" if name in ("round", "campaign") else "text", seldom=True)
            for name, title in _SELDOM.items()
        ),
        ListFilter("game", gettext("Game"), game_titles(), any=gettext("Any game")),
        *(
            ListFilter(name, title, {value: value for value in values})
            for name, title, values in (
                ("player", gettext("Player"), players),
                ("role", gettext("Role"), roles),
                ("reason", gettext("Ended as"), reasons(session)),
                ("status", gettext("Status"), STATUSES),
                ("source", gettext("Source"), SOURCES),
                ("consent", gettext("Consent to training"), CONSENTS),
            )
        ),
        ListFilter("text", gettext("Said"), type="search"),
        ListFilter("figures", gettext("Figures")),
        ListFilter("since", gettext("Since, UTC"), type="date"),
        ListFilter("until", gettext("Until, UTC"), type="date"),
    ]


def _match_conditions(session: Session, given: Mapping[str, str]) -> list[ColumnElement[bool]]:
    choice = read_choice(given)
    check_known(session, choice)
    return blinded_conditions(choice, request.args.get("sort", ""))


def _around(session: Session, given: Mapping[str, str]) -> dict[str, Any]:
    """Whether the list is filtered, and leaves out matches of bots and previews."""
    try:
        choice = read_choice(given)
    except (Invalid, NotFound):
        return {}
    return {"filtered": choice != EVERYTHING, "without_rehearsals": leaves_out_rehearsals(session, choice)}


def _scores_of_both_seats(_session: Session, lines: Sequence[MatchListItem]) -> list[str]:
    """The scores of both seats, where known."""
    scores = map(scores_of, lines)
    written = (
        [format_decimal(each, "0.######").replace("-", "−") for each in both if each is not None] for both in scores
    )
    return [" : ".join(both) for both in written]


add_address("match", lambda match_id: url_for("admin.match", match_id=match_id))
add_list(
    ListPage(
        LIST,
        lazy_gettext("Matches"),
        "matches",
        about=lazy_gettext("No match has been played yet."),
        template="admin/matches.html",
        filters=_filters,
        where=_match_conditions,
        fields=_around,
        values={"scores": _scores_of_both_seats},
    )
)


# ---- One match ---------------------------------------------------------------


@blueprint.get("/matches/<match_id>")
def match(match_id: str) -> ResponseReturnValue:
    """One match as it stood after the event `at`, counted from 1, or after the last event by default.

    What was said in a blinded match is read on the page of transcripts, which reveals nothing else.
    """
    if not _MATCH.fullmatch(match_id):
        raise NotFound("match", expected=Phrase("one that exists"), got=match_id)
    with reading() as session:
        if blinded_of(session, [match_id]):
            return redirect(url_for("admin.transcript_search", match=match_id, read=match_id))
        record = load(session, match_id)
        timeline = timeline_of(session, record)
        timeline_steps = timeline.steps
        at = _read_event(request.args.get("at", ""), len(timeline_steps))
        first, second = views_after(record, at - 1)
        row = session.get_one(MatchRow, match_id)
        players = [_player(record, seat) for seat in (0, 1)]
        logged = [step.logged.event for step in timeline_steps]
        return render_template(
            "admin/match.html",
            match=row,
            title=game_titles().get(row.game, row.game),
            accepted=sum(isinstance(event, Event) for event in logged),  # in the log shown
            refused=sum(isinstance(event, Violated) for event in logged),
            players=players,
            round=_round_of_match(session, row),
            datasets=datasets_of_match(session, match_id),
            events=[_shown_event(step) for step in timeline_steps],
            at=at,
            current=timeline_steps[at - 1],
            failed_calls=timeline.failed,
            seats=[_seat(seat, players[seat]["name"], view) for seat, view in enumerate((first, second))],
            offers=proposals_of(logged[:at], (first, second)),
        )


def _round_of_match(session: Session, match: MatchRow) -> dict[str, Any] | None:
    """The round of a match, and the matches before and after this one if they have begun; None without a round."""
    if match.round_id is None or match.index is None:
        return None
    beside = select(MatchRow.id).where(MatchRow.round_id == match.round_id).limit(1)
    [line] = list_items(session, [session.get_one(RoundRow, match.round_id)])
    return {
        "row": line.row,
        "name": headed(ROUND, line)["name"],
        "numbered": job_name(ROUND, match.round_id),
        "index": match.index,
        "previous": session.scalar(beside.where(MatchRow.index < match.index).order_by(MatchRow.index.desc())),
        "next": session.scalar(beside.where(MatchRow.index > match.index).order_by(MatchRow.index)),
    }


def _read_event(text: str, events: int) -> int:
    if not text:
        return events
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= events):
        raise Invalid("at", expected=Phrase("the number of an event, from 1 to %(events)s", events=events), got=text)
    return int(text)


def _player(record: StoredMatch, seat: int) -> dict[str, Any]:
    filled = record.seats[seat]
    name = filled.player or PERSON if filled.spec is None else filled.spec.name
    return {"name": name, "model_id": filled.language_model_id}


def _shown_event(step: TimelineStep) -> dict[str, Any]:
    """An event as the list shows it; `body` holds the fields of its log entry."""
    event, seat = step.logged.event, step.logged.seat
    return {
        "number": step.logged.seq + 1,
        "who": gettext("Table") if seat is None else str(_SEATS[seat]),
        "side": "" if seat is None else _NAMES[seat],
        "kind": step.kind,
        "at": step.logged.at,
        "event": event,
        "asked": items_asked_for(event),
        "shares": shares(event),
        "generation": step.generation,
    }


def _seat(seat: int, name: str, view: JSON) -> dict[str, Any]:
    """A private view as the page shows it: values by item as a table, all others by name."""
    known = {**view["facts"], **view["secret"]}
    if isinstance(split := known.pop("split", None), dict):
        known |= {"got": split["you"], "partner_got": split["partner"]}
    by_item = {field: value for field, value in known.items() if isinstance(value, dict)}
    items = list(dict.fromkeys(item for value in by_item.values() for item in value))
    return {
        "player": name,
        "name": _NAMES[seat],
        "view": view,
        "items": items,
        "by_item": by_item,
        "facts": {field: value for field, value in known.items() if field not in by_item},
        "own": set(view["secret"]),
    }
