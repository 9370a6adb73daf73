"""What the web server serves: `app`, with Socket.IO around it."""

import os
import sys

from app.core.errors import AppError
from app.factory import create_app
from app.web.extensions import socketio

try:
    app = create_app()
except AppError as error:  # a setting that cannot be: one line, for the server and the command line alike
    print(f"Error: {error.message}", file=sys.stderr)
    # gunicorn starts a worker again and again unless it ends with this code, "the application does not load".
    raise SystemExit(4 if os.environ.get("SERVER_SOFTWARE", "").startswith("gunicorn") else 2) from None

__all__ = ["app", "socketio"]
