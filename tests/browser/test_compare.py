"""Runs over each other in a real browser: chosen from a run's page, smoothed, and saved as a PDF."""

from playwright.sync_api import expect

from tests.browser.admin_states import sign_in
from tests.browser.test_rounds import launch
from tests.browser.visitor import Visitor
from tests.stack import Stack


def test_a_run_is_compared_with_another_and_the_figure_is_saved(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.context.new_page()
    sign_in(parlor, page)
    numbers = [launch(parlor, page, 60, Seed=str(seed)) for seed in (1, 2)]
    expect(page.locator(".verdict")).to_contain_text("n = 60")
    page.get_by_role("link", name="Compare", exact=True).click()
    page.get_by_label("Add a run").select_option(str(numbers[0]))
    page.get_by_label("Smoothing").select_option("moving")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("figure[data-state=drawn] [data-sentence]")).to_contain_text(f"round {numbers[0]}")
    assert f"run={numbers[1]}&run={numbers[0]}" in page.url
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as PDF").click()
    assert saved.value.path().read_bytes().startswith(b"%PDF")
    page.set_viewport_size({"width": 375, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
