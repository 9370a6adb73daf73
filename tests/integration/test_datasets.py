"""What datasets are cut from matches of every kind, on both databases."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, func, select, update

from app.core.config import Settings
from app.core.errors import Invalid, NotFound
from app.core.extensions import db, reading, transact, writing
from app.datasets import build, register, store
from app.datasets import rounds as imported
from app.datasets.export import export_dataset
from app.datasets.spec import read_spec
from app.factory import create_app
from app.matches import live, stored
from app.matches.events import Violated
from app.matches.stored import StoredSeat, load
from app.models import Dataset, DatasetRow, GenerationRow, MatchRow, RoundRow, SeatRow
from app.players.prompts import default_prompt, rules
from app.registry import PERSON, add_api_model, get_model
from app.schema import upgrade
from tests.campaigns import add_local, campaign_of, change
from tests.datasets import cut, matches_of, own_moves, rows_of, said, seat_of, take_in
from tests.rounds import add_models, haggler, make_round, play
from tests.stub_openai import StubServer
from training.marks import RENDERER

DEAL = {"counts": [2, 1, 3], "values": [[1, 5, 1], [3, 1, 1]], "first": 0}
TALK = ["[message] The hat for me?", "[message] Fine.", "[propose] (0 books, 1 hats, 1 balls)"]
EPISODE = {
    "history": [
        {"role": "attacker", "content": "It purrs."},
        {"role": "defender", "content": "Is it an engine?"},
        {"role": "attacker", "content": "It drinks milk."},
        {"role": "defender", "content": "I know the word! It is cat!"},
    ],
    "target_word": "cat",
    "max_turns": 5,
}
LINE = "1 6 2 0 4 1 THEM: hi <eos> YOU: hats? <eos> THEM: ok <eos> YOU: <selection> item0=1 item1=2 item2=0 <eos> reward=6 agree 1 8 2 1 4 0\n"  # noqa: E501


@pytest.fixture
def settings(app: Flask) -> Settings:
    return app.config["SETTINGS"]  # type: ignore[no-any-return]


@pytest.fixture
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        server.script("haggler", haggler)
        yield server


def played(engine: Engine, settings: Settings, *models: str, **wish: Any) -> int:
    number = make_round(engine, *(models or ("scripted",)), **wish)
    play(engine, settings, number)
    return number


def roles(row: dict[str, Any]) -> list[str]:
    return [each["role"] for each in row["messages"]]


# ---- Rows ---------------------------------------------------------------------


def test_reasoning_is_in_the_rows_of_a_dataset_that_keeps_it_alone(
    engine: Engine, settings: Settings, home: Path, stub: StubServer
) -> None:
    stub.script("thinker", lambda *given: f"<think>They like hats.</think>**{haggler(*given)}**")
    add_models(engine, stub.url, "thinker")
    number = played(engine, settings, "thinker", matches=2)  # in which moves are read without their stars
    dropped, kept = (cut(engine, home, rounds=[number], filter="all", reasoning=each) for each in ("drop", "keep"))
    assert ("reasoning" in dropped.spec, kept.spec["reasoning"]) == (False, "keep")
    assert rows_of(home, dropped) == rows_of(home, cut(engine, home, rounds=[number], filter="all"))
    for row, bare in zip(rows_of(home, kept), rows_of(home, dropped), strict=True):
        own = [each for each in row["messages"] if each["role"] == "assistant"]
        assert [each.pop("reasoning") for each in own] == ["They like hats."] * len(own)
        assert row == bare
    for form in ("openai", "trl-prompt-completion", "spag-rows"):
        assert b"They like" not in b"".join(export_dataset(home, kept, form))


def test_a_row_is_what_the_model_was_asked_and_what_it_was_allowed(
    engine: Engine, settings: Settings, home: Path, stub: StubServer
) -> None:
    add_models(engine, stub.url, "haggler")
    number = played(engine, settings, "haggler", matches=12)
    rows = rows_of(home, cut(engine, home, rounds=[number], filter="all"))
    refused = 0
    for row in rows:
        match, seat = seat_of(row)
        with reading(engine) as session:
            log = load(session, match).log
            asked = select(GenerationRow.prompt).where(
                GenerationRow.match_id == match, GenerationRow.seat == seat, GenerationRow.attempt == 0
            )
            prompts = session.scalars(asked.order_by(GenerationRow.ply)).all()
        violations = [each.event.text for each in log if isinstance(each.event, Violated)]
        refused += len(violations)
        assert not set(violations) & {each["content"] for each in row["messages"]}
        assert said(row) == own_moves(engine, row)
        own = [place for place, role in enumerate(roles(row)) if role == "assistant"]
        assert [row["messages"][:place] for place in own] == prompts[: len(own)]
    assert refused
    assert len(rows) == 24


def test_only_the_seats_own_moves_are_the_assistants(engine: Engine, settings: Settings, home: Path) -> None:
    number = played(engine, settings, matches=10)
    for row in rows_of(home, cut(engine, home, rounds=[number], filter="all")):
        assert roles(row) == ["user", "assistant"] * (len(row["messages"]) // 2)
        assert said(row) == own_moves(engine, row)


def test_a_partners_proposal_is_told_as_it_was_first_seen(engine: Engine, settings: Settings, home: Path) -> None:
    number = played(engine, settings, matches=10)
    for row in rows_of(home, cut(engine, home, rounds=[number], filter="all")):
        assert not any(each["role"] == "user" and each["content"].startswith("[propose]") for each in row["messages"])


def test_both_roles_of_taboo_are_told_their_own_rules(engine: Engine, settings: Settings, home: Path) -> None:
    number = played(engine, settings, game="taboo", matches=14)
    rows = rows_of(home, cut(engine, home, rounds=[number], filter="all"))
    assert {seat_of(row)[1] for row in rows} == {0, 1}
    for row in rows:
        match, seat = seat_of(row)
        with reading(engine) as session:
            view = load(session, match).match.view(seat)
        begins = row["messages"][0]["content"]
        assert begins.startswith(rules(view, default_prompt("taboo"))[:200])
        word = matches_of(engine, number)[match].config["word"]
        if seat == 1:
            assert f"“{word}”" not in begins
            assert f"`{word}`" not in begins
        assert said(row) == own_moves(engine, row)
    winners = rows_of(home, cut(engine, home, rounds=[number], filter="nonzero"))
    assert {seat_of(row) for row in winners} == {
        (match.id, match.winner) for match in matches_of(engine, number).values() if match.winner is not None
    }


def test_swapped_seats_do_not_mix_the_models_up(
    engine: Engine, settings: Settings, home: Path, stub: StubServer
) -> None:
    add_models(engine, stub.url, "haggler")
    number = played(engine, settings, "scripted", "haggler", matches=8, swap_seats=True)
    rows = rows_of(home, cut(engine, home, rounds=[number], filter="all", model="haggler"))
    matches = matches_of(engine, number)
    assert [seat_of(row) for row in rows] == [
        (match.id, 0 if match.index % 2 else 1) for match in sorted(matches.values(), key=lambda match: match.index)
    ]
    assert all(said(row) == own_moves(engine, row) for row in rows)


def test_a_match_that_was_broken_off_gives_its_accepted_moves(
    engine: Engine, settings: Settings, home: Path, stub: StubServer
) -> None:
    add_models(engine, stub.url, "stub-broken")
    number = played(engine, settings, "scripted", "stub-broken", matches=6)
    rows = rows_of(home, cut(engine, home, rounds=[number], filter="all"))
    assert {match.reason for match in matches_of(engine, number).values()} == {"aborted"}
    assert rows
    assert all(seat_of(row)[1] == 0 and said(row) == own_moves(engine, row) for row in rows)  # the other never moved
    with pytest.raises(Invalid, match="filter nonzero: expected to keep at least one transcript, got none of 12"):
        cut(engine, home, rounds=[number], filter="nonzero")


def test_prompts_that_were_cut_to_fit_give_every_move_once(
    engine: Engine, settings: Settings, home: Path, stub: StubServer
) -> None:
    add_models(engine, stub.url, "haggler")
    number = played(engine, settings, "haggler", matches=6)
    with writing(engine) as session:  # as a model that sees its rules and the last two messages only
        for call in session.scalars(select(GenerationRow)):
            if len(call.prompt) > 2 * call.attempt + 3:
                base, corrections = call.prompt[: len(call.prompt) - 2 * call.attempt], 2 * call.attempt
                call.prompt = [base[0], *base[-2:], *(call.prompt[-corrections:] if corrections else [])]
    dataset = cut(engine, home, rounds=[number], filter="all")
    rows = rows_of(home, dataset)
    for group, parts in itertools.groupby(rows, key=lambda row: row["group"]):
        told = list(parts)
        assert [move for row in told for move in said(row)] == own_moves(engine, told[0]), group
    assert len(rows) > len({row["group"] for row in rows})
    assert dataset.rows == len(rows)


# ---- Bytes --------------------------------------------------------------------


def test_the_same_spec_on_the_same_matches_gives_the_same_bytes(engine: Engine, settings: Settings, home: Path) -> None:
    numbers = [played(engine, settings, matches=20), played(engine, settings, matches=10, game="taboo")]
    first = cut(engine, home, rounds=numbers)
    again = cut(engine, home, rounds=reversed(numbers))
    assert (first.sha256, first.size, first.figures) == (again.sha256, again.size, again.figures)
    assert (first.version, again.version, again.name) == (1, 2, "mine")
    folder = home / store.FOLDER
    assert [path.name for path in folder.iterdir()] == [f"{first.sha256}.jsonl"]
    assert not folder.joinpath(f"{first.sha256}.jsonl").stat().st_mode & 0o222  # nobody writes to it any more
    other = cut(engine, home, rounds=numbers, filter="all")
    assert other.sha256 != first.sha256
    assert len(list(folder.iterdir())) == 2


def test_a_file_that_was_written_is_registered_without_being_read_again(
    engine: Engine, settings: Settings, home: Path
) -> None:
    number = played(engine, settings, matches=20)
    with reading(engine) as session:
        found = build.prepare(session, read_spec({"rounds": [number], "filter": "above_avg"}))
        draft = store.write(home, found, build.training_rows(session, found))
    aside = draft.path.rename(home / "aside")
    draft.path.touch()  # a file that is read would give no rows
    dataset = register.save(transact(engine), draft, "mine")
    aside.rename(draft.path)
    with reading(engine) as session:
        origins = select(DatasetRow.match_id, DatasetRow.seat).where(DatasetRow.dataset_id == dataset)
        known = [tuple(row) for row in session.execute(origins.order_by(DatasetRow.place))]
        rows = rows_of(home, store.get_dataset(session, dataset))
    assert known == [seat_of(row) for row in rows]


def test_sqlite_and_postgresql_give_the_same_bytes(
    home: Path, service_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for place, url in enumerate(("", service_database)):
        numbers = itertools.count()
        monkeypatch.setattr(stored, "new_match_id", lambda each=numbers: f"match-{next(each)}")
        app = create_app({"PARLOR_HOME": home / str(place), "DATABASE_URL": url})
        upgrade(app)
        with app.app_context():
            for game in ("negotiation", "taboo"):
                played(db.engine, app.config["SETTINGS"], game=game, matches=20)
            row = cut(db.engine, home / str(place), rounds=[1, 2])
            found.append((row.sha256, row.rows, row.figures))
            db.engine.dispose()
    assert found[0] == found[1]


def test_rows_come_by_round_index_and_seat_in_compact_json(engine: Engine, settings: Settings, home: Path) -> None:
    numbers = [played(engine, settings, matches=230), played(engine, settings, matches=3)]  # more than are read at once
    dataset = cut(engine, home, rounds=numbers, filter="all")
    places = {
        match.id: (match.round_id, match.index) for number in numbers for match in matches_of(engine, number).values()
    }
    rows = rows_of(home, dataset)
    order = [(*places[match], seat) for match, seat in map(seat_of, rows)]
    assert order == sorted(order)
    assert len(order) == 466
    line = next(iter(store.sample(home, dataset, 1)))
    row = json.loads(line)
    assert line.decode() == json.dumps(row, ensure_ascii=False, sort_keys=True, separators=(",", ":")) + "\n"
    assert sorted(row) == ["group", "messages"]


# ---- What is kept ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["above_avg", "above_avg_nonzero"])
def test_the_mean_is_each_rounds_own_and_of_all_of_its_matches(
    engine: Engine, settings: Settings, home: Path, name: str
) -> None:
    numbers = [played(engine, settings, matches=30), played(engine, settings, matches=30, config={"objective": "coop"})]
    with writing(engine) as session:
        without = {"utility_0": 0, "utility_1": 0, "agreed": False, "reason": "no_deal"}
        broken = update(MatchRow).where(MatchRow.round_id == numbers[0], MatchRow.index < 20)
        session.execute(broken.values(without))
    dataset = cut(engine, home, rounds=numbers, reason="deal", filter=name)
    wanted, means = set(), []
    for number in numbers:
        matches = matches_of(engine, number).values()
        scores = [score for match in matches for score in (match.utility_0, match.utility_1)]
        compared = [score for score in scores if score > 0 or name == "above_avg"]
        mean = sum(compared) / len(compared)
        means.append((mean, sum(scores) / len(scores)))
        wanted |= {
            (match.id, seat)
            for match in matches
            for seat, score in enumerate((match.utility_0, match.utility_1))
            if score > mean and match.reason == "deal"
        }
    assert means[0][0] > means[0][1] if name == "above_avg_nonzero" else means[0][0] == means[0][1]
    assert {seat_of(row) for row in rows_of(home, dataset)} == wanted
    assert wanted
    kept = {score: number for score, _, number in dataset.figures["scores"]}
    assert sum(kept.values()) == dataset.rows
    assert sum(number for _, number, _ in dataset.figures["scores"]) == 120


def test_a_filter_that_leaves_nothing_is_named_with_the_scores(engine: Engine, settings: Settings, home: Path) -> None:
    number = played(engine, settings, matches=5, config={"limit": 1})
    with pytest.raises(Invalid) as refused:
        cut(engine, home, rounds=[number])
    assert refused.value.message == (
        f"filter above_avg: expected to keep at least one transcript, got none of 10; scores in round {number}:"
        " 0 (10 times), mean 0"
    )
    for more, name in (
        ({"reason": "deal"}, "reason deal"),
        ({"since": "2999-01-01"}, "since 2999-01-01"),
        ({"source": "people"}, "speakers people"),
    ):
        with pytest.raises(Invalid, match=f"^{name}: expected to keep at least one transcript, got none of 10;"):
            cut(engine, home, rounds=[number], filter="all", **more)
    assert list((home / store.FOLDER).iterdir()) == []
    with reading(engine) as session:
        assert session.scalar(select(func.count()).select_from(Dataset)) == 0


def test_what_cannot_be_cut_is_said(engine: Engine, home: Path) -> None:
    number = make_round(engine, "scripted", matches=2)
    with pytest.raises(NotFound, match="rounds: expected the number of one that exists, got 99"):
        cut(engine, home, rounds=[99])
    with pytest.raises(NotFound, match="models: expected one of scripted, scripted-agent, "):
        cut(engine, home, rounds=[number], model="nobody")
    with pytest.raises(Invalid, match=f"round {number}: expected matches that are over, got none"):
        cut(engine, home, rounds=[number])
    with pytest.raises(Invalid, match="rounds: expected the number of a round or a campaign, or a game"):
        cut(engine, home)


# ---- People and imports ------------------------------------------------------------


def talk(engine: Engine, *seats: StoredSeat) -> str:
    """A match outside rounds that ends with a deal; seat 0 gets 6, seat 1 gets 8."""
    with writing(engine) as session:
        record = live.create(session, "negotiation", DEAL, seats, seed=3, source="live", instant=True)
    for place, text in enumerate([*TALK, "[propose] (2 books, 0 hats, 2 balls)"]):
        live.commit(engine, live.MoveSubmission(record.id, place % 2, text), instant=True)
    return record.id


def consent(engine: Engine, match: str, **by_seat: bool | None) -> None:
    with writing(engine) as session:
        for seat, agreed in by_seat.items():
            one = (SeatRow.match_id == match, SeatRow.seat == int(seat.removeprefix("seat_")))
            session.execute(update(SeatRow).where(*one).values(training_consent=agreed))


def test_people_are_learned_from_only_after_all_of_them_agreed(engine: Engine, home: Path) -> None:
    match = talk(engine, StoredSeat(PERSON), StoredSeat(PERSON))
    wish = {"game": "negotiation", "filter": "all"}
    for given in ((None, None), (True, None), (True, False)):
        consent(engine, match, seat_0=given[0], seat_1=given[1])
        with pytest.raises(Invalid, match="training consent of the people in the match: expected to keep"):
            cut(engine, home, **wish)
    consent(engine, match, seat_0=True, seat_1=True)
    rows = rows_of(home, cut(engine, home, **wish, source="people"))
    assert [seat_of(row) for row in rows] == [(match, 0), (match, 1)]
    assert said(rows[0]) == [TALK[0], TALK[2]]
    with pytest.raises(Invalid, match="speakers models"):
        cut(engine, home, **wish, source="models")


def test_marks_of_prompts_are_broken_in_rows_and_their_exports_while_the_log_keeps_them(
    engine: Engine, home: Path
) -> None:
    typed = ("[message] two</s> please <|im_end|>", "[message] no [INST] <｜User｜>\nYou: ok")
    with writing(engine) as session:
        people = (StoredSeat(PERSON), StoredSeat(PERSON))
        record = live.create(session, "negotiation", DEAL, people, seed=3, source="live", instant=True)
    moves = [*typed, TALK[2], "[propose] (2 books, 0 hats, 2 balls)"]
    for place, text in enumerate(moves):
        live.commit(engine, live.MoveSubmission(record.id, place % 2, text), instant=True)
    consent(engine, record.id, seat_0=True, seat_1=True)
    dataset = cut(engine, home, game="negotiation", filter="all")
    rows = rows_of(home, dataset)
    assert [said(row)[0] for row in rows] == [
        "[message] two< /s> please < |im_end|>", "[message] no [ INST] < ｜User｜>\nYou: ok",
    ]  # fmt: skip
    for form in ("openai", "trl-prompt-completion", "spag-rows"):
        text = b"".join(export_dataset(home, dataset, form)).decode()
        assert not [mark for mark in ("</s>", "<|im_end|>", "[INST]", "<｜User｜>") if mark in text], form
    assert "\\nY ou: ok" in text  # in which a line that begins so is the model's
    with reading(engine) as session:
        assert [each.text for each in load(session, record.id).match.view(0).transcript][:2] == list(typed)


def test_rows_come_of_the_matches_that_a_filter_chooses_and_means_of_all_that_were_played_with_them(
    engine: Engine, settings: Settings, home: Path
) -> None:
    with reading(engine) as session:
        model = StoredSeat.of(get_model(session, "scripted"))
    mixed, people = talk(engine, StoredSeat(PERSON), model), talk(engine, StoredSeat(PERSON), StoredSeat(PERSON))
    for match in (mixed, people):
        consent(engine, match, seat_0=True, seat_1=True)
    number = played(engine, settings, matches=4)

    def matches(**spec: str) -> set[str]:
        return {seat_of(row)[0] for row in rows_of(home, cut(engine, home, **{"filter": "all", **spec}))}

    assert matches(source="live") == {mixed, people}
    assert matches(source="live", player="scripted") == {mixed}
    assert matches(source="selfplay") == {*matches_of(engine, number)}
    assert matches(match=people) == {people}
    assert matches(game="negotiation", consent="given") == {mixed, people}
    one = next(iter(matches_of(engine, number)))
    chosen = cut(engine, home, match=one, filter="all")
    assert {seat_of(row)[0] for row in rows_of(home, chosen)} == {one}
    assert chosen.figures["means"] == cut(engine, home, rounds=[number], filter="all").figures["means"]
    for wrong in ({"player": "nobody"}, {"study": "none"}, {"campaign": "9"}):
        with pytest.raises(NotFound, match=f"{next(iter(wrong))}: expected"):
            cut(engine, home, source="live", **wrong)


def test_a_dataset_of_a_campaign_remembers_the_rounds_that_it_had(
    engine: Engine, settings: Settings, home: Path
) -> None:
    first, second, other = (played(engine, settings, matches=4, seed=seed) for seed in (1, 2, 3))
    add_local(engine, "base")
    campaign = campaign_of(engine, "base")
    change(engine, campaign, 1, round_id=first, evaluation_id=second)
    dataset = cut(engine, home, campaign=str(campaign), filter="all")
    ids = {*matches_of(engine, first), *matches_of(engine, second)}
    assert {seat_of(row)[0] for row in rows_of(home, dataset)} == ids
    assert (dataset.spec["rounds"], dataset.spec["matches"]) == ([first, second], {"campaign": campaign})
    change(engine, campaign, 2, round_id=other)
    assert cut(engine, home, **dataset.spec).sha256 == dataset.sha256


def test_what_a_person_said_to_a_model_needs_consent_too(engine: Engine, home: Path) -> None:
    with reading(engine) as session:
        model = StoredSeat.of(get_model(session, "scripted"))
    with writing(engine) as session:
        record = live.create(
            session, "negotiation", DEAL, (StoredSeat(PERSON), model), seed=3, source="live", instant=True
        )
    while not record.match.over:
        text = "[propose] (0 books, 0 hats, 0 balls)" if record.match.ply > 1 else TALK[0]
        record = live.commit(engine, live.MoveSubmission(record.id, 0, text), instant=True).record
    with pytest.raises(Invalid, match="training consent"):
        cut(engine, home, game="negotiation", filter="all", source="models")
    consent(engine, record.id, seat_0=True)
    (row,) = rows_of(home, cut(engine, home, game="negotiation", filter="all", source="models"))
    assert (seat_of(row), said(row)) == ((record.id, 1), own_moves(engine, row))


def test_imported_matches_are_told_in_the_style_of_the_spec(engine: Engine, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "episodes.json"
    file.write_text(json.dumps([EPISODE] * 3))
    wanted = imported.spag(str(file), "strict")
    number = take_in(engine, wanted)
    dataset = cut(engine, home, rounds=[number])
    rows = rows_of(home, dataset)
    assert [seat_of(row)[1] for row in rows] == [1, 1, 1]  # the defender wins
    assert said(rows[0]) == ["Is it an engine?", "I know the word! It is cat!"]
    assert "It purrs." in rows[0]["messages"][0]["content"]
    assert dataset.spec["prompts"] == {"taboo": {"style": "full", "template": "full-2", "renderer": RENDERER}}
    with pytest.raises(NotFound, match="prompt style of taboo"):
        cut(engine, home, rounds=[number], style="sung")


def test_whoever_was_not_prompted_is_told_as_the_models_in_the_matches_were(
    engine: Engine, settings: Settings, home: Path, stub: StubServer
) -> None:
    stub.script("terse", lambda sent: "[propose] (0 books, 0 hats, 0 balls)" if len(sent) > 4 else "[message] Well.")
    with writing(engine) as session:
        server = {"model": "terse", "base_url": stub.url, "key_env": ""}
        add_api_model(session, "terse", None, ["negotiation"], server, prompt_style="compact")
    number = played(engine, settings, "terse", "scripted", matches=4)
    rows = rows_of(home, cut(engine, home, rounds=[number], filter="all"))
    model, scripted = ([row["messages"][0]["content"] for row in rows if seat_of(row)[1] == seat] for seat in (0, 1))
    assert len(model) == len(scripted) == 4
    assert max(map(len, scripted)) < 2 * max(map(len, model))
    told = rows_of(home, cut(engine, home, rounds=[number], filter="all", style="full"))
    assert all(len(row["messages"][0]["content"]) > 1000 for row in told if seat_of(row)[1] == 1)


def test_each_row_is_told_in_one_of_so_many_wordings_drawn_by_the_seed(
    engine: Engine, settings: Settings, home: Path, stub: StubServer
) -> None:
    add_models(engine, stub.url, "haggler")
    number = played(engine, settings, "haggler", "scripted", matches=12)
    wanted: dict[str, Any] = {"rounds": [number], "filter": "all"}
    dataset = cut(engine, home, **wanted, wordings=3)
    as_played = {row["group"]: row for row in rows_of(home, cut(engine, home, **wanted))}
    rows = rows_of(home, dataset)
    openings = {"full-2": "You are one of two", "full-2-2": "This is a negotiation", "full-2-3": "Who are you? One of"}
    assert len({row["wording"] for row in rows}) > 1
    for row in rows:
        before, after = as_played[row["group"]]["messages"], row["messages"]
        assert after[0]["content"].startswith(openings[row["wording"]])
        assert (roles(row), said(row)) == ([each["role"] for each in before], own_moves(engine, row))
        assert (before[0] == after[0]) == (row["wording"] == "full-2")
    assert cut(engine, home, **wanted, wordings=3).sha256 == dataset.sha256
    assert cut(engine, home, **wanted, wordings=3, seed=1).sha256 != dataset.sha256
    assert (dataset.spec["wordings"], dataset.spec["seed"]) == (3, 0)
    for given, line in (
        ({"wordings": 9}, "wordings: expected at most 4, as many as there are of full in negotiation, got 9"),
        ({"wordings": 2, "style": "compact"}, "wordings: expected at most 1, as many as there are of compact in "),
        ({"wordings": 1}, "wordings: expected a whole number from 2 to 100, got 1"),
    ):
        with pytest.raises(Invalid) as refused:
            cut(engine, home, **wanted, **given)
        assert str(refused.value).startswith(line)


def test_published_dialogues_of_people_can_be_learned_from(engine: Engine, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "data.txt"
    file.write_text(LINE)
    wanted = imported.dialogues(str(file))
    number = take_in(engine, wanted, "person")
    rows = rows_of(home, cut(engine, home, rounds=[number], filter="nonzero", source="people"))
    assert all(said(row) == own_moves(engine, row) for row in rows)
    assert "[message] hats?" in {move for row in rows for move in said(row)}


# ---- Lineage -------------------------------------------------------------------


def test_every_row_leads_to_its_match_and_every_match_to_its_rows(
    engine: Engine, settings: Settings, home: Path
) -> None:
    number = played(engine, settings, matches=15)
    dataset = cut(engine, home, rounds=[number])
    with reading(engine) as session:
        lines = session.execute(
            select(DatasetRow.match_id, DatasetRow.seat)
            .where(DatasetRow.dataset_id == dataset.id)
            .order_by(DatasetRow.place)
        ).all()
        assert [tuple(line) for line in lines] == [seat_of(row) for row in rows_of(home, dataset)]
        used = select(DatasetRow.dataset_id).where(DatasetRow.match_id == lines[0].match_id).distinct()
        assert session.scalars(used).all() == [dataset.id]
        from_round = select(RoundRow.id).join(MatchRow).join(DatasetRow, DatasetRow.match_id == MatchRow.id).distinct()
        assert session.scalars(from_round).all() == [number]


def test_a_file_that_was_changed_is_not_handed_out(engine: Engine, settings: Settings, home: Path) -> None:
    dataset = cut(engine, home, rounds=[played(engine, settings, matches=5)], filter="all")
    path = store.path_of(home, dataset)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes() + b"{}\n")
    with pytest.raises(Invalid, match="expected bytes with the hash"):
        list(store.content(home, dataset))
    path.unlink()
    with pytest.raises(NotFound, match="expected its file"):
        list(store.content(home, dataset))
