"""The round or the training job that a campaign waits for."""

from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from app.campaigns.lifecycle import evaluations, iterations
from app.finetuning.job import TRAINING
from app.jobs import states
from app.jobs.kind import JobKind
from app.models import RoundRow, TrainingJob
from app.rounds.job import ROUND


class AwaitedJob(NamedTuple):
    """A job that has to be over before a campaign goes on, by its number."""

    kind: JobKind[Any]
    number: int

    def row(self, session: Session) -> RoundRow | TrainingJob:
        """The job's row."""
        found: RoundRow | TrainingJob = session.get_one(self.kind.table, self.number)
        return found


def awaited_job(session: Session, campaign_id: int) -> AwaitedJob | None:
    """What a campaign has begun and waits for, whatever became of it."""
    last = iterations(session, campaign_id)[-1]
    further = [each.round_id for each in evaluations(session, campaign_id) if each.iteration == last.number]
    begun: list[tuple[JobKind[Any], int | None]] = [(ROUND, last.round_id), (TRAINING, last.job_id)]
    begun += [(ROUND, each) for each in (last.evaluation_id, *further)]
    jobs = [AwaitedJob(kind, number) for kind, number in begun if number is not None]
    return next((job for job in jobs if job.row(session).status != states.DONE), None)
