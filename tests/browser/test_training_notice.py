"""The notice on admin pages about a training part that is still to come: it follows its installation to the end."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from app import training_part
from app.training_part import Lacking
from tests.browser.admin_states import sign_in
from tests.browser.steps import faults
from tests.browser.visitor import Visitor
from tests.stack import Stack, new_home, wait_until
from tests.training_environment import Environment


@pytest.fixture
def lacking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    """A Parlor whose pip finds nothing; its file about the training part is the test's to write."""
    environment, home = Environment(tmp_path / "venv"), new_home()
    running = environment.start(home)
    try:
        running.wait_until_ready()
        wait_until(lambda: "not installed: " in running.output(), "the end of the first try")
        monkeypatch.setattr(training_part, "STATE", environment.state)
        yield running
    finally:
        running.close()
        shutil.rmtree(home, ignore_errors=True)


def test_the_notice_follows_the_installation(lacking: Stack, visitor: Visitor) -> None:
    page = visitor.context.new_page()
    sign_in(lacking, page)
    notice = page.locator("#training-part")
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(f"{lacking.url}/admin/models")
        expect(notice).to_contain_text("its installation failed (the package index has no ")
        assert faults(page) == []
    training_part.record_missing(Lacking(step="torch, 190.0 MB", percent=40, pid=os.getpid()))
    expect(notice).to_contain_text(
        "wait: the training part (torch, transformers) is being installed (torch, 190.0 MB, 40 %)"
    )
    expect(notice.get_by_role("progressbar", name="Installation of the training part")).to_have_attribute("value", "40")
    training_part.record_missing(Lacking(step="torch, 190.0 MB", percent=40, pid=2**22))
    expect(notice).to_contain_text("its installation was cut off; restart Parlor to continue")
    expect(notice.get_by_role("progressbar")).to_have_count(0)
    training_part.record_missing(Lacking(is_off=True))
    page.reload()
    expect(notice).to_contain_text(
        "cannot be used here: the training part (torch, transformers) is not installed, because PARLOR_TRAINING is off"
    )
    training_part.record_missing(None)
    expect(notice.get_by_role("status")).to_have_text("Local models and trainings can be used now.")
    assert faults(page) == []
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(notice).to_have_count(0)
