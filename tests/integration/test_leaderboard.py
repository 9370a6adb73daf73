"""Leaderboards of matches that were really played: the command, its JSON and its CSV."""

import csv
import html
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import Engine, delete, insert, select, update
from sqlalchemy.orm import Session

from app.analysis.drawing import draw
from app.analysis.leaderboard import Leaderboard
from app.analysis.leaderboard_charts import leaderboard_charts
from app.analysis.tournaments import TournamentChoice, leaderboard_of, tournament_matches
from app.core.errors import Invalid
from app.core.extensions import reading, writing
from app.matches import engine as engine_of_matches
from app.matches import live
from app.matches.clocks import MATCH, TURN
from app.matches.events import Aborted, LogEvent, to_json
from app.matches.store import append
from app.models import EventRow, GenerationRow, LanguageModel, MatchRow, RoundRow, SeatRow, Wave
from app.registry import add_scripted_model
from app.rounds import matrix
from app.rounds.spec import RoundSpec
from app.studies.forget import forget_match_for_good
from app.studies.progress import StudyProgress
from tests.enrolments import DEAL, begin, enrol, finish, load_example, open_wave
from tests.enrolments import play as play_match
from tests.experimenter import signed_in
from tests.rounds import CONTEXTS, make_round, play
from tests.shell import Finished

Run = Callable[..., Finished]
MODELS = ("casual", "quick", "scripted")


@pytest.fixture
def tournament(app: Flask, engine: Engine) -> int:
    """Three models, each against each other and itself: the number of the cross-play."""
    return played(app, engine, "negotiation", swap_seats=True)


def played(app: Flask, engine: Engine, game: str, **wish: object) -> int:
    with writing(engine) as session:
        for name in MODELS[:2]:
            add_scripted_model(session, name, None, {"manner": "casual"} if name == "casual" else {})
        spec = {"game": game, "models": MODELS, "cross_play": True, "matches": 24, "seed": 3, **wish}
        rows = matrix.create(session, RoundSpec.read(spec), CONTEXTS if game == "negotiation" else None, queued=False)
        numbers = [row.id for row in rows]
    for number in numbers:
        play(engine, app.config["SETTINGS"], number)
    return numbers[0]


def boards(engine: Engine, role: str = "both", **choice: int) -> list[Leaderboard]:
    with reading(engine) as session:
        return [leaderboard_of(each, role) for each in tournament_matches(session, TournamentChoice(**choice))]


def test_a_cross_play_is_a_leaderboard_of_its_models(engine: Engine, tournament: int, flask: Run) -> None:
    [board] = boards(engine, matrix=tournament)
    assert (board.game, board.partner_weight, board.matches) == ("negotiation", 0, 6 * 24)
    assert {each.player for each in board.ratings.ratings} == set(MODELS)
    assert {each.player: each.matches for each in board.ratings.ratings} == dict.fromkeys(MODELS, 72)
    with reading(engine) as session:
        rows = session.execute(
            select(MatchRow.utility_0, MatchRow.utility_1).where(MatchRow.round_id == tournament)
        ).all()
    itself = next(each for each in board.ratings.cells if each.row == each.column == "casual")
    assert itself.value == pytest.approx(sum(map(sum, rows)) / 48)
    assert itself.matches == 24
    assert board.standings["casual"].played == 1
    assert board.standings["casual"].quality == pytest.approx(10 * board.standings["casual"].points)  # type: ignore[operator]

    shown = flask("model", "leaderboard", "--matrix", tournament)
    assert shown.exit_code == 0, shown.stderr
    assert "negotiation, λ = 0: 144 matches on 5 contexts" in shown.stdout
    assert "No intervals: fewer than 10 contexts" in shown.stdout
    described = json.loads(flask("model", "leaderboard", "--json").stdout)["leaderboards"]
    assert [each["player"] for each in described[0]["ratings"]] == [each.player for each in board.ratings.ratings]
    rows_of = list(csv.DictReader(io.StringIO(flask("model", "leaderboard", "--csv", "--role", "first").stdout)))
    assert [row["scope"] for row in rows_of] == ["player"] * 3 + ["pair"] * 9
    assert {row["role"] for row in rows_of} == {"first"}


