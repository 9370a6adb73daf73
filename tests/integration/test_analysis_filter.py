"""Figures of whatever matches a filter chooses: people's as well as models', in the terminal and on a page."""

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, select

from app.analysis.matches import MatchAnalysis, analyse_matches
from app.analysis.reading import chosen_tables
from app.analysis.rounds import analyse
from app.core.config import Settings
from app.core.errors import Invalid, NotFound
from app.core.extensions import reading, writing
from app.games import GAMES
from app.games.metrics import PART, SHARE, Metric, Use
from app.matches import live
from app.matches.filter import read_choice
from app.matches.stored import StoredSeat
from app.models import (
    Arm,
    Campaign,
    LanguageModel,
    MatchRow,
    SeatRow,
    Study,
    StudyVersion,
)
from app.registry import PERSON
from app.web.admin import rounds_analysis
from tests.campaigns import step
from tests.experimenter import signed_in
from tests.figures import TABOO
from tests.rounds import make_round, play
from tests.shell import Finished

SPLIT = {"counts": [3, 2, 1], "values": [[1, 3, 1], [2, 0, 4]], "first": 0}
DEAL = ["[message] Two of each for me?", "[message] Fine.", "[propose] (1 books, 2 hats, 0 balls)",
        "[propose] (2 books, 0 hats, 1 balls)"]  # fmt: skip
NO_DEAL = [*DEAL[:3], "[propose] (3 books, 0 hats, 1 balls)"]


@pytest.fixture
def settings(app: Flask) -> Settings:
    found: Settings = app.config["SETTINGS"]
    return found


def people_play(engine: Engine, texts: list[str], game: str = "negotiation", **config: Any) -> str:
    """A match of two people, from the first move to the last; its id."""
    config = {**SPLIT, **config} if game == "negotiation" else config
    with writing(engine) as session:
        seats = StoredSeat(PERSON), StoredSeat(PERSON)
        record = live.create(session, game, config, seats, seed=7, source="live", instant=True)
    for text in texts:
        seat = record.match.to_move
        assert seat is not None
        record = live.commit(engine, live.MoveSubmission(record.id, seat, text), instant=True).record
    return record.id


def chosen(engine: Engine, **given: str) -> list[MatchAnalysis]:
    with reading(engine) as session:
        return analyse_matches(session, read_choice(given))


def test_matches_of_people_have_the_figures_of_rounds_and_nobody_has_a_name(engine: Engine) -> None:
    for texts in (DEAL, DEAL, NO_DEAL):
        people_play(engine, texts)
    people_play(engine, DEAL[:2])  # still played
    [found] = chosen(engine, source="live")
    columns = {name: figure.value for name, figure in found.metrics.columns.items()}
    assert (found.game, found.partner_weight, found.matches) == ("negotiation", 0, 3)
    assert (columns["agreement_rate"], columns["messages_mean"]) == (pytest.approx(2 / 3), 4)
    assert (columns["score_mean"], columns["agreed_score_mean"]) == (pytest.approx(30 / 6), 7.5)  # 7 and 8, twice
    assert columns["first_proposal_mean"] == 2
    assert {each.reason: each.matches for each in found.metrics.outcomes} == {"deal": 2, "no deal": 1}
    assert (list(found.players), list(found.metrics.parts), found.paired) == (["people"], [], None)


def test_people_against_a_model_are_one_player_beside_it(engine: Engine, settings: Settings) -> None:
    model = make_round(engine, "scripted", matches=12)
    play(engine, settings, model)
    with writing(engine) as session:  # what people's matches with a model look like
        matches = session.scalars(select(SeatRow).where(SeatRow.seat == 0)).all()
        for seat in matches:
            seat.kind, seat.language_model_id = PERSON, None
    [found] = chosen(engine, player="person")
    assert sorted(found.players) == ["people", "scripted"]
    assert {part.player: part.matches for part in found.metrics.parts} == {"people": 12, "scripted": 12}
    assert found.paired is not None
    assert {found.paired.first, found.paired.second} == {"people", "scripted"}


def test_a_round_as_a_filter_has_the_figures_of_the_round(engine: Engine, settings: Settings) -> None:
    for wish in ({}, {"swap_seats": True}, {"game": "taboo"}):
        number = make_round(engine, "scripted", **wish)
        play(engine, settings, number)
        with reading(engine) as session:
            [whole] = analyse(session, [number])
        [found] = chosen(engine, round=str(number))
        assert found.metrics == whole.metrics
        assert found.distributions == whole.distributions
        assert found.partner_weight == whole.partner_weight


