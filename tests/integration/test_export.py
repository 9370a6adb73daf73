"""The CSVs: their columns, what stands in them, that text comes back as it was, and that memory does not grow."""

import csv
import io
import json
import tracemalloc
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, insert

from app.analysis.leaderboard_table import LEADERBOARD_COLUMNS
from app.analysis.side_by_side.tables import CODEBOOK_TABLES
from app.analysis.tables import analysis_columns, campaign_columns
from app.codebook import all_tables, codebook
from app.core.csv_tables import to_csv, with_short_names
from app.core.errors import Invalid, NotFound
from app.core.extensions import reading, writing
from app.matches import export, live
from app.matches.events import from_json
from app.matches.filter import NAMES, read_choice
from app.matches.stored import StoredMatch, StoredSeat
from app.models import GenerationRow, MatchRow, SeatRow
from app.models.types import float32_bytes
from app.registry import PERSON, find_model
from tests.r_programs import check_frame, needs_r, run_lines
from tests.rounds import add_models, make_round
from tests.rounds import play as play_round

SPLIT = {"counts": [3, 2, 1], "values": [[1, 3, 1], [2, 0, 4]], "first": 0}
DEAL = [
    "[message] hi",
    "[message] hello",
    "[propose] (1 books, 2 hats, 0 balls)",
    "[propose] (2 books, 0 hats, 1 ball)",
]
NASTY = "a \"quote\", a comma; =1+1\na line\r\nanother 😀 \u202e 'x' \t end"
MATCH_COLUMNS = (
    "match_id,round_id,study_id,index,game,config,seed,status,reason,winner,role_0,player_0,utility_0,role_1,player_1,"
    "utility_1,moves,violations,agreed,pareto_optimal,started_at,ended_at,words,tokens,first_proposal,unspoken,"
    "points_0,points_1,got_0,got_1,counts,values_0,values_1,lambda,source,swapped,prompt_style_0,prompt_version_0,"
    "system_prompt_0,prompt_style_1,prompt_version_1,system_prompt_1,game_version,lenient_moves,answer_form_0,answer_form_1"
)
MOVE_COLUMNS = "match_id,ply,seat,role,player,kind,text,at,original"
EVENT_COLUMNS = "match_id,seq,ply,kind,seat,role,player,body,at"
GENERATION_COLUMNS = (
    "match_id,ply,seat,attempt,player,model,prompt,text,sampling,prompt_tokens,completion_tokens,latency,"
    "retries,error,at,token_ids,log_probs,reasoning,cached_tokens,reasoning_tokens,outcome,cache_write_tokens,"
    "cost,cost_source"
)

Rows = list[dict[str, str]]


def begin(engine: Engine, game: str = "negotiation", against: str | None = None, **config: Any) -> StoredMatch:
    if game == "negotiation":
        config = {**SPLIT, **config}
    with writing(engine) as session:
        partner = StoredSeat(PERSON) if against is None else StoredSeat.of(find_model(session, game, against))
        return live.create(session, game, config, (StoredSeat(PERSON), partner), seed=7, source="live", instant=True)


def play(engine: Engine, record: StoredMatch, texts: Sequence[str | None]) -> StoredMatch:
    for text in texts:
        seat = record.match.to_move
        assert seat is not None
        receipt = live.commit(engine, live.MoveSubmission(record.id, seat, text), instant=True)
        record = receipt.record
    return record


def read(engine: Engine, table: export.ExportTable, **options: Any) -> Rows:
    choice = read_choice({name: options.pop(name) for name in NAMES if name in options})
    with reading(engine) as session:
        assert export.count(session, table, choice) == len(list(export.rows(session, table, choice)))
        content = b"".join(to_csv(table.columns, export.rows(session, table, choice), **options))
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))


