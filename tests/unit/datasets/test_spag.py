"""Recorded games of Adversarial Taboo: judged anew by either rule, and written again as they were."""

import json
import tracemalloc

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from app.core.errors import Invalid
from app.datasets.exporters.spag import write_spag
from app.datasets.importers.spag import Spag
from app.datasets.records import ImportedMatch, check
from app.games.taboo.episodes import judge_episodes
from app.matches import engine
from app.matches.events import Ended, Event, from_json, to_json
from tests.golden.record import scripted_log
from tests.unit.conftest import SLOW


def episode(*texts, target="cat", max_turns=5, **more):
    history = [{"role": ("attacker", "defender")[at % 2], "content": text} for at, text in enumerate(texts)]
    return {"history": history, "target_word": target, "max_turns": max_turns, **more}


def put(path, value):
    path.write_text(json.dumps(value))
    return path


def stored(match):
    """The match after a database has had it."""
    events = tuple(map(from_json, json.loads(json.dumps([to_json(event) for event in match.events]))))
    return ImportedMatch(match.index, match.game, {}, events, match.seats, json.loads(json.dumps(match.facts)))


EPISODES = [
    episode("It purrs.", "Is it a cat?", "Yes!", "I won."),
    episode("It purrs.", "I know the word! It is `cat`!", score=3),
    episode("It purrs.", "I know the word! It must be dog."),
    episode("A cat!", "Ha."),
    episode("Hi.", "", max_turns=1),
    episode("Hi.", target="Cat "),
    episode(),
    episode("Concatenate?", "No."),
]


@pytest.mark.parametrize("rule", ["strict", "released"])
def test_a_match_ends_as_the_judge_of_that_rule_says(tmp_path, rule):
    matches = list(Spag(put(tmp_path / "in.json", EPISODES), rule))
    judged = judge_episodes(EPISODES, rule)
    assert [match.outcome.reason for match in matches] == [one.outcome for one in judged]
    assert [len(match.events) - 2 for match in matches] == [one.plies for one in judged]
    assert {match.config["rule"] for match in matches} == {rule}
    for match in matches:
        replayed = engine.replay(match.events)
        by_rules = replayed.game.outcome(replayed.state)
        assert match.outcome == (Ended.of(by_rules) if by_rules else Ended("tied game", None, (0, 0), {}))


def test_what_follows_the_verdict_is_no_move_but_is_kept(tmp_path):
    first, *_ = Spag(put(tmp_path / "in.json", EPISODES))
    assert [event.text for event in first.events if isinstance(event, Event)] == ["It purrs.", "Is it a cat?"]
    assert [move["content"] for move in first.facts["after"]] == ["Yes!", "I won."]


@pytest.mark.parametrize("rule", ["strict", "released"])
def test_what_was_imported_is_exported_as_it_was(tmp_path, rule):
    assert write_spag(map(stored, Spag(put(tmp_path / "in.json", EPISODES), rule)), tmp_path / "out.json") == 8
    assert json.loads((tmp_path / "out.json").read_text()) == EPISODES


def test_moves_are_stripped_as_published_and_exported_as_they_were(tmp_path):
    written = [episode("  It purrs. \n", "\tIs it a lion?", " "), episode([{"type": "text", "text": "Hi. "}])]
    matches = [stored(match) for match in Spag(put(tmp_path / "in.json", written))]
    texts = [[event.text for event in match.events if isinstance(event, Event)] for match in matches]
    assert texts == [["It purrs.", "Is it a lion?", ""], ["Hi."]]
    write_spag(matches, tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text()) == written


def test_matches_played_here_come_back_the_same(tmp_path):
    played = [
        ImportedMatch(seed, "taboo", {}, tuple(scripted_log("taboo", seed, {"rule": rule})), (None, None))
        for seed in range(60)
        for rule in ("strict", "released")
    ]
    write_spag(played, tmp_path / "out.json")
    for rule, ours in (("strict", played[::2]), ("released", played[1::2])):
        back = list(Spag(tmp_path / "out.json", rule))[rule == "released" :: 2]
        assert [match.events for match in back] == [match.events for match in ours]


def test_facts_are_such_as_every_database_stores(tmp_path):
    more = [{"note": "\x00"}, {"note": "\ud800"}, {"note": float("inf")}, {"note": "plain 🎩"}]
    episodes = [episode("Hi.", **fields) for fields in more]
    matches = list(Spag(put(tmp_path / "in.json", episodes)))
    for match in matches:
        text = json.dumps(match.facts, ensure_ascii=False, allow_nan=False)
        text.encode("utf-8")
        assert "\\u0000" not in text.replace("\\\\u0000", "")
    assert matches[3].facts == {"fields": {"note": "plain 🎩"}}
    write_spag(map(stored, matches), tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text()) == episodes


