"""The participants' pages: home, a match, its result, the rules."""

import re
import secrets
from datetime import UTC, datetime

from flask import Blueprint, Response, abort, redirect, render_template, request, url_for
from flask_babel import gettext
from jinja2 import TemplateNotFound
from sqlalchemy import select
from werkzeug.wrappers import Response as AnyResponse

from app.core.disk import low_disk
from app.core.errors import NotFound
from app.core.extensions import db, reading
from app.core.queues import enqueue_turn
from app.games import GAMES, find_game
from app.games.base import JSON
from app.matches.lobby import GuestMatchRequest, person_in
from app.matches.stored import load, move_times
from app.matches.views import seat_view
from app.models import MatchRow
from app.players.description import partner_kind
from app.registry import partners, player_spec
from app.web import guests, tickets
from app.web.extensions import limiter
from app.web.game_options import option_fields
from app.web.headers import never_stored
from app.web.language import use_language
from app.web.limits import check_guest_config, guest_limit
from app.web.own_data import data_file
from app.web.partners import told_of_partner
from app.web.seats import held, hold, seat_in, settings
from app.web.study.match_pages import StudyPart, page_elsewhere, study_part

blueprint = Blueprint("play", __name__)
_KEY = re.compile(r"[A-Za-z0-9_-]{16,64}")


@blueprint.get("/")
def home() -> str:
    """The games, and the matches that this browser can continue."""
    with reading() as session:
        offered = partners(session)
        rows = session.scalars(select(MatchRow).where(MatchRow.id.in_(held()), MatchRow.status == "playing"))
        going_on = [{"id": row.id, "game": row.game, "title": _game_title(row.game)} for row in rows]
    return render_template(
        "home.html",
        games=[
            {"name": name, "title": _game_title(name), "roles": game.roles, "fields": option_fields(game)}
            for name, game in GAMES.items()
        ],
        guest_play=settings().GUEST_PLAY,
        clocks=bool(settings().TURN_CLOCK or settings().MATCH_CLOCK),
        opponents=[
            {"label": row.label, "games": row.games, "kind": partner_kind(player_spec(row), settings().home)}
            for row in offered
        ],
        open_matches=going_on,
        starts={name: secrets.token_urlsafe(16) for name in GAMES},
        training_question=None if guests.answer() is not None else guests.question(),
    )


@blueprint.post("/start/<game>")
@limiter.shared_limit(**guest_limit)
def start(game: str) -> AnyResponse:
    """Start a guest match; the same form sent twice leads to the same match."""
    form = request.form
    options = find_game(game).options
    wanted = GuestMatchRequest(
        game=game,
        config={name: form[name] for name in options if form.get(name)},
        opponent=form.get("opponent") or None,
        role=form.get("role") or None,
        start_key=_start_key(form.get("key", "")),
        held=held(),
    )
    check_guest_config(wanted)
    record = guests.start(form, wanted)
    if record.model_to_move:
        enqueue_turn(settings().broker_url, record.id)
    hold(record.id, person_in(record))
    return redirect(url_for("play.match", match_id=record.id), 303)


@blueprint.get("/play/<match_id>")
def match(match_id: str) -> AnyResponse | tuple[Response, int]:
    """The match as its seat sees it. A ticket in the URL is moved into the session."""
    if "ticket" in request.args:
        hold(match_id, tickets.check(settings(), request.args["ticket"], match_id))
        return redirect(url_for("play.match", match_id=match_id), 303)
    if (elsewhere := _elsewhere(match_id)) is not None:
        return elsewhere
    view, study = _read_view_and_use_language(match_id)
    if view["status"] == "over":
        return redirect(_after(match_id, study), 303)
    return _as_it_is_now(
        render_template(
            "match.html",
            match=match_id,
            game=view["game"],
            title=_game_title(view["game"]),
            ticket=tickets.issue(settings(), match_id, seat_in(match_id)),
            view=view,
            study=study,
            most_characters=settings().MOVE_CHARACTERS,
        )
    )


