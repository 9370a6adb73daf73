"""A match of a study in a browser: how a move was written, and a partner of whom nothing is told."""

from pathlib import Path

from playwright.sync_api import expect
from sqlalchemy import select

from app.core.extensions import reading, writing
from app.models import EventRow
from app.registry import add_scripted_model
from app.studies import matches
from app.web import tickets
from tests.browser.steps import faults, wait_for_script
from tests.browser.visitor import Visitor
from tests.stack import Stack
from tests.study_matches import enrolled, go_to, loaded
from tests.tables import database, settings_of


def test_how_a_move_was_written_is_measured_and_the_partner_stays_hidden(
    parlor: Stack, visitor: Visitor, tmp_path: Path
) -> None:
    with database(parlor) as engine, writing(engine) as session:
        add_scripted_model(session, "casual", None, {"manner": "casual"})
        version = loaded(
            session,
            tmp_path,
            "taboo-roles",
            ("b: tiny", "b: casual"),
            ("feedback: own", "reply_after: {least: 1}\n  feedback: own"),
        )
        progress = enrolled(session, version, first=None)
        attacks = next(
            f"match {number}"
            for number, match in enumerate(progress.enrolment.plan["matches"], 1)  # type: ignore[index]
            if match["condition"]["role"] == "attacker"
        )
        record = matches.start(session, progress, go_to(progress, attacks))
        token = progress.enrolment.token
    ticket = tickets.issue(settings_of(parlor), record.id, 0)
    page = visitor.open(f"{parlor.url}/play/{record.id}?ticket={ticket}")
    expect(page.locator(".bar-title p")).to_contain_text(" of 4")
    wait_for_script(page)
    box = page.locator("#message")
    box.press_sequentially("Hello there!")
    box.press("Control+A")
    box.press("Control+X")
    box.press("Control+V")
    box.press("Enter")
    expect(page.locator("#log .message")).to_have_count(2)
    assert faults(page) == []
    with database(parlor) as engine, reading(engine) as session:
        found = select(EventRow).where(EventRow.match_id == record.id, EventRow.kind == "message")
        own, reply = session.scalars(found.order_by(EventRow.seq)).all()
    assert own.timing is not None
    assert reply.timing is not None
    assert {name: own.timing.get(name) for name in ("typed", "pasted", "pastes", "deleted")} == {
        "typed": 12, "pasted": 12, "pastes": 1, "deleted": 12
    }  # fmt: skip
    assert 0 < own.timing["first_input"] <= own.timing["sent"]
    assert reply.timing["target"] >= 1

    source = page.content()
    page.get_by_role("button", name="Leave", exact=True).click()
    expect(page.get_by_role("button", name="Report a problem and leave")).to_be_visible()
    assert faults(page) == []
    page.get_by_role("button", name="Leave the study").click()
    page.wait_for_url("**/result")
    expect(page.get_by_role("link", name="Continue")).to_have_attribute("href", f"/s/me/{token}")
    told = f"{visitor.frames} {source} {page.content()}".lower()
    assert [word for word in ("scripted", "program", "casual", "language model") if word in told] == []
    assert not any('"partner":' in frame for frame in visitor.frames)
