"""Tables, without behaviour: one file a subject. Importing this package knows them all, as migrations need."""

from app.models.campaign import Campaign, CampaignEvaluation, CampaignIteration
from app.models.dataset import Dataset, DatasetRow
from app.models.language_model import LanguageModel
from app.models.match import EventRow, GenerationRow, MatchRow, SeatRow
from app.models.operation import Lease
from app.models.round import RoundMaterial, RoundRange, RoundRow
from app.models.source import MatchSource
from app.models.training import TrainingEvent, TrainingJob
from app.models.user import LoginLink, User, UserSession

__all__ = [
    "Campaign", "CampaignEvaluation", "CampaignIteration", "Dataset", "DatasetRow", "EventRow", "GenerationRow",
    "LanguageModel", "Lease", "LoginLink", "MatchRow", "MatchSource", "RoundMaterial", "RoundRange", "RoundRow",
    "SeatRow", "TrainingEvent", "TrainingJob", "User", "UserSession",
]  # fmt: skip