@blueprint.get("/play/<match_id>/result")
def result(match_id: str) -> AnyResponse | tuple[Response, int]:
    """How the match ended, with the whole conversation."""
    if (elsewhere := _elsewhere(match_id)) is not None:
        return elsewhere
    view, study = _read_view_and_use_language(match_id)
    if view["status"] != "over":
        return redirect(url_for("play.match", match_id=match_id), 303)
    if study is not None and study.asked:
        return redirect(_after(match_id, study), 303)
    title = _game_title(view["game"])
    key = secrets.token_urlsafe(16)
    return _as_it_is_now(
        render_template("result.html", match=match_id, game=view["game"], title=title, view=view, key=key, study=study)
    )


@blueprint.get("/rules/<game>")
def rules(game: str) -> str:
    """The rules of a game in plain words."""
    try:
        return render_template("rules.html", title=_game_title(game), game=game)
    except (NotFound, TemplateNotFound):
        abort(404)


@blueprint.get("/about")
def about() -> str:
    return render_template("about.html")


@blueprint.get("/privacy")
def privacy() -> str:
    """What is stored, what a guest agreed to, and how to change that or have it deleted."""
    return render_template(
        "privacy.html",
        question=guests.question(),
        training=guests.answer(),
        guest=guests.code(),
        done=request.args.get("done"),
    )


@blueprint.get("/privacy/my-data.json")
def guest_data() -> AnyResponse:
    """A file with everything about this browser's guest. Raises NotFound for a browser that has not played here."""
    return data_file(guests.participant_id())


@blueprint.post("/privacy")
def change_privacy() -> AnyResponse:
    """Store a different answer about training, or delete what the guest wrote, depending on the pressed button."""
    action = request.form.get("action")
    if action == "forget":
        guests.forget()
    elif action == "training":
        guests.change_answer(request.form.get(guests.AGREED) == "yes")
    return redirect(url_for("play.privacy", done=action if action in ("forget", "training") else None), 303)


@blueprint.get("/healthz")
def healthz() -> tuple[str, int, dict[str, str]]:
    """Whether the web process and its database respond, and the disk has room: 200, or 503 and the reason."""
    plain = {"Content-Type": "text/plain"}
    with reading() as session:
        session.execute(select(MatchRow.id).limit(1))
    if (left := low_disk(settings())) is not None:
        return f"disk full: {left} MB free, expected {settings().LOW_DISK_MB}; make room\n", 503, plain
    return "ok\n", 200, plain


def _game_title(game: str) -> str:
    """The title of the game in the page's language. Raises NotFound."""
    return str(gettext(find_game(game).title))


def _start_key(key: str) -> str | None:
    """The form's key if it has our format; a start without a key is merely not protected against being sent twice."""
    return key if _KEY.fullmatch(key) else None


def _after(match_id: str, study: StudyPart | None) -> str:
    """The URL that follows a finished match: its result, or after a missed turn the study."""
    if study is not None and study.asked:
        return url_for("study.page", token=study.token)
    return url_for("play.result", match_id=match_id)


def _elsewhere(match_id: str) -> tuple[Response, int] | None:
    """The page for a browser without a seat in a match of a study: how to continue. None for all other matches."""
    page = None if match_id in held() else page_elsewhere(match_id)
    return None if page is None else (_as_it_is_now(page), 403)


def _read_view_and_use_language(match_id: str) -> tuple[JSON, StudyPart | None]:
    """The view of this browser's seat, and the study that the match belongs to, which determines the language."""
    seat = seat_in(match_id)
    with reading(db.engine) as session:
        record = load(session, match_id)
        study = None if record.options is None else study_part(session, match_id, seat)
    if study is not None:
        use_language(study.language)
    clock = None if record.deadline is None else record.deadline.to_json(datetime.now(UTC))
    partner, times = told_of_partner(record, seat, settings().home), move_times(record.log)
    view = seat_view(record.id, record.match, times, seat, clock, partner=partner, feedback=record.feedback)
    return view, study


def _as_it_is_now(page: str) -> Response:
    """A page that never shows an outdated match."""
    return never_stored(Response(page))
