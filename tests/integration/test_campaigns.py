"""Campaigns of the small model that Parlor comes with: every step once, whatever is killed, and one line when stuck."""

import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, create_engine, func, select

from app.analysis.bootstrap import Figure
from app.analysis.evaluations import figures_of_model
from app.campaigns import lifecycle, listing, steps
from app.campaigns.iterations import results
from app.campaigns.job import CAMPAIGN
from app.campaigns.material import split_material
from app.campaigns.spec import CampaignSpec
from app.core.config import Settings
from app.core.errors import AppError, Conflict, Invalid
from app.core.extensions import reading, writing
from app.finetuning.job import TRAINING
from app.games.negotiation.material import Contexts
from app.jobs import leases, states
from app.jobs.chained import AwaitedJob
from app.jobs.context import JobContext
from app.models import Campaign, Dataset, LanguageModel, MatchRow, RoundMaterial, RoundRow, TrainingJob
from app.registry import SCRIPTED_CHATS
from app.registry.changes import archive_model
from app.rounds import lifecycle as rounds
from app.rounds.held_out import is_held_out
from app.rounds.job import ROUND
from app.rounds.lifecycle import Material
from app.schema import upgrade
from tests import rounds as playing
from tests.campaigns import add_local, round_of
from tests.stack import ROOT, wait_until

