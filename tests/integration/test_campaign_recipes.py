"""Campaigns with rewards, partners, teachers and datasets to start from: what is played, kept and trained.

Scripted players sit in for the models, and no training is run.
"""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, func, select

from app.campaigns import lifecycle, listing, steps
from app.campaigns.iterations import IterationResult
from app.campaigns.iterations import results as results_of
from app.campaigns.job import CAMPAIGN, CampaignKind
from app.campaigns.material import split_material
from app.campaigns.presets import PRESETS
from app.campaigns.spec import CampaignSpec
from app.campaigns.start_data import read_start_data, with_dataset_numbers
from app.core.config import Settings
from app.core.errors import AppError
from app.core.extensions import reading, writing
from app.games.taboo.words import TargetWords
from app.jobs.chained import AwaitedJob
from app.jobs.context import JobContext
from app.matches.filter import MatchFilter, conditions
from app.models import Dataset, LanguageModel, MatchRow, RoundRow, SeatRow, TrainingJob
from app.players.scripted.taboo import words_with_clues
from app.registry import add_local_model
from app.rounds.held_out import is_held_out
from app.rounds.job import ROUND
from app.rounds.lifecycle import Material
from tests.campaigns import pretend_trained, sit_in
from tests.datasets import cut, import_rows, rows_of, seat_of
from tests.rounds import make_round, play

BASE = "tiny-base"
WORDS = Material("a test", list(words_with_clues())[:40])
SMALL: dict[str, Any] = {
    "game": "taboo", "base": BASE, "iterations": 2, "matches": 8, "evaluation": 4, "evaluation_temperature": "none",
    "partners": ["none"],
}  # fmt: skip


