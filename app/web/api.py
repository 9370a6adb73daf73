"""JSON for guests: start a match without a browser."""

from typing import Any

from flask import Blueprint, jsonify, request, url_for
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response

from app.core.config import Settings
from app.core.errors import AppError, Invalid, Verbatim, shown
from app.core.queues import enqueue_turn
from app.matches.lobby import GuestMatchRequest, person_in, start_guest_match
from app.matches.stored import StoredMatch
from app.web import tickets
from app.web.extensions import limiter
from app.web.form_writes import write
from app.web.guests import start_as
from app.web.limits import check_guest_config, guest_limit
from app.web.seats import settings

blueprint = Blueprint("api", __name__, url_prefix="/api")
_FIELDS = {"game", "config", "opponent", "role", "training_consent"}
_ASKED_ELSEWHERE = "training_consent of POST /api/matches"  # nobody here knows what a guest read there


@blueprint.post("/matches")
@limiter.shared_limit(**guest_limit)
def create_match() -> tuple[Response, int]:
    """Start a guest match from `{game, config?, opponent, role?, training_consent?}`; returns `{match, ticket,
    url}`.
    """
    try:
        body = request.get_json(silent=True)
    except RecursionError:
        raise Invalid("body", expected="a JSON object", got=Verbatim("one nested too deeply")) from None
    wanted, chosen = _read_request(body), settings()
    check_guest_config(wanted)
    record = write(lambda session: _start_match(session, chosen, wanted))
    if record.model_to_move:
        enqueue_turn(settings().broker_url, record.id)
    ticket = tickets.issue(settings(), record.id, person_in(record))
    url = settings().public_url + url_for("play.match", match_id=record.id, ticket=ticket)
    return jsonify(match=record.id, ticket=ticket, url=url), 201


def _start_match(session: Session, chosen: Settings, wanted: GuestMatchRequest) -> StoredMatch:
    """Start a match; if the request states a consent to training, with a guest of its own."""
    if wanted.training_consent is None:
        return start_guest_match(session, chosen, wanted)
    return start_as(session, chosen, wanted, wanted.training_consent, _ASKED_ELSEWHERE, None)[0]


def _read_request(body: Any) -> GuestMatchRequest:
    if not isinstance(body, dict):
        fields = "{game, config?, opponent, role?, training_consent?}"
        raise AppError(f"body: expected a JSON object {fields}", code=Invalid.code)
    unknown = sorted(set(body) - _FIELDS)
    if unknown:
        raise Invalid(
            "body", expected=f"only {', '.join(sorted(_FIELDS))}", got=Verbatim(", ".join(map(shown, unknown)))
        )
    for name in ("game", "opponent", "role"):
        if not isinstance(body.get(name, ""), str | None):
            raise Invalid(name, expected="text", got=body[name])
    if not isinstance(body.get("config", {}), dict | None):
        raise Invalid("config", expected="an object", got=body["config"])
    if not isinstance(body.get("training_consent"), bool | None):
        raise Invalid("training_consent", expected="true, false or null", got=body["training_consent"])
    if "game" not in body:
        raise Invalid("game", expected="the name of a game", got=Verbatim("nothing"))
    return GuestMatchRequest(
        body["game"] or "",
        body.get("config") or {},
        body.get("opponent"),
        body.get("role"),
        training_consent=body.get("training_consent"),
    )
