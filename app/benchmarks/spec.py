"""The settings of a benchmark. Pure."""

from typing import ClassVar

from app.jobs.spec import JobBudget, JobSpec, budget_field, spec_field

MOST = 1_000_000
USUAL_BATCH = 8


class BenchmarkSpec(JobSpec):
    """A model, and the tasks that it is scored on, all of them under the same settings."""

    version: ClassVar[int] = 1

    model: str = spec_field(
        "Model",
        "A local model is scored by how likely it finds the choices; one behind an API can only be asked, which costs"
        " what its tokens cost.",
        metavar="MODEL",
        argument=True,
        widget="model",
        use="scored",
        heading="What is scored",
    )
    tasks: str = spec_field(
        "Tasks",
        "Names with commas between: of tasks that ship with Parlor, and of any in lm-evaluation-harness.",
        metavar="NAMES",
    )
    item_limit: int | None = spec_field(
        "Items of each task",
        "Only each task’s first items.",
        None,
        unset="all",
        metavar="N",
        option="limit",
        ge=1,
        le=MOST,
    )
    shots: int | None = spec_field(
        "Examples before each item",
        "Solved ones; tasks that ship with Parlor take none.",
        None,
        unset="as many as the task says",
        metavar="N",
        ge=0,
        le=MOST,
    )
    batch: int = spec_field(
        "Batch",
        "Sequences that are computed together. Fewer take less memory.",
        USUAL_BATCH,
        metavar="N",
        ge=1,
        le=1024,
    )
    budget: JobBudget = budget_field()
