"""The options of a rehearsal."""

from app.jobs.spec import JobBudget, JobSpec, budget_field, spec_field

MOST_BOTS = 2000


class RehearsalSpec(JobSpec):
    """The study whose copy the bots go through, their number, and what they do there."""

    study: str = spec_field(
        "Study",
        "Its name, with @ and a number for another version than the newest.",
        metavar="STUDY[@VERSION]",
        argument=True,
        heading="Bots",
    )
    bots: int = spec_field("Bots", "Twenty are under way at once.", 20, option="n", metavar="N", ge=1, le=MOST_BOTS)
    seed: int = spec_field("Seed", "For their choices and answers.", 1, metavar="S", ge=0, le=2**31 - 1)
    live: bool = spec_field(
        "Against the models of the study",
        "At the study's pace, which takes as long as with people. Otherwise against scripted players, without pauses.",
        False,
    )
    budget: JobBudget = budget_field()