def test_matches_that_are_just_put_back_count_once_it_is_known_who_played_them(engine: Engine, tournament: int) -> None:
    with reading(engine) as session:
        match = session.scalars(select(MatchRow.id).where(MatchRow.round_id == tournament).limit(1)).one()
    with writing(engine) as session:
        session.execute(delete(SeatRow).where(SeatRow.match_id == match))
    [board] = boards(engine, matrix=tournament)
    assert board.matches == 6 * 24  # its round says it
    with writing(engine) as session:
        session.get_one(RoundRow, tournament).prompts = [None, None]
    [board] = boards(engine, matrix=tournament)
    assert board.matches == 6 * 24 - 1  # only its seats say who of them was told what
    assert {each.player for each in board.ratings.ratings} == set(MODELS)


def test_a_model_with_a_persona_is_not_rated_as_the_model(engine: Engine, tournament: int) -> None:
    [before] = boards(engine)
    with writing(engine) as session:
        session.get_one(RoundRow, tournament).prompts = [None, "kind@1"]
        told = select(MatchRow.id).where(MatchRow.round_id == tournament)
        session.execute(update(SeatRow).where(SeatRow.match_id.in_(told), SeatRow.seat == 1).values(prompt="kind@1"))
    [after] = boards(engine)
    assert before.matches - after.matches == 24


def test_a_player_has_the_price_of_its_calls_in_a_match(
    app: Flask, engine: Engine, tournament: int, flask: Run
) -> None:
    with writing(engine) as session:
        prices = {"price_in": 2.0, "price_out": 8.0}
        session.execute(update(LanguageModel).where(LanguageModel.name == "quick").values(kind="api", options=prices))
        quick = session.scalars(select(LanguageModel.id).where(LanguageModel.name == "quick")).one()
        its = (
            select(SeatRow.match_id, SeatRow.seat).where(SeatRow.language_model_id == quick).order_by(SeatRow.match_id)
        )
        call = {
            "ply": 0, "attempt": 0, "language_model_id": quick, "model": "quick", "prompt": [], "text": "Hello.",
            "sampling": {}, "latency": 0.1, "retries": 0, "at": datetime.now(UTC),
        }  # fmt: skip
        # In each of its 96 seats a call whose cost was stored, and one of tokens alone.
        calls = [
            {**call, "match_id": match_id, "seat": seat, **values}
            for match_id, seat in session.execute(its)
            for values in ({"cost": 0.01, "prompt_tokens": 7}, {"cost": None, "prompt_tokens": 1_000})
        ]
        matches = len({each["match_id"] for each in calls})
        session.execute(insert(GenerationRow), [{"completion_tokens": 0, **each} for each in calls])
    [board] = boards(engine)
    assert matches == board.matches_of("quick") == 72
    assert board.prices["casual"] == board.prices["scripted"] == 0
    assert board.prices["quick"] == pytest.approx(0.01 + 0.002)  # as in a match with others
    assert "$0.012" in flask("model", "leaderboard").stdout
    rows = csv.DictReader(io.StringIO(flask("model", "leaderboard", "--csv").stdout))
    costs = {row["player"]: row["match_cost_usd"] for row in rows if row["scope"] == "player"}
    assert float(costs["quick"]) == pytest.approx(0.012)
    client = signed_in(app)
    assert "$0.0120" in client.get("/admin/models/leaderboard").text
    with writing(engine) as session:
        session.execute(update(LanguageModel).where(LanguageModel.name == "quick").values(options={}))
    assert "$0.0120" not in client.get("/admin/models/leaderboard").text
    assert "quick" not in boards(engine)[0].prices


