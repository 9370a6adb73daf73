"""Heartbeats of a web process: while there are none, nobody's time runs out (`app/matches/outages.py`)."""

import os
import socket
import time
from functools import partial

import gevent
import structlog
from flask import Flask
from sqlalchemy.exc import SQLAlchemyError

from app.core.errors import Unavailable
from app.core.extensions import reason_of
from app.core.queues import make_publisher
from app.matches.outages import EVERY, write_heartbeat
from app.web.form_writes import write

log = structlog.get_logger()


def send_heartbeats(app: Flask) -> None:
    """Send a heartbeat every second while the process serves, and have pages show the clocks that an outage moved."""
    settings = app.config["SETTINGS"]
    tell = make_publisher(settings.redis_url)
    owner = f"{socket.gethostname()} {os.getpid()} {time.time()}"[-80:]
    # Each process on a machine has its own port, and keeps it; a container's name changes each time.
    beat = partial(write_heartbeat, process=str(settings.PORT), owner=owner)
    taken = True
    with app.app_context():
        while True:
            try:
                delayed, taken = write(beat), True
            except (Unavailable, SQLAlchemyError) as error:
                if taken:  # one line each time the database goes away
                    log.warning("the database took no heartbeat, trying again", error=reason_of(error))
                delayed, taken = (), False
            if delayed:
                log.info("the server was away, clocks were put back", matches=len(delayed))
            for match_id in delayed:
                tell(match_id, False)
            gevent.sleep(EVERY)
