"""Every move goes through one door: what is accepted, refused, repeated, raced for and stored."""

import threading
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import gevent
import pytest
from sqlalchemy import Engine, event, select, update
from sqlalchemy.exc import IntegrityError

from app.core.errors import NotAllowed, NotFound
from app.core.extensions import reading, writing
from app.games.taboo.words import target_words
from app.matches import live, store
from app.matches.events import Violated
from app.matches.lobby import GuestMatchRequest, person_in, start_guest_match
from app.matches.stored import StoredMatch, StoredSeat, load, new_match_id
from app.models import EventRow, MatchRow
from app.players.base import PlayerSpec
from app.players.scripted.taboo import clues
from app.registry import SHIPPED, ensure_baselines, find_model
from app.web.sockets.move_writer import MoveWriter
from tests.rounds import make_round
from tests.stack import PATIENCE
from training.marks import RENDERER

pytestmark = pytest.mark.usefixtures("app")
SPLIT = {"counts": [3, 2, 1], "values": [[1, 3, 1], [2, 0, 4]]}


def begin(engine: Engine, game: str = "negotiation", **config: Any) -> StoredMatch:
    """A match of two people, so that nobody moves unasked."""
    if game == "negotiation":
        config = {**SPLIT, "first": 0, **config}
    with writing(engine) as session:
        people = StoredSeat("person"), StoredSeat("person")
        return live.create(session, game, config, people, seed=1, source="live", instant=True)


def say(engine: Engine, record: StoredMatch, seat: int, text: str | None, **more: Any) -> live.Receipt:
    return live.commit(engine, live.MoveSubmission(record.id, seat, text, **more), instant=True)


def rows(engine: Engine, record: StoredMatch) -> list[EventRow]:
    with reading(engine) as session:
        return list(session.scalars(select(EventRow).where(EventRow.match_id == record.id).order_by(EventRow.seq)))


def row_of(engine: Engine, record: StoredMatch) -> MatchRow:
    with reading(engine) as session:
        return session.get_one(MatchRow, record.id)


def test_a_whole_match_lies_in_the_database(engine: Engine) -> None:
    record = begin(engine)
    texts = [
        "[message] hi",
        "[message] hello",
        "[propose] (1 books, 2 hats, 0 balls)",
        "[propose] (2 book, 0 hat, 1 ball)",
    ]
    for ply, text in enumerate(texts):
        receipt = say(engine, record, ply % 2, text, move_id=f"m{ply}", ply=ply)
        assert receipt.answer == live.MoveReply(ply=ply + 1)
    kinds = [(row.seq, row.kind, row.seat, row.ply) for row in rows(engine, record)]
    assert kinds == [
        (0, "started", None, 0),
        (1, "message", 0, 0),
        (2, "message", 1, 1),
        (3, "proposal", 0, 2),
        (4, "proposal", 1, 3),
        (5, "ended", None, 4),
    ]
    match = row_of(engine, record)
    assert (match.status, match.reason, match.utility_0, match.utility_1) == ("over", "deal", 7, 8)
    assert (match.ply, match.to_move, match.agreed, match.pareto_optimal) == (4, None, True, True)
    assert match.ended_at is not None
    with reading(engine) as session:
        assert load(session, record.id).match == receipt.record.match


def test_a_match_names_the_prompt_style_of_its_model(engine: Engine) -> None:
    def begin_with(style: str | None) -> StoredMatch:
        model = StoredSeat("model", None, PlayerSpec("api", "x", {}, style))
        with writing(engine) as session:
            return live.create(session, "taboo", {}, (StoredSeat("person"), model), seed=1, source="live", instant=True)

    assert begin_with("full").match.prompts == (None, {"style": "full", "template": "full-2", "renderer": RENDERER})
    with pytest.raises(NotFound, match=r"prompt style of taboo: expected .*full.*, got .sung"):
        begin_with("sung")


def test_an_id_of_a_match_is_never_taken_for_an_option_or_a_formula() -> None:
    assert not [made for made in (new_match_id() for _ in range(2000)) if not made[0].isalnum() and made[0] != "_"]


