"""Recipes in a real browser: refused at the line, started from the form, followed step by step, open to everybody."""

import re
from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.admin_states import sign_in
from tests.browser.axe import faults_in_each_look, inspector
from tests.browser.visitor import Visitor
from tests.stack import Stack

RECIPE = """\
recipe: guesses
version: 1
steps:
  - name: measure
    do: evaluate
    for: seed in [1, 2]
    with: {game: taboo, model: scripted, matches: 4}
  - name: table
    do: compare
    with: {of: "${all.measure.figures}", over: seed}
"""
SWEPT = """\
recipe: swept
version: 1
inputs: {objective: 0.0}
sweep: {"inputs.objective": -1..1 by 0.5}
steps:
  - name: measure
    do: evaluate
    for: turn in 1..2
    with: {game: negotiation, model: scripted, matches: 10, config: {objective: "${objective}"}}
"""


def test_a_recipe_is_refused_at_its_line_started_and_followed_to_its_table(
    parlor: Stack, visitors: Callable[..., Visitor]
) -> None:
    visitor = inspector(visitors)
    visitor.forgive("400")
    admin = visitor.context.new_page()
    sign_in(parlor, admin)
    admin.goto(f"{parlor.url}/admin/recipes/new")
    text, start = admin.get_by_label("or its text"), admin.get_by_role("button", name="Start", exact=True)
    text.fill(RECIPE.replace("matches: 4", "matches: none"))
    start.click()
    expect(admin.get_by_role("alert")).to_contain_text(
        ":7: steps[1].with.matches (seed=1): expected a whole number from 1"
    )
    expect(text).to_have_value(re.compile("matches: none"))
    assert faults_in_each_look(admin) == []
    admin.set_viewport_size({"width": 1280, "height": 900})
    text.fill(RECIPE)
    admin.get_by_role("button", name="Estimate").click()
    expect(admin.locator("#expected")).to_contain_text("By step")
    assert faults_in_each_look(admin) == []
    admin.set_viewport_size({"width": 1280, "height": 900})
    start.click()
    expect(admin).to_have_url(re.compile(r"/admin/recipes/\d+$"))
    # The page was opened before it ran, and shows by itself what came of it.
    expect(admin.locator("#head .tag")).to_have_text("done")
    expect(admin.locator("#progress")).to_contain_text("3 of 3")
    expect(admin.get_by_role("row", name=re.compile("measure seed=2"))).to_contain_text("done")
    expect(admin.get_by_role("heading", name="table", exact=True)).to_be_visible()
    assert faults_in_each_look(admin) == []


def test_a_sweep_shows_its_cells_and_draws_its_figures(parlor: Stack, visitors: Callable[..., Visitor]) -> None:
    visitor = inspector(visitors)
    admin = visitor.context.new_page()
    sign_in(parlor, admin)
    admin.goto(f"{parlor.url}/admin/recipes/new")
    admin.get_by_label("or its text").fill(SWEPT)
    admin.get_by_label("Seeds").fill("1..3")
    admin.get_by_role("button", name="Start", exact=True).click()
    expect(admin.locator("#head .tag")).to_have_text("done")
    admin.reload()
    cells = admin.locator("section", has=admin.get_by_role("heading", name="Cells of its sweep"))
    expect(cells.get_by_role("row", name=re.compile("^-1.0"))).to_contain_text("2 of 2")
    drawn = admin.locator("figure.chart")
    expect(drawn).to_have_count(2)
    expect(drawn.first.locator("svg, canvas").first).to_be_visible()
    expect(drawn.first.locator("[data-sentence]")).to_contain_text("score mean across objective")
    for form in ("SVG", "PDF", "PNG"):
        expect(drawn.first.get_by_role("button", name=f"Save as {form}")).to_be_visible()
    assert faults_in_each_look(admin) == []
    admin.set_viewport_size({"width": 1280, "height": 900})
    admin.get_by_label("Across", exact=True).select_option("turn")
    admin.get_by_role("button", name="Show", exact=True).click()
    expect(drawn).to_have_count(1)
    expect(drawn.locator("[data-sentence]")).to_contain_text("score mean across turn")