def test_each_game_and_each_weight_of_the_partner_is_told_apart(engine: Engine) -> None:
    for objective in ("self", "coop", "self"):
        people_play(engine, DEAL, objective=objective)
    people_play(engine, ["It is a lemon."], "taboo", word="lemon")
    found = chosen(engine)
    assert [(each.game, each.partner_weight, each.matches) for each in found] == [
        ("negotiation", 0, 2),
        ("negotiation", 1, 1),
        ("taboo", None, 1),
    ]
    assert found[1].metrics.columns["score_mean"].value == 15
    assert len({each.key for each in found}) == 3


def test_a_filter_knows_roles_and_campaigns(engine: Engine, settings: Settings) -> None:
    people_play(engine, ["It is a lemon."], "taboo", word="lemon")
    people_play(engine, DEAL)
    assert [each.game for each in chosen(engine, role="attacker", player="person")] == ["taboo"]
    assert chosen(engine, role="attacker", player="scripted") == []
    rounds = [make_round(engine, "scripted", matches=4) for _ in range(4)]
    for number in rounds:
        play(engine, settings, number)
    with writing(engine) as session:
        base = session.scalars(select(LanguageModel.id).where(LanguageModel.name == "scripted")).one()
        own = {"status": "done", "queued": False, "created_at": datetime.now(UTC)}
        row = Campaign(name="c", game="negotiation", base_id=base, spec={}, material={}, iterations=1, **own)
        session.add(row)
        session.flush()
        for iteration, name, number in ((1, "play", 0), (0, "evaluate_base", 1), (0, "evaluate_2_base", 2)):
            step(session, row.id, iteration, name, kind="round", number=rounds[number])
        campaign = row.id
    assert [each.matches for each in chosen(engine, campaign=str(campaign))] == [12]
    for wrong in ({"campaign": "99"}, {"round": "99"}, {"player": "nobody"}):
        with pytest.raises(NotFound, match=f"{next(iter(wrong))}: expected"):
            chosen(engine, **wrong)
    for game, role in (("", "umpire"), ("negotiation", "attacker")):
        with pytest.raises(Invalid, match="role: expected"):
            read_choice({"game": game, "role": role})


def test_a_filter_knows_studies_arms_and_consent(engine: Engine) -> None:
    first, second, other = (people_play(engine, DEAL) for _ in range(3))
    now = datetime.now(UTC)
    with writing(engine) as session:
        for number, (study, arm, match) in enumerate(
            (("pilot", "a", first), ("pilot", "b", second), ("main", "a", other))
        ):
            row = session.scalar(select(Study).where(Study.name == study)) or Study(name=study, created_at=now)
            session.add(row)
            session.flush()
            version = StudyVersion(study_id=row.id, number=number + 1, design={}, sha256="", created_at=now)
            session.add(version)
            session.flush()
            found = Arm(study_version_id=version.id, name=arm, conditions=[])
            session.add(found)
            session.flush()
            session.get_one(MatchRow, match).arm_id = found.id
            for seat in session.scalars(select(SeatRow).where(SeatRow.match_id == match)):
                seat.training_consent = match != second or seat.seat == 0

    def matches(**given: str) -> int:
        return sum(each.matches for each in chosen(engine, **given))

    assert (matches(study="pilot"), matches(arm="a"), matches(study="pilot", arm="a")) == (2, 2, 1)
    assert (matches(consent="given"), matches(consent="missing"), matches(study="main", consent="missing")) == (2, 1, 0)
    with pytest.raises(NotFound, match="study: expected"):
        chosen(engine, study="nobody's")
    with pytest.raises(Invalid, match="consent: expected"):
        read_choice({"consent": "perhaps"})


def test_the_same_choice_is_exported_and_analysed_in_a_terminal(
    engine: Engine, settings: Settings, flask: Callable[..., Finished]
) -> None:
    ids = [people_play(engine, DEAL), people_play(engine, NO_DEAL)]
    play(engine, settings, make_round(engine, "scripted", matches=3))
    choice = ("--source", "live", "--player", "person", "--reason", "deal")
    exported = list(csv.DictReader(io.StringIO(flask("export", "matches", *choice).stdout)))
    assert [row["match_id"] for row in exported] == ids[:1]
    told = flask("analyze", *choice)
    assert told.exit_code == 0, told.stderr
    assert "negotiation, matches with λ = 0: player person, reason deal, source live, 1 matches" in told.stdout
    said = json.loads(flask("analyze", *choice, "--json").stdout)
    assert said["rounds"] == []
    [found] = said["matches"]
    assert (found["game"], found["lambda"], found["matches"], found["models"]) == ("negotiation", 0, 1, ["people"])
    [row] = csv.DictReader(io.StringIO(flask("analyze", *choice, "--csv").stdout))
    assert (row["scope"], row["round_id"], row["matches"]) == ("matches", "", "1")
    assert float(row["score_mean"]) == found["columns"]["score_mean"]["value"] == 7.5
    for wrong in (("--source", "moon"), ("--player", "nobody"), ("--reason", "never"), ("--round", 1, "--matrix", 1)):
        refused = flask("analyze", *wrong, "--since", "2026-01-01")
        assert (refused.exit_code, refused.stderr.count("\n"), refused.stdout) == (2, 1, "")