def test_a_repeated_move_gets_its_first_answer_and_is_stored_once(engine: Engine) -> None:
    record = begin(engine)
    first = say(engine, record, 0, "[message] hi", move_id="a", ply=0)
    say(engine, record, 1, "[message] hello", move_id="a", ply=1)  # another seat may use the same id
    again = say(engine, record, 0, "[message] something else", move_id="a", ply=0)
    assert again.answer == first.answer == live.MoveReply(ply=1)
    assert again.new == ()
    assert len(rows(engine, record)) == 3


def test_a_repeated_bad_move_gets_its_first_reason_and_is_logged_once(engine: Engine) -> None:
    record = begin(engine)
    first = say(engine, record, 0, "[propose] (1 books, 1 hats, 1 balls)", move_id="a", ply=0)
    assert first.answer.code == "illegal_move"
    assert first.answer.message == "Please say something first: offers come after at least one message."
    assert say(engine, record, 0, "[message] hi", move_id="a", ply=0).answer == first.answer
    assert [row.kind for row in rows(engine, record)] == ["started", "violation"]
    assert row_of(engine, record).violations == 1
    assert say(engine, record, 0, "[message] hi", move_id="b", ply=0).answer == live.MoveReply(ply=1)


@pytest.mark.parametrize(
    ("seat", "ply", "code"), [(0, 0, "stale"), (0, 5, "stale"), (1, 0, "stale"), (0, 1, "not_your_turn")]
)
def test_a_move_out_of_turn_is_refused_and_leaves_no_trace(engine: Engine, seat: int, ply: int, code: str) -> None:
    record = begin(engine)
    say(engine, record, 0, "[message] hi", move_id="a", ply=0)
    receipt = say(engine, record, seat, "[message] me again", move_id="b", ply=ply)
    assert receipt.answer.code == code
    assert len(rows(engine, record)) == 2


def test_after_the_end_nothing_is_taken(engine: Engine) -> None:
    record = begin(engine)
    assert say(engine, record, 1, None).answer.ok
    for seat, text in ((0, "[message] hi"), (0, None), (1, None)):
        assert say(engine, record, seat, text, move_id="x").answer.code == "over"
    assert [row.kind for row in rows(engine, record)] == ["started", "resigned", "ended"]
    assert row_of(engine, record).reason == "resigned"


def test_an_unknown_match_is_named(engine: Engine) -> None:
    with pytest.raises(NotFound, match="expected one that exists, got 'nope'"):
        live.commit(engine, live.MoveSubmission("nope", 0, "hi"), instant=True)


def test_text_is_stored_as_it_came(engine: Engine) -> None:
    record = begin(engine, "taboo", word="candle")
    text = "🙂 =1+1 <script>alert(1)</script> \"quoted\", 'single'; DROP TABLE match; -- \n你好 \\u0000 {{7*7}}"
    assert say(engine, record, 0, text, move_id="a", ply=0).answer.ok
    assert rows(engine, record)[1].body["text"] == text
    refused = say(engine, record, 1, "a\0b\ud800", move_id="b", ply=1)
    assert refused.answer.code == "illegal_move"
    assert "U+0000" in (refused.answer.message or "")
    assert isinstance(refused.new[0].event, Violated)
    with reading(engine) as session:
        assert load(session, record.id).match == refused.record.match


def test_moves_that_race_for_one_ply_end_with_one_of_them(engine: Engine) -> None:
    record = begin(engine)
    answers: list[live.MoveReply] = []

    def race(number: int) -> None:
        answers.append(say(engine, record, 0, f"[message] {number}", move_id=f"m{number}", ply=0).answer)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.code or "ok" for answer in answers) == ["ok", *["stale"] * 11]
    assert [row.seq for row in rows(engine, record)] == [0, 1]


def test_what_is_remembered_of_a_match_never_refuses_wrongly(engine: Engine) -> None:
    record = begin(engine)
    say(engine, record, 0, "[message] hi", move_id="a", ply=0)
    remembered = {record.id: record}  # from before that move
    with writing(engine) as session:
        submission = live.MoveSubmission(record.id, 1, "[message] hello", "b", 1)
        (receipt,) = live.submit_together(session, [submission], remembered, instant=True)
    assert isinstance(receipt, live.Receipt)
    assert receipt.answer == live.MoveReply(ply=2)
    assert remembered[record.id].match.ply == 2


