"""Reports in Chromium: opened from a file without a network, looked at by axe-core, and printed."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from app.analysis.bootstrap import Figure
from app.analysis.figure_files import SVG
from app.analysis.gain import Gain
from app.reports.files import html_of
from app.reports.gains import ArmGain, gain_section
from app.reports.report import Report
from tests.browser.axe import AXE, faults_in_each_look
from tests.shell import Shell

SOCIETY = (
    "society", "run", "--agents", "scripted-agent", "--observers", "scripted-observer", "--seed", "7",
    "--config", "size=4", "iterations=3", "critics=2", "first_memories=2", "setting=mixed_half_half",
)  # fmt: skip


@pytest.fixture(scope="module")
def report(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a society that was run for it."""
    home = tmp_path_factory.mktemp("home")
    path = home / "report.html"
    env = {"PARLOR_HOME": str(home), "DATABASE_URL": "", "REDIS_URL": ""}
    for line in (SOCIETY, ("report", "--society", "1", "--out", path)):
        done = shell.flask(line, env=env)
        assert done.exit_code == 0, done.stderr
    return path


@pytest.fixture
def opened(report: Path, chromium: Callable[[bool], Browser], request: pytest.FixtureRequest) -> Iterator[Page]:
    """The report in a browser that reaches nothing: whatever it asks for or complains of fails the test."""
    options = getattr(request, "param", {})
    context = chromium(False).new_context(offline=True, **options)
    said: list[str] = []
    context.on("console", lambda message: said.append(message.text))
    context.on("weberror", lambda error: said.append(str(error.error)))
    context.on("request", lambda each: None if each.url.startswith(("file:", "data:")) else said.append(each.url))
    if options.get("bypass_csp"):
        context.add_init_script(AXE)
    page = context.new_page()
    page.goto(report.as_uri())
    yield page
    context.close()
    assert said == []


@pytest.mark.parametrize("width", [1280, 1440])
def test_the_tables_of_gains_are_seen_whole_on_a_usual_screen(
    chromium: Callable[[bool], Browser], tmp_path: Path, width: int
) -> None:
    part = Figure(-1.25, -3.5, 1.75, 96)
    gains = [
        ArmGain(label, Gain((0.333, 0.75), (5.0, 7.25), part, part, part))
        for label in ("measure player=little-base, objective=0.5", "measure player=little-base, objective=-1")
    ]
    section = gain_section("negotiation", gains, [(each.label, part) for each in gains])
    report = Report("r", "Title", "About.", "Finding.", sections=[section])
    path = tmp_path / "report.html"
    path.write_bytes(html_of(report, lambda specs, _: [{SVG: b"<svg></svg>"} for _ in specs], datetime.now(UTC)))
    page = chromium(False).new_page(viewport={"width": width, "height": 800})
    page.goto(path.as_uri())
    tables = page.locator(".scroll:has(table)")
    assert tables.count() > 1
    for table in tables.all():
        assert table.evaluate("each => each.scrollWidth - each.clientWidth") == 0, table.inner_text()
    page.close()


def test_it_opens_without_a_network_in_its_own_letters_and_style(opened: Page) -> None:
    assert opened.title().startswith("Society ")
    loaded = opened.evaluate(
        "async () => { await document.fonts.ready;"
        " return [...document.fonts].filter(f => f.status === 'loaded').map(f => f.weight); }"
    )
    assert sorted(loaded) == ["400", "700"]
    assert opened.evaluate("getComputedStyle(document.querySelector('.beside .figure')).fontSize") == "28px"
    figures = opened.locator("figure svg[role=img]")
    assert figures.count() == 2
    for place in range(2):
        assert figures.nth(place).get_attribute("aria-label")
        assert (figures.nth(place).bounding_box() or {"height": 0})["height"] > 150
    letters = opened.evaluate("document.fonts.check('12px \"Liberation Sans\"', 'λ−–')")
    assert letters


@pytest.mark.parametrize("opened", [{"bypass_csp": True, "reduced_motion": "reduce"}], indirect=True)
def test_axe_finds_nothing_at_a_desktop_and_on_a_dark_phone(opened: Page) -> None:
    for each in opened.locator("summary").all():
        each.click()
    assert faults_in_each_look(opened) == []


@pytest.mark.parametrize("opened", [{"color_scheme": "dark"}], indirect=True)
def test_figures_have_the_dark_colours_on_a_dark_page(opened: Page) -> None:
    ground, page = opened.evaluate(
        "[getComputedStyle(document.querySelector('figure svg rect')).fill,"
        " getComputedStyle(document.body).backgroundColor]"
    )
    assert ground == page
    assert page == "rgb(33, 39, 40)"


def test_folded_texts_are_open_on_paper_and_folded_on_a_screen(opened: Page) -> None:
    seen = "[...document.querySelectorAll('details pre, details th')].map(each => each.checkVisibility())"
    assert set(opened.evaluate(seen)) == {False}
    opened.emulate_media(media="print")
    assert set(opened.evaluate(seen)) == {True}
    content = opened.pdf()
    pages = re.findall(rb"/Type\s*/Page\b", content)
    assert len(pages) >= 3, "the prompts alone fill more than a page"
