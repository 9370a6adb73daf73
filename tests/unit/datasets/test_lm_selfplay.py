"""The published self-play's folder: read into event logs by our rules, and written again without a loss."""

import json
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.core.errors import Invalid
from app.datasets.exporters.lm_selfplay import write_lm_selfplay
from app.datasets.importers.lm_selfplay import LmSelfplay
from app.datasets.records import ImportedMatch, ImportedSeat, check
from app.matches import engine
from app.matches.events import Aborted, Event, Violated, from_json, to_json
from tests.golden.record import scripted_log
from tests.unit.conftest import SLOW
from tests.unit.datasets import published
from tests.unit.datasets.published import game

TALK = ["[message] Hi! I like books.", "[message] Fine, you take the book."]
DEAL = [*TALK, "[propose] (1 books, 0 hats, 0 balls)", "[propose] (0 books, 2 hats, 3 balls)"]
NO_DEAL = [*TALK, "[propose] (1 books, 1 hats, 0 balls)", "[propose] (0 books, 2 hats, 3 balls)"]
BAD = [(2, f"I would rather not {n}", "Begin with [message] or [propose].") for n in range(5)]
GAMES = [
    game(DEAL),
    game(DEAL, first=1),
    game(NO_DEAL),
    game([*TALK, "[ABORT]"], tries=BAD),
    game(["[message] Hm."] * 50),
    game([*["[message] Hm."] * 49, "[propose] (1 books, 0 hats, 0 balls)"]),
    game([*TALK, "[propose] (-1 books, 0 hats, 0 balls)", "[propose] books 0 hats 2 balls 3"]),
    game(DEAL, tails={0: " [END]", 2: " [END]\nand more\nof it"}, tries=[(2, "[propose] 1 book\nplease", "Order!")]),
    game(DEAL, p0_score=9, p1_score=9, extra={"a": [1]}),
    game(["[message] Größe 🎩\n\nzwei Zeilen\u2028?", *DEAL[1:]], tokens=None),
]


def outcomes(folder, **options):
    return [(match.outcome.reason, match.outcome.utilities) for match in LmSelfplay(folder, **options)]


def again(matches, folder):
    """The matches after they were stored as JSON, as a database does."""
    stored = [
        (match.index, json.dumps([to_json(event) for event in match.events]), json.dumps(match.facts), match.tokens)
        for match in matches
    ]
    loaded = [
        ImportedMatch(
            index,
            "negotiation",
            {},
            tuple(map(from_json, json.loads(events))),
            (ImportedSeat("model"), ImportedSeat("model")),
            json.loads(facts),
            tokens,
        )
        for index, events, facts, tokens in stored
    ]
    write_lm_selfplay(loaded, folder)
    return published.read(folder)


def test_every_kind_of_end_is_scored_by_our_rules(tmp_path):
    folder = published.write(tmp_path / "in", GAMES)
    assert outcomes(folder) == [
        ("deal", (1, 6)),
        ("deal", (9, 4)),
        ("no deal", (0, 0)),
        ("aborted", (0, 0)),
        ("move limit", (0, 0)),
        ("move limit", (0, 0)),
        ("deal", (1, 6)),
        ("deal", (1, 6)),
        ("deal", (1, 6)),
        ("deal", (1, 6)),
    ]


def test_the_objective_decides_what_a_deal_is_worth(tmp_path):
    folder = published.write(tmp_path / "in", [game(DEAL)])
    assert outcomes(folder, objective="coop") == [("deal", (7, 7))]
    assert outcomes(folder, objective="comp") == [("deal", (-5, 5))]
    assert outcomes(folder, objective=0.5) == [("deal", (4, 6.5))]


def test_what_was_imported_is_exported_as_it_was(tmp_path):
    folder = published.write(tmp_path / "in", GAMES)
    assert again(LmSelfplay(folder), tmp_path / "out") == published.read(folder)


