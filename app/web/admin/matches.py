"""All matches, by what they are, and one match event by event."""

import re
from datetime import UTC, datetime
from typing import Any

from flask import render_template, request
from flask.typing import ResponseReturnValue
from flask_babel import gettext, lazy_gettext
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import AppError, Invalid, NotFound, Phrase
from app.core.extensions import reading
from app.datasets.store import datasets_of_match
from app.games import GAMES
from app.games.base import JSON, Event
from app.matches.events import Violated
from app.matches.filter import CONSENTS, EVERYTHING, NAMES, SOURCES, STATUSES, MatchFilter, check_known, read_choice
from app.matches.overview import PageCursor, chosen_matches, leaves_out_rehearsals, reasons
from app.matches.stored import StoredMatch, load
from app.matches.timeline import TimelineStep, steps, views_after
from app.models import MatchRow, RoundRow
from app.registry import PERSON, list_models
from app.web.admin.blueprint import blueprint
from app.web.admin.match_items import match_item
from app.web.admin.proposals import asked_for, proposals_of, shares
from app.web.translations import game_titles

_SEATS = (lazy_gettext("First"), lazy_gettext("Second"))
_NAMES = ("first", "second")
_MATCH = re.compile(r"[A-Za-z0-9_-]{1,22}")


# ---- The list ----------------------------------------------------------------


@blueprint.get("/matches")
def matches() -> ResponseReturnValue:
    """A page of the matches that the filter chooses, the latest first."""
    given = {name: request.args[name] for name in NAMES if request.args.get(name)}
    try:
        return _list(given, read_choice(given), _read_cursor(request.args.get("before", "")), None)
    except (Invalid, NotFound) as error:
        return _list(given, None, None, error), 400


def _list(
    given: dict[str, str], choice: MatchFilter | None, before: PageCursor | None, refused: AppError | None
) -> str:
    now = datetime.now(UTC)
    with reading() as session:
        if choice is not None:
            check_known(session, choice)
        lines, after = ([], None) if choice is None else chosen_matches(session, choice, before)
        return render_template(
            "admin/matches.html",
            matches=[match_item(line, now) for line in lines],
            given=given,
            filtered=choice != EVERYTHING,
            without_rehearsals=choice is not None and leaves_out_rehearsals(session, choice),
            refused=refused,
            first=before is None,
            older=None if after is None else f"{after.started_at.isoformat()}~{after.id}",
            titles=game_titles(),
            players=[PERSON, *(model.name for model in list_models(session))],
            reasons=reasons(session),
            statuses=STATUSES,
            roles=list(dict.fromkeys(role for game in GAMES.values() for role in game.roles)),
            sources=SOURCES,
            consents=CONSENTS,
        )


def _read_cursor(text: str) -> PageCursor | None:
    if not text:
        return None
    moment, _, match = text.partition("~")
    try:
        at = datetime.fromisoformat(moment.replace(" ", "+"))
        if at.tzinfo is None or not _MATCH.fullmatch(match):
            raise ValueError
        at = at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise Invalid("before", expected=Phrase("what the link to older matches holds"), got=text) from None
    return PageCursor(at, match)


# ---- One match ---------------------------------------------------------------


@blueprint.get("/matches/<match_id>")
def match(match_id: str) -> str:
    """One match as it stood after the event `at`, from 1; without it after the last one."""
    if not _MATCH.fullmatch(match_id):
        raise NotFound("match", expected=Phrase("one that exists"), got=match_id)
    with reading() as session:
        record = load(session, match_id)
        timeline_steps = steps(session, record)
        at = _read_event(request.args.get("at", ""), len(timeline_steps))
        first, second = views_after(record, at - 1)
        row = session.get_one(MatchRow, match_id)
        players = [_player(record, seat) for seat in (0, 1)]
        logged = [step.logged.event for step in timeline_steps]
        return render_template(
            "admin/match.html",
            match=row,
            title=game_titles().get(row.game, row.game),
            accepted=sum(isinstance(event, Event) for event in logged),  # of the log that is shown
            refused=sum(isinstance(event, Violated) for event in logged),
            players=players,
            round=_round(session, row),
            datasets=datasets_of_match(session, match_id),
            events=[_event(step) for step in timeline_steps],
            at=at,
            current=timeline_steps[at - 1],
            seats=[_seat(seat, players[seat]["name"], view) for seat, view in enumerate((first, second))],
            offers=proposals_of(logged[:at], (first, second)),
        )


def _round(session: Session, match: MatchRow) -> dict[str, Any] | None:
    """Of a match of a round: the round, and the matches before and after this one as far as they have begun."""
    if match.round_id is None or match.index is None:
        return None
    beside = select(MatchRow.id).where(MatchRow.round_id == match.round_id).limit(1)
    return {
        "row": session.get_one(RoundRow, match.round_id),
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


def _event(step: TimelineStep) -> dict[str, Any]:
    """An event as the list shows it; `body` is what its log entry says, by field."""
    event, seat = step.logged.event, step.logged.seat
    return {
        "number": step.logged.seq + 1,
        "who": gettext("Table") if seat is None else str(_SEATS[seat]),
        "side": "" if seat is None else _NAMES[seat],
        "kind": step.kind,
        "at": step.logged.at,
        "event": event,
        "asked": asked_for(event),
        "shares": shares(event),
        "generation": step.generation,
    }


def _seat(seat: int, name: str, view: JSON) -> dict[str, Any]:
    """A private view as the page shows it: what goes by item as a table, all else by name."""
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