# ---- On pages ---------------------------------------------------------------------


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return signed_in(app)


def test_the_list_of_matches_leads_to_their_analysis(client: FlaskClient, engine: Engine) -> None:
    ids = [people_play(engine, texts) for texts in (DEAL, NO_DEAL)]
    link = re.search(r'href="(/admin/matches/analysis[^"]*)"', client.get("/admin/matches?source=live&role=").text)
    assert link
    page = client.get(link[1].replace("&amp;", "&"))
    assert page.status_code == 200
    for words in ("Agreement in 50.0 %", "2 matches are over", "Mean score of deals", "Outcomes, with 95 % intervals"):
        assert words in page.text
    assert 'href="/admin/matches?source=live&amp;reason=deal"' in page.text
    assert not [each for each in ids if each in page.text]
    download = client.get("/admin/matches/analysis.csv?source=live")
    [row] = csv.DictReader(io.StringIO(download.text))
    assert (row["scope"], row["agreement_rate"], row["matches"]) == ("matches", "0.5", "2")
    people_play(engine, DEAL)
    assert "3 matches are over" in client.get(link[1].replace("&amp;", "&")).text


def test_games_and_weights_have_a_page_each(client: FlaskClient, engine: Engine) -> None:
    people_play(engine, DEAL)
    for _ in range(2):
        people_play(engine, ["It is a lemon."], "taboo", word="lemon")
    page = client.get("/admin/matches/analysis?source=live").text
    assert "Attackers win" in page  # the most numerous ones first
    part = re.search(r'href="(/admin/matches/analysis\?[^"]*part=negotiation-0[^"]*)"', page)
    assert part
    assert "Agreement in 100.0 %" in client.get(part[1].replace("&amp;", "&")).text
    assert client.get("/admin/matches/analysis?part=chess").status_code == 400


def test_of_many_matches_a_page_counts_a_fixed_sample_and_all_of_them_when_asked(
    client: FlaskClient, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for texts in (DEAL, NO_DEAL, DEAL):
        people_play(engine, texts)
    address = "/admin/matches/analysis?source=live"
    assert "3 matches are over" in client.get(address).text
    monkeypatch.setattr(rounds_analysis, "SAMPLE", 2)
    page = client.get(address).text
    assert "2 matches of a sample" in page
    link = re.search(r'href="([^"]*)">Count all of them', page)
    assert link
    whole = client.get(link[1].replace("&amp;", "&")).text
    assert "3 matches are over" in whole
    assert "Count all of them" not in whole
    for more, number in (("", "2"), ("&all=1", "3")):
        rows = csv.DictReader(io.StringIO(client.get(address.replace("?", ".csv?") + more).text))
        assert next(rows)["matches"] == number
    with reading(engine) as session:
        lowest = session.scalars(select(MatchRow.id).order_by(MatchRow.id).limit(2)).all()
        [table] = chosen_tables(session, read_choice({"source": "live"}), 2).values()
        agreed = session.scalars(select(MatchRow.agreed).where(MatchRow.id.in_(lowest))).all()
    assert sorted(table.agreed) == sorted(agreed)
    monkeypatch.setattr(rounds_analysis, "_MOST", 2)
    assert client.get(f"{address}&all=1").status_code == 400


def test_a_filter_of_nothing_or_of_nobody_says_so(client: FlaskClient, engine: Engine) -> None:
    assert "None of these matches is over." in client.get("/admin/matches/analysis?source=terminal").text
    refused = client.get("/admin/matches/analysis?player=nobody")
    assert (refused.status_code, "nobody" in refused.text) == (400, True)


def test_one_more_metric_of_a_game_is_on_its_rounds_page(
    client: FlaskClient, engine: Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = Metric(
        "short_rate", "ends within four moves", SHARE, "matches of at most four moves",
        lambda matches: matches.ply <= 4, PART, rank=5, uses=Use.TILE,
    )  # fmt: skip
    more = replace(TABOO, of_matches=(*TABOO.of_matches, short))
    monkeypatch.setattr(type(GAMES["taboo"]), "metrics", more)
    number = make_round(engine, "scripted", game="taboo")
    play(engine, settings, number)
    page = client.get(f"/admin/rounds/{number}").text
    assert page.index("Ends within four moves") < page.index("Attacker wins")