def test_who_begins_is_told_apart_whatever_the_seat(engine: Engine, tournament: int) -> None:
    with reading(engine) as session:
        rows = session.execute(
            select(MatchRow.config, MatchRow.utility_0, MatchRow.utility_1, RoundRow.model_0_id, RoundRow.model_1_id)
            .join(RoundRow, RoundRow.id == MatchRow.round_id)
            .where(RoundRow.model_0_id == RoundRow.model_1_id)
        ).all()
        names = dict(map(tuple, session.execute(select(LanguageModel.id, LanguageModel.name))))
    first = [
        utilities[config["first"]] for config, *utilities, model, _ in rows if names[model] == "scripted"
    ]  # against itself
    [board] = boards(engine, "first")
    cell = next(each for each in board.ratings.cells if each.row == each.column == "scripted")
    assert (cell.matches, cell.value) == (24, pytest.approx(sum(first) / 24))


def test_a_match_that_a_model_broke_off_costs_it_alone(engine: Engine, tournament: int) -> None:
    with writing(engine) as session:
        of_both = (
            select(MatchRow.id, SeatRow.seat)
            .join(SeatRow, SeatRow.match_id == MatchRow.id)
            .join(LanguageModel, LanguageModel.id == SeatRow.language_model_id)
            .join(RoundRow, RoundRow.id == MatchRow.round_id)
            .where(LanguageModel.name == "quick", RoundRow.model_0_id != RoundRow.model_1_id)
            .order_by(MatchRow.id)
        )
        broken, ours = session.execute(of_both.limit(2))
        for (match_id, seat), fault in ((broken, "model"), (ours, "us")):
            values = {"reason": "aborted", "utility_0": 0, "utility_1": 0}
            session.execute(update(MatchRow).where(MatchRow.id == match_id).values(values))
            body = to_json(Aborted(seat, fault, "a test"))
            session.execute(
                insert(EventRow).values(
                    match_id=match_id, seq=900, kind="aborted", seat=seat, ply=0, body=body, at=datetime.now(UTC)
                )
            )
    [board] = boards(engine)
    assert board.matches == 142
    assert board.standings["quick"].played == pytest.approx(94 / 95)  # 96 seats, one of which nobody counts
    assert board.standings["quick"].score == pytest.approx(94 / 95 * board.standings["quick"].quality)  # type: ignore[operator]
    assert {board.standings[name].played for name in ("casual", "scripted")} == {1}


def test_who_fails_every_match_is_there_without_a_rating(app: Flask, engine: Engine, flask: Run) -> None:
    number = make_round(engine, "scripted", "scripted", matches=4)
    play(engine, app.config["SETTINGS"], number)
    with writing(engine) as session:
        session.execute(update(MatchRow).values(reason="aborted", utility_0=0, utility_1=0))
        at = datetime.now(UTC)
        for match_id in session.scalars(select(MatchRow.id)).all():
            body = to_json(Aborted(0, "model", "a test"))
            values = {"match_id": match_id, "seq": 900, "kind": "aborted", "seat": 0, "ply": 0, "body": body, "at": at}
            session.execute(insert(EventRow).values(values))
    [board] = boards(engine)
    assert (board.names, board.matches, board.ratings.ratings) == (["scripted"], 0, ())
    assert (board.standings["scripted"].seats, board.standings["scripted"].played) == (4, 0)
    page = signed_in(app).get("/admin/models/leaderboard")
    assert page.status_code == 200
    assert "0.0 %" in page.text
    assert "0 matches on 0 contexts" in flask("model", "leaderboard").stdout
    [row] = csv.DictReader(io.StringIO(flask("model", "leaderboard", "--csv").stdout))
    assert (row["player"], row["played"], row["rating"], row["quality"]) == ("scripted", "0", "", "")


