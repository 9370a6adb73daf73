"""What axe-core, which lies in vendor/, finds on a page.

Whoever is looked at so bypasses the policy, which rightly forbids what it is brought in by, and wants reduced motion:
colours are to have stopped changing.
"""

from pathlib import Path

from playwright.sync_api import Page

from tests.browser.steps import sideways

_AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text(encoding="utf-8")
_DESKTOP, _PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
# What depends on colours and widths; all else is the same in every look.
_LOOKS = ["color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size"]


def violations(page: Page, rules: list[str] | None = None) -> list[str]:
    """The violations of all rules, or of some, each with the element at fault."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_AXE)
    options = {"resultTypes": ["violations"], "preload": False} | ({"runOnly": rules} if rules else {})
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
            found += [f"{scheme}: {fault}" for fault in violations(page, _LOOKS if scheme == "dark" else None)]
        if by := sideways(page):
            found.append(f"{scheme}: scrolls sideways by {by}")
    return found
