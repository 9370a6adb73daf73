"""What leaves the server: nothing of the partner's, and changes that add up to the whole view."""

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from app.games.base import Event
from app.games.negotiation.contexts import ITEMS, generate_context
from app.games.taboo.words import target_words
from app.matches import engine
from app.matches.views import change, seat_view

JSON = dict[str, Any]
Driver = Callable[[engine.Match], str]


def payloads(match: engine.Match, seat: int, texts: Sequence[str | None], partner: Driver) -> list[str]:
    """Everything that the socket of `seat` is sent, as bytes would be, until the match is over."""
    times: list[str] = []
    view = seat_view("M", match, times, seat)
    sent = [json.dumps(view)]
    for text in texts:
        mover = match.to_move
        if mover is None:
            break
        tried = text if mover == seat and text is not None else partner(match)
        for event in engine.step(match, mover, tried):
            match = engine.apply(match, event)
            if isinstance(event, Event):
                times.append(f"2030-01-01T00:00:{len(times):02}.000Z")
        if match.over:
            break
        after = seat_view("M", match, times, seat)
        if after != view:
            sent.append(json.dumps(change(view, after)))
            view = after
    return sent


def replayed(game: str, config: JSON, prompts: tuple[JSON | None, JSON | None] = (None, None)) -> engine.Match:
    return engine.replay([engine.start(game, config, 1, prompts)])


def offer(rng: random.Random, counts: Sequence[int]) -> str:
    return "[propose] ({} books, {} hats, {} balls)".format(*(rng.randint(0, n) for n in counts))


@given(st.integers(0, 2**32), st.integers(0, 1), st.integers(0, 1))
def test_negotiations_that_differ_in_the_partners_secrets_look_the_same(case: int, seat: int, first: int) -> None:
    """The partner's values, hidden offer and way of being prompted all differ; nothing that is sent does."""
    rng = random.Random(case)
    for _ in range(10):
        context = generate_context(rng)
        others = [generate_context(rng) for _ in range(40)]
        same_table = [other for other in others if other.counts == context.counts]
        theirs = [context.values[1 - seat]] + [other.values[1 - seat] for other in same_table] + [(0, 0, 0)]
        mine = [rng.choice(["[message] hello", "nonsense", offer(rng, context.counts)]) for _ in range(10)]
        talk = [rng.choice(["[message] I like hats", "[propose]"]) for _ in range(10)]
        seen = set()
        for variant, values in enumerate(theirs[:-1]):
            both = (values, context.values[seat]) if seat else (context.values[seat], values)
            config = {"counts": list(context.counts), "values": [list(row) for row in both], "first": first}
            prompts = (None, {"style": f"style {variant}", "template": "x"})
            match = replayed("negotiation", config, prompts if seat == 0 else (prompts[1], None))

            def partner(match: engine.Match, secret: random.Random = random.Random(variant)) -> str:  # noqa: B008
                must_offer = match.game.view(match.state, 1 - seat).may[0]["kind"] == "proposal"
                if must_offer or (match.ply > 0 and talk[match.ply % len(talk)] == "[propose]"):
                    return offer(secret, match.state.context.counts)
                return "[message] I like hats"

            seen.add("\n".join(payloads(match, seat, mine, partner)))
        assert len(seen) == 1


WORDS = random.Random(1).sample(target_words(), 40)
TALK = [
    "Tell me of something.", "Why do you ask?", "I see.", "Well, not so often.", "And then?", "What would you say?",
    "That is how it goes.", "Maybe we both know.", "I never thought so.", "Which one do you mean?",
]  # fmt: skip


@settings(max_examples=15)  # of 100 matches each
@given(st.integers(0, 2**32))
def test_taboo_matches_that_differ_in_the_word_look_the_same_to_the_defender(case: int) -> None:
    rng = random.Random(case)
    for _ in range(20):
        hints, answers = (rng.choices(TALK, k=10) for _ in range(2))
        seen = set()
        for word in rng.sample(WORDS, 5):
            match = replayed("taboo", {"word": word, "rule": rng.choice(["strict", "released"])})
            sent = payloads(match, 1, answers, lambda match, hints=hints: hints[match.ply])
            assert len(sent) == 10  # nobody said a word of the list, so all but the last move were shown
            seen.add("\n".join(sent))
        assert len(seen) == 1


TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["[message] hi", "[message] I want the ball", "I know the word! It is candle"]),
    st.builds("[propose] ({} books, {} hats, {} balls)".format, *[st.integers(0, 2)] * 3),
)


@given(st.sampled_from(["negotiation", "taboo"]), st.integers(0, 2**32), st.lists(TEXTS, max_size=20))
def test_a_view_and_its_changes_add_up_to_the_view_of_now(game: str, seed: int, texts: list[str]) -> None:
    match = engine.replay([engine.start(game, {}, seed)])
    times: list[str] = []
    held = [json.loads(json.dumps(seat_view("M", match, times, seat))) for seat in (0, 1)]
    for text in texts:
        if match.to_move is None:
            break
        before = [seat_view("M", match, times, seat) for seat in (0, 1)]
        for event in engine.step(match, match.to_move, text):
            match = engine.apply(match, event)
            if isinstance(event, Event):
                times.append("2030-01-01T00:00:00.000Z")
        for seat in (0, 1):
            update = json.loads(json.dumps(change(before[seat], seat_view("M", match, times, seat))))
            for entry in update.pop("transcript"):
                held[seat]["transcript"][entry["ply"] : entry["ply"] + 1] = [entry]
            held[seat].update(update)
    assert held == [json.loads(json.dumps(seat_view("M", match, times, seat))) for seat in (0, 1)]


def test_a_view_has_exactly_the_fields_of_the_protocol() -> None:
    view = seat_view("M", replayed("negotiation", {}), [], 0)
    assert list(view) == (
        "match game role status ply to_move transcript facts secret may clock outcome".split()  # noqa: SIM905
    )
    assert set(view["facts"]) == {"counts", "lambda", "limit"}
    assert set(view["secret"]["values"]) == set(ITEMS)


def test_the_outcome_is_told_from_the_seats_own_side() -> None:
    match = replayed("taboo", {"word": "candle"})
    for seat, text in ((0, "What gives light?"), (1, "A candle does.")):
        for event in engine.step(match, seat, text):
            match = engine.apply(match, event)
    times = ["t", "t"]
    attacker, defender = (seat_view("M", match, times, seat) for seat in (0, 1))
    assert attacker["outcome"] == {"reason": "attacker wins", "winner": "you", "utility": 1, "partner_utility": -1}
    assert defender["outcome"] == {"reason": "attacker wins", "winner": "partner", "utility": -1, "partner_utility": 1}
    assert (defender["status"], defender["to_move"], defender["may"]) == ("over", None, [])
    assert defender["facts"]["word"] == "candle"
