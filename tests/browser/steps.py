"""What a person does on the pages, in any language, and what they see there."""

import contextlib
import re

from playwright.sync_api import Error, Locator, Page, expect

RESULT = re.compile(r"/play/[\w-]+/result$")
MATCH = re.compile(r"/play/[\w-]+$")


def say(page: Page, text: str) -> None:
    """Write a message and send it."""
    wait_for_script(page)
    page.locator("#message").fill(text)
    page.locator("#message").press("Enter")


def wait_for_script(page: Page) -> None:
    """Wait until the script of a match takes messages; what it shows first comes with the page."""
    expect(page.locator("#composer:not([inert])")).to_be_attached()


def offer(page: Page, book: int, hat: int, ball: int) -> None:
    """Make an offer and confirm it; on a phone it has to be unfolded first."""
    wait_for_script(page)
    if page.locator("#offer details:not([open])").count():
        page.locator("#offer summary").click()
    for kind, count in (("book", book), ("hat", hat), ("ball", ball)):
        page.locator(f"#take-{kind}").fill(str(count))
    page.locator("#offer [type=submit]").click()
    page.locator("#offer-dialog [value=yes]").click()


def guess(page: Page, word: str) -> None:
    """Use the one guess and confirm it."""
    wait_for_script(page)
    page.locator("#guess").fill(word)
    page.locator("#guess-form [type=submit]").click()
    page.locator("#guess-dialog [value=yes]").click()


def see_result(page: Page) -> None:
    """Follow the way to the result, which opens with the end of the match. Whoever moved last is taken there."""
    way = page.locator("#over a")
    expect(way.filter(visible=True).or_(page.locator("main.result"))).not_to_have_count(0)
    with contextlib.suppress(Error):  # the page has gone there meanwhile
        way.evaluate_all("links => links[0]?.click()")
    expect(page).to_have_url(RESULT)


def lines(page: Page) -> Locator:
    """The moves in the conversation; what the table says by itself is left out."""
    return page.locator("#log li[data-key]")


def texts(page: Page) -> list[str]:
    """What was said, line by line."""
    return page.locator("#log li[data-key] .text").all_inner_texts()


def wait_for_turn(page: Page) -> None:
    """Wait until the page says that it is this person's turn, and hears what they do."""
    wait_for_script(page)
    expect(page.locator("#turn-now")).to_have_text(re.compile(r"^(Your turn|Du bist dran)"))


def wait_for_answer(page: Page, ply: int) -> None:
    """Wait until so many moves are in the conversation and it is this person's turn again."""
    expect(lines(page)).to_have_count(ply)
    wait_for_turn(page)


def sideways(page: Page) -> int:
    """By how many pixels the page can be scrolled sideways."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


COVERED = """() => {
  const seen = (el) => el.checkVisibility({ opacityProperty: true, visibilityProperty: true })
    && !el.closest('[aria-hidden=true]') && el.getBoundingClientRect().width > 2;
  const dialog = document.querySelector('dialog[open]');
  const faults = [];
  for (const el of (dialog ?? document).querySelectorAll('a, button, input, select, textarea, summary')) {
    if (!seen(el) || el.type === 'hidden' || el.matches('.skip')) continue;
    el.scrollIntoView({ block: 'center', inline: 'nearest' });
    const box = el.getBoundingClientRect();
    const there = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    if (!there || !(el.contains(there) || there.contains(el))) faults.push(`${el.outerHTML.slice(0, 80)} is covered`);
    if (box.left < -1 || box.right > innerWidth + 1) faults.push(`${el.outerHTML.slice(0, 80)} sticks out`);
  }
  const texts = 'h1, h2, h3, p, label, .button, .counter, .word, .turn, .message, .way li';
  for (const el of document.querySelectorAll(texts)) {
    if (!seen(el) || el.closest('.visually-hidden') || getComputedStyle(el).overflowX === 'auto') continue;
    if (el.clientWidth && el.scrollWidth > el.clientWidth + 1) faults.push(`${el.outerHTML.slice(0, 80)} overflows`);
  }
  for (const el of document.querySelectorAll('.whole')) {
    if (el.getClientRects().length > 1) faults.push(`${el.outerHTML.slice(0, 80)} breaks into lines`);
  }
  scrollTo(0, 0);
  return faults;
}"""


def faults(page: Page) -> list[str]:
    """What a look at the layout finds: controls that are covered or stick out, text that is cut off."""
    page.wait_for_load_state()  # an address can be there before the stylesheet
    found: list[str] = page.evaluate(COVERED)
    return found


def tab_to(page: Page, selector: str, most: int = 60) -> None:
    """Press Tab until what has the focus is what the selector means, once that can have it."""
    expect(page.locator(selector).first).to_be_enabled()
    for _ in range(3):
        page.bring_to_front()  # keys go to the page in front, which another visitor's may have become
        seen = set()
        for _ in range(most):
            if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
                return
            page.keyboard.press("Tab")
            seen.add(page.evaluate("document.activeElement.outerHTML"))
        if len(seen) > 1:  # else the browser gives the page no keys, as happens without a screen on a busy machine
            break
    raise AssertionError(f"expected to reach {selector} with {most} presses of Tab, got {sorted(seen)}")