def test_replay_gives_the_recorded_end(tmp_path):
    for match in LmSelfplay(published.write(tmp_path / "in", GAMES)):
        replayed = engine.replay(match.events)
        assert replayed.over
        outcome = replayed.game.outcome(replayed.state)
        assert (match.outcome.reason == "aborted") is (outcome is None)
        assert outcome is None or outcome.reason == match.outcome.reason


def test_failed_attempts_stand_before_the_move_that_they_led_to(tmp_path):
    matches = list(LmSelfplay(published.write(tmp_path / "in", GAMES)))
    aborted, corrected = matches[3].events, matches[7].events
    assert [type(event) for event in aborted[-7:-2]] == [Violated] * 5
    assert aborted[-3].text == "I would rather not 4"
    assert aborted[-2] == Aborted(0, "model", aborted[-2].detail)
    violation = next(event for event in corrected if isinstance(event, Violated))
    assert (violation.seat, violation.text, violation.reason) == (0, "[propose] 1 book\nplease", "Order!")
    assert isinstance(corrected[corrected.index(violation) + 1], Event)


def test_corrections_that_stand_in_the_chat_are_violations_and_stay_in_it(tmp_path):
    folder = published.write(tmp_path / "in", [game(DEAL)])
    path = folder / "json_logs" / "000_p0.json"
    log = json.loads(path.read_text())
    correction = 'An error occurred. Please send it again, corrected: \n "Begin with [message]." '
    log[1:1] = [{"role": "assistant", "content": "Hello"}, {"role": "user", "content": correction}]
    path.write_text(json.dumps(log))
    (match,) = LmSelfplay(folder)
    assert match.events[1] == Violated(0, "Hello", "no_prefix", "Begin with [message].")
    assert match.outcome.utilities == (1, 6)
    assert again([match], tmp_path / "out") == published.read(folder)


def test_more_than_a_thousand_games_keep_their_order(tmp_path):
    games = [game(DEAL, tokens=n) for n in range(1003)]
    folder = published.write(tmp_path / "in", games)
    source = LmSelfplay(folder)
    assert len(source) == check(source) == 1003
    assert [(match.index, match.tokens) for match in source] == [(n, n) for n in range(1003)]
    assert again(source, tmp_path / "out") == published.read(folder)


@pytest.mark.parametrize("objective", ["self", "coop", "comp", 0.5])
def test_matches_played_here_come_back_with_their_moves_and_points(tmp_path, objective):
    played = [
        ImportedMatch(
            seed, "negotiation", {}, tuple(scripted_log("negotiation", seed, {"objective": objective})), (None, None)
        )
        for seed in range(100)
    ]
    assert write_lm_selfplay(played, tmp_path / "out") == 100
    for ours, back in zip(played, LmSelfplay(tmp_path / "out", objective), strict=True):
        assert back.events[0].config == ours.events[0].config
        assert back.events[1:] == ours.events[1:]
    assert again(LmSelfplay(tmp_path / "out", objective), tmp_path / "again") == published.read(tmp_path / "out")


def test_a_match_played_here_is_written_with_our_rules_as_the_system_prompt_and_nobodys_secrets(tmp_path):
    log = scripted_log("negotiation", 1, {"counts": [1, 2, 3], "values": [[1, 3, 1], [4, 0, 2]], "first": 0})
    write_lm_selfplay([ImportedMatch(0, "negotiation", {}, tuple(log), (None, None))], tmp_path / "out")
    for seat, own, other in ((0, "hats: 2, worth 3 each", "worth 4"), (1, "books: 1, worth 4 each", "worth 3")):
        system, *chat = json.loads((tmp_path / "out" / "json_logs" / f"000_p{seat}.json").read_text())
        assert own in system["content"]
        assert other not in system["content"]
        assert [message["role"] for message in chat[:2]] == (["assistant", "user"], ["user", "assistant"])[seat]
        heard = [message["content"] for message in chat if message["role"] == "user"]
        offer = heard[-1]
        assert offer.startswith("[propose] ")
        assert not any(letter.isdigit() for letter in offer)