def test_in_taboo_roles_are_rated_by_wins(app: Flask, engine: Engine, flask: Run) -> None:
    played(app, engine, "taboo", matches=12)
    [board] = boards(engine, "attacker")
    assert board.ratings.by == "wins"
    assert sum(each.value for each in board.ratings.ratings) == pytest.approx(3_000)
    assert {each.player: each.matches for each in board.ratings.ratings} == dict.fromkeys(MODELS, 36)
    refused = flask("model", "leaderboard", "--role", "speaker")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert "both, first, second, attacker, defender" in refused.stderr


def test_without_matches_the_command_says_how_they_are_played(flask: Run) -> None:
    refused = flask("model", "leaderboard")
    assert refused.exit_code == 2
    assert "--cross-play" in refused.stderr
    assert json.loads(flask("model", "leaderboard", "--json").stdout) == {"leaderboards": []}
    assert (
        "cross-play: expected the number of one that exists, got 7"
        in flask("model", "leaderboard", "--matrix", 7).stderr
    )
    assert "--lambda: expected a number from -1 to 1" in flask("model", "leaderboard", "--lambda", "2").stderr


def test_the_page_shows_ratings_cells_and_what_would_settle_the_order(
    app: Flask, engine: Engine, tournament: int
) -> None:
    client = signed_in(app)
    page = client.get("/admin/models/leaderboard").text
    [board] = boards(engine)
    first = board.ratings.ratings[0]
    assert f"<strong>{first.value:.2f}</strong>" in page
    assert f"{100 * board.standings[first.player].played:.1f} %" in page
    assert page.count(' few"') == 9  # each pair has 24 matches
    assert "There are no intervals: fewer than 10 contexts." in page
    of_one = client.get(f"/admin/models/leaderboard?matrix={tournament}&role=first")
    assert of_one.status_code == 200
    table = client.get(f"/admin/models/leaderboard.csv?matrix={tournament}&role=first").text
    assert [row["role"] for row in csv.DictReader(io.StringIO(table))] == ["first"] * 12


def test_the_charts_have_each_player_with_its_figures(app: Flask, engine: Engine, tournament: int) -> None:
    [board] = boards(engine)
    ratings, played = leaderboard_charts(board)
    drawn = [(row["player"], row["value"], row["n"]) for row in ratings.data]
    assert drawn == [(each.player, each.value, board.matches_of(each.player)) for each in board.ratings.ratings]
    for row in played.data:
        standing = board.standings[row["player"]]
        assert (row["played"], row["quality"], row["score"]) == (standing.played, standing.quality, standing.score)
    page = signed_in(app).get("/admin/models/leaderboard").text
    for chart in (ratings, played):
        assert chart.described.sentence in html.unescape(page)
        svg = draw(chart, "svg").decode()
        assert all(f">{each.player}<" in svg for each in board.ratings.ratings) == (chart is ratings)


def test_the_page_is_made_again_when_further_matches_are_over(app: Flask, engine: Engine, tournament: int) -> None:
    client = signed_in(app)
    assert "144 matches" in client.get("/admin/models/leaderboard").text
    play(engine, app.config["SETTINGS"], make_round(engine, "casual", "scripted", matches=10))
    assert "154 matches" in client.get("/admin/models/leaderboard").text


@pytest.mark.parametrize(
    ("address", "status", "said"),
    [
        ("", 200, "No models have played each other yet."),
        ("?matrix=x", 400, "expected a whole number"),
        ("?matrix=7", 400, "cross-play"),
    ],
)
def test_an_empty_page_and_a_wrong_address_say_what_to_do(app: Flask, address: str, status: int, said: str) -> None:
    response = signed_in(app).get(f"/admin/models/leaderboard{address}")
    assert response.status_code == status
    assert said in response.text


