"""A person who has no pointer: every step is a key, and the mark of the focus is looked at wherever it comes."""

from itertools import pairwise
from typing import Any

from playwright.sync_api import Page, expect

# What is seen where the focus is now: the name and the place of the stop, and what is wrong with its mark.
STOP = """() => {
  const all = [...document.querySelectorAll('*')];
  const el = document.activeElement;
  if (!el || el === document.body) return null;
  const words = (el.innerText || el.ariaLabel || el.name || el.id).trim();
  const name = `${el.tagName.toLowerCase()} “${words.slice(0, 40)}”`;
  const rgb = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const drawn = (each) => {
    const { outlineStyle, outlineWidth } = getComputedStyle(each);
    return outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2;
  };
  const under = (each) => {
    for (let at = each; at; at = at.parentElement) {
      const [r, g, b, alpha = 1] = rgb(getComputedStyle(at).backgroundColor);
      if (alpha > 0.5) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const light = (colour) => {
    const linear = (part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = colour.map((part) => linear(part / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  const faults = [];
  const left = window.leftStop;
  if (left?.isConnected && [left, left.closest('label')].some((each) => each && !each.contains(el) && drawn(each))) {
    faults.push('comes, and the mark stays: ' + left.outerHTML.slice(0, 80));
  }
  window.leftStop = el;
  const marked = [el, el.closest('label')].find((each) => each && drawn(each));
  const box = el.getBoundingClientRect();
  if (!marked) faults.push('shows nothing of the focus');
  else {
    const style = getComputedStyle(marked);
    const offset = parseFloat(style.outlineOffset);
    const reach = offset + parseFloat(style.outlineWidth);
    const ground = under(offset < 0 ? marked : marked.parentElement);
    const [one, other] = [light(rgb(style.outlineColor).slice(0, 3)), light(ground)];
    const contrast = Math.max(one, other) / Math.min(one, other);
    if (contrast < 3) faults.push(`has a mark in a contrast of ${contrast.toFixed(1)}`);
    const mark = marked.getBoundingClientRect();
    const [from, to] = [[mark.left - reach, mark.top - reach], [mark.right + reach, mark.bottom + reach]];
    for (let at = marked.parentElement; at && at !== document.body; at = at.parentElement) {
      const { overflowX, overflowY } = getComputedStyle(at);
      const edge = at.getBoundingClientRect();
      const cut = (overflowX !== 'visible' && (from[0] < edge.left - 1 || to[0] > edge.right + 1))
        || (overflowY === 'clip' && (from[1] < edge.top - 1 || to[1] > edge.bottom + 1));
      if (cut) faults.push(`has a mark that is cut off by ${at.className}`);
    }
    const beside = from[0] < -1 || to[0] > innerWidth + 1;
    if (beside || from[1] + scrollY < -1) faults.push('has a mark that is cut off by the window');
  }
  const [x, y] = [box.x + box.width / 2, Math.min(Math.max(box.y + box.height / 2, 0), innerHeight - 1)];
  const there = document.elementFromPoint(x, y);
  if (box.bottom < 0 || box.top > innerHeight) faults.push('is out of sight');
  else if (!there || !(el.contains(there) || there.contains(el))) faults.push('is covered');
  const region = el.closest('dialog, header, footer, .match > *, main') ?? document.body;
  return {
    at: all.indexOf(el), name, faults, region: all.indexOf(region),
    in_main: Boolean(el.closest('main')), in_dialog: Boolean(el.closest('dialog')),
    box: [box.left, box.top + scrollY, box.bottom + scrollY],
  };
}"""
# What can be pressed or filled in, as the places of its elements; of radio buttons of one name any one.
REACHABLE = """() => {
  const all = [...document.querySelectorAll('*')];
  const within = document.querySelector('dialog[open]') ?? document;
  const groups = new Map();
  const name = (el) => el.type === 'radio' ? `radio ${el.name}` : el;
  for (const el of within.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')) {
    if (el.disabled || el.type === 'hidden' || el.tabIndex < 0 || el.closest('[inert]')) continue;
    if (!el.checkVisibility({ visibilityProperty: true })) continue;
    groups.set(name(el), [...(groups.get(name(el)) ?? []), [all.indexOf(el), el.outerHTML.slice(0, 80)]]);
  }
  return [...groups.values()];
}"""

AT = "(selector) => [document.activeElement.matches(selector), document.activeElement.outerHTML.slice(0, 80)]"
Stop = dict[str, Any]