def test_a_deal_stands_in_one_row_with_every_column_in_order(engine: Engine) -> None:
    record = play(engine, begin(engine), DEAL)
    (row,) = read(engine, export.MATCHES)
    assert ",".join(row) == MATCH_COLUMNS
    assert json.loads(row["config"]) == {"objective": "self", "limit": 50, **SPLIT}
    assert row["config"] == json.dumps(json.loads(row["config"]), sort_keys=True)
    expected = {
        "match_id": record.id, "round_id": "", "study_id": "", "index": "", "game": "negotiation", "seed": "7",
        "status": "over", "reason": "deal", "winner": "", "role_0": "negotiator", "player_0": "person",
        "utility_0": "7", "role_1": "negotiator", "player_1": "person", "utility_1": "8", "moves": "4",
        "violations": "0", "agreed": "true", "pareto_optimal": "true", "words": "18", "tokens": "",
        "first_proposal": "2", "unspoken": "true", "points_0": "7", "points_1": "8", "got_0": "[1, 2, 0]",
        "got_1": "[2, 0, 1]",
        "counts": "[3, 2, 1]", "values_0": "[1, 3, 1]", "values_1": "[2, 0, 4]", "lambda": "0", "source": "live",
        "swapped": "", "prompt_style_0": "", "prompt_version_0": "", "prompt_style_1": "", "prompt_version_1": "",
        "system_prompt_0": "", "system_prompt_1": "",
        "game_version": "1", "lenient_moves": "0", "answer_form_0": "", "answer_form_1": "",
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected
    for name in ("started_at", "ended_at"):
        assert datetime.fromisoformat(row[name]).utcoffset() == timedelta(0)


def test_moves_are_the_accepted_ones_word_for_word(engine: Engine) -> None:
    record = play(engine, begin(engine), [f"[message] {NASTY}", "[propose] (9 books, 0 hats, 0 balls)", "[message] ok"])
    rows = read(engine, export.MOVES)
    assert ",".join(rows[0]) == MOVE_COLUMNS
    assert [row["text"] for row in rows] == [f"[message] {NASTY}", "[message] ok"]
    assert [(row["ply"], row["seat"], row["kind"], row["role"]) for row in rows] == [
        ("0", "0", "message", "negotiator"),
        ("1", "1", "message", "negotiator"),
    ]
    (match,) = read(engine, export.MATCHES)
    assert (match["match_id"], match["moves"], match["violations"]) == (record.id, "2", "1")


def test_points_are_those_of_each_seat_whatever_the_objective(engine: Engine) -> None:
    play(engine, begin(engine, objective="coop"), DEAL)
    play(engine, begin(engine), ["[message] hi", None])
    begin(engine)
    coop, left, playing = read(engine, export.MATCHES)
    names = ("utility_0", "utility_1", "points_0", "points_1", "got_0", "lambda")
    assert [coop[name] for name in names] == ["15", "15", "7", "8", "[1, 2, 0]", "1"]
    assert [left[name] for name in names] == ["0", "0", "0", "0", "", "0"]
    assert [playing[name] for name in names] == ["", "", "", "", "", "0"]


def test_a_round_names_how_its_models_were_prompted_and_who_changed_seats(app: Flask, engine: Engine) -> None:
    add_models(engine, "http://127.0.0.1:9/v1", "chatty")
    with writing(engine) as session:
        find_model(session, "negotiation", name="chatty").prompt_style = "compact"
    play_round(engine, app.config["SETTINGS"], make_round(engine, "scripted", matches=4, swap_seats=True))
    begin(engine, against="chatty")
    alone, *of_round = read(engine, export.MATCHES)
    assert (alone["prompt_style_0"], alone["prompt_style_1"], alone["prompt_version_1"]) == ("", "compact", "1")
    assert [(row["source"], row["swapped"]) for row in of_round] == [("selfplay", "false"), ("selfplay", "true")] * 2
    assert {row["prompt_style_0"] for row in of_round} == {""}  # nobody prompts a scripted player


def test_a_seed_that_a_spreadsheet_would_round_is_text_in_a_guarded_file(engine: Engine) -> None:
    seeds = (999_999_999_999_999, 2**62 - 1)
    with writing(engine) as session:
        for seed in seeds:
            live.create(
                session,
                "taboo",
                {"word": "cat"},
                (StoredSeat(PERSON), StoredSeat(PERSON)),
                seed=seed,
                source="live",
                instant=True,
            )
    assert [row["seed"] for row in read(engine, export.MATCHES)] == [str(seed) for seed in seeds]
    assert [row["seed"] for row in read(engine, export.MATCHES, guard=True)] == [str(seeds[0]), f"'{seeds[1]}"]


def test_every_event_is_told_refused_moves_included(engine: Engine) -> None:
    greedy = "[propose] (9 books, 0 hats, 0 balls)"
    record = play(engine, begin(engine), [f"[message] {NASTY}", greedy, "[message] ok", None])
    rows = read(engine, export.EVENTS)
    assert ",".join(rows[0]) == EVENT_COLUMNS
    assert [(row["seq"], row["ply"], row["kind"], row["seat"], row["player"]) for row in rows] == [
        ("0", "0", "started", "", ""),
        ("1", "0", "message", "0", "person"),
        ("2", "1", "violation", "1", "person"),
        ("3", "1", "message", "1", "person"),
        ("4", "2", "resigned", "0", "person"),
        ("5", "2", "ended", "", ""),
    ]
    assert [from_json(json.loads(row["body"])) for row in rows] == [logged.event for logged in record.log]
    refused = json.loads(rows[2]["body"])
    assert (refused["text"], refused["code"]) == (greedy, "too_many")
    assert read(engine, export.EVENTS, guard=True) == rows  # JSON is no formula
    assert len(read(engine, export.EVENTS, player="person")) == 6
    assert read(engine, export.EVENTS, game="taboo") == []


def test_taboo_names_roles_the_winner_and_the_model(engine: Engine) -> None:
    begin(engine, "taboo", "scripted", word="cat")
    record = play(engine, begin(engine, "taboo", word="cat"), ["a small pet", "I know the word! It is cat!"])
    first, second = read(engine, export.MATCHES)
    assert (first["player_0"], first["player_1"], first["status"]) == ("person", "scripted", "playing")
    assert (first["utility_0"], first["reason"], first["ended_at"], first["agreed"]) == ("", "", "", "")
    assert (second["match_id"], second["winner"], second["reason"]) == (record.id, "1", "defender wins")
    assert (second["role_0"], second["role_1"]) == ("attacker", "defender")
    assert (second["utility_0"], second["utility_1"], second["agreed"]) == ("-1", "1", "")
    assert [row["kind"] for row in read(engine, export.MOVES)] == ["message", "declaration"]


def test_a_negotiation_that_is_left_is_no_deal(engine: Engine) -> None:
    play(engine, begin(engine), ["[message] hi", None])
    (row,) = read(engine, export.MATCHES)
    assert (row["reason"], row["agreed"], row["pareto_optimal"]) == ("resigned", "false", "false")


def test_a_utility_with_a_fraction_keeps_it(engine: Engine) -> None:
    play(engine, begin(engine, objective=0.25), DEAL)
    (row,) = read(engine, export.MATCHES)
    assert (row["utility_0"], row["utility_1"]) == ("9", "9.75")


def test_one_game_can_be_chosen_and_an_unknown_one_is_refused(engine: Engine) -> None:
    begin(engine)
    play(engine, begin(engine, "taboo", word="cat"), ["a small pet"])
    assert [row["game"] for row in read(engine, export.MATCHES, game="taboo")] == ["taboo"]
    assert [row["text"] for row in read(engine, export.MOVES, game="taboo")] == ["a small pet"]
    with pytest.raises(NotFound, match="chess"):
        read(engine, export.MATCHES, game="chess")


def add_call(engine: Engine, match_id: str) -> None:
    made = {
        "match_id": match_id, "seat": 1, "ply": 0, "attempt": 2, "model": "vendor-1",
        "prompt": [{"role": "user", "content": NASTY}],
        "text": NASTY, "sampling": {"temperature": 0.5}, "prompt_tokens": 12, "completion_tokens": None,
        "latency": 0.25, "retries": 1, "error": None, "at": datetime(2026, 1, 31, 12, tzinfo=UTC),
        "token_ids": [7, 2], "log_probs": float32_bytes([-0.5, -1.2345678]),
        "reasoning": "They like books.", "cached_tokens": 8, "reasoning_tokens": 5, "outcome": "move",
        "cache_write_tokens": 3, "cost": 0.00125, "cost_source": "prices",
    }  # fmt: skip
    with writing(engine) as session:
        made["language_model_id"] = find_model(session, "negotiation", "scripted").id
        session.execute(insert(GenerationRow).values(**made))


def test_a_generation_stands_in_one_row_word_for_word(engine: Engine) -> None:
    record = begin(engine, against="scripted")
    add_call(engine, record.id)
    (row,) = read(engine, export.GENERATIONS)
    assert ",".join(row) == GENERATION_COLUMNS
    assert (json.loads(row["prompt"]), row["text"]) == ([{"role": "user", "content": NASTY}], NASTY)
    assert row | {"prompt": "", "text": ""} == {
        "match_id": record.id, "ply": "0", "seat": "1", "attempt": "2", "player": "scripted", "model": "vendor-1",
        "prompt": "", "text": "", "sampling": '{"temperature": 0.5}', "prompt_tokens": "12",
        "completion_tokens": "", "latency": "0.25", "retries": "1", "error": "", "at": "2026-01-31T12:00:00.000Z",
        "token_ids": "[7, 2]", "log_probs": "[-0.5, -1.234568]",
        "reasoning": "They like books.", "cached_tokens": "8", "reasoning_tokens": "5", "outcome": "move",
        "cache_write_tokens": "3", "cost": "0.00125", "cost_source": "prices",
    }  # fmt: skip
    assert read(engine, export.GENERATIONS, game="taboo") == []


def test_matches_can_be_chosen_by_what_they_are(engine: Engine) -> None:
    alone = begin(engine, against="scripted")
    over = play(engine, begin(engine, "taboo", word="cat"), ["cat"])
    today = datetime.now(UTC).date()
    both = [alone.id, over.id]

    def chosen(**wanted: str) -> list[str]:
        return [row["match_id"] for row in read(engine, export.MATCHES, **wanted)]

    assert chosen(player="scripted") == chosen(status="playing") == chosen(match=alone.id) == [alone.id]
    assert [row["match_id"] for row in read(engine, export.MOVES, player="scripted")] == []
    assert [row["match_id"] for row in read(engine, export.MOVES, player="person")] == [over.id]
    assert read(engine, export.GENERATIONS, player="scripted") == []
    assert chosen(reason="attacker breaks the rules") == chosen(game="taboo", status="over") == [over.id]
    assert chosen(player="person") == chosen(source="live") == both
    assert chosen(since=str(today - timedelta(1)), until=str(today + timedelta(1))) == both
    assert chosen(until=str(today - timedelta(2))) == chosen(player="nobody") == chosen(source="terminal") == []


@pytest.mark.parametrize(
    "wanted",
    [{"status": "lost"}, {"source": "moon"}, {"since": "yesterday"}, {"until": "9999-12-31"}, {"reason": "x" * 101},
     {"since": "2026-02-02", "until": "2026-02-01"}, {"player": "a\x00b"}],
)  # fmt: skip
def test_a_choice_that_no_match_can_meet_is_refused(wanted: dict[str, str]) -> None:
    with pytest.raises(Invalid, match=f"{list(wanted)[-1]}: expected"):
        read_choice(wanted)


def test_matches_come_in_the_order_of_their_start_and_moves_follow_them(engine: Engine) -> None:
    first, second = begin(engine), begin(engine)
    play(engine, second, ["[message] b0", "[message] b1"])
    play(engine, first, ["[message] a0"])
    assert [row["match_id"] for row in read(engine, export.MATCHES)] == [first.id, second.id]
    assert [row["text"] for row in read(engine, export.MOVES)] == ["[message] a0", "[message] b0", "[message] b1"]


def test_the_guard_marks_text_that_a_spreadsheet_would_run_and_nothing_else(engine: Engine) -> None:
    texts = ["=1+1", "hello", " @SUM(A1)", "fine = fine"]
    play(engine, begin(engine, "taboo", word="cat"), texts)
    assert [row["text"] for row in read(engine, export.MOVES)] == [text.strip() for text in texts]
    assert [row["text"] for row in read(engine, export.MOVES, guard=True)] == [
        "'=1+1",
        "hello",
        "'@SUM(A1)",
        "fine = fine",
    ]


def test_numbers_are_never_guarded(engine: Engine) -> None:
    play(engine, begin(engine, "taboo", word="cat"), ["a small pet", "is it a cat"])
    play(engine, begin(engine, "taboo", word="cat"), ["cat"])
    assert [row["utility_1"] for row in read(engine, export.MATCHES, guard=True)] == ["-1", "0"]


def test_the_mark_for_excel_comes_first_and_only_once(engine: Engine) -> None:
    begin(engine)
    with reading(engine) as session:
        found = export.rows(session, export.MATCHES)
        content = b"".join(to_csv(export.MATCHES.columns, found, bom=True))
    assert content.startswith(b"\xef\xbb\xbfmatch_id,")
    assert content.count(b"\xef\xbb\xbf") == 1


def test_the_codebook_explains_every_column_of_every_table() -> None:
    rows = list(csv.DictReader(io.StringIO(b"".join(codebook()).decode())))
    found = {table: [row["column"] for row in rows if row["table"] == table] for table in all_tables()}
    assert found["matches"] == MATCH_COLUMNS.split(",")
    assert found["moves"] == MOVE_COLUMNS.split(",")
    assert found["events"] == EVENT_COLUMNS.split(",")
    assert found["generations"] == GENERATION_COLUMNS.split(",")
    assert found["analysis"] == [column.name for column in analysis_columns()]
    assert found["campaign"] == [column.name for column in campaign_columns()]
    assert found["leaderboard"] == [column.name for column in LEADERBOARD_COLUMNS]
    for name, columns in CODEBOOK_TABLES.items():
        assert found[name] == [column.name for column in with_short_names(columns)]
    assert {"codings", "spend", "list of rounds", "list of trainings", "list of matches"} < set(found)
    assert sum(map(len, found.values())) == len(rows)
    assert all(row["type"] and row["meaning"].endswith(".") and row["values"] for row in rows)


@needs_r
@pytest.mark.parametrize("bom", [False, True])
def test_r_reads_what_was_played_as_it_is(engine: Engine, tmp_path: Path, bom: bool) -> None:
    for words in (NASTY, "NA", "'=1+1", "\\n \\", "#", "a\n\n\nb", "long " * 60, "null", "TRUE"):
        play(engine, begin(engine), [f"[message] {words}", "[propose] (9 books, 0 hats, 0 balls)", *DEAL[1:]])
    record = begin(engine, "taboo", word="lemon")
    play(engine, record, ["NA", NASTY, "01"])
    add_call(engine, record.id)
    with reading(engine) as session:
        for table in export.TABLES.values():
            content = b"".join(to_csv(table.columns, export.rows(session, table), bom=bom))
            (tmp_path / f"{table.name}.csv").write_bytes(content)
    lines = "\n".join(all_tables()[name].lines("r") for name in export.TABLES)
    frames = run_lines(tmp_path, lines)
    assert [*frames] == sorted(export.TABLES)
    for table in export.TABLES.values():
        check_frame(tmp_path / f"{table.name}.csv", table.columns, *frames[table.name])
    rows, moves = frames["moves"]
    assert rows > 20
    assert moves["kind"][0] == "factor"


@pytest.mark.either_database
def test_memory_does_not_grow_with_the_number_of_matches(engine: Engine) -> None:
    few, few_bytes = _peak(engine, 600)
    many, many_bytes = _peak(engine, 7_000)
    assert many_bytes > 10 * few_bytes
    assert many < few + 1_000_000, f"expected a flat peak, got {few:,} bytes for 600 matches and {many:,} for 7,600"


def _peak(engine: Engine, more: int) -> tuple[int, int]:
    """The peak of memory in bytes while all matches are exported after `more` were added, and the size of the CSV."""
    insert_matches(engine, more)
    tracemalloc.start()
    try:
        with reading(engine) as session:
            found = export.rows(session, export.MATCHES)
            size = sum(map(len, to_csv(export.MATCHES.columns, found)))
        return tracemalloc.get_traced_memory()[1], size
    finally:
        tracemalloc.stop()


def insert_matches(engine: Engine, number: int) -> None:
    now, config = datetime.now(UTC), {"objective": "self", "limit": 50, **SPLIT}
    matches = [
        {
            "id": f"{number}-{n}", "game": "negotiation", "source": "live", "status": "over", "seed": n,
            "config": config, "ply": 4, "model_to_move": False, "violations": 0, "reason": "deal", "utility_0": 7.0,
            "utility_1": 8.0, "agreed": True, "pareto_optimal": True, "started_at": now + timedelta(seconds=n),
            "moved_at": now, "ended_at": now, "lease_count": 0,
        }
        for n in range(number)
    ]  # fmt: skip
    seats = [
        {"match_id": match["id"], "seat": seat, "role": "negotiator", "kind": "person"}
        for match in matches
        for seat in (0, 1)
    ]
    with writing(engine) as session:
        session.execute(insert(MatchRow), matches)
        session.execute(insert(SeatRow), seats)


def test_an_empty_database_gives_the_header_alone(make_app: Callable[..., Flask]) -> None:
    app = make_app()
    with app.app_context(), reading() as session:
        assert list(to_csv(export.MOVES.columns, export.rows(session, export.MOVES))) == [f"{MOVE_COLUMNS}\n".encode()]