TEXTS = st.text(st.characters(codec=None, exclude_characters="\r"), max_size=12) | st.sampled_from(["\x00", "\ud800"])
AMOUNTS = st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 3))
OFFERS = st.builds(
    lambda kind, n: f"[propose] {kind.format(*n)}",
    st.sampled_from(["({} books, {} hats, {} balls)", "(-{} books, {} hats, {} balls) ok?", "book {} hat {} ball {}"]),
    AMOUNTS,
)


@st.composite
def games(draw):
    talk = [f"[message] {text}" for text in draw(st.lists(TEXTS, min_size=1, max_size=4))]
    end = draw(st.just(["[ABORT]"]) | st.tuples(OFFERS, OFFERS).map(list))
    recorded = draw(st.fixed_dictionaries({}, optional={"p0_score": st.integers(-9, 20), "note": TEXTS}))
    return game([*talk, *end], first=draw(st.integers(0, 1)), tokens=draw(st.integers(0, 99)), **recorded)


@given(st.lists(games(), min_size=1, max_size=3))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, *SLOW])
def test_any_folder_comes_back_as_it_was(tmp_path_factory, some):
    tmp = tmp_path_factory.mktemp("any")
    for one in some:  # the text logs are UTF-8, where half a surrogate pair has no place
        one["moves"] = [(seat, text.encode("utf-8", "replace").decode()) for seat, text in one["moves"]]
    folder = published.write(tmp / "in", some)
    source = LmSelfplay(folder)
    assert check(source) == len(some)
    stored = json.dumps([[to_json(event) for event in match.events] + [match.facts] for match in source])
    assert "\\u0000" not in stored.replace("\\\\u0000", "")
    assert again(source, tmp / "out") == published.read(folder)


# ---- Bad input ----------------------------------------------------------------


def spoil(path, change):
    path.write_text(json.dumps(change(json.loads(path.read_text()))))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("results/001.json", None, "expected the result of a game, got no such file or directory"),
        ("json_logs/001_p1.json", None, "expected a list of messages, got no such file or directory"),
        ("text_logs/001_full.txt", None, "expected the text log of a game, got no such file or directory"),
        ("p1_scores", None, "expected one score a line, got no such file or directory"),
        ("p0_scores", "1 \n2 \n", "expected 3 lines, one score a game, got 2"),
        ("p0_scores", "1 \nmany \n3 \n", "line 2: expected a score, got 'many '"),
        ("results/001.json", "", "expected the result of a game, got an empty file"),
        ("results/001.json", '{"counts": ', "expected the result of a game, got no JSON at line 1, column 12"),
        ("results/001.json", "[]", "expected an object with counts, p0_values"),
        ("results/001.json", b"\xff\xfe", "expected the result of a game, got bytes at 0 that are not UTF-8"),
        ("results/001.json", lambda raw: {k: v for k, v in raw.items() if k != "p1_score"}, "expected p1_score in it"),
        (
            "results/001.json",
            lambda raw: raw | {"counts": {"book": 1, "hat": 2}},
            "counts: expected numbers of book, hat, ball",
        ),
        ("results/001.json", lambda raw: raw | {"p0_values": {"book": 9, "hat": 9, "ball": 9}}, "expected values of"),
        ("results/001.json", lambda raw: raw | {"p0_score": "5"}, "p0_score: expected a number, got '5'"),
        ("results/001.json", "[" * 100_000, "expected the result of a game, got lists within lists without end"),
        ("json_logs/001_p0.json", "{}", "expected a list of messages, got {}"),
        ("json_logs/001_p0.json", lambda raw: [{"role": "judge"}], "message 0: expected an object with role"),
        ("json_logs/001_p1.json", lambda raw: raw[:-1], "expected the 4 moves of 001_p0.json, got 3"),
        ("json_logs/001_p1.json", lambda raw: [raw[0], *reversed(raw[1:])], "expected the move to be of one seat"),
    ],
)
def test_a_missing_or_corrupt_file_is_named(tmp_path, name, change, message):
    folder = published.write(tmp_path / "in", [game(DEAL)] * 3)
    path = folder / name
    if change is None:
        path.unlink()
    elif isinstance(change, str | bytes):
        path.write_bytes(change.encode() if isinstance(change, str) else change)
    else:
        spoil(path, change)
    with pytest.raises(Invalid) as refusal:
        check(LmSelfplay(folder))
    assert refusal.value.message.startswith(str(path))
    assert message in refusal.value.message
    assert "\n" not in refusal.value.message


