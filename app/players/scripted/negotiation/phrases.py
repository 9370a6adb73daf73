"""The sentences of the scripted negotiator. Each that names a split reads back as exactly that split."""

import random
from collections.abc import Sequence

from app.games.negotiation.contexts import ITEMS, Counts

NUMBERS = ("no", "one", "two", "three", "four", "five")


def things(share: Counts, counts: Counts) -> str:
    """A share in words: "both hats and one ball", "nothing", "everything"."""
    if share == counts:
        return "everything"
    parts = [_item_phrase(item, n, count) for item, n, count in zip(ITEMS, share, counts, strict=True) if n]
    return _join_with_and(parts) if parts else "nothing"


def split(mine: Counts, counts: Counts, rng: random.Random) -> str:
    """A whole split from the speaker's side."""
    theirs = counts[0] - mine[0], counts[1] - mine[1], counts[2] - mine[2]
    if not any(mine):
        return rng.choice(("you can have everything", "you take everything"))
    if not any(theirs):
        return rng.choice(("I get everything", "I take everything"))
    keep, leave = things(mine, counts), things(theirs, counts)
    return rng.choice(_SPLITS).format(keep=keep, leave=leave)


def opening(likes: str, mine: Counts, counts: Counts, rng: random.Random) -> str:
    """A first message: what the speaker cares about, and a split to talk about."""
    return f"{rng.choice(_HELLOS)} {likes}{rng.choice(_HOW_ABOUT)} {split(mine, counts, rng)}?"


def likes(values: Counts, counts: Counts, rng: random.Random) -> str:
    """What the speaker cares about most and what not at all, as a sentence with a space after it."""
    order = sorted(range(3), key=lambda item: (-values[item], item))
    best, worst = order[0], order[-1]
    if values[best] == values[worst]:
        return ""
    top, bottom = all_of(best, counts), all_of(worst, counts)
    little = "nothing" if values[worst] == 0 else "the least"
    if values[worst] == 0 or rng.random() < 0.5:
        verb = "matters" if counts[best] == 1 else "matter"
        return f"{top[0].upper()}{top[1:]} {verb} most to me, {bottom} {little}. "
    return f"I care most about {top}, and {bottom} matter{'s' if counts[worst] == 1 else ''} least. "


def worths(values: Counts, counts: Counts) -> str:
    """What each thing is worth to the speaker, in points."""
    parts = [
        f"{'the' if count == 1 else 'each'} {name} {value}"
        for name, value, count in zip(ITEMS, values, counts, strict=True)
    ]
    return f"In points, worth to me: {', '.join(parts)}. "


def counter(mine: Counts, counts: Counts, rng: random.Random, repeated: bool) -> str:
    """A further offer; `repeated` if it is the same as the previous one."""
    leads = _AGAIN if repeated else _DEMANDS if mine == counts else _COUNTERS
    lead = rng.choice(leads)
    return f"{lead} {split(mine, counts, rng)}{rng.choice(_TAGS)}"


def idle(mine: Counts, counts: Counts, rng: random.Random, greeted: bool) -> str:
    """An answer to a message with no content: a greeting if there was one, the same offer again, and a question."""
    lead = rng.choice(_GREETINGS if greeted else _PUZZLED)
    return f"{lead} {rng.choice(_STANDS)} {split(mine, counts, rng)}. {rng.choice(_WISHES)}"


def impossible(item: int, mine: Counts, counts: Counts, rng: random.Random) -> str:
    """An answer to a claim to more of an item than there is: how many there are, and an offer."""
    count, name = counts[item], ITEMS[item]
    there = f"there is only one {name}" if count == 1 else f"there are only {NUMBERS[count]} {name}s"
    return f"{rng.choice(_SORRY)} {there} on the table. {rng.choice(_HOW_ABOUT)} {split(mine, counts, rng)}?"


def accept(mine: Counts, counts: Counts, rng: random.Random) -> str:
    """An acceptance that repeats the whole split, so that both propose the same."""
    return f"{rng.choice(_DEALS)} {split(mine, counts, rng)}."


def final(mine: Counts, counts: Counts, rng: random.Random) -> str:
    """The last offer."""
    return f"{rng.choice(_FINALS)} {split(mine, counts, rng)}."


def _item_phrase(item: str, n: int, count: int) -> str:
    if count == 1:
        return f"the {item}"
    if n == count:
        return f"both {item}s" if count == 2 else f"all the {item}s"
    word = NUMBERS[n] if n < len(NUMBERS) else str(n)
    return f"{word} {item}{'s' if n > 1 else ''}"


def all_of(item: int, counts: Counts) -> str:
    return f"the {ITEMS[item]}{'' if counts[item] == 1 else 's'}"


def _join_with_and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


_HELLOS = ("Hi!", "Hello!", "Hey there!", "Hi there.", "Hello, nice to meet you.")
_HOW_ABOUT = ("How about", "What if", "What do you say:")
_SPLITS = (
    "I take {keep}, and you get {leave}",
    "I get {keep}, and you get {leave}",
    "you get {leave}, and I keep {keep}",
    "you take {leave}, and I take {keep}",
)
_COUNTERS = (
    "That leaves me with too little, so how about this:",
    "Hmm, I would rather do this:",
    "I see what you are after. What if",
    "Let us meet half way:",
    "I can move a bit:",
)
_DEMANDS = ("Hmm, I would rather do this:", "I am after more than that:", "What if")  # asking for all is no concession
_GREETINGS = ("Hello to you!", "Hi! Good to have you here.", "Hey! All well here, thank you.", "Nice to meet you!")
_PUZZLED = ("I am not sure what that means.", "Sorry, I did not get that.", "Hm.", "Let us talk about the table.")
_STANDS = ("My offer is still this:", "I am still thinking of this:", "What I have in mind:")
_WISHES = ("What matters most to you?", "What would suit you?", "Tell me what you are after.", "What do you think?")
_SORRY = ("Careful:", "Have a look:", "That cannot be done:")
_AGAIN = ("I have to stay with my offer:", "I cannot go lower:", "My offer stands:", "As I said:")
_TAGS = (".", ". Does that suit you?", ". What do you think?")
_DEALS = ("Deal:", "That works for me:", "Agreed:", "Sounds good, so")
_FINALS = ("This is my final offer:", "Last offer from me:", "I have nothing more to give, so my final offer is this:")
