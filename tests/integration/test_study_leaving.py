"""Leaving a study from every page, and what is shown to who opens a page that is not theirs."""

from collections.abc import Callable
from decimal import Decimal

import pytest
from flask import Flask
from sqlalchemy import Engine, select

from app.core.extensions import reading, writing
from app.matches.turns import WorkerContext
from app.models import Enrolment, Payment
from app.studies.answers import draw_arm
from app.studies.enrolment import take_place
from app.studies.participant_steps import CONSENT, DEBRIEF, steps
from app.studies.progress import find_progress_by_token
from app.studies.waves import close, find_wave, freeze
from tests.study_pages import AT_ONCE, MATCH, Walker, door_of, play_out, text_of
from tests.waves import changed, loaded_study, new_wave, store_study

EXAMPLES = {"two-models": ("main", {}), "taboo-roles": ("words", {"of": "taboo-roles", "wave": "words"})}


@pytest.fixture
def opened(app: Flask) -> None:
    """A wave of each example."""
    with writing() as session:
        for name, (_, keys) in EXAMPLES.items():
            store_study(session, changed(loaded_study(name), same_for_all=AT_ONCE))
            new_wave(session, **{"places": 30, **keys})


def come(app: Flask, study: str = "two-models", name: str = "ann") -> Walker:
    """Somebody who opens the link of a wave."""
    return Walker(app.test_client(), door_of(name, EXAMPLES[study][0], study))


def put_at(walker: Walker, key: str) -> None:
    """Have somebody come as far as to a step."""
    with writing() as session:
        progress = find_progress_by_token(session, walker.address.rpartition("/")[2], lock=True)
        if key != CONSENT:
            take_place(session, progress)
        progress.enrolment.step = next(at for at, step in enumerate(progress.steps) if step.key == key)
        draw_arm(session, progress)


def ending() -> str | None:
    """How whoever came last has ended."""
    with reading() as session:
        return session.scalars(select(Enrolment.ending).order_by(Enrolment.id.desc()).limit(1)).one()


# ---- From every page ---------------------------------------------------------------


@pytest.mark.parametrize("study", EXAMPLES)
def test_every_page_leads_to_withdrawal_and_to_report_and_leave(app: Flask, opened: None, study: str) -> None:
    for step in steps(loaded_study(study).design)[:-1]:
        somebody = come(app, study, f"at-{step.key.replace(' ', '-')}")
        put_at(somebody, step.key)
        somebody.look()
        assert somebody.step == step.key
        for page in ("leave", "report"):
            assert f'href="{somebody.address}/{page}"' in somebody.page.text, step.key
            assert somebody.client.get(f"{somebody.address}/{page}").status_code == 200, step.key
        somebody.client.post(
            f"{somebody.address}/report", data={"reason": "other", "text": "It was rude.", "then": "leave"}
        )
        # No game that counts has begun.
        meant = {DEBRIEF: "completed", CONSENT: "declined"}
        assert ending() == meant.get(step.kind, "withdrawn"), step.key
        if step.kind != DEBRIEF:  # the debrief comes before the last page
            assert "The researchers have your report." in somebody.look(), step.key


def test_a_game_and_its_result_lead_to_them_as_well(
    app: Flask, engine: Engine, opened: None, desk: Callable[..., WorkerContext]
) -> None:
    ann = come(app)
    put_at(ann, "match 1")
    ann.look()
    address = ann.send().location or ""
    playing = ann.client.get(address).text
    play_out(engine, desk, MATCH.search(address)[1])  # type: ignore[index]
    over = ann.client.get(f"{address}/result").text
    for page in (playing, over):
        assert f'href="{ann.address}/leave"' in page
        assert f'"{ann.address}/report"' in page
    assert "You are paid about $0." in playing  # what leaving the game comes to
    assert "Report a problem and leave" in over


@pytest.mark.parametrize("act", ["stop", "delete", "report"])
def test_who_has_done_all_loses_no_pay_by_what_is_pressed_at_the_debrief(app: Flask, opened: None, act: str) -> None:
    ann = come(app)
    put_at(ann, "debrief")
    shown = text_of(ann.client.get(f"{ann.address}/leave"))
    assert "You have done all there is." in shown
    assert "Pays you about" not in shown
    if act == "report":
        ann.client.post(
            f"{ann.address}/report", data={"reason": "other", "text": "Odd.", "then": "leave"}
        )  # of a page opened before
    else:
        ann.client.post(f"{ann.address}/leave", data={"act": act, "sure": "yes"})
    assert ending() == "completed"
    with reading() as session:
        assert session.scalars(select(Payment.amount).where(Payment.key == "base")).one() == Decimal(5)
    ann.look()
    ann.send(data="yes", training="no")
    assert "C7RX94LM" in text_of(ann.page)


# ---- Pages that are not theirs ----------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_address_of_a_game_on_another_device_tells_how_to_go_on(app: Flask, language: str) -> None:
    with writing() as session:
        store_study(session, changed(loaded_study(), same_for_all=AT_ONCE, language=language))
        new_wave(session)
    ann = come(app)
    put_at(ann, "match 1")
    ann.look()
    address = ann.send().location or ""
    other = app.test_client()
    for path in (address, f"{address}/result"):
        told = other.get(path, headers={"Accept-Language": "en"})
        assert told.status_code == 403
        assert f'<html lang="{language}">' in told.text
        assert 'href="/"' not in told.text
        assert ann.address not in told.text  # the private link is nobody else's
        assert "Prolific" in told.text
        assert "mailto:" in told.text
        if language == "en":
            assert "Open your private link in this browser." in text_of(told)
    assert other.get(ann.address).location == address
    assert other.get(address).status_code == 200


def test_of_a_game_in_no_study_nothing_is_told_to_others(app: Flask) -> None:
    refused = app.test_client().get("/play/nobody")
    assert refused.status_code == 403
    assert "Open it where you began it." in text_of(refused)


def test_who_is_new_to_a_study_that_is_over_is_told_so(app: Flask, opened: None) -> None:
    with writing() as session:
        close(session, find_wave(session, "two-models:main"))
        freeze(session, find_wave(session, "two-models:main"))
    refused = app.test_client().post(door_of("ann"))
    shown = text_of(refused)
    assert "Enrolment in this study is closed." in shown
    assert "not yours" not in shown
    assert 'href="/"' not in refused.text
