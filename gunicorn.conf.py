"""How gunicorn serves Parlor: `gunicorn -c gunicorn.conf.py wsgi:app`.

One process holds many connections: a gevent worker, which gunicorn patches before it loads the application. For more
cores run more such processes behind a proxy that keeps a match in one of them (docs/operations.md).
"""

import os
from collections.abc import Callable
from typing import Any

from app.core.config import load_settings
from app.core.errors import Invalid
from workers import heartbeat
from workers.open_files import max_open_files, raise_limit

os.umask(0o077)  # what is written is its owner's alone

try:
    _settings = load_settings()
except Invalid as error:
    raise SystemExit(f"error: {error.message}") from None

raise_limit()  # a socket and more for each connection
bind = f"[{_settings.HOST}]:{_settings.PORT}" if ":" in _settings.HOST else f"{_settings.HOST}:{_settings.PORT}"
worker_class = "workers.web_worker.WebWorker"
workers = 1
worker_connections = min(4000, max_open_files() // 2)
backlog = 2048
timeout = 30  # seconds without a sign of life, after which the worker is replaced
graceful_timeout = 1  # open WebSockets never end by themselves, and their clients come back
accesslog = None
errorlog = "-"
loglevel = "warning"
control_socket_disable = True  # it would lie outside PARLOR_HOME
forwarded_allow_ips = ""  # the headers of proxies are read in one place, by TRUSTED_PROXIES


def post_worker_init(worker: Any) -> None:
    """Give signs of life, and wait at the gate; from then on people are served, and the database is told so.

    The gate is the supervisor's: its far end is closed when the database is up to date. Without it there is no waiting.
    """
    import gevent  # only here, after gunicorn has patched

    from app.web.heartbeat import send_heartbeats
    from app.web.sockets.connections import network_of

    if not _settings.TRUSTED_PROXIES:  # else everybody has the proxy's address
        worker.limit_addresses(2 * _settings.CONNECTIONS_PER_ADDRESS, network_of)
    gevent.spawn(_beat_on, gevent.sleep)
    if gate := os.environ.get("PARLOR_GATE"):
        os.read(int(gate), 1)
    gevent.spawn(send_heartbeats, worker.wsgi)


def _beat_on(sleep: Callable[[float], None]) -> None:
    """Give a sign of life once a second, for as long as the event loop goes round."""
    while True:
        heartbeat.beat()
        sleep(heartbeat.EVERY)