@pytest.fixture(autouse=True)
def _small_models(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMALL_MODELS", "true")


def make(engine: Engine, settings: Settings, **fields: Any) -> int:
    wanted = CampaignSpec.read({**SMALL, "seed": 5, "name": "loop", **fields})
    both = split_material(wanted.game, WORDS, wanted.evaluation, wanted.seed)
    with reading(engine) as session:
        wanted = with_dataset_numbers(session, wanted)
        start = read_start_data(session, settings.home, wanted)
    with writing(engine) as session:
        return lifecycle.create(session, wanted, both, start, queued=False).id


def carry_on(engine: Engine, settings: Settings, number: int) -> list[str]:
    """Take a campaign to its end; what it waited for, each as round or training."""
    waited = []
    while True:
        context = JobContext(engine, settings, uuid.uuid4().hex)
        part = steps.take_steps(context, number)
        if part is None:
            break
        with reading(engine) as session:  # what its page shows, and what is cancelled and resumed with it
            now = listing.now_of(session, CAMPAIGN.get(session, number))
            assert now is not None
            assert now.part == CAMPAIGN.awaited_jobs(session, [number]).get(number) == part
        waited.append(part.kind.name)
        done(engine, settings, part)
    with reading(engine) as session:
        row = CAMPAIGN.get(session, number)
        assert (row.status, row.error) == ("done", None)
    return waited


def done(engine: Engine, settings: Settings, part: AwaitedJob) -> None:
    if part.kind is ROUND:
        sit_in(engine, settings, part.number)
    else:
        pretend_trained(engine, part.number)


def results(engine: Engine, number: int) -> list[IterationResult]:
    with reading(engine) as session:
        return results_of(session, number)


def dataset(engine: Engine, result: IterationResult) -> Dataset:
    with reading(engine) as session:
        assert result.dataset is not None
        row = session.get_one(Dataset, result.dataset.id)
        session.refresh(row, ["figures"])
        return row


def jobs(engine: Engine) -> list[tuple[str, str | None, str | None]]:
    """Method, base and reference of each training."""
    with reading(engine) as session:
        names = {row.id: row.name for row in session.scalars(select(LanguageModel))}
        rows = session.scalars(select(TrainingJob).order_by(TrainingJob.id))
        return [(row.method, names.get(row.base_id or 0), row.config.get("reference")) for row in rows]


def sat(engine: Engine, rows: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Model and role of those whose rows these are."""
    with reading(engine) as session:
        names = {row.id: row.name for row in session.scalars(select(LanguageModel))}
        seats = [session.get_one(SeatRow, seat_of(row)) for row in rows]
        return {(names[seat.language_model_id or 0], seat.role) for seat in seats}


def test_rewards_come_from_the_learners_own_moves_in_both_roles_and_are_compared_with_who_played(
    engine: Engine, settings: Settings
) -> None:
    number = make(
        engine, settings, method="offline-po", start="base", play_with={"scripted": 0.5}, matches=32,
        training={"max_steps": 1},
    )  # fmt: skip
    steps_of_an_iteration = ["round", "round", "training", "round"]
    assert carry_on(engine, settings, number) == ["round", *steps_of_an_iteration, *steps_of_an_iteration]
    base, first, second = results(engine, number)
    assert (base.with_partners, list(first.with_partners), list(second.with_partners)) == (
        {},
        ["scripted"],
        ["scripted"],
    )
    for result, learner in ((first, BASE), (second, "loop-1")):
        row = dataset(engine, result)
        rows = rows_of(settings.home, row)
        assert sat(engine, rows) == {(learner, "attacker"), (learner, "defender")}
        assert {seat_of(each)[0] for each in rows} == matches_of(engine, result)  # in both rounds
        assert len(row.figures["rewards"]["policies"]) == 1
    assert jobs(engine) == [("offline-po", BASE, None), ("offline-po", BASE, "loop-1")]
    with reading(engine) as session:
        against = [session.get_one(RoundRow, each.with_partners["scripted"]) for each in (first, second)]
        assert [(row.matches, row.swap_seats) for row in against] == [(16, True)] * 2
        assert [session.get_one(RoundRow, each.round_id).matches for each in (first, second)] == [16, 16]
        assert against[0].sampling == {"temperature": 1.2, "top_k": 50}
        place = listing.campaign_step_of(session, round_id=against[1].id)
        assert place is not None
        assert (place.key, place.name.values["number"]) == (number, 2)
        every = select(func.count()).select_from(MatchRow).where(*conditions(MatchFilter(campaign=number)))
        assert session.scalar(every) == 3 * 4 + 2 * 32


def matches_of(engine: Engine, result: IterationResult) -> set[str]:
    rounds = [result.round_id, *result.with_partners.values()]
    with reading(engine) as session:
        return set(session.scalars(select(MatchRow.id).where(MatchRow.round_id.in_(rounds))))


def test_a_training_may_learn_from_the_rows_of_all_rounds_so_far(engine: Engine, settings: Settings) -> None:
    number = make(
        engine, settings, data_of="all", filter="all", play_with={"scripted": "equal"}, training={"max_steps": 1}
    )
    carry_on(engine, settings, number)
    _, first, second = results(engine, number)
    both = [dataset(engine, each) for each in (first, second)]
    assert [len(row.spec["rounds"]) for row in both] == [2, 4]
    assert [row.spec["models"] for row in both] == [["tiny-base"], ["loop-1", "tiny-base"]]
    assert sat(engine, rows_of(settings.home, both[1])) == {
        (name, role) for name in (BASE, "loop-1") for role in ("attacker", "defender")
    }


def test_a_teachers_winning_moves_come_first_with_the_weights_of_their_roles(
    engine: Engine, settings: Settings
) -> None:
    number = make(engine, settings, preset="spag", teacher="scripted", iterations=1, matches="all")
    carry_on(engine, settings, number)
    _, taught, own = results(engine, number)
    with reading(engine) as session:
        names = {row.id: row.name for row in session.scalars(select(LanguageModel))}
        played = [session.get_one(RoundRow, each.round_id) for each in (taught, own)]
        assert [names[row.model_0_id or 0] for row in played] == ["scripted", "loop-1"]
        assert [row.sampling for row in played] == [{}, {"temperature": 1.2, "top_k": 50, "max_tokens": 256}]
        words = select(MatchRow.config).where(MatchRow.round_id == played[1].id)
        assert {config["word"] for config in session.scalars(words)} == {
            word for word in WORDS.items if not is_held_out(TargetWords(), word)
        }
    first = dataset(engine, taught)
    assert (first.spec["filter"], first.spec["rewards"], first.spec["style"]) == ("nonzero", "spag", "compact")
    rows = rows_of(settings.home, first)
    with reading(engine) as session:
        winners = {(match.id, match.winner) for match in session.scalars(select(MatchRow))}
    assert {seat_of(row) for row in rows} <= winners
    assert [(method, base) for method, base, _ in jobs(engine)] == [("sft-kl", BASE), ("offline-po", "loop-1")]
    with reading(engine) as session:
        configs = session.scalars(select(TrainingJob.config).order_by(TrainingJob.id)).all()
    assert [config["learning_rate"] for config in configs] == [5e-6, 2e-6]


def test_a_campaign_may_start_with_a_dataset_and_says_what_of_it_is_held_out(
    engine: Engine, settings: Settings
) -> None:
    played = make_round(engine, "scripted", game="taboo", matches=len(WORDS.items), material=WORDS)
    play(engine, settings, played)
    given = cut(engine, settings.home, "given", rounds=[played], filter="all", style="compact")
    number = make(engine, settings, start_data="given", start_method="sft-kl", iterations=1)
    with reading(engine) as session:
        stored = CAMPAIGN.get(session, number).spec
    assert stored["start_data"] == str(given.id)  # which stays the same if there is another version
    start = stored["start_matches"]
    held = sum(is_held_out(TargetWords(), word) for word in WORDS.items)
    assert held
    assert start == {"number": given.id, "matches": len(WORDS.items), "held_out": held}
    assert carry_on(engine, settings, number) == ["round", "training", "round", "round", "training", "round"]
    _, first, second = results(engine, number)
    assert first.dataset is not None
    assert (first.round_id, first.dataset.id, second.round_id is None) == (None, given.id, False)
    assert [(method, base) for method, base, _ in jobs(engine)] == [("sft-kl", BASE), ("sft", "loop-1")]


def test_supervised_rows_are_mixed_into_the_trainings_that_learn_from_rewards(
    engine: Engine, settings: Settings
) -> None:
    played = make_round(engine, "scripted", game="taboo", matches=8, material=WORDS)
    play(engine, settings, played)
    given = cut(engine, settings.home, "given", rounds=[played], filter="all", style="compact")
    number = make(engine, settings, preset="spag", teacher="scripted", iterations=1, matches=8, sft_data=given.id)
    carry_on(engine, settings, number)
    with reading(engine) as session:
        rows = session.scalars(select(TrainingJob).order_by(TrainingJob.id)).all()
        assert [(row.method, row.config.get("sft_data")) for row in rows] == [
            ("sft-kl", None),
            ("offline-po", given.id),
        ]


def test_what_a_campaign_cannot_start_with_is_refused_in_one_line(engine: Engine, settings: Settings) -> None:
    with writing(engine) as session:
        base = session.scalars(select(LanguageModel).where(LanguageModel.name == BASE)).one()
        options = {**base.options, "sha256": "f" * 64}
        add_local_model(session, "other", None, base.games, options, prompt_style="compact")
        add_local_model(session, "wordy", None, base.games, {**base.options, "sha256": "e" * 64})
    played = make_round(engine, "other", game="taboo", matches=8, material=WORDS)
    sit_in(engine, settings, played)
    others = cut(engine, settings.home, "others", rounds=[played], rewards="spag")
    plain = cut(engine, settings.home, "plain", rounds=[played], filter="all")
    query = {"query": "?", "responses": ["a", "b"], "scores": [1, 2]}
    rated = import_rows(engine, settings.home, "stable-alignment", query)
    wordy = cut(engine, settings.home, "wordy", rounds=[played], filter="all", style="full")
    rewarded = {"start_method": "offline-po"}
    for fields, says in (
        ({"start_data": 99}, "start_data: expected the number of one that exists, got 99; `flask dataset list`"),
        ({"start_data": rated}, "start_data: expected a dataset of conversations, as sft needs, got rows@1, which"),
        ({"start_data": plain.id, "game": "negotiation"}, "start_data: expected matches of negotiation in it, got"),
        ({"start_data": wordy.id}, "start_data: expected rows with the prompt style of the base, compact, got wordy@1"),
        ({"start_data": plain.id, **rewarded}, "start_data: expected moves with a reward each"),
        ({"start_data": others.id, **rewarded}, "start_data: expected the model that played others@1"),
        ({"sft_data": 99}, "sft_data: expected "),
        ({"sft_data": plain.id, "method": "sft"}, "sft_data: expected "),
        ({"sft_data": rated, "method": "offline-po"}, "sft_data: expected "),
        ({"teacher": "nobody"}, "teacher: expected one that plays taboo"),
        ({"teacher": "wordy"}, "teacher: expected a model with the prompt style of the base, compact, got wordy with"),
        ({"play_with": {"nobody": 0.5}}, "play_with: expected one that plays taboo"),
        ({"play_with": {BASE: 0.5}}, "play_with: expected a model other than the base"),
        ({"play_with": {"scripted": 0.1}}, "play_with: expected a share that is at least 2 of 8 matches, got scripted"),
    ):
        with pytest.raises(AppError) as refused:
            make(engine, settings, **fields)
        assert refused.value.message.startswith(says), refused.value.message
        assert "\n" not in refused.value.message


def test_figures_against_a_fixed_opponent_have_the_share_of_wins_in_each_role(
    engine: Engine, settings: Settings
) -> None:
    number = make(engine, settings, iterations=1, evaluation=8, partners=["scripted", "tiny"], filter="all")
    carry_on(engine, settings, number)
    for result in results(engine, number):
        assert list(result.evaluations) == ["against scripted", "against tiny"]
        for figures in result.evaluations.values():
            for name in ("attacker_wins_rate", "defender_wins_rate"):
                share = figures[name]
                assert share["n"] == 4  # it sat in either seat half of the time
                assert 0 <= share["low"] <= share["value"] <= share["high"] <= 1
    with reading(engine) as session:
        chart = listing.figure_of(session, number)
    assert chart is not None
    panels = {panel["title"]["text"]: panel for panel in chart.spec("light")["concat"]}
    for title in ("Games won as attacker", "Games won as defender"):
        lines = {each["line"] for each in panels[title]["data"]["values"]}
        assert lines == {"as played", "against scripted", "against tiny"}
        json.dumps(panels[title])


def test_the_command_line_takes_a_preset_and_what_differs_from_it(
    app: Flask, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CampaignKind, "enqueue", lambda *_, **__: None)
    command = ["campaign", "run", "--game", "taboo", "--base", BASE, "--queue", "--preset", "spag"]
    more = ["--teacher", "scripted", "--rounds", "2", "--matches", "40", "--play-with", "scripted=0.25", "tiny=0.1"]
    more += ["--partner", "scripted", "tiny", "--train", "epochs=2", "--no-role-weights", "--temperature", "none"]
    run = app.test_cli_runner().invoke
    done = run(args=[*command, *more])
    assert done.exit_code == 0, done.stderr
    with reading(engine) as session:
        row = CAMPAIGN.get(session, 1)
        asked = lifecycle.spec_of(row.spec)
    assert (row.iterations, asked.iterations, asked.matches) == (3, 2, 40)
    assert (asked.method, asked.start_method, asked.teacher) == ("offline-po", "sft-kl", "scripted")
    assert asked.training == {**PRESETS["spag"].fields["training"], "epochs": 2}
    assert (asked.partners, asked.matches_against) == (("scripted", "tiny"), {"scripted": 10, "tiny": 4})
    assert (asked.sampling.options(), asked.role_weights) == ({"top_k": 50, "max_tokens": 256}, False)
    for flags, says in (
        (["--start-train", "epochs=2"], "--start-train: expected a teacher or a dataset to start from, got neither"),
        (["--method", "stable-alignment"], "method: expected sft or offline-po or sft-kl, got stable-alignment, which"),
        (["--start-data", "mine"], "--start-data: expected the number, name or name@version of one that exists, got"),
        (["--rounds", "0"], "--rounds: expected a whole number from 1 to 100, got '0'"),
        (["--train", "epochs=no"], "--train epochs: expected a number above 0, got 'no'"),
        (["--top-k", "0"], "--top-k: expected none or a whole number from 1 to 100000, got '0'"),
        (["--partner", "nobody"], "--partner: expected one that plays taboo"),
    ):
        refused = run(args=[*command, *flags])
        assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
        assert says in refused.stderr


def test_a_campaign_is_asked_for_in_a_file_with_what_stands_beside_it(
    app: Flask, engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(CampaignKind, "enqueue", lambda *_, **__: None)
    file, run = tmp_path / "campaign.yaml", app.test_cli_runner().invoke
    text = "preset: spag\ngame: taboo\nbase: tiny-base\nteacher: scripted\nplay_with:\n  scripted: equal\n"
    file.write_text(text, encoding="utf-8")
    done = run(args=["campaign", "run", "--spec", str(file), "--queue", "--train", "epochs=2", "--matches", "8"])
    assert done.exit_code == 0, done.stderr
    with reading(engine) as session:
        asked = lifecycle.spec_of(CAMPAIGN.get(session, 1).spec)
    assert (asked.method, asked.teacher, asked.matches_against) == ("offline-po", "scripted", {"scripted": 4})
    assert asked.training == {**PRESETS["spag"].fields["training"], "epochs": 2}
    file.write_text(f"{text}sampling:\n  top_k: 0\n", encoding="utf-8")
    refused = run(args=["campaign", "run", "--spec", str(file), "--queue"])
    assert refused.stderr == (
        "Error: campaign.yaml:8: sampling.top_k: expected none or a whole number from 1 to 100000, got 0\n"
    )
