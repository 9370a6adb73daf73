"""Tables, without behaviour: one file per subject. Importing this package imports them all, as migrations need.

They are listed, not discovered, because type checkers only know the names that are written in a package.
"""

from app.models.alignment import Alignment
from app.models.assessment import AssessedAnswer, Assessment
from app.models.benchmark import BenchmarkAnswer, BenchmarkJob, BenchmarkResult
from app.models.campaign import Campaign
from app.models.coding import CodedMatch, Coder, Coding, CodingCode, GivenCode
from app.models.dataset import Dataset, DatasetRow
from app.models.language_model import LanguageModel
from app.models.match import EventRow, GenerationRow, MatchCount, MatchRow, MatchText, SeatRow
from app.models.model_request import ModelRequest
from app.models.notice import Notice
from app.models.operation import FormRequest, Lease, Outage
from app.models.prompt import PromptRow
from app.models.publication import Publication, PublishedPerson, ReleasePermission
from app.models.recipe import RecipeRun, RecipeStep
from app.models.rehearsal import Rehearsal, RehearsedBot
from app.models.removal import Removal
from app.models.round import RoundMaterial, RoundRange, RoundRow
from app.models.society import Society, SocietyAgent, SocietyInteraction
from app.models.source import MatchSource
from app.models.spending import CallSum, SpendingStop
from app.models.study import (
    Arm,
    Consent,
    Enrolment,
    Participant,
    RecruitmentIdentity,
    Study,
    StudyVersion,
)
from app.models.tag import Note, Tag
from app.models.training import TrainingCharge, TrainingEvent, TrainingJob
from app.models.user import ApiRequest, ApiToken, LoginLink, User, UserSession
from app.models.wave import Payment, PaymentBatch, StudyEvent, Submission, Wave