BASE = "tiny-base"
SMALL: dict[str, Any] = {
    "game": "negotiation", "base": BASE, "iterations": 2, "matches": 12, "evaluation": 6, "filter": "all",
    "training": {"max_steps": 3, "threads": 1}, "partners": [], "evaluation_temperature": "none",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _small_models(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMALL_MODELS", "true")


is_kept_aside = partial(is_held_out, Contexts())


def spec(**fields: Any) -> CampaignSpec:
    return CampaignSpec.read({**SMALL, "seed": 5, **fields})


def make(engine: Engine, name: str = "loop", *, queued: bool = False, material: Any = None, **fields: Any) -> int:
    wanted = spec(name=name, **fields)
    both = split_material(wanted.game, material, wanted.evaluation, wanted.seed)
    with writing(engine) as session:
        return lifecycle.create(session, wanted, both, queued=queued).id


def go_on(engine: Engine, settings: Settings, campaign_id: int) -> AwaitedJob | None:
    return steps.take_steps(JobContext(engine, settings, uuid.uuid4().hex), campaign_id)


def row_of(engine: Engine, campaign_id: int) -> Campaign:
    with reading(engine) as session:
        return CAMPAIGN.get(session, campaign_id)


def counted(engine: Engine) -> tuple[int, ...]:
    """How many rounds, datasets, jobs and local models there are."""
    with reading(engine) as session:
        made = [session.scalar(select(func.count()).select_from(table)) for table in (RoundRow, Dataset, TrainingJob)]
        local = select(func.count()).select_from(LanguageModel).where(LanguageModel.kind == "local")
        return (*(number or 0 for number in made), session.scalar(local) or 0)


# ---- A whole campaign --------------------------------------------------------


@pytest.mark.long
def test_a_campaign_that_is_killed_at_random_does_every_step_once(home: Path) -> None:
    command = (
        "campaign", "run", "--game", "negotiation", "--base", BASE, "--rounds", "1", "--matches", "14",
        "--teacher", "scripted", "--start-train", "max_steps=4", "threads=1",
        "--evaluation", "6", "--filter", "all", "--train", "max_steps=4", "threads=1", "--seed", "3", "--name", "loop",
        "--partner", "none", "--evaluation-temperature", "none",
    )  # fmt: skip
    environment = {**os.environ, "PARLOR_HOME": str(home), "ROUND_LEASE": "1.5", "TRAIN_LEASE": "1.5"}
    flask = [sys.executable, "-m", "flask", "--app", "wsgi"]
    rng = random.Random(1)
    started = subprocess.Popen([*flask, *command], cwd=ROOT, env=environment)
    engine = create_engine(f"sqlite:///{home / 'parlor.db'}")
    training_begins = (2, 1, 1, 2)
    wait_until(lambda: (home / "parlor.db").exists() and _reached(engine, training_begins), "the first training")
    time.sleep(rng.uniform(0.2, 1.5))
    started.send_signal(signal.SIGKILL)
    started.wait()
    wait_until(lambda: not _anybody(engine), "the end of the leases")
    resumed = subprocess.Popen(
        [*flask, "campaign", "resume", "1", "--json"],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    said, complaint = resumed.communicate()
    assert resumed.returncode == 0, complaint
    told = json.loads(said)
    assert (told["status"], told["evaluated"], told["error"]) == ("done", 2, None)
    assert [each["model"] for each in told["results"]] == [BASE, "loop-1", "loop-2"]
    assert "play" not in told["spec"]
    for each in told["results"]:
        figures = each["figures"]
        assert set(figures["score_mean"]) == {"value", "low", "high", "n", "no_interval"}
        assert 0 <= figures["agreement_rate"]["value"] <= 1
    assert counted(engine) == (5, 2, 2, 4)  # the small models that Parlor comes with are local ones, too
    with reading(engine) as session:
        evaluations = [each["evaluation_id"] for each in told["results"]]
        played = [each["round_id"] for each in told["results"][1:]]
        per_round = dict(session.execute(select(MatchRow.round_id, func.count()).group_by(MatchRow.round_id)).all())
        assert per_round == {**dict.fromkeys(evaluations, 6), **dict.fromkeys(played, 14)}
        items = {number: _items(session, number) for number in (*evaluations, *played)}
        assert items[evaluations[0]] == items[evaluations[1]] == items[evaluations[2]]  # the same matches for all
        assert all(map(is_kept_aside, items[evaluations[0]]))
        assert not any(map(is_kept_aside, items[played[0]] + items[played[1]]))
        names = {row.id: row.name for row in session.scalars(select(LanguageModel))}
        made = session.scalars(select(TrainingJob).order_by(TrainingJob.id)).all()
        assert [(names[row.base_id], names[row.model_id]) for row in made] == [(BASE, "loop-1"), ("loop-1", "loop-2")]  # type: ignore[index]
    engine.dispose()


def _reached(engine: Engine, wanted: tuple[int, ...]) -> bool:
    try:
        return all(there >= number for there, number in zip(counted(engine), wanted, strict=True))
    except Exception:
        return False  # there are no tables yet


def _anybody(engine: Engine) -> bool:
    """Whether a dead process is still thought to be at the campaign, or at what it waits for."""
    with reading(engine) as session:
        part = CAMPAIGN.awaited_jobs(session, [1]).get(1)
        if part is None or leases.is_held(CAMPAIGN.get(session, 1)):
            return part is not None
        if part.kind is TRAINING:
            return leases.is_held(session.get_one(TrainingJob, part.number))
        return rounds.ranges.anybody_at(session, part.number)


def _items(session: Any, round_id: int) -> list[Any]:
    found = session.scalars(select(MatchRow.config).where(MatchRow.round_id == round_id).order_by(MatchRow.index))
    return [[each["counts"], *each["values"]] for each in found]


# ---- Step by step ------------------------------------------------------------


def test_what_a_campaign_waits_for_is_created_once_and_cancelled_and_resumed_with_it(
    engine: Engine, settings: Settings
) -> None:
    number = make(engine)
    first = go_on(engine, settings, number)
    assert first == go_on(engine, settings, number) == AwaitedJob(ROUND, 1)
    assert counted(engine)[0] == 1
    with reading(engine) as session:
        row = CAMPAIGN.get(session, number)
        assert CAMPAIGN.state_of(session, row) == states.RUNNING  # whoever did that is just about to play the round
        row.lease_until = datetime.now(UTC) - timedelta(seconds=9)
        assert CAMPAIGN.state_of(session, row) == states.INTERRUPTED
    with writing(engine) as session:
        assert CAMPAIGN.cancel(session, number).status == states.CANCELLED
    assert playing.row_of(engine, 1).status == states.CANCELLED
    assert go_on(engine, settings, number) is None
    with writing(engine) as session:
        CAMPAIGN.resume(session, number, queued=True)
    assert playing.row_of(engine, 1).status == states.WAITING
    assert playing.row_of(engine, 1).queued
    with writing(engine) as session:
        assert CAMPAIGN.take_unattended(session) == [number]
        assert CAMPAIGN.take_unattended(session) == []  # it was just enqueued
    assert go_on(engine, settings, number) == first


def test_a_campaign_goes_on_with_a_base_that_is_archived_meanwhile(engine: Engine, settings: Settings) -> None:
    number = make(engine)
    with writing(engine) as session:
        archive_model(session, session.get_one(LanguageModel, row_of(engine, number).base_id).name)
    assert go_on(engine, settings, number) == AwaitedJob(ROUND, 1)
    assert row_of(engine, number).status == "running"


def test_of_two_that_come_at_once_one_carries_a_campaign_on(engine: Engine, settings: Settings) -> None:
    number = make(engine)
    with writing(engine) as session:
        assert CAMPAIGN.take(session, number, "first", 60)
    with writing(engine) as session:
        assert not CAMPAIGN.take(session, number, "second", 60)
    assert go_on(engine, settings, number) is None
    with pytest.raises(Conflict, match="expected one that no worker runs"), writing(engine) as session:
        CAMPAIGN.resume(session, number, queued=False)
    with writing(engine) as session:
        assert CAMPAIGN.cancel(session, number).status == states.CANCELLING
    with writing(engine) as session:
        CAMPAIGN.release(session, number, "first")
    assert row_of(engine, number).status == states.CANCELLED


def test_a_filter_that_leaves_nothing_stops_the_campaign_and_says_how_the_scores_lie(
    engine: Engine, settings: Settings
) -> None:
    number = make(engine, filter="above_avg", sampling={"max_tokens": 1}, matches=4, evaluation=2)
    while (part := go_on(engine, settings, number)) is not None:
        playing.play(engine, settings, part.number)
    row = row_of(engine, number)
    assert row.status == states.FAILED
    assert row.error == (
        "keep iteration=1: filter above_avg: expected to keep at least one transcript, got none of 8; scores in round"
        " 2: 0 (8 times), mean 0"
    )
    assert counted(engine)[1:] == (0, 0, 2)


def test_a_round_that_somebody_cancels_stops_the_campaign_which_goes_on_when_it_is_resumed(
    engine: Engine, settings: Settings
) -> None:
    number = make(engine)
    go_on(engine, settings, number)
    with writing(engine) as session:
        ROUND.cancel(session, 1)
    assert go_on(engine, settings, number) is None
    assert row_of(engine, number).error == "round 1: its status is cancelled"
    with writing(engine) as session:
        CAMPAIGN.resume(session, number, queued=False)
    playing.play(engine, settings, 1)
    assert go_on(engine, settings, number) == AwaitedJob(ROUND, 2)


def test_every_model_is_evaluated_in_other_conditions_too(engine: Engine, settings: Settings) -> None:
    number = make(engine, matches=4, evaluation=5, partners=["scripted"], evaluation_temperature=0)
    for _ in range(3):  # those of the base
        part = go_on(engine, settings, number)
        assert part is not None
        playing.play(engine, settings, part.number)
    waits = go_on(engine, settings, number)
    with reading(engine) as session:
        played = session.scalars(select(RoundRow).order_by(RoundRow.id)).all()
        base = session.scalar(select(LanguageModel.id).where(LanguageModel.name == BASE))
        partner = session.scalar(select(LanguageModel.id).where(LanguageModel.name == "scripted"))
        assert [row.name for row in played] == [
            "loop, evaluation 0", "loop, evaluation 0, greedy", "loop, evaluation 0, against scripted", "loop, round 1",
        ]  # fmt: skip
        assert [row.sampling for row in played] == [{}, {"temperature": 0.0}, {}, {}]
        assert [(row.model_0_id, row.model_1_id) for row in played] == [
            (base, base), (base, base), (base, partner), (base, base),
        ]  # fmt: skip
        assert [(row.matches, row.swap_seats) for row in played] == [(5, False), (5, False), (4, True), (4, False)]
        assert len({row.seed for row in played[:3]}) == 1
        assert _items(session, 1) == _items(session, 2)  # the same matches
        assert set(map(json.dumps, _items(session, 3))) <= set(map(json.dumps, _items(session, 1)))
        [first, *_] = results(session, number)
        assert list(first.evaluations) == ["greedy", "against scripted"]
        scores = session.execute(
            select(MatchRow.index, MatchRow.utility_0, MatchRow.utility_1).where(MatchRow.round_id == 3)
        ).all()
        mean = sum((second if index % 2 else first_) for index, first_, second in scores) / 4
        assert first.evaluations["against scripted"]["score_mean"]["value"] == pytest.approx(mean)  # its own
        assert waits == AwaitedJob(ROUND, 4)
        base_of = f"Campaign {CAMPAIGN.get(session, 1).name}, its base"
        for each in (2, 3):
            place = listing.campaign_step_of(session, round_id=each)
            assert place is not None
            assert (place.key, str(place.name)) == (1, base_of)


_OF_THE_FIRST_CAMPAIGNS = (
    "game",
    "base",
    "iterations",
    "matches",
    "evaluation",
    "seed",
    "filter",
    "config",
    "training",
)


def test_a_campaign_of_before_goes_on_with_the_split_and_the_evaluation_that_it_was_started_with(
    engine: Engine, settings: Settings
) -> None:
    number = make(engine, matches=4, evaluation=4)
    held, mirrored = [[1, 2, 2], [10, 0, 0], [0, 3, 2]], [[1, 2, 2], [0, 3, 2], [10, 0, 0]]
    with writing(engine) as session:
        row = CAMPAIGN.get(session, number)
        row.spec = {name: row.spec[name] for name in row.spec if name in _OF_THE_FIRST_CAMPAIGNS}
        row.material = {"play": [mirrored], "held_out": [held]}
    assert go_on(engine, settings, number) == AwaitedJob(ROUND, 1)
    playing.play(engine, settings, 1)
    assert go_on(engine, settings, number) == AwaitedJob(ROUND, 2)
    with reading(engine) as session:
        assert [session.get_one(RoundMaterial, each).items for each in (1, 2)] == [[held], [mirrored]]
        assert session.get_one(RoundRow, 2).name == "loop, round 1"


def test_a_models_score_stands_beside_the_bases_in_the_same_matches(engine: Engine, settings: Settings) -> None:
    add_local(engine, "base")
    add_local(engine, "loop-1")
    base, made = (round_of(engine, settings, name, matches=12) for name in ("base", "loop-1"))
    against = round_of(engine, settings, "loop-1", "scripted", matches=12)
    with reading(engine) as session:
        same = figures_of_model(session, made, "loop-1", (base, "base"))
        own = figures_of_model(session, against, "loop-1", (base, "base"))
        alone = figures_of_model(session, base, "base", None)
        pairs = session.execute(select(MatchRow.utility_0, MatchRow.utility_1).where(MatchRow.round_id == base)).all()
    assert Figure(**same["score_ratio"]) == Figure(1, 1, 1, 12)  # the same moves were made in both
    mean = sum(first for first, _ in pairs) / len(pairs)
    assert own["score_mean"]["value"] == pytest.approx(mean)  # of seat 0 alone
    assert own["score_ratio"]["value"] == pytest.approx(mean / (sum(map(sum, pairs)) / len(pairs) / 2))
    assert "score_ratio" not in alone


# ---- What cannot be ----------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"game": "chess"}, "expected negotiation or taboo"),
        ({"base": ""}, "base: expected the name of a model to start from, got none"),
        ({"base": "nobody"}, "expected one that plays negotiation and is usable in rounds"),
        ({"base": "scripted"}, "base: expected a local model, which has weights, got scripted"),
        ({"iterations": 0}, "iterations: expected a whole number from 1 to 100, got 0"),
        ({"matches": 10**9}, "matches: expected all or a whole number from 2 to 100000"),
        ({"filter": "best"}, "filter: expected above_avg or above_avg_nonzero or nonzero or all, got 'best'"),
        ({"method": "magic"}, "method: expected sft or offline-po or sft-kl, got 'magic'"),
        ({"start": "end"}, "start: expected previous or base, got 'end'"),
        ({"config": {"objective": "greed"}}, "objective"),
        ({"config": {"counts": [1, 1, 3], "values": [[1, 0, 3], [0, 1, 3]]}}, "each match has its own"),
        ({"training": {"epoch": 3}}, "epoch: expected a field of sft"),
        ({"sampling": {"temperature": 9}}, "temperature: expected none or a number from 0"),
        ({"evaluation_temperature": "warm"}, "evaluation_temperature: expected none or a number from 0 to 2"),
        (
            {"partners": ["nobody"]},
            "partners: expected one that plays negotiation and is usable in rounds (scripted, tiny",
        ),
        ({"partners": [BASE]}, "partners: expected a model other than the base, or none, got 'tiny-base'"),
    ],
)
def test_what_is_no_campaign_is_refused_in_one_line(engine: Engine, fields: dict[str, Any], says: str) -> None:
    with pytest.raises(AppError) as refused:
        make(engine, **fields)
    assert says in refused.value.message
    assert "\n" not in refused.value.message
    assert counted(engine)[0] == 0


def test_names_that_its_models_would_share_are_refused(engine: Engine) -> None:
    make(engine, "loop")
    with pytest.raises(Conflict, match="got 'loop', used by unfinished campaign 1"):
        make(engine, "loop")
    with writing(engine) as session:
        made = CAMPAIGN.get(session, 1).created_at
        row = LanguageModel(
            name="tiny-2", label="Another", kind="local", games=[], uses=[], options={}, created_at=made
        )
        session.add(row)
    with pytest.raises(Conflict, match="got 'tiny', whose model tiny-2 already exists"):
        make(engine, "tiny")
    with pytest.raises(Invalid, match="name: expected 1 to 80 letters"):
        make(engine, "a loop")


def test_a_list_too_short_to_hold_a_tenth_out_is_refused(engine: Engine) -> None:
    with pytest.raises(Invalid, match="a test: expected a list of which a tenth can be held out, got 1 items"):
        make(engine, material=Material("a test", [[[1, 2, 2], [10, 0, 0], [0, 3, 2]]]))


def test_the_small_models_are_there_from_the_beginning_unless_they_are_not_wanted(
    make_app: Callable[..., Flask], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMALL_MODELS", "false")
    app = make_app()
    with app.app_context(), reading() as session:
        assert session.scalars(select(LanguageModel.name)).all() == ["scripted", *SCRIPTED_CHATS]
    monkeypatch.setenv("SMALL_MODELS", "true")
    upgrade(make_app())
    with app.app_context(), reading() as session:
        assert session.scalars(select(LanguageModel.name)).all() == ["scripted", *SCRIPTED_CHATS, "tiny", "tiny-base"]


def test_what_is_held_out_is_never_played_and_always_the_same() -> None:
    for game in ("negotiation", "taboo"):
        play, held = split_material(game, None, 700, seed=1)
        again = split_material(game, None, 700, seed=1)
        assert (play.items, held.items) == (again[0].items, again[1].items)
        assert len(held.items) == 700
        other = split_material(game, None, 300, seed=2)[1]
        assert not {json.dumps(each) for each in (*held.items, *other.items)} & {
            json.dumps(each) for each in play.items
        }
        assert 0.05 < len({json.dumps(each) for each in held.items}) / len(play.items) < 0.2


def test_a_held_out_context_is_held_out_with_its_seats_exchanged_too() -> None:
    """A model learns from both seats, so whoever has played the mirror image has played the context."""
    play, held = split_material("negotiation", None, 500, seed=1)
    played = {json.dumps(each) for each in play.items}
    mirrored = [[counts, theirs, mine] for counts, mine, theirs in held.items]
    assert all(map(is_kept_aside, mirrored))
    assert [each for each in mirrored if json.dumps(each) in played] == []
