"""Tasks of an experimenter's day, done by a browser among 5,000 matches: how many clicks each takes.

    python -m scripts.admin_tasks [FOLDER] [--matches N] [--only TASK]

It starts a Parlor of its own with a stub in place of language models, plays the matches, signs in, and does each task
from the overview on, by what the pages say: links, buttons, fields and keys. A click is a press of a link, a button, a
choice or a box; a key is a press of one; a field is one that was written into. It prints a table, writes a picture of
the page at which each task ends into FOLDER, and ends with exit code 1 if a task could not be done.
"""

import argparse
import random
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Download, Locator, Page, expect

from tests.browser.admin_states import sign_in
from tests.browser.visitor import Visitor, running_playwright
from tests.stack import ROOT, Stack, new_home
from tests.stub_openai import Messages, Reply, Speaker, StubServer

MODELS = ("harbour-7b", "harbour-13b")
_BY_MODEL = 200  # matches of each model behind the stub
_CODED = 20


class TaskRun:
    """Does tasks at a page, and counts the clicks, keys and fields that they took."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = self.keys = self.fields = 0

    def press(self, what: Locator) -> None:
        """Click on something."""
        what.click()
        self.clicks += 1

    def link(self, name: str) -> None:
        """Follow the first link of that name."""
        self.press(self.page.get_by_role("link", name=name, exact=True).first)

    def section(self, name: str) -> None:
        """Open a section or one of its lists, by the navigation."""
        self.press(self.page.locator(".admin-nav, .section-nav").get_by_role("link", name=name, exact=True).last)

    def button(self, name: str | re.Pattern[str]) -> None:
        """Press the first button of that name."""
        self.press(self.page.get_by_role("button", name=name, exact=isinstance(name, str)).first)

    def write(self, label: str, text: str) -> None:
        """Write into the field of that label."""
        self.page.get_by_label(label, exact=True).first.fill(text)
        self.fields += 1

    def choose(self, label: str, choice: str | list[str]) -> None:
        """Choose of a list: a click to open it, and one a choice."""
        field = self.page.locator("select").and_(self.page.get_by_label(label, exact=True))
        field.first.select_option(choice)
        self.clicks += 1 + (1 if isinstance(choice, str) else len(choice))

    def key(self, key: str) -> None:
        """Press a key, once the page hears it."""
        self.page.wait_for_load_state()
        self.page.keyboard.press(key)
        self.keys += 1

    def download(self, what: Locator) -> Download:
        """Click on a file, and have it."""
        with self.page.expect_download() as waiting:
            self.press(what)
        return waiting.value


# ---- The tasks ---------------------------------------------------------------------


def search_transcripts(run: TaskRun) -> str:
    run.section("Matches")
    run.section("Transcripts")
    run.write("Said", '"both hats"')
    run.button("Search")
    marked = run.page.locator("mark").first
    expect(marked).to_have_text(re.compile("both hats", re.IGNORECASE))
    return run.page.get_by_role("status").first.inner_text().split(".")[0]


def find_worst_five(run: TaskRun) -> str:
    run.section("Matches")
    run.section("Transcripts")
    run.link("Lowest scores")
    return " ".join(run.page.locator(".hit-score").all_inner_texts()[:5])


def see_spend(run: TaskRun) -> str:
    run.section("Overview")
    run.section("Spend")
    rows = run.page.get_by_role("table", name="By model").get_by_role("row")
    found = [row for row in rows.all_inner_texts() if row.startswith(MODELS)]
    if len(found) != len(MODELS):
        raise ValueError(f"expected a row of each model, got {found}")
    return "; ".join(" ".join(row.split()) for row in found)


def save_figure(run: TaskRun) -> str:
    run.section("Rounds")
    run.link("harbour-7b and scripted")
    run.link("Charts")
    file = run.download(run.page.get_by_role("button", name="Save as PDF").first)
    head = Path(file.path()).read_bytes()[:5]
    if head != b"%PDF-":
        raise ValueError(f"expected a PDF, got {head!r}")
    return file.suggested_filename


def compare_curves(run: TaskRun) -> str:
    run.section("Rounds")
    for number in (2, 3):
        run.press(run.page.get_by_role("checkbox", name=re.compile(f"Round {number}$|Compare .*{number}$")))
    run.button(re.compile("Compare"))
    run.link("Curves over each other")
    run.choose("Smoothing", "exponential")
    run.press(run.page.get_by_label("Log axis"))
    run.button("Show")
    expect(run.page.locator("figure.chart svg").first).to_be_visible()
    return run.page.url


def launch_round(run: TaskRun) -> str:
    run.section("Rounds")
    run.link("New round")
    run.choose("First seat", "harbour-7b")
    run.choose("Second seat", "harbour-13b")
    run.button("Start")
    expect(run.page.locator("main")).to_contain_text("harbour-7b against harbour-13b")
    return run.page.get_by_role("heading", level=1).inner_text()


def watch_round(run: TaskRun) -> str:
    run.section("Rounds")
    run.link("harbour-7b and harbour-13b")
    expect(run.page.locator(".head")).to_contain_text("done", timeout=120_000)
    return " ".join(run.page.locator(".verdict").inner_text().split())


def write_report(run: TaskRun) -> str:
    run.section("Models")
    run.section("Leaderboard")
    run.link("Report")
    file = run.download(run.page.get_by_role("link", name="Archive with data and figures"))
    with zipfile.ZipFile(file.path()) as archive:
        names = archive.namelist()
    return ", ".join(f"{count} {kind}" for kind, count in sorted(Counter(Path(name).suffix for name in names).items()))


def compare_models(run: TaskRun) -> str:
    run.section("Models")
    run.section("Side by side")
    run.choose("Models", list(MODELS))
    run.choose("Base", "harbour-7b")
    run.button("Show")
    row = run.page.get_by_role("row", name=re.compile("^harbour-13b")).first
    return " ".join(row.inner_text().split())


def code_twenty(run: TaskRun) -> str:
    run.section("Matches")
    run.section("Codings")
    run.write("Name", f"Offers {random.randrange(10**6)}")
    run.write("Codes", "asks: asks for everything\nfair: proposes an equal split")
    run.button("Make this coding")
    run.link("Transcripts")
    run.write("Said", '"both hats"')
    run.button("Search")
    run.button("Add them")
    expect(run.page.locator(".hits a")).to_have_count(_CODED)
    for number in range(_CODED):
        if not number:
            run.press(run.page.locator("#reading"))
        run.key("ArrowDown")
        expect(run.page.locator("#read .lines a[aria-current=true]")).to_be_visible()
        run.key("1" if number % 2 else "2")
        expect(run.page.locator("#read [aria-pressed=true]")).to_have_count(1)
        if number + 1 < _CODED:
            run.key("j")
            expect(run.page.locator(".hits a[aria-current=true]")).to_have_text(re.compile(rf"^{number + 2}\."))
    run.button(re.compile("I am done"))
    return run.page.locator(".head p").inner_text()


def free_disk(run: TaskRun) -> str:
    run.section("Overview")
    run.section("Storage")
    run.press(run.page.get_by_role("checkbox", name=re.compile("harbour-13b and scripted")).first)
    run.button("Remove the ticked ones")
    run.button(re.compile("^Remove"))
    row = run.page.get_by_role("row", name=re.compile("harbour-13b and scripted"))
    expect(row).to_contain_text("can be undone")
    return " ".join(row.inner_text().split())


def undo_removal(run: TaskRun) -> str:
    run.section("Overview")
    run.section("Storage")
    run.link("What was removed")
    run.link("harbour-13b and scripted")
    run.button("Put it back")
    run.section("Rounds")
    expect(run.page.get_by_role("link", name="harbour-13b and scripted").first).to_be_visible()
    return "the round is in the list again"


def annotate_run(run: TaskRun) -> str:
    run.section("Rounds")
    run.link("harbour-7b and scripted")
    run.press(run.page.get_by_text("Tags and notes"))
    run.write("Tag", "baseline")
    run.button("Add a tag")
    run.write("Note", "Before the prompt was changed.")
    run.button("Add a note")
    expect(run.page.locator(".note.breaks")).to_contain_text("Before the prompt was changed.")
    return " ".join(run.page.locator("#tags summary").inner_text().split())


Task = Callable[[TaskRun], str]
TASKS: dict[str, Task] = {
    "search transcripts by their text": search_transcripts,
    "find the worst five matches": find_worst_five,
    "see this week's spend by model": see_spend,
    "save a figure as PDF": save_figure,
    "compare runs, smoothed and on a log axis": compare_curves,
    "launch a round": launch_round,
    "watch it to its end": watch_round,
    "compare two models": compare_models,
    "write the report": write_report,
    "delete a round and free its disk": free_disk,
    "undo that": undo_removal,
    "code twenty transcripts": code_twenty,
    "annotate a run": annotate_run,
}


# ---- The Parlor they are done in -----------------------------------------------------


def talker(name: str) -> Speaker:
    """A model that asks for something and then proposes by chance, the same in the same dialogue."""

    def speak(messages: Messages) -> str:
        draw = random.Random(f"{name} {messages}")
        if all(each["role"] != "assistant" for each in messages):
            return f"[message] {draw.choice(('I would like both hats, please.', 'How about you take the books?'))}"
        return f"[propose] ({draw.randrange(2)} books, {draw.randrange(2)} hats, {draw.randrange(2)} balls)"

    return speak


def command(parlor: Stack, *arguments: str) -> None:
    """A command of Parlor on its data."""
    subprocess.run(  # noqa: S603 - our own commands
        [sys.executable, "-m", "flask", *arguments], env=parlor.env, cwd=ROOT, check=True, stdout=sys.stderr
    )


@contextmanager
def furnished_parlor(matches: int) -> Iterator[Stack]:
    """A Parlor in which so many matches were played: most by the scripted partner, the rest by the stub's models."""
    home = new_home()
    with StubServer() as stub:
        parlor = Stack(home)
        try:
            parlor.wait_until_ready()
            scripted = str(matches - _BY_MODEL * len(MODELS))
            command(parlor, "round", "run", "negotiation", "--models", "scripted", "--matches", scripted)
            for name in MODELS:
                stub.script(name, Reply(talker(name), delay=0.3))
                price = ("--price-in", "2", "--price-out", "8")
                command(
                    parlor, "model", "add-api", name, "--model", name, "--base-url", stub.url, "--key-env", "", *price
                )
                command(
                    parlor, "round", "run", "negotiation", "--models", name, "scripted", "--matches", str(_BY_MODEL)
                )
            yield parlor
        finally:
            parlor.stop()
            shutil.rmtree(home, ignore_errors=True)


