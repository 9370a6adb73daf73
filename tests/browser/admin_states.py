"""The admin pages in every state, one after another: for axe-core and for the screenshots."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from playwright.sync_api import Page, Route, expect
from sqlalchemy import Engine

from app import accounts
from app.core.extensions import reading, writing
from app.factory import create_app
from app.matches import live
from app.matches.clocks import Clocks
from app.matches.stored import StoredMatch, StoredSeat
from app.matches.turns import WorkerContext, play_turn
from app.model_calls.request_runner import make_request
from app.publication.bundle import MANIFEST
from app.registry import PERSON, add_api_model, get_model, set_usable_in_rounds
from app.schema import upgrade
from tests.browser.admin_jobs import furnish_jobs, job_states
from tests.browser.admin_rounds import dataset_states, furnish_datasets, furnish_rounds, round_states
from tests.experimenter import signed_in
from tests.hub_server import HubServer
from tests.model_requests import ask_for_test
from tests.stack import PATIENCE, Stack, wait_until
from tests.stub_openai import Messages, Reply, StubServer
from tests.tables import database, settings_of

DEAL = {"counts": [2, 1, 3], "values": [[1, 5, 1], [3, 1, 1]], "first": 0}


def _sharer(messages: Messages) -> str:
    talks = all(each["role"] != "assistant" for each in messages)
    return (
        "[message] Both books and two balls for me, the hat and one ball for you?"
        if talks
        else "[propose] (2 books, 0 hats, 2 balls)"
    )


# The registry of these pages: the name of a model → what the stub says as it, and how its test call went.
MODELS = {
    "harbour-7b": _sharer,
    "harbour-broken": "I would rather not say.",
    "harbour-down": Reply("The server had an error.", status=500),
    "harbour-slow": Reply("[message] Hm.", delay=60),
    "harbour-new": "[message] Hello.",
}
UNTRIED = ("harbour-slow", "harbour-new")


@dataclass(frozen=True)
class Furnished:
    """Numbers of models, rounds, datasets and training jobs and ids of matches, by what they show; and the hub."""

    models: Mapping[str, int]
    matches: Mapping[str, str]
    rounds: Mapping[str, int]
    datasets: Mapping[str, int]
    jobs: Mapping[str, int]
    hub: HubServer


# ---- What the pages show -------------------------------------------------------


def furnish(parlor: Stack, stub: StubServer, hub: HubServer) -> Furnished:
    """Models in every state of their test call, matches with every kind of event and of end, rounds in every state.

    The models are offered to nobody, so that participants play on as if they were not there.
    """
    with database(parlor) as engine, _desk(parlor, engine) as desk:
        models = _register(engine, stub)
        for name, number in models.items():
            if name not in UNTRIED:
                make_request(desk, ask_for_test(engine, number))
        matches = _play(desk)
        rounds = furnish_rounds(engine, desk.settings, parlor.home)
        datasets = furnish_datasets(engine, desk.settings, rounds)
        return Furnished(models, matches, rounds, datasets, furnish_jobs(engine, datasets), hub)


def _register(engine: Engine, stub: StubServer) -> dict[str, int]:
    for name, says in MODELS.items():
        stub.script(name, says)
    with writing(engine) as session:
        for name in MODELS:
            options = {"model": name, "base_url": stub.url, "key_env": "", "retries": 0}
            add_api_model(session, name, None, ["negotiation"], options)
            set_usable_in_rounds(session, name, False)
        return {name: get_model(session, name).id for name in MODELS}


def _is_over(desk: WorkerContext, match: str) -> bool:
    """Upkeep may have been there first."""
    with reading(desk.database) as session:
        return live.load(session, match).match.over


def _play(desk: WorkerContext) -> dict[str, str]:
    deal = _talk(desk, "harbour-7b", "Hello! The hat matters most to me. What would you like?")
    deal = _say(desk, deal, "[propose] (9 books, 0 hats, 0 balls)")
    deal = _say(desk, deal, "[propose] (0 books, 1 hats, 1 balls)")
    with reading(desk.database) as session:
        live_match = live.load(session, _talk(desk, "harbour-7b", "Shall we share the balls?").id)
    broken = _talk(desk, "harbour-broken", "Hello!")
    down = _talk(desk, "harbour-down", "Hello!")
    left = _say(desk, _begin(desk, None, "taboo", {"word": "candle"}), None)
    late = _begin(desk, None, clocks=Clocks(turn=0.1))
    wait_until(lambda: _is_over(desk, late.id) or live.end_overdue(desk.database, late.id), "the end of a turn's clock")
    with writing(desk.database) as session:
        ours = live.create(session, "negotiation", DEAL, _people(), seed=3, source="live", instant=False)
        live.abort(session, ours, "us", 0, "OperationalError: disk I/O error")
    return {
        "deal": deal.id, "live": live_match.id, "broken": broken.id, "down": down.id, "left": left.id, "late": late.id,
        "ours": ours.id,
    }  # fmt: skip


def _people() -> tuple[StoredSeat, StoredSeat]:
    return StoredSeat(PERSON), StoredSeat(PERSON)


def _begin(
    desk: WorkerContext, model: str | None, game: str = "negotiation", config: Mapping[str, object] = DEAL,
    clocks: Clocks = Clocks(),  # noqa: B008 - frozen
) -> StoredMatch:  # fmt: skip
    with writing(desk.database) as session:
        second = StoredSeat(PERSON) if model is None else StoredSeat.of(get_model(session, model))
        seats = StoredSeat(PERSON), second
        return live.create(session, game, config, seats, seed=7, source="live", instant=False, clocks=clocks)


def _talk(desk: WorkerContext, model: str, text: str) -> StoredMatch:
    return _say(desk, _begin(desk, model), f"[message] {text}")


def _say(desk: WorkerContext, record: StoredMatch, text: str | None) -> StoredMatch:
    """The person's move, or their leaving, and what the model makes of it."""
    receipt = live.commit(desk.database, live.MoveSubmission(record.id, 0, text), instant=False)
    if receipt.record.model_to_move:
        play_turn(desk, record.id)
    with reading(desk.database) as session:
        return live.load(session, record.id)


