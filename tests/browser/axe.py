"""What axe-core, which lies in vendor/, finds on a page.

Only the pages of an `inspector` can be looked at so.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.browser.steps import sideways
from tests.browser.visitor import Visitor

AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text(encoding="utf-8")
_DESKTOP, _PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
# What depends on colours and widths; all else is the same in every look.
LOOKS = ["color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size"]


def inspector(visitors: Callable[..., Visitor], **options: Any) -> Visitor:
    """A visitor who brings axe-core along to every page.

    The policy, which rightly forbids that, is bypassed, and motion is reduced: colours are to have stopped changing.
    """
    visitor = visitors(bypass_csp=True, reduced_motion="reduce", **options)
    visitor.context.add_init_script(AXE)
    return visitor


def violations(page: Page, rules: list[str] | None = None) -> list[str]:
    """The violations of all rules, or of some, each with the element at fault."""
    page.wait_for_load_state()  # before its stylesheet is there, a page has the browser's colours
    options = {"resultTypes": ["violations"], "preload": False, "selectors": False} | (
        {"runOnly": rules} if rules else {}
    )
    ran = page.evaluate("(options) => axe.run(document, options)", options)
    return [
        f"{fault['id']}: {fault['help']}: {node['html'][:120]}"
        for fault in ran["violations"]
        for node in fault["nodes"]
    ]


def faults_in_each_look(page: Page, *, colours: bool = True) -> list[str]:
    """The violations at a desktop and on a dark phone, and whether anything is scrolled sideways.

    Without `colours`, what depends on them is not looked for again on the phone.
    """
    found = []
    for scheme, viewport in (("light", _DESKTOP), ("dark", _PHONE)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size(viewport)  # type: ignore[arg-type]
        if scheme == "light" or colours:
            found += [f"{scheme}: {fault}" for fault in violations(page, LOOKS if scheme == "dark" else None)]
        if by := sideways(page):
            found.append(f"{scheme}: scrolls sideways by {by}")
    return found