def test_people_are_one_player_where_the_file_of_a_frozen_study_says_so(engine: Engine, tmp_path: Path) -> None:
    names: set[str] = set()
    for number, key in enumerate(("", "people_in_tournaments: true\n")):
        with writing(engine) as session:
            (tmp_path / str(number)).mkdir()
            said = {
                "game: negotiation\n": f"{key}game: negotiation\n",
                "study: two-models": f"study: two-models-{number}",
            }
            version = load_example(session, tmp_path / str(number), **said)
            wave = open_wave(session, version, name=f"wave-{number}")
            for code in ("ada", "ben", "gone"):
                progress = enrol(session, wave, f"{code}-{number}", version)
                play_match(session, progress, None)  # practice
                for position in (0, 1):
                    play_match(session, progress, position)
                finish(session, progress, "withdrawn" if code == "gone" else "completed")
        assert not boards(engine)
        with writing(engine) as session:
            session.execute(update(Wave).values(frozen_at=datetime.now(UTC)))
        names = {name for board in boards(engine) for name in board.names}
        assert names == ({"people", "casual"} if key else set())
    assert sum(board.matches for board in boards(engine)) == 4


def a_frozen_study(engine: Engine, folder: Path, people: Callable[[Session, StudyProgress], None]) -> None:
    """A study of one person, whose matches count in tournaments."""
    with writing(engine) as session:
        version = load_example(
            session, folder, **{"game: negotiation\n": "people_in_tournaments: true\ngame: negotiation\n"}
        )
        wave = open_wave(session, version)
        progress = enrol(session, wave, "ada", version)
        people(session, progress)
        finish(session, progress)
        session.execute(update(Wave).values(frozen_at=datetime.now(UTC)))


@pytest.mark.parametrize(
    ("moves", "ending", "at_fault"),
    [
        (0, lambda match: engine_of_matches.time_out(match, TURN), "people"),
        (1, lambda match: engine_of_matches.time_out(match, TURN), "casual"),  # no model had answered
        (1, lambda match: engine_of_matches.time_out(match, MATCH), None),
        (1, engine_of_matches.abandon, None),
        (1, lambda match: engine_of_matches.resign(match, 0), "people"),
    ],
)
def test_a_match_that_was_left_or_ran_out_of_time_counts_for_whose_turn_it_was(
    engine: Engine,
    tmp_path: Path,
    moves: int,
    ending: Callable[[engine_of_matches.Match], list[LogEvent]],
    at_fault: str | None,
) -> None:
    def matches(session: Session, progress: StudyProgress) -> None:
        play_match(session, progress, 0)
        record = begin(session, progress, 1, objective="self")
        for ply, text in enumerate(DEAL[:moves]):
            record = live.submit(session, live.MoveSubmission(record.id, ply, text), instant=False).record
        append(session, [(record.extended(ending(record.match), datetime.now(UTC)), len(record.log))])

    a_frozen_study(engine, tmp_path, matches)
    broken = {
        name: sum(round(each.standings[name].seats * (1 - each.standings[name].played)) for each in boards(engine))
        for name in ("people", "casual")
    }
    assert broken == {name: int(name == at_fault) for name in ("people", "casual")}


def test_the_page_is_made_again_when_what_people_wrote_in_a_match_was_deleted(
    app: Flask, engine: Engine, tmp_path: Path
) -> None:
    numbers: list[str] = []

    def matches(session: Session, progress: StudyProgress) -> None:
        numbers.extend(play_match(session, progress, position, objective="self") for position in (0, 1))

    a_frozen_study(engine, tmp_path, matches)
    client = signed_in(app)
    assert "2 matches" in client.get("/admin/models/leaderboard").text
    forget_match_for_good(engine, tmp_path, numbers[0])
    assert "2 matches" not in (page := client.get("/admin/models/leaderboard").text)
    assert "1 match," in page


def test_the_key_is_true_or_false(engine: Engine, tmp_path: Path) -> None:
    said = {"game: negotiation\n": "people_in_tournaments: maybe\ngame: negotiation\n"}
    with pytest.raises(Invalid, match="people_in_tournaments: expected"), writing(engine) as session:
        load_example(session, tmp_path, **said)