def test_an_append_to_a_log_that_has_grown_fails_whole(engine: Engine) -> None:
    record, other = begin(engine), begin(engine)
    say(engine, record, 0, "[message] hi", move_id="a", ply=0)
    moves = [live.MoveSubmission(each.id, 0, "[message] me too", "b", 0) for each in (other, record)]
    with pytest.raises(IntegrityError), writing(engine) as session:
        live.submit_together(session, moves, {record.id: record, other.id: other}, instant=True)
    assert [len(rows(engine, each)) for each in (record, other)] == [2, 1]


def test_moves_that_come_together_are_taken_in_their_order(engine: Engine) -> None:
    record, other = begin(engine), begin(engine)
    moves = [
        live.MoveSubmission(record.id, 0, "[message] one", "a", 0),
        live.MoveSubmission("nope", 0, "[message] one", "a", 0),
        live.MoveSubmission(other.id, 0, "nonsense", "a", 0),
        live.MoveSubmission(record.id, 1, "[message] two", "a", 1),
        live.MoveSubmission(record.id, 0, "[message] one", "a", 0),
        live.MoveSubmission(record.id, 1, "[message] too soon", "b", 2),
        live.MoveSubmission(other.id, 1, None),
    ]
    with writing(engine) as session:
        results = live.submit_together(session, moves, {}, instant=True)
    codes = [
        result.answer.code or result.answer.ply if isinstance(result, live.Receipt) else "404" for result in results
    ]
    assert codes == [1, "404", "illegal_move", 2, 1, "not_your_turn", 0]
    assert [row.kind for row in rows(engine, record)] == ["started", "message", "message"]
    assert [row.kind for row in rows(engine, other)] == ["started", "violation", "resigned", "ended"]


def guest(engine: Engine, app: Any, **wish: Any) -> StoredMatch:
    with writing(engine) as session:
        return start_guest_match(
            session, app.config["SETTINGS"], GuestMatchRequest(**{"game": "taboo", "config": {}, **wish})
        )


def test_a_new_match_is_written_whole_in_one_statement_a_table_and_as_a_rounds_match_is(engine: Engine) -> None:
    written: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        written.append(" ".join(statement.split()[:3]))

    event.listen(engine, "before_cursor_execute", note)
    record = begin(engine)
    event.remove(engine, "before_cursor_execute", note)
    assert [each for each in written if each.startswith(("INSERT", "UPDATE"))] == [
        'INSERT INTO "match"', 'INSERT INTO "seat"', 'INSERT INTO "event"',
    ]  # fmt: skip
    again = replace(record, id=new_match_id())
    number = make_round(engine, "scripted", matches=1)
    with writing(engine) as session:
        store.insert_matches(session, [store.NewMatch(again, "selfplay", number, 0)])
    live_row, round_row = row_of(engine, record), row_of(engine, again)
    names = [column.name for column in MatchRow.__table__.columns]
    differ = {name for name in names if getattr(live_row, name) != getattr(round_row, name)}
    assert differ == {"id", "source", "round_id", "index", "inserted_in"}


def test_a_start_that_is_sent_twice_starts_once(engine: Engine, app: Any) -> None:
    first, second = (guest(engine, app, start_key="once") for _ in range(2))
    assert first.id == second.id
    assert person_in(first) == person_in(second)


def test_a_form_that_comes_back_after_the_match_starts_another(engine: Engine, app: Any) -> None:
    first = guest(engine, app, start_key="once")
    say(engine, first, person_in(first), None)
    assert guest(engine, app, start_key="once").id != first.id


@pytest.mark.parametrize(("role", "seat"), [("attacker", 0), ("defender", 1)])
def test_a_guest_gets_the_role_that_was_asked_for(engine: Engine, app: Any, role: str, seat: int) -> None:
    assert person_in(guest(engine, app, role=role)) == seat


def test_an_instant_partner_that_goes_first_has_already_spoken(engine: Engine, app: Any) -> None:
    record = guest(engine, app, role="defender")
    assert record.match.ply == 1
    assert record.match.to_move == 1
    assert len(rows(engine, record)) == 2