WORDS = st.sampled_from(["cat", "Mouse", "merry-go-round"])
TEXTS = st.text(max_size=20) | st.sampled_from(
    ["\x00", "\ud800 cat", "I know the word! It is cat", "i know the word! it \x01\ud83d", "mice", " Cats. "]
)
MOVES = st.fixed_dictionaries(
    {"role": st.sampled_from(["attacker", "defender"]), "content": TEXTS}, optional={"reward": st.floats(0, 1)}
)
ANY = st.fixed_dictionaries(
    {"history": st.lists(MOVES, max_size=8), "target_word": WORDS, "max_turns": st.integers(1, 6)},
    optional={"note": TEXTS},
)


@given(st.lists(ANY, max_size=4), st.sampled_from(["strict", "released"]))
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, *SLOW])
@example([], "strict")
def test_any_file_comes_back_as_it_was(tmp_path_factory, some, rule):
    tmp = tmp_path_factory.mktemp("any")
    matches = list(Spag(put(tmp / "in.json", some), rule))
    assert [match.outcome.reason for match in matches] == [one.outcome for one in judge_episodes(some, rule)]
    write_spag(map(stored, matches), tmp / "out.json")
    assert json.loads((tmp / "out.json").read_text()) == some


def test_memory_does_not_grow_with_the_number_of_games(tmp_path):
    with (tmp_path / "in.json").open("w") as file:
        file.write("[" + ", ".join([json.dumps(episode("It purrs. " * 200, "Hm?"))] * 5_000) + "]")
    tracemalloc.start()
    try:
        assert check(Spag(tmp_path / "in.json", "released")) == 5_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8_000_000 < (tmp_path / "in.json").stat().st_size


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": expected a JSON list of episodes, got the end of the file"),
        ("{}", ": expected a JSON list of episodes, got '{}'"),
        ("[", ", episode 0: expected an object, got the end of the file"),
        ("[{]", ", episode 0: expected an object, got "),
        ("[GOOD", ", after episode 0: expected a comma or the end of the list, got the end of the file"),
        ("[GOOD GOOD]", ', after episode 0: expected a comma or the end of the list, got \'{"history": [{"role"\''),
        ("[GOOD,]", ", episode 1: expected an object, got expecting value"),
        ("[GOOD] more", ": expected nothing after the list, got 'more'"),
        ("[GOOD, 3]", ", episode 1: expected an object with history, got 3"),
        (
            '[GOOD, {"history": [], "history": []}]',
            ", episode 1: expected each field of an object once, got 'history' twice",
        ),
        ('[GOOD, {"history": []}]', ", episode 1, target_word: expected it to be there, got ['history']"),
        (
            '[{"history": [], "target_word": "New York", "max_turns": 5}]',
            ", episode 0: word: expected one English word of at most 40 letters, possibly with hyphens, got 'New York'",
        ),
        ("[GOOD, " + "[" * 100_000, ", episode 1: expected an object, got lists within lists without end"),
    ],
)
def test_a_malformed_file_is_named_with_its_episode(tmp_path, text, message):
    path = tmp_path / "in.json"
    path.write_text(text.replace("GOOD", json.dumps(EPISODES[0])))
    with pytest.raises(Invalid) as refusal:
        check(Spag(path))
    assert refusal.value.message.startswith(f"{path}{message}")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "bytes.json").write_bytes(b'[{"history": "\xff"}]')
    for name, got in (("none.json", "no such file"), ("bytes.json", "bytes that are not UTF-8"), (".", "a folder")):
        with pytest.raises(Invalid, match=f"expected a JSON list of episodes, got {got}"):
            check(Spag(tmp_path / name))
    with pytest.raises(Invalid, match="rule: expected strict or released, got 'kind'"):
        Spag(tmp_path / "none.json", "kind")


def test_an_export_leaves_nothing_half_done(tmp_path):
    matches = Spag(put(tmp_path / "in.json", [*EPISODES, 3]))
    (tmp_path / "out.json").write_text("mine")
    with pytest.raises(Invalid, match="episode 8: expected an object"):
        write_spag(matches, tmp_path / "out.json")
    assert (tmp_path / "out.json").read_text() == "mine"
    with pytest.raises(Invalid, match="expected a file that can be written, got no such file or directory"):
        write_spag([], tmp_path / "nowhere" / "out.json")
    with pytest.raises(Invalid, match="match: expected one of taboo"):
        write_spag(
            [ImportedMatch(0, "", {}, tuple(scripted_log("negotiation", 1, {})), (None, None))], tmp_path / "out.json"
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.json", "out.json"]
