"""The bare stack: what Parlor is built on, with nothing of Parlor in it. It shows what the machine could give at most.

gevent, python-socketio with a handler of its own, one real thread that commits together what came in together: two
rows of text a move, by sqlite3 itself. No rules, no partner to think for, no views to compare, nothing to check.

    python -m bench.bare --port 8002 --database /tmp/bare.db
"""

from gevent import monkey

monkey.patch_all()

import argparse  # noqa: E402
import sqlite3  # noqa: E402
from typing import Any  # noqa: E402
from urllib.parse import parse_qs  # noqa: E402

import gevent  # noqa: E402
import socketio  # noqa: E402
from gevent.event import AsyncResult  # noqa: E402
from gevent.pywsgi import WSGIServer  # noqa: E402
from gevent.queue import Queue  # noqa: E402
from gevent.threadpool import ThreadPool  # noqa: E402

from bench.framing import NAMESPACE  # noqa: E402

ANSWER = "I see. Please tell me more about it."
AT = "2030-01-01T00:00:00.000"

Row = tuple[str, int, int, str | None, str]


class Committer:
    """Commits rows that arrive together in one transaction, in one real thread."""

    def __init__(self, database: str) -> None:
        self._queue: Queue = Queue()
        self._thread = ThreadPool(1)
        self._connection = self._thread.apply(self._open, (database,))
        gevent.spawn(self._run)

    def commit(self, rows: list[Row]) -> None:
        """Wait until these rows are committed."""
        done = AsyncResult()
        self._queue.put((rows, done))
        done.get()

    @staticmethod
    def _open(database: str) -> sqlite3.Connection:
        connection = sqlite3.connect(database, isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(
            "CREATE TABLE message"
            ' (id INTEGER PRIMARY KEY, "match" TEXT, ply INTEGER, seat INTEGER, move_id TEXT, text TEXT)'
        )
        return connection

    def _run(self) -> None:
        while True:
            batch = [self._queue.get()]
            while not self._queue.empty():
                batch.append(self._queue.get())
            self._thread.apply(self._write, ([row for rows, _ in batch for row in rows],))
            for _, done in batch:
                done.set()

    def _write(self, rows: list[Row]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(
            'INSERT INTO message ("match", ply, seat, move_id, text) VALUES (?, ?, ?, ?, ?)', rows
        )
        self._connection.execute("COMMIT")


def handlers(server: socketio.Server, committer: Committer) -> None:
    """Register the handlers with the server."""
    matches: dict[str, tuple[str, int]] = {}

    def connect(sid: str, environ: dict[str, Any], auth: dict[str, str]) -> None:
        match = parse_qs(environ["QUERY_STRING"])["match"][0]
        matches[sid] = match, 2 * int(auth["ticket"])
        view = {"match": match, "status": "playing", "ply": 0, "to_move": "you", "may": [], "transcript": []}
        gevent.spawn(server.emit, "view", view, to=sid, namespace=NAMESPACE)

    def disconnect(sid: str, _reason: str) -> None:
        matches.pop(sid, None)

    def move(sid: str, data: dict[str, Any]) -> dict[str, Any]:
        match, plies = matches[sid]
        ply = data["ply"]
        committer.commit([(match, ply, 0, data["move_id"], data["text"]), (match, ply + 1, 1, None, ANSWER)])
        own = {"ply": ply, "by": "you", "kind": "message", "text": data["text"], "at": AT}
        reply = {"ply": ply + 1, "by": "partner", "kind": "message", "text": ANSWER, "at": AT}
        change = {"match": match, "ply": ply + 1, "to_move": "partner", "transcript": [own]}
        server.emit("change", change, to=sid, namespace=NAMESPACE)
        turn = {"to_move": None, "status": "over"} if ply + 2 >= plies else {"to_move": "you"}
        answer = {"match": match, "ply": ply + 2, **turn, "transcript": [reply]}
        gevent.spawn(server.emit, "change", answer, to=sid, namespace=NAMESPACE)
        return {"ok": True, "ply": ply + 1}

    for handler in (connect, disconnect, move):
        server.on(handler.__name__, handler, namespace=NAMESPACE)


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m bench.bare")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--database", required=True, help="path of a SQLite file")
    options = parser.parse_args()
    server = socketio.Server(async_mode="gevent", async_handlers=False)
    handlers(server, Committer(options.database))
    app = socketio.WSGIApp(server, static_files={"/healthz": {"content_type": "text/plain", "filename": __file__}})
    try:
        WSGIServer(("127.0.0.1", options.port), app, log=None).serve_forever()
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