@contextmanager
def _desk(parlor: Stack, engine: Engine) -> Iterator[WorkerContext]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    settings = settings_of(parlor).model_copy(update={"READING_WORDS_PER_MINUTE": 0})
    yield WorkerContext(engine, settings, "the furnisher", loop=loop, notify=lambda match, typing: None)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(PATIENCE)


# ---- The pages -----------------------------------------------------------------


def sign_in(parlor: Stack, page: Page, server: str = "") -> None:
    """Sign in by a new link."""
    with database(parlor) as engine, writing(engine) as session:
        path = accounts.new_link(session, accounts.find_user(session, "admin"), datetime.now(UTC))
    page.goto((server or parlor.url) + path)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")


def signed_out_states(parlor: Stack, page: Page) -> Iterator[str]:
    """The pages before somebody has signed in; the page is in the state whose name is given."""
    page.goto(parlor.url + "/sign-in")
    yield "sign-in"
    page.get_by_label("Name").fill("nobody")
    page.get_by_label("Password").fill("a wrong one")
    page.get_by_label("Password").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("do not match")
    yield "sign-in-refused"
    page.goto(parlor.url + "/enter/used-long-ago")
    yield "enter"


def empty_states(parlor: Stack, page: Page) -> Iterator[str]:
    """The pages of a Parlor in which nothing has happened yet: rendered by one, and shown at this one's address."""
    home = parlor.home / "empty"
    home.mkdir(exist_ok=True)
    app = create_app({"PARLOR_HOME": home, "DATABASE_URL": ""})
    app.config["WTF_CSRF_ENABLED"] = False  # nothing is sent from these pages
    upgrade(app)
    client = signed_in(app)
    for name in ("home", "matches", "models", "rounds", "datasets", "jobs", "assessments", "alignments"):
        path = "/admin/" if name == "home" else f"/admin/{name}"
        address = parlor.url + path
        page.route(address, partial(_show, client.get(path).text))
        page.goto(address)
        yield f"{name}-empty"
        page.unroute(address)


def _show(text: str, route: Route) -> None:
    route.fulfill(body=text, content_type="text/html; charset=utf-8")


def states(parlor: Stack, page: Page, furnished: Furnished) -> Iterator[str]:
    """All other pages, for somebody who is signed in."""
    yield from match_and_model_states(parlor, page, furnished)
    yield from round_states(parlor, page, furnished.rounds)
    yield from dataset_states(parlor, page, furnished.rounds, furnished.datasets)
    yield from job_states(parlor, page, furnished.jobs, furnished.datasets)
    yield from answered_states(parlor, page, furnished)


