"""The sentences of a scripted negotiator who types as people do: short, in lower case, with half of it left unsaid.

It has the same functions as `wording`, and each sentence that names a split also reads back as exactly that split. A
model that learns from matches against it has seen how people write before it meets any.
"""

import random
from collections.abc import Callable, Sequence

from app.games.negotiation.contexts import ITEMS, Counts
from app.games.negotiation.understanding import read
from app.players.scripted.negotiation import phrases

_TRIES = 8


def opening(likes: str, mine: Counts, counts: Counts, rng: random.Random) -> str:
    """A first message: perhaps a greeting and what the speaker likes, and a split to talk about."""
    before = rng.choice(_HELLOS) + (likes if rng.random() < 0.6 else "")
    return _with_split(before + rng.choice(_LEADS) + "{}" + rng.choice(("", "?", " ?")), mine, counts, rng)


def likes(values: Counts, counts: Counts, rng: random.Random) -> str:
    """What the speaker cares about most, in casual words, with a space after it."""
    best = max(range(3), key=lambda item: values[item])
    worst = min(range(3), key=lambda item: values[item])
    if values[best] == values[worst]:
        return ""
    return rng.choice(_LIKES).format(best=phrases.all_of(best, counts), worst=phrases.all_of(worst, counts))


def worths(values: Counts, counts: Counts) -> str:
    """What each thing is worth to the speaker, in points."""
    prices = [
        f"{item} {value}" if count == 1 else f"{item}s {value} each"
        for item, value, count in zip(ITEMS, values, counts, strict=True)
    ]
    return f"my points are {', '.join(prices)}. "


def counter(mine: Counts, counts: Counts, rng: random.Random, repeated: bool) -> str:
    """A further offer; `repeated` if it is the same as the previous one."""
    return _with_split(rng.choice(_AGAIN if repeated else _COUNTERS) + "{}" + rng.choice(_TAGS), mine, counts, rng)


def idle(mine: Counts, counts: Counts, rng: random.Random, greeted: bool) -> str:
    """An answer to a message with no content: the same offer again."""
    return _with_split(rng.choice(_GREETINGS if greeted else _PUZZLED) + "{}", mine, counts, rng)


def impossible(item: int, mine: Counts, counts: Counts, rng: random.Random) -> str:
    """An answer to a claim to more of an item than there is."""
    count, name = counts[item], ITEMS[item]
    there = f"there is only one {name}" if count == 1 else f"there are only {phrases.NUMBERS[count]} {name}s"
    return _with_split(there + ". {}", mine, counts, rng)


def accept(mine: Counts, counts: Counts, rng: random.Random) -> str:
    """An acceptance, usually without repeating the split."""
    return rng.choice(_DEALS) if rng.random() < 0.6 else _with_split(rng.choice(_DEALS) + ", {}", mine, counts, rng)


def final(mine: Counts, counts: Counts, rng: random.Random) -> str:
    """The last offer."""
    return _with_split(rng.choice(_FINALS) + "{}", mine, counts, rng)


# ---- Splits ---------------------------------------------------------------------

_Shape = Callable[[Counts, Counts, Counts, random.Random], str]


def _with_split(frame: str, mine: Counts, counts: Counts, rng: random.Random) -> str:
    """A sentence that contains a split, in words that a reader understands as that split and no other."""
    theirs = _remaining_share(mine, counts)
    for _ in range(_TRIES):
        named = rng.choice(_SHAPES)(mine, theirs, counts, rng)
        if named and _says(text := frame.format(named), mine, counts):
            return text
    return phrases.final(mine, counts, rng)


def _says(text: str, mine: Counts, counts: Counts) -> bool:
    """Whether a reader understands a text as exactly this split."""
    reading = read(text, counts)
    if not reading.names_a_split:
        return False
    left = {"speaker": counts, "listener": (0, 0, 0), None: (None, None, None)}[reading.rest]
    shares = zip(reading.share, left, strict=True)
    return tuple(rest if heard is None else heard for heard, rest in shares) == mine


