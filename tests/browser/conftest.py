"""One Parlor and one Chromium for nearly all browser tests; a visitor of its own for each."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.visitor import Visitor, chromium_path, running_playwright
from tests.conftest import REQUIRE_SERVICES
from tests.hub_server import TOKEN, HubServer
from tests.stack import LONG_LEASES, PATIENCE, Stack, running_parlor
from tests.stub_openai import Reply, StubServer
from tests.tables import add_model

# Names that no page and no frame may show, and the labels that participants may see.
MODELS = {
    "quartz-talks": ("stub-negotiator", "Partner One"),
    "quartz-hints": ("stub-taboo", "Partner Two"),
    "quartz-chats": ("quartz-chats", "Partner Zero"),
    "quartz-denied": ("quartz-401", "Partner Three"),
    "quartz-broken": ("stub-broken", "Partner Four"),
    "quartz-says-it": ("quartz-lemon", "Partner Six"),
    "quartz-thinks": ("quartz-slow", "Partner Seven"),
}
LABELS = {name: label for name, (_, label) in MODELS.items()}


@pytest.fixture(scope="package")
def chromium() -> Iterator[Callable[[bool], Browser]]:
    """The one browser, or its whole, which tests marked `keyboard` need."""
    if chromium_path() is None:
        (pytest.fail if REQUIRE_SERVICES else pytest.skip)(
            "Chromium is not installed (Debian: apt-get install chromium chromium-headless-shell)"
        )
    expect.set_options(timeout=1000 * PATIENCE)
    with running_playwright() as browsers:
        yield browsers


@pytest.fixture(scope="package")
def stub() -> Iterator[StubServer]:
    """The server behind the API models."""
    with StubServer() as server:
        server.script("quartz-chats", "[message] I hear you, but let me think about it a little more.")
        server.script("quartz-lemon", "I am thinking of a lemon just now.")
        server.script("quartz-401", Reply("That key is not known.", status=401))
        server.script("quartz-slow", Reply("[message] Let me think.", delay=30))
        yield server


@pytest.fixture(scope="package")
def hub() -> Iterator[HubServer]:
    """The hub that things are pulled from."""
    with HubServer().running() as server:
        yield server


@pytest.fixture(scope="package")
def parlor(chromium: Callable[[bool], Browser], stub: StubServer, hub: HubServer) -> Iterator[Stack]:
    """The one Parlor, with the scripted partner and API models of every temper."""
    at = {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN, "HF_HUB_OFFLINE": "0"}
    with running_parlor(GUEST_MATCHES_PER_MINUTE="0", **at, **LONG_LEASES) as running:
        for name, (remote, label) in MODELS.items():
            add_model(running, stub.url, name, remote, label)
        yield running


@pytest.fixture
def visitors(request: pytest.FixtureRequest, chromium: Callable[[bool], Browser]) -> Iterator[Callable[..., Visitor]]:
    """Makes visitors, with options of Playwright's new_context; each must have nothing to complain of in the end."""
    made: list[Visitor] = []
    browser = chromium(request.node.get_closest_marker("keyboard") is not None)

    def make(**options: Any) -> Visitor:
        made.append(Visitor(browser, **options))
        return made[-1]

    yield make
    complaints = [complaint for visitor in made for complaint in visitor.complaints]
    for visitor in made:
        visitor.close()
    assert complaints == []


@pytest.fixture
def visitor(visitors: Callable[..., Visitor]) -> Visitor:
    """A visitor at a desktop."""
    return visitors()


@pytest.fixture
def home_page(visitor: Visitor, parlor: Stack) -> Page:
    """The home page, as a new visitor sees it."""
    return visitor.open(parlor.url)