def test_an_instant_partner_answers_in_the_same_step(engine: Engine, app: Any) -> None:
    record = guest(engine, app, game="negotiation", config={**SPLIT})
    person = person_in(record)
    ply = record.match.ply
    receipt = say(engine, record, person, "[message] I would like the hats.", move_id="a", ply=ply)
    assert receipt.answer == live.MoveReply(ply=ply + 1)
    assert receipt.record.match.ply == ply + 2
    assert receipt.record.match.to_move == person


@pytest.mark.parametrize(
    ("wish", "error", "message"),
    [
        ({"game": "chess"}, NotFound, "expected negotiation or taboo"),
        ({"opponent": "GPT"}, NotFound, "opponent: expected one who plays taboo (House partner), got 'GPT'"),
    ],
)
def test_a_wish_that_cannot_be_met_says_why(
    engine: Engine, app: Any, wish: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        guest(engine, app, **wish)
    assert message in str(caught.value)


def test_guest_play_can_be_switched_off(engine: Engine, make_app: Any) -> None:
    with pytest.raises(NotAllowed, match="by invitation"):
        guest(engine, make_app(GUEST_PLAY=False))


@pytest.mark.parametrize("label", ["House partner", SHIPPED["tiny"]])
def test_a_partner_that_parlor_comes_with_gets_words_that_there_are_clues_for(
    engine: Engine, app: Any, label: str
) -> None:
    with writing(engine) as session:
        ensure_baselines(session)
    words = {guest(engine, app, opponent=label).match.state.word for _ in range(8)}
    assert len(words) > 1
    assert words <= set(clues.table()) & set(target_words())
    assert guest(engine, app, opponent=label, config={"word": "zeppelin"}).match.state.word == "zeppelin"


def test_the_small_partner_plays_at_half_the_temperature_and_stays_as_it_was_where_it_is_known(engine: Engine) -> None:
    with writing(engine) as session:
        ensure_baselines(session)
        tiny, base = (find_model(session, "negotiation", name=name) for name in SHIPPED)
        assert (tiny.options["temperature"], "temperature" in base.options) == (0.5, False)
        tiny.options = {name: value for name, value in tiny.options.items() if name != "temperature"}
        before = dict(tiny.options)
    with writing(engine) as session:
        ensure_baselines(session)  # as at each start
        assert find_model(session, "negotiation", name="tiny").options == before


def test_live_negotiations_draw_from_the_contexts_file(engine: Engine, make_app: Any, home: Any) -> None:
    path = home / "contexts.txt"
    path.write_text("3 1 2 3 1 1\n3 2 2 0 1 4\n2 1 1 4 4 1\n2 4 1 2 4 0\n")
    app = make_app(CONTEXTS_FILE=str(path))
    drawn = {tuple(guest(engine, app, game="negotiation").match.state.context.counts) for _ in range(20)}
    assert drawn == {(3, 2, 1), (2, 1, 4)}


@pytest.mark.postgresql_alone  # SQLite has one writer at a time, and so no deadlocks
def test_moves_that_are_in_a_deadlock_with_somebody_else_are_played_all_the_same(engine: Engine) -> None:
    one, two = begin(engine), begin(engine)
    writer = MoveWriter(engine.url.render_as_string(hide_password=False), instant=True)
    touch = update(MatchRow).values(enqueued_at=datetime.now(UTC))
    with engine.begin() as other:
        other.exec_driver_sql("SET LOCAL deadlock_timeout = '20s'")  # so that it is the writer who is interrupted
        other.execute(touch.where(MatchRow.id == one.id))
        submissions = [live.MoveSubmission(record.id, 0, "[message] hi", "a", 0) for record in (two, one)]
        moves = [gevent.spawn(writer.submit, submission) for submission in submissions]
        gevent.sleep(0.5)  # it has written to the other match by now, and waits for this one
        other.execute(touch.where(MatchRow.id == two.id))
    gevent.joinall(moves, timeout=PATIENCE, raise_error=True)
    assert [move.value.answer for move in moves] == [live.MoveReply(ply=1)] * 2
    assert [len(rows(engine, record)) for record in (one, two)] == [2, 2]