class Outcome(NamedTuple):
    """What a task took, and what was seen at its end, or what stood in its way."""

    task: str
    done: bool
    clicks: int
    keys: int
    fields: int
    seen: str


def attempt(run: TaskRun, name: str, task: Task) -> Outcome:
    """Do a task from the overview on."""
    run.clicks = run.keys = run.fields = 0
    try:
        seen, done = task(run), True
    except Exception:  # whatever it is that stood in the way, the other tasks can be done
        seen, done = traceback.format_exc(limit=2).strip().splitlines()[-1], False
    return Outcome(name, done, run.clicks, run.keys, run.fields, seen)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.admin_tasks", description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, help="where the pictures go [a new folder in /tmp]")
    parser.add_argument("--matches", type=int, default=5_000, help="how many are played before")
    parser.add_argument("--only", choices=TASKS, help="do this task alone")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="parlor-tasks-"))
    folder.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=30_000)
    with furnished_parlor(options.matches) as parlor, running_playwright() as chromium:
        outcomes = list(done_in_browser(parlor, Visitor(chromium(True)), folder, options.only))
    return 0 if all(each.done for each in outcomes) else 1


def done_in_browser(parlor: Stack, visitor: Visitor, folder: Path, only: str | None) -> Iterator[Outcome]:
    """Each task's outcome, printed as it comes."""
    visitor.context.set_default_timeout(15_000)
    page = visitor.context.new_page()
    sign_in(parlor, page)
    print(f"{'task':44}{'clicks':>8}{'keys':>6}{'fields':>8}  seen")
    for name, task in TASKS.items():
        if only not in (None, name):
            continue
        page.goto(parlor.url + "/admin/")
        found = attempt(TaskRun(page), name, task)
        page.screenshot(path=folder / f"{name.replace(' ', '-')}.png", full_page=True)
        seen = found.seen if found.done else f"NOT DONE: {found.seen}"
        print(f"{name:44}{found.clicks:>8}{found.keys:>6}{found.fields:>8}  {seen}")
        yield found
    for complaint in visitor.complaints:
        print(f"complaint: {complaint}")


if __name__ == "__main__":
    sys.exit(main())
