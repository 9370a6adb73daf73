"""The kinds of job. Written by `python -m scripts.client_types` from the description of the API."""

from typing import Unpack

from parlor_client._types import (
    AlignmentSpec,
    AssessmentSpec,
    BenchmarkSpec,
    CampaignSpec,
    PublicationSpec,
    RehearsalSpec,
    RoundSpec,
    SocietySpec,
    TrainingSpec,
)
from parlor_client.connection import Connection
from parlor_client.jobs import Job, Jobs
from parlor_client.recipes import Recipes


class Rounds(Jobs):
    """Rounds: who plays which game, how often and with what setup. A cross-play has a round for each pair of models."""

    def run(self, **spec: Unpack[RoundSpec]) -> Job:
        """Create one from its spec. Raises Refused, NotReachable, OSError for a file."""
        return self._create(spec)


class Trainings(Jobs):
    """Trainings: a model to train on a dataset: by which method, where, and from which base."""

    def run(self, **spec: Unpack[TrainingSpec]) -> Job:
        """Create one from its spec. Raises Refused, NotReachable, OSError for a file."""
        return self._create(spec)


class Campaigns(Jobs):
    """Campaigns: what is played, learnt and evaluated, how often, and what comes before. Each iteration's model is
    trained from the `previous` one or from the `base`, and learns from the rows of the `last` round or of `all`
    rounds so far. Shares of the matches are played against partners, from either seat, and the rest against the
    model itself; only what the model itself said is learnt. All models are evaluated on the same held-out material:
    as they play, at another temperature, and against each of some opponents with the seats swapped half of the time.
    """

    def run(self, **spec: Unpack[CampaignSpec]) -> Job:
        """Create one from its spec. Raises Refused, NotReachable, OSError for a file."""
        return self._create(spec)


class Benchmarks(Jobs):
    """Benchmarks: a model, and the tasks that it is scored on, all of them under the same settings."""

    def run(self, **spec: Unpack[BenchmarkSpec]) -> Job:
        """Create one from its spec. Raises Refused, NotReachable, OSError for a file."""
        return self._create(spec)


class Societies(Jobs):
    """Societies: the models of a society with their shares of the agents, what they are asked, and its settings."""

    def run(self, **spec: Unpack[SocietySpec]) -> Job:
        """Create one from its spec. Raises Refused, NotReachable, OSError for a file."""
        return self._create(spec)


class Assessments(Jobs):
    """Assessments: two models, the questions that both answer, and the models that rate the answers."""

    def run(self, **spec: Unpack[AssessmentSpec]) -> Job:
        """Create one from its spec. Raises Refused, NotReachable, OSError for a file."""
        return self._create(spec)


class Alignments(Jobs):
    """Alignments: the model that learns, the agents of its societies, its two trainings, and the final comparison."""

    def run(self, **spec: Unpack[AlignmentSpec]) -> Job:
        """Create one from its spec. Raises Refused, NotReachable, OSError for a file."""
        return self._create(spec)


class Rehearsals(Jobs):
    """Rehearsals: the study whose copy the bots go through, their number, and what they do there."""

    def run(self, **spec: Unpack[RehearsalSpec]) -> Job:
        """Create one from its spec. Raises Refused, NotReachable, OSError for a file."""
        return self._create(spec)


class Publications(Jobs):
    """Publications: a local model or a dataset, a place, and a licence."""

    def run(self, **spec: Unpack[PublicationSpec]) -> Job:
        """Create one from its spec. Raises Refused, NotReachable, OSError for a file."""
        return self._create(spec)


class JobKinds:
    """The jobs of a Parlor, by kind."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.rounds = Rounds(connection, "rounds")
        self.trainings = Trainings(connection, "trainings")
        self.campaigns = Campaigns(connection, "campaigns")
        self.benchmarks = Benchmarks(connection, "benchmarks")
        self.societies = Societies(connection, "societies")
        self.assessments = Assessments(connection, "assessments")
        self.alignments = Alignments(connection, "alignments")
        self.rehearsals = Rehearsals(connection, "rehearsals")
        self.publications = Publications(connection, "publications")
        self.recipes = Recipes(connection, "recipes")
