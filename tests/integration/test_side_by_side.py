"""Models side by side with matches that were really played: which count, the command, its tables, and the page."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, insert, select, update
from sqlalchemy.orm import Session

from app.analysis.side_by_side import SideBySide, SideBySideChoice, side_by_side
from app.analysis.side_by_side import reading as side_by_side_reading
from app.analysis.side_by_side.tables import TABLES
from app.campaigns.side_by_side import choice_of_campaign
from app.core.errors import Invalid
from app.core.extensions import db, reading, writing
from app.games import find_game
from app.matches.events import from_json
from app.models import EventRow, MatchCount, MatchRow, RecipeStep, SeatRow, TrainingJob, Wave
from app.recipes.side_by_side import choice_of_run
from app.registry import add_scripted_model
from app.studies.forget import forget_match_for_good
from tests.campaigns import add_local, campaign_of, change, model_named, step
from tests.enrolments import enrol, finish, load_example, open_wave
from tests.enrolments import play as play_match
from tests.experimenter import signed_in
from tests.recipes import make_run
from tests.rounds import make_round, play
from tests.shell import Finished

Run = Callable[..., Finished]
MODELS = ("scripted", "casual")


@pytest.fixture
def rounds(app: Flask, engine: Engine) -> dict[str, int]:
    """Two models by themselves on the same seeds, and against each other with swapped seats; their numbers."""
    with writing(engine) as session:
        add_scripted_model(session, "casual", None, {"manner": "casual"})
    found = {
        "scripted": make_round(engine, "scripted", "scripted", matches=20),
        "casual": make_round(engine, "casual", "casual", matches=20),
        "both": make_round(engine, "scripted", "casual", matches=24, swap_seats=True),
    }
    for number in found.values():
        play(engine, app.config["SETTINGS"], number)
    return found


def found(engine: Engine, *models: str, **choice: object) -> list[SideBySide]:
    with reading(engine) as session:
        return side_by_side(session, SideBySideChoice(models=models or MODELS, base=(models or MODELS)[0], **choice))  # type: ignore[arg-type]


def utilities(session: Session, round_id: int) -> list[float]:
    rows = session.execute(select(MatchRow.utility_0, MatchRow.utility_1).where(MatchRow.round_id == round_id))
    return [float(each or 0) for row in rows for each in row]


def test_self_play_and_cross_play_are_told_apart(engine: Engine, rounds: dict[str, int]) -> None:
    [both] = found(engine)
    assert (both.game, both.partner_weight, both.settings) == ("negotiation", 0, ["self-play", "cross-play"])
    with reading(engine) as session:
        scores = {name: utilities(session, rounds[name]) for name in MODELS}
    for name in MODELS:
        alone, across = (both.find(name, setting, None) for setting in ("self-play", "cross-play"))
        assert alone is not None
        assert across is not None
        assert (alone.matches, alone.units, across.matches, across.units) == (20, 20, 24, 12)
        assert alone.columns["score_mean"].value == pytest.approx(sum(scores[name]) / 40)
    against = both.players[2].against_base
    assert both.players[2].player == "casual"
    base = sum(scores["scripted"]) / 40
    assert against["score_mean"].ratio.value == pytest.approx(sum(scores["casual"]) / 40 / base)
    assert (against["agreement_rate"].test, against["agreement_rate"].pairs) == ("McNemar", 20)  # the same seeds


@pytest.mark.postgresql_alone  # who reads there sees what there was at the beginning
def test_a_model_that_is_added_and_plays_meanwhile_is_named(
    engine: Engine, rounds: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = side_by_side_reading._conditions_of_settings

    def parts_of_later(*arguments: Any) -> Iterator[Any]:
        with writing(engine) as session:
            later = add_scripted_model(session, "later", None, {"manner": "casual"}).id
            of_both = select(MatchRow.id).where(MatchRow.round_id == rounds["scripted"])
            seats = update(SeatRow).where(SeatRow.match_id.in_(of_both), SeatRow.seat == 1)
            session.execute(seats.values(language_model_id=later))
        yield from parts(*arguments)

    monkeypatch.setattr(side_by_side_reading, "_conditions_of_settings", parts_of_later)
    [both] = found(engine)
    assert (across := both.find("scripted", "cross-play", None)) is not None
    assert across.matches == 24 + 20


def test_matches_with_a_persona_are_not_those_of_the_model(engine: Engine, rounds: dict[str, int]) -> None:
    with writing(engine) as session:
        own = select(MatchRow.id).where(MatchRow.round_id == rounds["casual"], MatchRow.index < 5)
        session.execute(update(SeatRow).where(SeatRow.match_id.in_(own)).values(prompt="kind@1"))
    [both] = found(engine)
    counted = {name: both.find(name, "self-play", None) for name in MODELS}
    assert {name: each and each.matches for name, each in counted.items()} == {"scripted": 20, "casual": 15}


@pytest.mark.parametrize("objective", ["self", "comp"])
def test_the_share_of_the_best_joint_score_is_that_of_the_deals(app: Flask, engine: Engine, objective: str) -> None:
    number = make_round(engine, "scripted", "scripted", matches=20, config={"objective": objective})
    play(engine, app.config["SETTINGS"], number)
    [alone] = found(engine, "scripted")
    with reading(engine) as session:
        ended = session.execute(
            select(EventRow.body, MatchRow.config)
            .join(MatchRow, MatchRow.id == EventRow.match_id)
            .where(EventRow.kind == "ended")
        ).all()
    shares = []
    for body, config in ended:
        best = sum(
            n * max(a, b) for n, a, b in zip(config["counts"], *config["values"], strict=True)
        )  # each thing to whoever wants it more
        shares.append(sum(body["facts"].get("scores", [0])) / best)
    assert 0 < alone.players[0].columns["joint_share_mean"].value < 1  # type: ignore[operator]
    assert alone.players[0].columns["joint_share_mean"].value == pytest.approx(sum(shares) / 20)


def people(engine: Engine, folder: Path, names: tuple[str, ...] = ("ada", "ben", "gone")) -> list[str]:
    """A study whose people play two matches each with casual, beside practice; the ids of those that count."""
    ids = []
    with writing(engine) as session:
        version = load_example(session, folder, **{"game: negotiation\n": "game: negotiation\n"})
        wave = open_wave(session, version)
        for code in names:
            progress = enrol(session, wave, code, version)
            play_match(session, progress, None)  # practice
            ids += [play_match(session, progress, position, objective="self") for position in (0, 1)]
            finish(session, progress, "withdrawn" if code == "gone" else "completed")
            ids = ids[:-2] if code == "gone" else ids
    return ids


def freeze(engine: Engine) -> None:
    with writing(engine) as session:
        session.execute(update(Wave).values(frozen_at=datetime.now(UTC)))


def test_people_count_once_their_wave_is_frozen_and_as_long_as_they_have_not_withdrawn(
    engine: Engine, rounds: dict[str, int], tmp_path: Path
) -> None:
    ids = people(engine, tmp_path)
    assert found(engine)[0].settings == ["self-play", "cross-play"]
    freeze(engine)
    [both] = found(engine)
    casual, everybody = (both.find(name, "with people", None) for name in ("casual", "people"))
    assert casual is not None
    assert everybody is not None
    assert (casual.matches, casual.units) == (4, 2)  # two people, two matches each
    assert (casual.columns["score_mean"].value, casual.columns["partner_score_mean"].value) == (8, 7)
    assert (everybody.columns["score_mean"].value, everybody.columns["partner_score_mean"].value) == (7, 8)
    assert casual.columns["score_mean"].no_interval == "fewer than 10 people"
    assert both.find("scripted", "with people", None) is None
    forget_match_for_good(engine, tmp_path, ids[0])
    left = found(engine)[0].find("casual", "with people", None)
    assert left is not None
    assert left.matches == 3


def test_pairs_of_people_are_drawn_as_one_dyad(engine: Engine, rounds: dict[str, int], tmp_path: Path) -> None:
    ids = people(engine, tmp_path, ("ada", "ben", "cleo"))
    freeze(engine)
    with writing(engine) as session:  # ada's matches are with ben, cleo's last one with nobody whom somebody knows
        seats = {
            each.match_id: each
            for each in session.scalars(select(SeatRow).where(SeatRow.match_id.in_(ids), SeatRow.seat == 1))
        }
        of_ben = session.scalars(
            select(SeatRow.participant_id).where(SeatRow.match_id == ids[2], SeatRow.seat == 0)
        ).one()
        for match_id in (*ids[:2], ids[-1]):
            seat = seats[match_id]
            seat.kind, seat.language_model_id = "person", None
            seat.participant_id = of_ben if match_id in ids[:2] else None
    [both] = found(engine)
    alone = both.find("people", "people alone", None)
    assert alone is not None
    assert (alone.matches, alone.units) == (3, 2)
    assert alone.columns["score_mean"].value == 7.5
    of_casual = both.find("casual", "with people", None)
    assert of_casual is not None
    assert (of_casual.matches, of_casual.units) == (3, 2)


def test_refused_moves_are_those_of_the_model_itself(app: Flask, engine: Engine, rounds: dict[str, int]) -> None:
    with writing(engine) as session:
        match_id = session.scalars(
            select(MatchRow.id).where(MatchRow.round_id == rounds["both"], MatchRow.index == 0)
        ).one()
        at = datetime.now(UTC)
        for number in range(3):
            body = {"v": 1, "kind": "violation", "seat": 1, "text": "x", "code": "x", "reason": "x"}
            session.add(
                EventRow(match_id=match_id, seq=900 + number, kind="violation", seat=1, ply=0, body=body, at=at)
            )
        session.execute(update(MatchRow).where(MatchRow.id == match_id).values(violations=3))
    [both] = found(engine)
    values = [
        each.columns["own_violations_mean"].value
        for name in MODELS
        if (each := both.find(name, "cross-play", None)) is not None
    ]
    assert values == [0, pytest.approx(3 / 24)]  # of an even index the first model has the first seat


def test_what_was_said_is_read_from_the_logs(engine: Engine, rounds: dict[str, int]) -> None:
    [both] = found(engine)
    with reading(engine) as session:
        bodies = session.execute(
            select(MatchRow.config, EventRow.body, MatchRow.id)
            .join(EventRow, EventRow.match_id == MatchRow.id)
            .where(MatchRow.round_id == rounds["casual"], EventRow.kind.in_(("message", "proposal")))
            .order_by(MatchRow.id, EventRow.seq)
        ).all()
    said = next(each for each in both.language if (each.player, each.setting) == ("casual", "self-play"))
    messages = [body["text"] for _, body, _ in bodies if body["kind"] == "message"]
    words = sum(len(text.replace("[message]", "").split()) for text in messages)
    assert said.words == pytest.approx(words, rel=0.05)  # a dash between words is one of these
    assert said.columns["words_per_message_mean"].value == pytest.approx(said.words / len(messages))
    configs = {match_id: config for config, _, match_id in bodies}
    moves = {match_id: [from_json(body) for *_, body, each in bodies if each == match_id] for match_id in configs}
    game = find_game("negotiation")
    talks = [game.talk(configs[each], moves[each], seat) for each in configs for seat in (0, 1)]  # type: ignore[arg-type]
    firsts = [talk.offers[0] for talk in talks if talk.offers]
    assert said.columns["first_offer_mean"].value == pytest.approx(sum(firsts) / len(firsts))
    assert said.demands[0].value == pytest.approx(sum(firsts) / len(firsts))
    assert said.demands[0].n <= 20


def test_a_sample_says_that_it_is_one(engine: Engine, rounds: dict[str, int]) -> None:
    [both] = found(engine, most=15)
    assert sorted(both.sampled) == ["cross-play", "self-play"]
    assert sum(each.matches for each in both.players if each.setting == "self-play") == 15


def test_a_sample_larger_than_all_shows_the_same(engine: Engine, rounds: dict[str, int], tmp_path: Path) -> None:
    people(engine, tmp_path)
    freeze(engine)
    for models in (MODELS, ("casual",)):
        [whole], [part] = found(engine, *models), found(engine, *models, most=1000)
        assert {each.setting for each in whole.players} >= {"self-play", "cross-play", "with people"}
        assert part.to_json() == whole.to_json()
    with writing(engine) as session:  # many more of others, so that those of the models are few
        session.execute(insert(MatchCount).values(
            game="negotiation", source="selfplay", imported_0=False, imported_1=False, matches=10_000, scored=0,
            points_0=0, points_1=0))  # fmt: skip
    [part] = found(engine, "casual", most=1000)
    assert part.to_json() == whole.to_json()


def rows(flask: Run, *arguments: object) -> list[dict[str, str]]:
    finished = flask("model", "compare", *arguments)
    assert finished.exit_code == 0, finished.stderr
    return list(csv.DictReader(io.StringIO(finished.stdout)))


def test_the_command_prints_every_table(engine: Engine, rounds: dict[str, int], tmp_path: Path, flask: Run) -> None:
    people(engine, tmp_path)
    freeze(engine)
    shown = flask("model", "compare", *MODELS)
    assert shown.exit_code == 0, shown.stderr
    assert "negotiation, λ = 0: scripted, casual; base scripted" in shown.stdout
    assert "McNemar, 20 pairs" in shown.stdout
    described = json.loads(flask("model", "compare", *MODELS, "--json").stdout)["side_by_side"]
    figure = described[0]["figures"][0]
    assert (figure["player"], figure["setting"], figure["matches"]) == ("scripted", "self-play", 20)
    by_table = {name: rows(flask, *MODELS, "--csv", name) for name in TABLES}
    assert all(by_table.values())
    [base, casual] = by_table["ratios"]
    assert (base["player"], base["self_play_ratio"], base["with_people"]) == ("scripted", "", "")
    assert float(casual["self_play_ratio"]) == pytest.approx(float(casual["self_play"]) / float(base["self_play"]))
    assert casual["with_people"] == "8"
    whole = [row for row in by_table["figures"] if row["setting"] == "self-play"]
    assert [row["player"] for row in whole] == [*MODELS]
    assert float(whole[1]["score_mean"]) == pytest.approx(float(casual["self_play"]))
    offers = [row for row in by_table["offers"] if row["player"] == "casual"]
    assert {row["setting"] for row in offers if row["offer"] == "1"} == {"self-play", "cross-play", "with people"}
    shares = [row for row in by_table["results"] if (row["player"], row["setting"]) == ("casual", "self-play")]
    assert sum(float(row["share"]) for row in shares) == pytest.approx(1)
    assert sum(int(row["seats"]) for row in shares) == 40


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "models: expected names of models, --campaign, or --recipe, got none"),
        (("scripted", "--campaign", 1), "got several of them"),
        (("nobody",), "model: expected the name of a model in the registry, got 'nobody'"),
        (("scripted", "scripted"), "models: expected one or more, each once"),
        (("scripted", "--base", "casual"), "base: expected scripted, got 'casual'"),
        (("scripted", "--round", 7), "round: expected the number of one that exists, got 7"),
        (("--campaign", 7), "campaign: expected the number of one that exists, got 7"),
        (("--recipe", 7), "got 7"),
        (("scripted", "--study", "none"), "study: expected the name of one that exists"),
        (("scripted",), "--cross-play"),
        (("scripted", "--lambda", "2"), "--lambda: expected a number from -1 to 1"),
    ],
)
def test_a_wrong_choice_is_refused_in_one_line(flask: Run, arguments: tuple[object, ...], said: str) -> None:
    refused = flask("model", "compare", *arguments)
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1), refused.stderr
    assert said in refused.stderr


# ---- Iterations --------------------------------------------------------------------


def played_as(engine: Engine, round_id: int, name: str) -> int:
    """Says that a model by another name, which plays nothing itself, has played a round."""
    number = model_named(engine, name).id
    with writing(engine) as session:
        of_round = select(MatchRow.id).where(MatchRow.round_id == round_id)
        session.execute(update(SeatRow).where(SeatRow.match_id.in_(of_round)).values(language_model_id=number))
    return round_id


def test_a_campaign_has_a_row_an_iteration_of_its_evaluations_as_its_models_play(
    app: Flask, engine: Engine, rounds: dict[str, int], flask: Run
) -> None:
    add_local(engine, "base")
    number = campaign_of(engine, "base", partners=["scripted"], evaluation_temperature="0")
    of_base = make_round(engine, "scripted", "scripted", matches=20)
    greedy, trained_on = (make_round(engine, "casual", "casual", matches=6, seed=seed) for seed in (2, 3))
    for each in (of_base, greedy, trained_on):
        play(engine, app.config["SETTINGS"], each)
    played_as(engine, of_base, "base")
    change(engine, number, 0, evaluation_id=of_base)
    casual = model_named(engine, "casual").id
    change(engine, number, 1, round_id=trained_on, model_id=casual, evaluation_id=rounds["casual"])
    with writing(engine) as session:
        step(session, number, 1, "evaluate_2", kind="round", number=greedy)
        step(session, number, 1, "evaluate_3", kind="round", number=rounds["both"])
    with reading(engine) as session:
        choice = choice_of_campaign(session, number)
        scores = [sum(utilities(session, each)) / 40 for each in (of_base, rounds["casual"])]
    assert (choice.models, choice.base, choice.game) == (("base", "casual"), "base", "negotiation")
    assert choice.rounds is not None
    assert sorted(choice.rounds) == sorted([of_base, rounds["casual"], rounds["both"]])  # neither greedy nor training
    [first, second] = rows(flask, "--campaign", number, "--csv", "ratios")
    assert [(row["iteration"], row["player"], row["self_play_matches"]) for row in (first, second)] == [
        ("0", "base", "20"),
        ("1", "casual", "20"),
    ]
    assert float(second["self_play_ratio"]) == pytest.approx(scores[1] / scores[0])
    assert second["cross_play_matches"] == "24"
    whole = [row for row in rows(flask, "--campaign", number, "--csv", "figures") if row["setting"] == "self-play"]
    assert [(row["iteration"], float(row["score_mean"])) for row in whole] == [
        ("0", pytest.approx(scores[0])),
        ("1", pytest.approx(scores[1])),
    ]
    page = signed_in(app).get(f"/admin/models/side-by-side?campaign={number}").text
    assert "Iteration 1" in page
    assert f"<strong>{scores[1] / scores[0]:.2f}</strong>" in page
    assert "--round: expected" in flask("model", "compare", "--campaign", number, "--round", 1).stderr


def test_a_run_of_a_recipe_has_its_models_in_the_order_of_their_trainings(
    engine: Engine, rounds: dict[str, int]
) -> None:
    number = make_run(engine)
    with reading(engine) as session, pytest.raises(Invalid, match="a run that has trained a model"):
        choice_of_run(session, number)
    add_local(engine, "base")
    campaign = campaign_of(engine, "base")
    casual, base = model_named(engine, "casual").id, model_named(engine, "base").id
    change(engine, campaign, 1, model_id=casual)
    with writing(engine) as session:
        job = session.scalars(select(TrainingJob).where(TrainingJob.model_id == casual)).one()
        job.base_id = base
        for step_of in session.scalars(select(RecipeStep).where(RecipeStep.campaign_id == campaign)):
            step_of.campaign_id, step_of.run_id = None, number
        about = {"run_id": number, "key": "games", "place": 9, "name": "games", "values": {}, "spec": {}}
        session.add(RecipeStep(**about, kind="round", number=rounds["both"], begun_at=datetime.now(UTC)))
    with reading(engine) as session:
        choice = choice_of_run(session, number)
    assert (choice.models, choice.base, choice.iterations) == (("base", "casual"), "base", {"base": 0, "casual": 1})
    assert choice.rounds == (rounds["both"],)
    with writing(engine) as session:
        session.execute(update(RecipeStep).values(values={"rate": 1, "seed": 2}))
    with reading(engine) as session:
        assert choice_of_run(session, number).iterations == {}, "cells of a grid are no iterations"


# ---- The page ---------------------------------------------------------------------


def test_the_page_shows_each_setting_and_has_every_table_as_csv(
    app: Flask, engine: Engine, rounds: dict[str, int], tmp_path: Path
) -> None:
    people(engine, tmp_path)
    freeze(engine)
    client = signed_in(app)
    address = "/admin/models/side-by-side?models=scripted&models=casual"
    page = client.get(address)
    assert page.status_code == 200
    [both] = found(engine)
    casual = both.find("casual", "self-play", None)
    assert casual is not None
    ratio = casual.against_base["score_mean"].ratio
    assert f"<strong>{ratio.value:.2f}</strong>" in page.text
    assert f"{casual.columns['score_mean'].value:.2f}" in page.text
    headings = re.findall(r'<h2 id="setting-\d">([^<]+)</h2>', page.text)
    assert headings == ["Self-play", "Cross-play", "With people"]
    assert "no interval for fewer than 10 people" in page.text
    for name in ("results", "first-offer-mean", "offers-self-play", "score-mean"):
        assert f'data-name="negotiation-0-{name}"' in page.text
    for name, table in TABLES.items():
        answer = client.get(address.replace("?", f"/{name}.csv?"))
        [*rows_of_table] = csv.DictReader(io.StringIO(answer.text))
        compared = MODELS[1:] if name == "tests" else MODELS  # the base is compared with nobody
        assert {row["player"] for row in rows_of_table} >= {*compared}
        assert f"{table.name}.csv" in answer.headers["Content-Disposition"]
    assert "side-by-side" in client.get("/admin/models").text


def test_the_page_is_in_german_where_that_is_asked_for(make_app: Callable[..., Flask]) -> None:
    app = make_app()
    with app.app_context():
        play(db.engine, app.config["SETTINGS"], make_round(db.engine, "scripted", "scripted", matches=4))
    address = "/admin/models/side-by-side?models=scripted"
    page = signed_in(app).get(address, headers={"Accept-Language": "de"}).text
    assert '<h2 id="setting-1">Selbstspiel</h2>' in page
    assert "kein Intervall bei weniger als 10 Seeds" in page


def test_in_taboo_results_are_by_role(app: Flask, engine: Engine) -> None:
    number = make_round(engine, "scripted", "scripted", game="taboo", matches=12)
    play(engine, app.config["SETTINGS"], number)
    page = signed_in(app).get("/admin/models/side-by-side?models=scripted").text
    with reading(engine) as session:
        won = session.scalars(select(MatchRow.winner).where(MatchRow.round_id == number)).all().count(0)
    assert f'>scripted, self-play, attacker</th><td class="num">won</td><td class="num">{100 * won / 12:.1f} %' in page
    assert "Attacker breaks the rules" in page


@pytest.mark.parametrize(
    ("address", "status", "said"),
    [
        ("", 200, "Choose models"),
        ("?models=scripted", 200, "None of these models has a match that is over and counts."),
        ("?models=nobody", 400, "nobody"),
        ("?models=scripted&base=casual&models=scripted", 400, "casual"),
        ("?campaign=x", 400, "expected a whole number"),
        ("?campaign=7", 400, "campaign"),
        ("?recipe=7", 400, "recipe"),
        ("?models=scripted&study=none", 400, "study"),
    ],
)
def test_an_empty_page_and_a_wrong_address_say_what_to_do(app: Flask, address: str, status: int, said: str) -> None:
    response = signed_in(app).get(f"/admin/models/side-by-side{address}")
    assert (response.status_code, said in response.text) == (status, True)
