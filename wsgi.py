"""What the web server serves: `app`, with Socket.IO around it."""

import sys

from app.errors import AppError
from app.factory import create_app
from app.web.extensions import socketio

try:
    app = create_app()
except AppError as error:  # a setting that cannot be: one line, for the server and the command line alike
    print(f"Error: {error.message}", file=sys.stderr)
    raise SystemExit(2) from None

__all__ = ["app", "socketio"]