def _remaining_share(mine: Counts, counts: Counts) -> Counts:
    return counts[0] - mine[0], counts[1] - mine[1], counts[2] - mine[2]


def _whole_split(mine: Counts, theirs: Counts, counts: Counts, rng: random.Random) -> str:
    keep, leave = _things(mine, counts, rng), _things(theirs, counts, rng)
    return rng.choice(_SPLITS).format(keep=keep, leave=leave)


def _mine_alone(mine: Counts, theirs: Counts, counts: Counts, rng: random.Random) -> str:
    return rng.choice(_TAKING).format(keep=_things(mine, counts, rng)) if any(mine) and any(theirs) else ""


def _theirs_alone(mine: Counts, theirs: Counts, counts: Counts, rng: random.Random) -> str:
    return rng.choice(_GIVING).format(leave=_things(theirs, counts, rng)) if any(mine) and any(theirs) else ""


def _things(share: Counts, counts: Counts, rng: random.Random) -> str:
    """A share in words or in figures: "2 hats and the ball", "nothing"."""
    if share == counts:
        return rng.choice(("everything", "all of it"))
    parts = [_casual_item_phrase(item, n, count, rng) for item, n, count in zip(ITEMS, share, counts, strict=True) if n]
    return rng.choice((" and ", ", ", " and the ")).join(parts).replace("the the", "the") if parts else "nothing"


def _casual_item_phrase(item: str, n: int, count: int, rng: random.Random) -> str:
    if count == 1:
        return rng.choice((f"the {item}", f"the {item}", f"1 {item}", item))
    if n == count:
        return rng.choice((f"the {item}s", f"all the {item}s", f"all {n} {item}s", f"{n} {item}s", f"the {n} {item}s"))
    return f"{rng.choice((str(n), phrases.NUMBERS[n]))} {item}{'s' if n > 1 else ''}"


_SHAPES: Sequence[_Shape] = (_whole_split, _whole_split, _mine_alone, _mine_alone, _theirs_alone)
_SPLITS = (
    "i take {keep} and you get {leave}",
    "i get {keep}, you get {leave}",
    "ill take {keep} and you can have {leave}",
    "you take {leave} and i take {keep}",
    "u get {leave}, i get {keep}",
    "you can have {leave} if i get {keep}",
    "i want {keep}, you can have {leave}",
)
_TAKING = (
    "i want {keep}, you can have the rest",
    "ill take {keep} and you get the rest",
    "i get {keep} you keep the rest",
    "can i have {keep} and you take everything else",
    "give me {keep} and the rest is yours",
    "just let me have {keep}, you get the rest",
)
_GIVING = (
    "you can have {leave} and i take the rest",
    "you get {leave}, i get the rest",
    "u can have {leave}, ill take everything else",
    "how about you take {leave} and i keep the rest",
)
_HELLOS = ("", "", "", "hi, ", "hello ", "hey! ", "hi there. ", "hey ")
_LEADS = ("", "", "", "so ", "ok so ", "what do you think: ")
_LIKES = (
    "i really need {best}. ",
    "i like {best}. ",
    "{best} matter to me. ",
    "i dont care about {worst}. ",
    "{worst} are worth nothing to me. ",
    "i would love {best}. ",
)
_COUNTERS = (
    "",
    "",
    "hmm ",
    "no, ",
    "cant do that. ",
    "how about ",
    "that's not enough for me. ",
    "nope. ",
    "what about ",
)
_AGAIN = ("", "sorry but ", "like i said, ", "i cant do that, ", "no, ")
_TAGS = ("", "", "?", ".", ". ok?", " please")
_GREETINGS = ("hi! ", "hello. ", "hey, good thanks. ")
_PUZZLED = ("what? ", "ok but ", "lets talk about the items. ", "so ")
_DEALS = (
    "deal",
    "ok",
    "ok deal",
    "sounds good",
    "yes",
    "sure",
    "works for me",
    "agreed",
    "yes deal",
    "alright",
    "fine",
)
_FINALS = ("last offer, ", "final offer: ", "take it or leave it: ", "this is the best i can do: ")
