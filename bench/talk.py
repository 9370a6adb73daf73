"""What the players say. Pure, and hardly ever the same twice: nothing may be quick because it was said before.

The words mean little to the scripted players, so that a match of taboo with WORD goes on until its last turn.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

WORD = "zeppelin"
TURNS = 25  # client moves in a match of taboo

_OPENINGS = ("Well,", "Tell me,", "You know,", "Honestly,", "By the way,", "All right,", "Fine,", "Hmm,", "So,", "Now,")
_SUBJECTS = ("my neighbour", "an old friend", "your sister", "somebody I met", "my uncle", "the woman upstairs")
_VERBS = ("talked about", "was asking for", "kept thinking of", "could not explain", "always wanted", "never mentioned")
_OBJECTS = ("the thing we had in mind", "that one evening", "what happened then", "something else", "the whole affair")
_ENDINGS = ("What do you say?", "Would you agree?", "Is that what you meant?", "How about you?", "Does that help?")
_OFFERS = (
    "I could use {a} of the hats, and you may keep {b} balls.",
    "What about {a} books for me and everything else for you?",
    "The balls matter little to me, but I need at least {a} hats.",
    "If you take {b} books, I would like the rest, please.",
    "{a} balls and {b} hats would be fine with me. And for you?",
    "Which of them do you care about most? I like the books.",
)
_NOTHING = "[propose] (0 books, 0 hats, 0 balls)"

Say = Callable[[random.Random, Sequence[Mapping[str, Any]]], str]


def small_talk(rng: random.Random, _may: Sequence[Mapping[str, Any]] = ()) -> str:
    """A line of taboo: meaningless words, one of nine thousand combinations times a number."""
    parts = [rng.choice(each) for each in (_OPENINGS, _SUBJECTS, _VERBS, _OBJECTS)]
    return f"{' '.join(parts)} {rng.randrange(2, 1000)} times. {rng.choice(_ENDINGS)}"


def bargain(rng: random.Random, may: Sequence[Mapping[str, Any]]) -> str:
    """A line of a negotiation: an offer in words, until nothing but a proposal is allowed."""
    if may and all(move["kind"] == "proposal" for move in may):
        return _NOTHING
    line = rng.choice(_OFFERS).format(a=rng.randrange(1, 4), b=rng.randrange(1, 4))
    return f"[message] {rng.choice(_OPENINGS)} {line[0].lower()}{line[1:]}"


SAY: Mapping[str, Say] = {"taboo": small_talk, "negotiation": bargain}
CONFIG: Mapping[str, Mapping[str, Any]] = {"taboo": {"word": WORD, "max_turns": TURNS}, "negotiation": {}}
ROLE: Mapping[str, str | None] = {"taboo": "attacker", "negotiation": None}
MOVES_A_MATCH: Mapping[str, int] = {"taboo": TURNS, "negotiation": 8}  # minimum on average


def first_config(game: str, rng: random.Random) -> Mapping[str, Any]:
    """The config of a client's first match: randomly shorter, so that clients do not all change matches at once."""
    limit = {"max_turns": rng.randint(1, TURNS)} if game == "taboo" else {"limit": 2 * rng.randint(1, 10)}
    return {**CONFIG[game], **limit}
