"""Tables, without behaviour: one file a subject. Importing this package knows them all, as migrations need."""

from app.models.language_model import LanguageModel
from app.models.match import EventRow, GenerationRow, MatchRow, SeatRow
from app.models.operation import Lease
from app.models.user import LoginLink, User

__all__ = ["EventRow", "GenerationRow", "LanguageModel", "Lease", "LoginLink", "MatchRow", "SeatRow", "User"]