@pytest.mark.parametrize(
    ("moves", "message"),
    [
        (TALK, "expected a game that ends with two proposals, [ABORT] or 50 moves, got one that stops after 2"),
        ([*DEAL, "[message] Bye."], "move 4: expected the game to be over after 4 moves"),
        ([*TALK, "[ABORT]", "[message] Hm?"], "move 2: expected nothing after [ABORT], got 1 moves"),
        (["[message] Hm."] * 51, "move 50: expected the game to be over after 50 moves"),
    ],
)
def test_a_log_that_is_not_one_game_is_named(tmp_path, moves, message):
    folder = published.write(tmp_path / "in", [game(DEAL), game(moves)])
    with pytest.raises(Invalid) as refusal:
        check(LmSelfplay(folder))
    assert "001_p" in refusal.value.message
    assert message in refusal.value.message


def test_numbers_may_have_any_zeros_but_a_game_has_each_file_once(tmp_path):
    folder = published.write(tmp_path / "in", [game(DEAL)] * 12)
    whole = published.read(folder)
    (folder / "results" / "003.json").rename(folder / "results" / "00003.json")
    (folder / "json_logs" / "011_p1.json").rename(folder / "json_logs" / "11_p1.json")
    assert again(LmSelfplay(folder), tmp_path / "out") == whole
    (folder / "results" / "0004.json").write_text("{}")
    with pytest.raises(Invalid, match=r"0004\.json: expected one such file of a game, got results/004\.json, too"):
        LmSelfplay(folder)


def test_what_the_models_wrote_may_be_missing_and_stays_so(tmp_path):
    folder = published.write(tmp_path / "in", GAMES)
    for path in folder.glob("text_logs/*_p?.txt"):
        path.unlink()
    assert again(LmSelfplay(folder), tmp_path / "out") == published.read(folder)


def test_memory_does_not_grow_with_the_number_of_games(tmp_path):
    def peak(games):
        folder = published.write(tmp_path / str(games), [game(DEAL)] * games)
        tracemalloc.start()
        try:
            assert check(LmSelfplay(folder)) == games
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(2)
    assert peak(500) - peak(100) < 400 * 200  # a number and two scores stay of each game


def test_a_folder_without_games_is_refused(tmp_path):
    with pytest.raises(Invalid, match="expected the folder json_logs of self-play games, got no such file"):
        LmSelfplay(tmp_path / "nowhere")
    published.write(tmp_path / "empty", [])
    with pytest.raises(Invalid, match=r"expected a folder of self-play games with .*000.json.*, got no game"):
        LmSelfplay(tmp_path / "empty")


def test_an_export_leaves_nothing_half_done(tmp_path):
    folder = published.write(tmp_path / "in", [game(DEAL)] * 3)
    one, two, three = LmSelfplay(folder)

    def broken():
        yield one
        yield two
        raise Invalid("database", expected="an answer", got="it went away")

    with pytest.raises(Invalid, match="went away"):
        write_lm_selfplay(broken(), tmp_path / "out")
    with pytest.raises(Invalid, match="match 1: expected an index above that of the match before, 2"):
        write_lm_selfplay([one, three, two], tmp_path / "out")
    with pytest.raises(Invalid, match="expected a new or an empty folder, got a folder with something in it"):
        write_lm_selfplay([one], folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]
    (tmp_path / "out").mkdir()
    assert write_lm_selfplay([one], tmp_path / "out") == 1