class Keys:
    """The keys of a person on a page. `faults` are what would stop or mislead somebody who sees the page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.faults: list[str] = []

    def press(self, selector: str, key: str = "Enter") -> None:
        """Go there and press a key."""
        self.go(selector)
        self.page.keyboard.press(key)

    def turn(self, selector: str) -> None:
        """Go to what leads to another page, press it, and wait for that page."""
        self.go(selector)
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")

    def go(self, selector: str, key: str = "Tab") -> None:
        """Press Tab until the focus is on what the selector means."""
        seen = []
        for _ in range(80):
            is_there, here = self.page.evaluate(AT, selector)
            if is_there:
                return
            seen.append(here)
            self.page.keyboard.press(key)
        raise AssertionError(f"expected to reach {selector} with {key}, got {list(dict.fromkeys(seen))}")

    def is_at(self, selector: str) -> bool:
        """Whether the focus is there."""
        return bool(self.page.evaluate("(selector) => document.activeElement.matches(selector)", selector))

    def write(self, selector: str, text: str) -> None:
        """Go to a field and type."""
        self.go(selector)
        self.page.keyboard.type(text)

    def choose(self, name: str, value: str) -> None:
        """Go to the radio buttons of that name, and to the one of that value by arrows."""
        self.go(f"[name='{name}']")
        self.page.keyboard.press("Space")
        for _ in range(12):
            if self.is_at(f"[value='{value}']"):
                break
            self.page.keyboard.press("ArrowRight")
        expect(self.page.locator(f"[name='{name}'][value='{value}']")).to_be_checked()
        expect(self.page.locator(f"[name='{name}'][value='{value}']")).to_be_focused()

    def pick(self, label: str) -> None:
        """Choose the one radio button of a label."""
        button = self.page.get_by_label(label, exact=True)
        self.choose(button.get_attribute("name") or "", button.get_attribute("value") or "")

    def look_around(self, name: str) -> None:
        """On a page that has just come: over the skip link to what the page is about, and on through every stop."""
        self.page.wait_for_load_state()
        self.page.bring_to_front()  # without a screen a page now and then comes without the focus of the window
        self._next(name)
        expect(self.page.locator(".skip")).to_be_focused()
        expect(self.page.locator(".skip")).to_be_in_viewport(ratio=1)
        self.page.keyboard.press("Enter")
        self.look_on(name)

    def look_on(self, name: str) -> None:
        """From a stop in what the page is about, or from before the first, through all others."""
        first = self._next(name) if self.is_at("main") else self._stop(name)
        assert first is not None, f"{name}: expected a stop"
        if not first["in_main"]:
            self.faults.append(f"{name}: the first stop of the page is {first['name']}")
        self._round(name, first)

    def look_at_refusal(self, name: str, field: str) -> None:
        """On a page that came because of a wrong answer: what is wrong has the focus, and leads to the first field."""
        page = self.page
        page.wait_for_load_state()
        expect(page.locator("#refused")).to_be_focused()
        self._stop(name)
        self._next(name)
        page.keyboard.press("Enter")
        self._next(name)
        expect(page.locator(field).first).to_be_focused()
        expect(page.locator(field).first).to_be_in_viewport()

    def look_around_dialog(self, name: str) -> None:
        """Through every stop of the dialog that is open; the page behind it is out of reach."""
        expect(self.page.locator("dialog[open]")).to_be_visible()
        first = self._stop(name)
        assert first is not None, f"{name}: expected the focus in the dialog"
        for stop in self._round(name, first):
            if not stop["in_dialog"]:
                self.faults.append(f"{name}: {stop['name']} behind the dialog is reached")

    def _round(self, name: str, first: Stop) -> list[Stop]:
        """From a stop through all others until it comes again."""
        stops, stop = [first], self._next(name)
        while stop is not None and stop["at"] != first["at"] and len(stops) < 100:
            stops.append(stop)
            stop = self._next(name)
        if stop is None or stop["at"] != first["at"]:
            self.faults.append(f"{name}: {stops[-1]['name']} cannot be left")
        reached = {stop["at"] for stop in stops}
        self.faults += [
            f"{name}: {group[0][1]} is not reached"
            for group in self.page.evaluate(REACHABLE)
            if reached.isdisjoint(at for at, _ in group)
        ]
        for before, after in pairwise(stops):
            (left, top, bottom), (next_left, next_top, next_bottom) = before["box"], after["box"]
            below = next_top >= bottom - 4
            beside = next_bottom > top and next_left >= left - 1
            if before["region"] == after["region"] != after["at"] and not below and not beside:
                self.faults.append(f"{name}: {after['name']} comes after {before['name']}, but does not stand there")
        return stops

    def _next(self, name: str) -> Stop | None:
        """Press Tab; past the last stop a browser shows its own, and then the first again."""
        self.page.keyboard.press("Tab")
        stop = self._stop(name)
        if stop is None:
            self.page.keyboard.press("Tab")
            stop = self._stop(name)
        return stop

    def _stop(self, name: str) -> Stop | None:
        stop: Stop | None = self.page.evaluate(STOP)
        if stop is not None:
            self.faults += [f"{name}: {stop['name']} {fault}" for fault in stop["faults"]]
        return stop
