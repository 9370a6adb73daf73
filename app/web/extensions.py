"""The extensions of the web process, not yet bound to an app. Workers and upkeep do without them and start faster."""

from flask_limiter import Limiter
from flask_limiter.util import get_remote_address
from flask_login import LoginManager
from flask_socketio import SocketIO

from app.web.csrf import MaskedCSRFProtect

socketio = SocketIO()
login = LoginManager()
csrf = MaskedCSRFProtect()
limiter = Limiter(get_remote_address)
