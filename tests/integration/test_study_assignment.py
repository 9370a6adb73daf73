"""Arms of people who come and drop out in a random order, drawn on both databases and found again from the log."""

import random
import threading
from collections import Counter

import pytest
from flask import Flask
from sqlalchemy import Engine, select

from app.core.extensions import reading, transact_with_retry, writing
from app.models import Arm, Enrolment, StudyEvent, Wave
from app.studies.assignment import assign, replay
from app.studies.places import free_place, places_taken
from app.studies.progress import StudyProgress, end, find_progress
from tests.waves import assigned, changed, join, loaded_study, new_wave, store_study


def arms_of(session, wave: Wave) -> Counter[str]:
    """How many of those who hold a place have each arm."""
    rows = select(Arm.name).join(Enrolment, Enrolment.arm_id == Arm.id)
    return Counter(session.scalars(rows.where(Enrolment.wave_id == wave.id, Enrolment.holds_place)))


@pytest.mark.parametrize("seed", range(3))
def test_arms_are_equal_at_close_whoever_dropped_out(app: Flask, seed: int) -> None:
    rng = random.Random(seed)
    with writing() as session:
        wave = new_wave(session, places=16)
        under_way: list[StudyProgress] = []
        for number in range(200):
            if under_way and rng.random() < 0.5:
                progress = under_way.pop(rng.randrange(len(under_way)))
                end(session, progress, rng.choice(["completed", "completed", "withdrawn", "inactive"]))
                continue
            progress = assigned(session, wave, f"person {number}", device=rng.choice(["desktop", "tablet", "phone"]))
            if progress.enrolment.ending is None:
                under_way.append(progress)
        for progress in under_way:
            end(session, progress, "completed")
        assert places_taken(session, wave) == 16
        assert set(arms_of(session, wave).values()) == {4}
        assert len(arms_of(session, wave)) == 4
        found = replay(session, wave)
        assert len(found) > 16
        assert all(each.agrees for each in found)


def test_whoever_takes_a_slot_over_plays_the_same(app: Flask) -> None:
    with writing() as session:
        wave = new_wave(session, places=4)
        first = assigned(session, wave, "ann")
        kept = [assigned(session, wave, name).enrolment.arm_id for name in ("ben", "cem", "dua")]
        assert len({first.enrolment.arm_id, *kept}) == 4
        end(session, first, "withdrawn")
        later = assigned(session, wave, "eve")
        assert (later.enrolment.arm_id, later.enrolment.plan) == (first.enrolment.arm_id, first.enrolment.plan)
        end(session, later, "completed")
        free_place(session, later)
        assert assigned(session, wave, "fin").enrolment.arm_id == later.enrolment.arm_id
        assert all(each.agrees for each in replay(session, wave))


def test_where_nobody_is_replaced_a_drop_out_keeps_the_slot(app: Flask) -> None:
    with writing() as session:
        store_study(session, changed(loaded_study(), plan={"assign": {"seed": 1, "replace": "nobody"}}))
        wave = new_wave(session, places=5)
        people = [assigned(session, wave, number) for number in range(4)]
        join(session, wave, "left before the first match")
        end(session, join(session, wave, "left before the first match"), "withdrawn")
        end(session, people[0], "withdrawn")
        assert places_taken(session, wave) == 4
        slots = [assigned(session, wave, name).enrolment.plan["slot"] for name in ("next",)]
        assert slots == [4]
        assert join(session, wave, "too late").enrolment.ending == "full"
        assert all(each.agrees for each in replay(session, wave))


def test_a_plan_is_drawn_once_and_names_pieces_of_the_material(app: Flask) -> None:
    with writing() as session:
        progress = assigned(session, new_wave(session), "ann")
        plan, arm = progress.enrolment.plan, progress.enrolment.arm_id
        assign(session, progress)
        assert (progress.enrolment.plan, progress.enrolment.arm_id) == (plan, arm)
        assert plan is not None
        assert [each["condition"] for each in plan["matches"]] == [
            {name: label for name, label in each.items() if name != "block"}
            for each in session.get_one(Arm, arm).conditions
        ]
        assert max(each["piece"] for each in plan["matches"]) < len(progress.version.design["material"])
        assert (progress.condition, progress.enrolment.stratum) == (plan["matches"][0]["condition"], "desktop")
        assert session.query(StudyEvent).filter_by(kind="assignment").count() == 1


def test_a_log_that_was_changed_is_found(app: Flask) -> None:
    with writing() as session:
        wave = new_wave(session)
        for number in range(3):
            assigned(session, wave, number)
        event = session.query(StudyEvent).filter_by(kind="assignment").order_by(StudyEvent.id.desc()).first()
        event.body = {**event.body, "arm": (event.body["arm"] + 1) % 4}
        session.flush()
        assert [each.agrees for each in replay(session, wave)] == [True, True, False]


def test_people_who_begin_at_the_same_moment_get_different_slots(app: Flask, engine: Engine) -> None:
    with writing() as session:
        wave = new_wave(session, places=8)
        number = wave.id
        people = [join(session, wave, each).enrolment.id for each in range(8)]
    ready = threading.Barrier(16)

    def begin(enrolment_id: int) -> None:
        ready.wait()
        transact_with_retry(engine, lambda session: assign(session, find_progress(session, enrolment_id)), 60)

    threads = [threading.Thread(target=begin, args=(each,)) for each in (*people, *people)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with reading() as session:
        wave = session.get_one(Wave, number)
        plans = session.scalars(select(Enrolment.plan).where(Enrolment.wave_id == number)).all()
        assert sorted(plan["slot"] for plan in plans if plan) == list(range(8))
        assert set(arms_of(session, wave).values()) == {2}
        found = replay(session, wave)
        assert (len(found), all(each.agrees for each in found)) == (8, True)
