"""The baseline: live play as reference interfaces are usually made, with what is measured of Parlor's protocol.

Flask-SocketIO in threading mode on Werkzeug's server, one handler an event, a commit a move through Flask-SQLAlchemy
on SQLite, and a partner that answers at once with a fixed line. There are no rules, no seats, no tickets and no
repetitions to be looked after. SQLite is set up as Parlor's is, so that the ratio is not one of settings.

    python -m bench.baseline --port 8002 --database /tmp/baseline.db
"""

import argparse
import sqlite3
from datetime import UTC, datetime
from typing import Any

from flask import Flask, request
from flask_socketio import SocketIO, emit
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import event
from sqlalchemy.engine import Engine

from bench.framing import NAMESPACE

db = SQLAlchemy()
socketio = SocketIO(async_mode="threading")
_matches: dict[str, tuple[str, int]] = {}  # by socket: the match, and the number of its plies


class Message(db.Model):  # type: ignore[name-defined, misc]
    """A move."""

    id = db.Column(db.Integer, primary_key=True)
    match = db.Column(db.String(22), index=True, nullable=False)
    ply = db.Column(db.Integer, nullable=False)
    seat = db.Column(db.Integer, nullable=False)
    move_id = db.Column(db.String(64))
    text = db.Column(db.Text, nullable=False)
    at = db.Column(db.DateTime, nullable=False)


@event.listens_for(Engine, "connect")
def _as_parlor_has_it(connection: Any, _record: Any) -> None:
    if isinstance(connection, sqlite3.Connection):
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=10000"):
            connection.execute(f"PRAGMA {pragma}")


@socketio.on("connect", namespace=NAMESPACE)  # type: ignore[untyped-decorator]
def connect(auth: dict[str, str]) -> None:
    """The ticket is the match's number of turns."""
    match, plies = request.args["match"], 2 * int(auth["ticket"])
    _matches[_sid()] = match, plies
    emit("view", {"match": match, "status": "playing", "ply": 0, "to_move": "you", "may": [], "transcript": []})


@socketio.on("disconnect", namespace=NAMESPACE)  # type: ignore[untyped-decorator]
def disconnect(_reason: str) -> None:
    _matches.pop(_sid(), None)


@socketio.on("move", namespace=NAMESPACE)  # type: ignore[untyped-decorator]
def move(data: dict[str, Any]) -> dict[str, Any]:
    """Store the move and its answer, show both, acknowledge."""
    match, plies = _matches[_sid()]
    now, ply, answer = datetime.now(UTC).replace(tzinfo=None), data["ply"], "I see. Please tell me more about it."
    db.session.add(Message(match=match, ply=ply, seat=0, move_id=data["move_id"], text=data["text"], at=now))
    db.session.add(Message(match=match, ply=ply + 1, seat=1, text=answer, at=now))
    db.session.commit()
    own = {"ply": ply, "by": "you", "kind": "message", "text": data["text"], "at": now.isoformat()}
    reply = {"ply": ply + 1, "by": "partner", "kind": "message", "text": answer, "at": now.isoformat()}
    emit("change", {"match": match, "ply": ply + 1, "to_move": "partner", "transcript": [own]})
    over = ply + 2 >= plies
    turn = {"to_move": None, "status": "over"} if over else {"to_move": "you"}
    emit("change", {"match": match, "ply": ply + 2, **turn, "transcript": [reply]})
    return {"ok": True, "ply": ply + 1}


def _sid() -> str:
    return str(request.sid)  # type: ignore[attr-defined]


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m bench.baseline")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--database", required=True, help="path of a SQLite file")
    options = parser.parse_args()
    app = Flask(__name__)
    app.config["SQLALCHEMY_DATABASE_URI"] = f"sqlite:///{options.database}"
    db.init_app(app)
    socketio.init_app(app)
    with app.app_context():
        db.create_all()
    app.add_url_rule("/healthz", "health", lambda: "ok")
    socketio.run(app, port=options.port, allow_unsafe_werkzeug=True)


if __name__ == "__main__":
    main()
