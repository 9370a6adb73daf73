"""`flask rehearsal`: batches of bots that go through a study; `flask study bots` begins one."""

from app.cli.jobs import JobCommands
from app.studies.bots.job import REHEARSAL

rehearsal = JobCommands(REHEARSAL).group()
