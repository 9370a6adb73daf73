"""Training jobs in every state, and the pages about them: for axe-core and for the screenshots."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from playwright.sync_api import Page, expect
from sqlalchemy import Engine

from app.core.extensions import reading, writing
from app.datasets.store import get_dataset
from app.finetuning.job import TRAINING
from app.jobs import states
from app.registry import add_local_model, set_usable_in_rounds
from tests.jobs import make_job, tell
from tests.stack import Stack

FAILURE = (
    "step 41: expected a loss that is a number, got NaN or infinity on 1:0, 3:1; the last good checkpoint is"
    " /srv/parlor/training/3/run/checkpoint-40; lower learning_rate or look at these rows"
)
STEPS = 120


def furnish_jobs(engine: Engine, datasets: Mapping[str, int]) -> dict[str, int]:
    """Jobs by what they show; the model of the one that is done is offered to nobody."""
    now = datetime.now(UTC)
    with reading(engine) as session:
        dataset = get_dataset(session, datasets["one"])
    found = {
        state: make_job(engine, dataset, f"harbour-{state}", queued=state != "interrupted", epochs=3, eval_share=0.1)
        for state in ("done", "cancelled", "failed", "interrupted", "running", "begins", "waiting")
    }
    held = {"status": states.RUNNING, "lease_owner": "the furnisher", "lease_until": now + timedelta(hours=2)}
    with writing(engine) as session:
        options = {"path": "checkpoints/harbour-done", "sha256": "5f" * 32}
        model = add_local_model(session, "harbour-done", None, ["negotiation"], options).id
        set_usable_in_rounds(session, "harbour-done", False)
        for name, value in {**held, "started_at": now}.items():
            setattr(TRAINING.get(session, found["begins"]), name, value)
        TRAINING.get(session, found["waiting"]).enqueued_at = now + timedelta(days=1)  # no worker is to hear of it
    tell(engine, found["done"], STEPS, STEPS, status=states.DONE, ended_at=now, model_id=model)
    tell(engine, found["cancelled"], 35, STEPS, status=states.CANCELLED, ended_at=now)
    tell(engine, found["failed"], 40, STEPS, status=states.FAILED, ended_at=now, error=FAILURE)
    tell(engine, found["interrupted"], 5, STEPS, status=states.RUNNING)
    figures = {"reward": 0.4, "kl": 0.02, "clip_fraction": 0.3}
    tell(engine, found["running"], 74, STEPS, figures=figures, **held)
    return found


def job_states(parlor: Stack, page: Page, made: Mapping[str, int], datasets: Mapping[str, int]) -> Iterator[str]:
    """The pages of jobs, for somebody who is signed in; the page is in the state whose name is given."""
    paths = {
        "jobs": "/admin/jobs",
        **{f"job-{name}": f"/admin/jobs/{number}" for name, number in made.items()},
        "training-curves": f"/admin/compare/trainings?run={made['running']}&run={made['done']}&smooth=moving&log=1",
        "jobs-compare": f"/admin/jobs/compare?job={made['running']}&job={made['done']}",
        "job-new": f"/admin/jobs/new?dataset={datasets['one']}",
    }
    for name, path in paths.items():
        page.goto(parlor.url + path)
        if name in ("job-done", "job-running", "job-failed"):
            expect(page.locator("#curve figure svg")).to_be_visible()
        if name in ("job-running", "jobs-compare"):
            expect(page.locator("figure svg").last).to_be_visible()
        yield name
    page.locator("#learning_rate").fill("fast")
    page.get_by_label("Name", exact=True).fill("harbour-next")
    page.get_by_text("Further fields").click()
    page.get_by_role("button", name="Start the training").click()
    expect(page.get_by_role("alert")).to_contain_text("Learning rate: expected a number above 0, got 'fast'")
    yield "job-new-refused"
