"""Campaigns and lineages in every state, and the pages about them: for axe-core and for the screenshots."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from playwright.sync_api import Page, expect
from sqlalchemy import Engine, select, update

from app.core.config import Settings
from app.core.extensions import reading, writing
from app.models import Campaign, LanguageModel, TrainingJob
from app.registry import set_usable_in_rounds
from tests.benchmarks import make_benchmark, score
from tests.campaigns import add_local, campaign_of, change, dataset_of, job_of, made_up, model_named, round_of
from tests.stack import Stack
from tests.tables import database, settings_of

BASE = "harbour-base"
WHY = "round 41: harbour-base gave no answer for 600 s; mend what it says, then resume the campaign"


def furnish_campaigns(parlor: Stack) -> dict[str, int]:
    """Campaigns by what they show, and models with a lineage; made once. Their models are offered to nobody."""
    with database(parlor) as engine, ThreadPoolExecutor(1) as thread:  # Playwright has the loop of this one
        return thread.submit(_furnish, engine, settings_of(parlor)).result()


def _furnish(engine: Engine, settings: Settings) -> dict[str, int]:
    with reading(engine) as session:
        known = dict(iter(session.execute(select(Campaign.name, Campaign.id))))
    if "harbour-taboo" not in known:
        add_local(engine, BASE)
        _use(engine, True)
        known = {
            "harbour-self": _growing(engine, settings),
            "harbour-fresh": campaign_of(engine, BASE, "harbour-fresh"),
            "harbour-stopped": _stopped(engine),
            "harbour-taboo": _done(engine),
        }
        _use(engine, False)
    found = {name.removeprefix("harbour-"): number for name, number in known.items() if name.startswith("harbour-")}
    return {**found, "model": model_named(engine, "harbour-mix").id, "base": model_named(engine, BASE).id}


def _use(engine: Engine, on: bool) -> None:
    with writing(engine) as session:
        for name in session.scalars(select(LanguageModel.name).where(LanguageModel.name.like("harbour-%"))):
            if session.scalar(select(LanguageModel.kind).where(LanguageModel.name == name)) == "local":
                set_usable_in_rounds(session, name, on)


def _growing(engine: Engine, settings: Settings) -> int:
    """A campaign whose third model is trained just now, and beside it a model that learned from all of its rounds."""
    number = campaign_of(engine, BASE, "harbour-self", iterations=5)
    change(engine, number, 0, evaluation_id=round_of(engine, settings, BASE, matches=2), figures=made_up(0))
    before, played = BASE, []
    for iteration in (1, 2, 3):
        played.append(round_of(engine, settings, before, matches=4))
        name = f"harbour-self-{iteration}"
        dataset = dataset_of(engine, settings, played[-1], name=name)
        now = {"step": 84, "steps": 240, "started_at": datetime.now(UTC)} if iteration == 3 else {}
        job = job_of(engine, dataset, name, before, "running" if now else "done", **now)
        came = {} if now else {"model_id": job.model_id, "evaluation_id": played[-1], "figures": made_up(iteration)}
        change(engine, number, iteration, round_id=played[-1], dataset_id=dataset.id, job_id=job.id, **came)
        before = name
        model = BASE if iteration == 3 else name
        scores = {"mmlu": 0.24 + iteration / 100, "arc_easy": 0.31, "winogrande": 0.5 + iteration / 200}
        score(engine, make_benchmark(engine, model, "mmlu,arc_easy,winogrande"), scores)
    others = [round_of(engine, settings, "harbour-self-1", "scripted", matches=2) for _ in range(4)]
    mixed = dataset_of(engine, settings, *played, *others, name="harbour, of many rounds")
    job_of(engine, mixed, "harbour-mix", "harbour-self-2")
    until = datetime.now(UTC) + timedelta(hours=2)
    with writing(engine) as session:
        held = {"status": "running", "started_at": datetime.now(UTC), "lease_owner": "furnisher", "lease_until": until}
        session.execute(update(Campaign).where(Campaign.id == number).values(**held))
        session.execute(
            update(TrainingJob).where(TrainingJob.status == "running").values(lease_owner="x", lease_until=until)
        )
    return number


def _stopped(engine: Engine) -> int:
    number = campaign_of(engine, BASE, "harbour-stopped", config={"objective": "coop"})
    with writing(engine) as session:
        session.execute(update(Campaign).where(Campaign.id == number).values(status="failed", error=WHY))
    return number


def _done(engine: Engine) -> int:
    number = campaign_of(engine, BASE, "harbour-taboo", game="taboo", iterations=4)
    for iteration in range(5):
        change(engine, number, iteration, figures=made_up(iteration, "taboo"))
    with writing(engine) as session:
        session.execute(update(Campaign).where(Campaign.id == number).values(status="done"))
    return number


# ---- The pages -----------------------------------------------------------------


def campaign_states(parlor: Stack, page: Page, campaigns: Mapping[str, int]) -> Iterator[str]:
    """The pages of campaigns and lineages, for somebody who is signed in; the page is in the state that is named."""
    paths = {
        "campaigns": "/admin/campaigns",
        **{f"campaign-{name}": f"/admin/campaigns/{campaigns[name]}" for name in ("self", "fresh", "stopped", "taboo")},
        "campaign-new": "/admin/campaigns/new",
        "campaign-new-taboo": "/admin/campaigns/new?game=taboo",
        "campaign-curves": f"/admin/compare/campaigns?run={campaigns['self']}&run={campaigns['fresh']}",
        "benchmark-curves": "/admin/compare/benchmarks?run=1",
        "benchmarks": "/admin/benchmarks",
        "benchmark": "/admin/benchmarks/1",
        "benchmark-new": "/admin/benchmarks/new",
        "model-benchmarks": f"/admin/models/{campaigns['base']}",
        "lineage": f"/admin/models/{campaigns['model']}/lineage",
        "lineage-base": f"/admin/models/{campaigns['base']}/lineage",
        "lineage-none": "/admin/models/1/lineage",
    }
    for name, path in paths.items():
        page.goto(parlor.url + path)
        if name in ("campaign-self", "campaign-taboo"):
            expect(page.locator("#figure figure[data-state=drawn] svg")).to_be_visible()
        if name == "campaign-self":
            expect(page.locator("#benchmarks figure[data-state=drawn] svg")).to_be_visible()
        yield name
    page.goto(f"{parlor.url}/admin/campaigns/new?base={BASE}")
    page.get_by_text("A file of mine").click()
    page.get_by_label("or lines of it").fill("1 4 2 2 1 2\n1 0 2 1 1 9\n")
    page.get_by_role("button", name="Start the campaign").click()
    expect(page.get_by_role("alert")).to_contain_text("contexts of the form, line 2")
    yield "campaign-new-refused"
