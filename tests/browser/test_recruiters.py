"""The way back to the recruiter from the last page, in a browser: a button to Prolific and Connect."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from app.core.extensions import writing
from app.studies.answers import finish
from app.studies.progress import find_progress_by_token
from app.studies.wave_file import link_path
from app.studies.waves import settings_of
from tests.browser.steps import faults
from tests.browser.study_walk import main_button
from tests.browser.visitor import Visitor
from tests.stack import Stack
from tests.stub_recruiters import StubRecruiters, VendorSite
from tests.tables import database
from tests.waves import changed, loaded_study, new_wave, store_study

STUDY = "recruited"
PROVIDERS = {
    "prolific": {"study_id": "66f0c1"},
    "connect": {"project_id": "7DE64B7FBE"},
}


@pytest.fixture(scope="module")
def links(parlor: Stack) -> dict[str, str]:
    """A wave of a study at each recruiter, and its link."""
    with database(parlor) as engine, writing(engine) as session:
        store_study(session, changed(loaded_study(), study=STUDY))
        waves = {
            name: new_wave(session, of=STUDY, wave=name, provider={name: terms}, codes={"completed": "CDONE"})
            for name, terms in PROVIDERS.items()
        }
        return {name: parlor.url + link_path(STUDY, settings_of(wave)) for name, wave in waves.items()}


@pytest.fixture
def recruiters() -> Iterator[StubRecruiters]:
    with StubRecruiters() as running:
        yield running


def to_the_stub(visitor: Visitor, recruiters: StubRecruiters, site: VendorSite, host: str) -> None:
    """Have a recruiter's address answered by its stub."""

    def answer(route: Route) -> None:
        route.fulfill(response=route.fetch(url=recruiters.url(site, route.request.url)))

    visitor.context.route(f"{host}/**", answer)
    visitor.forgive(f"a request to elsewhere: {host}/")


def complete(parlor: Stack, page: Page) -> None:
    """Come in by the door, and be at the end of the study."""
    main_button(page).click()
    page.wait_for_url("**/s/me/*")
    with database(parlor) as engine, writing(engine) as session:
        token = urlsplit(page.url).path.rpartition("/")[2]
        finish(session, find_progress_by_token(session, token, lock=True), "completed")
    page.reload()
    expect(page.locator("h1")).to_have_text("That’s all. Thank you!")
    assert faults(page) == []


def test_people_take_their_code_to_prolific(
    parlor: Stack, visitor: Visitor, recruiters: StubRecruiters, links: dict[str, str]
) -> None:
    prolific = recruiters.prolific
    prolific.study("66f0c1", links["prolific"], ["CDONE"])
    prolific.at = "ann"
    to_the_stub(visitor, recruiters, prolific, "https://app.prolific.com")
    page = visitor.open(prolific.place("ann"))
    complete(parlor, page)
    expect(page.locator("#code")).to_have_text("CDONE")
    page.get_by_role("link", name="Return to Prolific").click()
    expect(page.locator("body")).to_have_text("Thank you, ann: CDONE")
    assert page.url == "https://app.prolific.com/submissions/complete?cc=CDONE"
    assert (prolific.visit_of("ann").status, prolific.visit_of("ann").code) == ("AWAITING REVIEW", "CDONE")


def test_people_return_to_connect(
    parlor: Stack, visitor: Visitor, recruiters: StubRecruiters, links: dict[str, str]
) -> None:
    connect = recruiters.connect
    connect.project("7DE64B7FBE", links["connect"])
    connect.at = "ann"
    to_the_stub(visitor, recruiters, connect, "https://connect.cloudresearch.com")
    page = visitor.open(connect.enter("ann"))
    complete(parlor, page)
    page.get_by_role("link", name="Return to Connect").click()
    expect(page.locator("body")).to_have_text("Thank you, ann.")
    assert page.url == "https://connect.cloudresearch.com/participant/project/7DE64B7FBE/complete"
    assert connect.visit_of("ann").status == "submitted"
