"""What the web server serves: `app`, with Socket.IO around it."""

from app.extensions import socketio
from app.factory import create_app

app = create_app()

__all__ = ["app", "socketio"]
