"""Runs of recipes: every step's job once, whatever is killed, the same results, and what is refused beforehand."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, select, update

from app.core import extensions
from app.core.errors import AppError
from app.core.extensions import reading, writing
from app.datasets.store import find_dataset
from app.jobs import chained, states
from app.jobs.context import JobContext
from app.jobs.spec import JobBudget
from app.models import Dataset, RecipeRun, RecipeStep, RoundMaterial, RoundRow
from app.recipes import engine as engine_of_steps
from app.recipes import steps
from app.recipes.job import RECIPE
from app.recipes.plan import seed_of
from app.registry import get_model
from app.registry.changes import is_in_use
from app.rounds.job import ROUND
from tests.recipes import GAMES, KEYS, came_of, carry_on, count_of, make_run, row_of


@pytest.fixture
def settings(app: Flask) -> Any:
    return app.config["SETTINGS"]


def test_a_run_ends_with_all_steps_in_their_order_and_a_table(engine: Engine, settings: Any) -> None:
    number = make_run(engine)
    assert carry_on(engine, settings, number) is None
    row = row_of(engine, number)
    assert (row.status, row.error, row.name) == (states.DONE, None, "games-1")
    with reading(engine) as session:
        found = {step.key: step for step in RECIPE.steps_of(session, number)}
        assert tuple(found) == KEYS
        rounds = [session.get_one(RoundRow, found[f"play turn={turn}"].number) for turn in (1, 2)]
        assert [each.name for each in rounds] == ["games-1, play turn=1", "games-1, play turn=2"]
        assert [each.seed for each in rounds] == [seed_of(7, "play turn=1"), seed_of(7, "play turn=2")]
        both = session.get_one(Dataset, found["rows turn=2"].dataset_id)
        assert both.spec["rounds"] == [each.id for each in rounds]
        one, other = (found[f"measure turn=2, seed={seed}"].figures for seed in (1, 2))
        table = found["table"].figures
    assert one is not None
    assert other is not None
    assert one["score_mean"] != other["score_mean"]
    assert table is not None
    assert (table["over"], table["variables"], table["columns"]) == ("seed", ["turn"], ["score_mean", "agreement_rate"])
    [line] = table["rows"]
    assert (line["step"], line["values"]) == ("measure", {"turn": 2})
    mean, a, b = line["figures"]["score_mean"], one["score_mean"]["value"], other["score_mean"]["value"]
    assert mean["value"] == pytest.approx((a + b) / 2)
    assert mean["n"] == 2
    # Student's t with one degree of freedom, by the standard error of two values.
    assert mean["high"] - mean["value"] == pytest.approx(12.7062 * abs(a - b) / 2, rel=1e-4)


def test_rounds_never_play_what_evaluations_hold_out(engine: Engine, settings: Any) -> None:
    number = make_run(engine)
    carry_on(engine, settings, number)
    with reading(engine) as session:
        material: dict[str, list[Any]] = {"play": [], "measure": []}
        for step in RECIPE.steps_of(session, number):
            if step.kind == ROUND.name:
                material[step.name] += [repr(piece) for piece in session.get_one(RoundMaterial, step.number).items]
    assert len({*material["play"]}) == 12
    assert len(material["measure"]) == 24
    assert not set(material["play"]) & set(material["measure"])


class _Killed(BaseException):
    """What a process that is killed does not catch."""


def _killed_at(monkeypatch: pytest.MonkeyPatch, commit: int, *, before: bool) -> None:
    """Have the process die before or after its commit of that number; nothing of it is done any more after that."""
    done = 0

    @contextmanager
    def dying(database: Any) -> Iterator[Any]:
        nonlocal done
        if done > commit:
            raise _Killed
        done += 1
        with extensions.writing(database) as session:
            yield session
            if done > commit and before:
                raise _Killed
        if done > commit:
            raise _Killed

    for module in (chained, engine_of_steps):
        monkeypatch.setattr(module, "writing", dying)


@pytest.mark.either_database
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_a_process_that_is_killed_at_any_commit_leaves_each_job_once(
    engine: Engine, settings: Any, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    calm = make_run(engine, name="calm")
    carry_on(engine, settings, calm)
    rounds, expected = count_of(engine, RoundRow), came_of(engine, calm)
    killed = make_run(engine, name="killed")
    deaths = 0
    for commit in range(200):
        with monkeypatch.context() as patched:
            _killed_at(patched, commit % 7, before=before)
            try:
                part = carry_on(engine, settings, killed, jobs=1)
            except _Killed:
                deaths += 1
            else:
                if part is None and row_of(engine, killed).status == states.DONE:
                    break
        with writing(engine) as session:  # its lease is over some time later
            past = datetime.now(UTC) - timedelta(hours=1)
            session.execute(update(RecipeRun).where(RecipeRun.lease_until.is_not(None)).values(lease_until=past))
    assert deaths > 10
    assert (row_of(engine, killed).status, row_of(engine, killed).error) == (states.DONE, None)
    assert came_of(engine, killed) == expected
    assert count_of(engine, RoundRow) == 2 * rounds
    with reading(engine) as session:
        jobs = session.execute(select(RecipeStep.kind, RecipeStep.number).where(RecipeStep.number.is_not(None))).all()
        named = session.scalars(select(Dataset.name).where(Dataset.complete, Dataset.name.startswith("killed"))).all()
    assert len(set(jobs)) == len(jobs)
    assert sorted(named) == ["killed, rows turn=1", "killed, rows turn=2"]


def test_two_processes_at_once_wait_for_the_same_job(engine: Engine, settings: Any) -> None:
    number = make_run(engine)
    first, second = (steps.take_steps(JobContext(engine, settings, owner), number) for owner in ("one", "other"))
    assert first is not None
    assert first == second
    assert count_of(engine, RoundRow) == 1


@pytest.mark.either_database
def test_a_step_that_takes_longer_than_a_lease_is_not_taken_by_another_process(
    engine: Engine, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = make_run(engine)
    monkeypatch.setattr(chained, "LEASE", 3)
    begun = time.monotonic()

    def cut(_context: JobContext, _number: int) -> None:
        while time.monotonic() < begun + 2 * 3:
            time.sleep(0.1)
            with writing(engine) as session:
                assert not RECIPE.take(session, number, "another", 3)

    assert RECIPE.take_steps(JobContext(engine, settings, "one"), number, cut) is None
    with writing(engine) as session:
        assert RECIPE.take(session, number, "another", 3)


def test_cancelling_and_resuming_reach_the_job_that_is_waited_for(engine: Engine, settings: Any) -> None:
    number = make_run(engine)
    part = carry_on(engine, settings, number, jobs=0)
    assert part is not None
    with writing(engine) as session:
        RECIPE.cancel(session, number)
    with reading(engine) as session:
        assert (row_of(engine, number).status, part.row(session).status) == (states.CANCELLED, states.CANCELLED)
    with writing(engine) as session:
        RECIPE.resume(session, number, queued=False)
    assert carry_on(engine, settings, number) is None
    assert row_of(engine, number).status == states.DONE
    assert count_of(engine, RoundRow) == 4


def test_a_step_that_cannot_go_on_says_which_it_is_and_goes_on_once_that_is_mended(
    engine: Engine, settings: Any
) -> None:
    number = make_run(engine)
    carry_on(engine, settings, number, jobs=0)
    folder = settings.home / "datasets"
    folder.write_text("in the way")
    carry_on(engine, settings, number)
    row = row_of(engine, number)
    assert row.status == states.FAILED
    assert str(row.error).startswith(f"rows turn=1: {folder}: expected a folder that can be written to")
    folder.unlink()
    with writing(engine) as session:
        RECIPE.resume(session, number, queued=False)
    assert carry_on(engine, settings, number) is None
    assert row_of(engine, number).status == states.DONE


def test_a_budget_is_that_of_all_steps(engine: Engine, settings: Any) -> None:
    number = make_run(engine)
    with writing(engine) as session:
        session.execute(update(RecipeRun).values(budget_tokens=100))
    carry_on(engine, settings, number, jobs=1)
    with writing(engine) as session:
        first = session.scalars(select(RoundRow).order_by(RoundRow.id)).first()
        assert first is not None
        assert first.budget_tokens == 100
        session.execute(update(RoundRow).where(RoundRow.id == first.id).values(prompt_tokens=60))
    carry_on(engine, settings, number, jobs=1)
    with writing(engine) as session:
        second = session.scalars(select(RoundRow).order_by(RoundRow.id.desc())).first()
        assert second is not None
        session.execute(update(RoundRow).where(RoundRow.id == second.id).values(prompt_tokens=60))
    carry_on(engine, settings, number)
    row = row_of(engine, number)
    assert row.status == states.FAILED
    assert row.error == "budget of 100 tokens reached: 120 spent; resume with a higher one"
    with writing(engine) as session:
        RECIPE.resume(session, number, queued=False, budget=JobBudget(tokens=1000))
    carry_on(engine, settings, number)
    assert row_of(engine, number).status == states.DONE


def followed_by(do: str, fields: str) -> Callable[[str], str]:
    return lambda text: f"{text}  - name: further\n    do: {do}\n    with: {{{fields}}}\n"


REFUSED: dict[str, tuple[Callable[[str], str], str]] = {
    "a model that is not there": (
        lambda text: text.replace('"${player}"], m', '"nobody"], m'),
        "games.yaml:9: steps[1].with.models (turn=1): expected one that plays negotiation and is usable in rounds",
    ),
    "a dataset that is not there": (
        followed_by("training", 'method: sft, dataset: "77", base: tiny'),
        "games.yaml:24: steps[5].with.dataset: expected the number of one that exists, got 77",
    ),
    "a base that cannot be trained": (
        followed_by("training", 'method: sft, dataset: "${last.rows.dataset}", base: scripted'),
        "games.yaml:24: steps[5].with.base: expected",
    ),
    "a round that is not there": (
        lambda text: text.replace('["${all.play.round}"]', "[99]"),
        "games.yaml:13: steps[2].with.rounds (turn=1): expected the number of one that exists, got 99",
    ),
    "a model that answers no chats": (
        followed_by("assessment", "model: scripted-agent, base: scripted, raters: [scripted-observer]"),
        "games.yaml:24: steps[5].with.base: expected a model that answers chats",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_there_is_refused_at_its_line_and_nothing_is_made(engine: Engine, what: str) -> None:
    change, expected = REFUSED[what]
    with pytest.raises(AppError) as refused:
        make_run(engine, change(GAMES))
    assert expected in refused.value.message
    assert count_of(engine, RecipeRun) == 0


def test_names_of_runs_and_of_their_models_are_given_once(engine: Engine) -> None:
    make_run(engine, name="mine")
    with pytest.raises(AppError, match="expected one that no other run has, got 'mine', which recipe run 1 has"):
        make_run(engine, name="mine")


def test_a_model_that_a_run_names_stays(engine: Engine, settings: Any) -> None:
    number = make_run(engine)
    with reading(engine) as session:
        assert is_in_use(session, get_model(session, "scripted"))
    assert row_of(engine, number).models == ["scripted"]


def test_a_dataset_of_a_run_is_found_by_its_name(engine: Engine, settings: Any) -> None:
    number = make_run(engine)
    carry_on(engine, settings, number)
    with reading(engine) as session:
        assert find_dataset(session, "games-1, rows turn=2").spec["filter"] == "all"