def match_and_model_states(parlor: Stack, page: Page, furnished: Furnished) -> Iterator[str]:
    """The pages of matches and models, and what has a page for itself."""
    models, matches = furnished.models, furnished.matches
    paths = {
        "home": "/admin/",
        "account": "/account",
        "api": "/account/api",
        "matches": "/admin/matches",
        "matches-none": "/admin/matches?reason=checkmate",
        "matches-refused": "/admin/matches?player=nobody&since=never",
        "matches-analysis": "/admin/matches/analysis?source=live",
        "matches-analysis-models": "/admin/matches/analysis?source=selfplay&game=negotiation",
        "matches-analysis-none": "/admin/matches/analysis?reason=checkmate",
        "matches-analysis-refused": "/admin/matches/analysis?player=nobody",
        "transcripts": "/admin/matches/transcripts",
        "transcripts-none": "/admin/matches/transcripts?text=nobody-ever-said-this",
        "transcripts-refused": "/admin/matches/transcripts?since=never",
        "storage": "/admin/spend/storage",
        "storage-refused": "/admin/spend/storage?kind=planet",
        "removed": "/admin/spend/removed",
        "codebook": "/admin/codebook?table=generations",
        "codebook-unknown": "/admin/codebook?table=nothing",
        "prompts": "/admin/models/prompts",
        "leaderboard": "/admin/models/leaderboard",
        "side-by-side": "/admin/models/side-by-side",
        "side-by-side-shown": "/admin/models/side-by-side?models=scripted",
        "leaderboard-taboo": "/admin/models/leaderboard?game=taboo",
        "report": "/admin/report?tournament=negotiation",
        "report-refused": "/admin/report.html?tournament=chess",
        "models": "/admin/models",
        "model-scripted": "/admin/models/1",
        "model-untried": f"/admin/models/{models['harbour-new']}",
        "model-answered": f"/admin/models/{models['harbour-7b']}",
        "model-illegal": f"/admin/models/{models['harbour-broken']}",
        "model-failed": f"/admin/models/{models['harbour-down']}",
        "model-new": "/admin/models/new",
        "model-pull": "/admin/models/pull",
        "dataset-pull": "/admin/datasets/pull",
        "spend": "/admin/spend",
        "error": "/admin/nowhere",
        "match-live": f"/admin/matches/{matches['live']}",
        "match-started": f"/admin/matches/{matches['deal']}?at=1",
        "match-refused-person": f"/admin/matches/{matches['deal']}?at=4",
        "match-proposal": f"/admin/matches/{matches['deal']}?at=5",
        "match-refused-model": f"/admin/matches/{matches['broken']}?at=4",
        "match-broken-off": f"/admin/matches/{matches['broken']}",
        "match-unanswered": f"/admin/matches/{matches['down']}?at=3",
        "match-our-fault": f"/admin/matches/{matches['ours']}",
        "match-left": f"/admin/matches/{matches['left']}?at=2",
        "match-timeout": f"/admin/matches/{matches['late']}?at=2",
    }
    for name, path in paths.items():
        page.goto(parlor.url + path)
        yield name


def answered_states(parlor: Stack, page: Page, furnished: Furnished) -> Iterator[str]:
    """What pages show when something was opened, asked for or refused."""
    models, matches = furnished.models, furnished.matches
    with database(parlor) as engine:
        ask_for_test(engine, models["harbour-slow"])
    page.goto(f"{parlor.url}/admin/models/{models['harbour-slow']}")
    yield "model-waiting"
    page.get_by_label("Label", exact=True).fill("House partner")
    page.get_by_role("button", name="Save").click()
    yield "model-label-refused"
    page.goto(parlor.url + "/admin/models/new")
    for field, value in {"name": "mine", "model": "m", "temperature": "hot"}.items():
        if field == "temperature":
            page.get_by_text("Sampling, limits and prices").click()
        page.locator(f"#{field}").fill(value)
    page.get_by_role("button", name="Add it and make a test call").click()
    expect(page.get_by_role("alert")).to_contain_text("Temperature: expected")
    yield "model-new-refused"
    page.goto(parlor.url + "/admin/models/pull")
    page.get_by_label("Repository or folder").fill("no repository")
    page.get_by_role("button", name="Pull it").click()
    expect(page.locator("#refused")).to_contain_text("OWNER/NAME of a repository, or a folder")
    yield "model-pull-refused"
    hub, hub.hold = furnished.hub, threading.Event()
    hub.add("models", "lab/slow", {MANIFEST: b"{}"})
    page.get_by_label("Repository or folder").fill("lab/slow")
    page.get_by_role("button", name="Pull it").click()
    expect(page.get_by_role("button", name="Cancel the pull")).to_be_visible()
    still = page.content()
    page.route(
        "**/admin/models/pull", lambda route: route.fulfill(body=still, content_type="text/html")
    )  # as it is now
    yield "model-pull-goes-on"
    page.unroute("**/admin/models/pull")
    hub.hold.set()
    expect(page.locator("#refused")).to_contain_text("a manifest of a push")
    page.goto(f"{parlor.url}/admin/matches/{matches['deal']}?at=3")
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    yield "match-message-unfolded"
    page.goto(parlor.url + "/account")
    for label, text in (("New password", "quite a long password"), ("Repeat the new password", "another one")):
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_role("button", name="Set this password").click()
    expect(page.get_by_role("alert")).to_contain_text("differ")
    yield "account-refused"
