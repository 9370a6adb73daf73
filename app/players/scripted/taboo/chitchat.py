"""Small talk of the scripted defender: its answers to a text that points to no word. Pure.

An answer depends on what was said: its subject, the kind of question, or a word of it that is echoed. Nothing is said
twice in a match while anything else is left.
"""

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain

LONGEST = 400  # characters of a text that are read
_LITTLE_WORDS = """
    about above after again against also always another anybody anyone anything aren't around away back because
    been before being below between both came cannot come comes could couldn't didn't does doesn't doing don't
    done down each else even ever every everybody everyone everything find first from gets give gives goes going
    gone good great guess hasn't have haven't having hello here hers hint into isn't it's just kind know knows
    last least less let's like liked likes little long look made make makes making many maybe mean might more
    most much must myself need never nice nobody none nothing often once only other over people perhaps please
    quite rather really right said same says seen shall should since some somebody someone something sometimes
    soon sort still such sure take takes tell than thank thanks that that's their them then there there's these
    they thing things think thinking this those thought through told took true under until upon used uses using
    usually very want wants wasn't well went were what what's when where which while whole whom whose will with
    within without won't word words would wouldn't yeah you'll you're you've your yours yourself
"""
_LITTLE = frozenset(_LITTLE_WORDS.split())  # words that no answer takes up
_WORD = re.compile(r"[a-z]{4,16}(?:'[a-z]{1,2})?(?![a-z'])")


def answers(text: str, said: Sequence[str], rng: random.Random) -> Iterator[str]:
    """Answers to `text`, the most fitting first; patterns used in `said` are skipped until no others are left."""
    heard = text[:LONGEST].lower()
    for pattern in _patterns(heard, rng):
        if not was_used(pattern, said):
            yield pattern if "{}" not in pattern else pattern.format(rng.choice(_quotable_words(heard)))
    whole = [f"{opening} {question}" for opening in _OPENINGS for question in _ASKING]
    yield from (line for line in rng.sample(whole, len(whole)) if line not in said)
    yield from whole


def _patterns(heard: str, rng: random.Random) -> Iterator[str]:
    """Possible answers, as patterns with a placeholder for one word of the text, the most fitting first."""
    apt = [line for subject in _subjects(heard) for line in _SUBJECTS[subject][1]]
    kind = next((lines for question, lines in _QUESTIONS if question.search(heard)), ())
    echoes = _ECHOES if _quotable_words(heard) else ()
    yield from rng.sample(apt, len(apt))
    loose = [*rng.sample(kind, min(len(kind), 2)), *rng.sample(echoes, min(len(echoes), 2)), rng.choice(_PROBES)]
    yield from rng.sample(loose, len(loose))
    rest = (*kind, *echoes, *_PROBES, *_VAGUE)
    yield from rng.sample(rest, len(rest))


def _subjects(heard: str) -> list[int]:
    """The subjects that a text touches, in their order."""
    named = (*_ANY_WORD.findall(heard), *_PHRASES.findall(heard))
    return sorted(frozenset(chain.from_iterable(_BY_NAME[name] for name in named if name in _BY_NAME)))


def was_used(pattern: str, said: Sequence[str]) -> bool:
    """Whether one of the lines was made from a pattern, whatever word was filled in."""
    before, _, after = pattern.partition("{}")
    return any(line.startswith(before) and line.endswith(after) for line in said)


def _quotable_words(heard: str) -> list[str]:
    """The words of a text that can be echoed."""
    return sorted(set(_WORD.findall(heard)) - _LITTLE)


_SUBJECTS = (
    (
        "hi, hello, hey, good morning, good evening, good afternoon, greetings",
        ("Hello to you! What shall we talk about?", "Hi! I am all ears.", "Good to see you. Where do we begin?"),
    ),
    (
        "how are you, how's it going, how do you do, how are things, what's up",
        ("Very well, thank you. A bit curious.", "Can't complain. And how are you?", "Wide awake, as you can see."),
    ),
    (
        "weekend, yesterday, holiday, holidays, vacation, sunday, sundays, saturday, saturdays",
        ("I slept late and saw some friends.", "Nothing special, I stayed in.", "I went for a long walk, and you?"),
    ),
    (
        "film, films, movie, movies, series, watch, watched, cinema, actor, actors",
        ("Anything with a good ending.", "I mostly fall asleep half way through.", "An old thriller, the other day."),
    ),
    (
        "read, reading, novel, novels, story, stories, author, poem, poems",
        ("I like the ones with a twist.", "The last one made me laugh a lot.", "I never get past page fifty."),
    ),
    (
        (
            "eat, eats, eating, food, cook, cooking, dinner, lunch, breakfast, taste, tastes, delicious, hungry, "
            "restaurant, recipe"
        ),
        ("Now you make me hungry.", "I would never say no to a second helping.", "Something warm, if I may choose."),
    ),
    (
        "drink, drinks, thirsty, bar, pub",
        ("Just water for me, usually.", "That depends on the time of day.", "Something cold would be nice now."),
    ),
    (
        "job, jobs, work, works, working, office, boss, profession, career",
        (
            "Mine is mostly waiting and answering.",
            "I would not swap with anybody.",
            "Early mornings were never for me.",
        ),
    ),
    (
        "school, teach, learn, learned, study, class, subject, university, exam",
        ("I was always better at talking than at sums.", "I learn something every day.", "Mostly I looked outside."),
    ),
    (
        "travel, travelled, trip, country, countries, visit, visited, abroad, flight, journey, tourist, tourists",
        ("As far away as possible!", "I have hardly been anywhere, to be honest.", "Somewhere quiet, with a view."),
    ),
    (
        "pet, pets, animal, animals, creature, zoo, farm, wild, fur",
        ("I am fond of all of them, from a distance.", "The smaller the better.", "Does it bite?"),
    ),
    (
        "music, song, songs, sing, band, melody, concert, dance, instrument",
        ("I hum along, but I am always out of tune.", "The louder the better.", "Whatever is on, really."),
    ),
    (
        "sport, sports, game, games, team, player, match, champion, exercise, gym, run, running",
        ("I am better at watching than at playing.", "I always lose at that.", "Only if I do not have to run."),
    ),
    (
        (
            "mother, father, mum, mom, dad, parent, parents, sister, brother, family, children, kid, kids, baby, "
            "grandparents"
        ),
        ("We are quite a crowd at home.", "We do not meet as often as we should.", "They would know better than I."),
    ),
    (
        "friend, friends, neighbor, neighbors, neighbour, neighbours, colleague, colleagues, admire, hero",
        ("Those who can keep a secret.", "We mostly talk about nothing at all.", "I could name quite a few."),
    ),
    (
        (
            "weather, rain, rainy, rains, sunny, snow, snowy, snows, winter, summer, autumn, spring, cold, warm, "
            "hot, season"
        ),
        ("I prefer it mild.", "As long as I can stay inside, I do not mind.", "It could be worse."),
    ),
    (
        "buy, bought, money, million, price, cost, costs, expensive, cheap, shop, shopping, gift, present",
        ("I would put most of it aside.", "I usually come home with the wrong thing.", "The best ones cost nothing."),
    ),
    (
        "afraid, fear, scare, scared, scary, dangerous, danger, horror",
        ("Heights, I am afraid.", "I would run, to be honest.", "I am braver than I look."),
    ),
    (
        "dream, dreams, sleep, night, bed, tired, wake, morning",
        ("I never remember any of it.", "Just five more minutes, please.", "It takes me an hour to be of any use."),
    ),
    (
        (
            "color, colors, colour, colours, red, blue, green, yellow, white, black, orange, pink, purple, brown, "
            "gray, grey"
        ),
        ("I see a lot of things in that colour.", "Not my favourite colour.", "Light or dark?"),
    ),
    (
        "big, huge, large, small, tiny, round, long, tall, heavy, flat, thin, shape, size",
        ("Bigger than a person?", "Would it fit into my pocket?", "I am bad at guessing sizes."),
    ),
    (
        "home, house, room, kitchen, garden, live, street, town, city, village",
        ("I do not go out much.", "It is a quiet part of the world.", "Ours is rather untidy, I must admit."),
    ),
    (
        "phone, computer, internet, screen, machine, electric, battery, online",
        ("Mine is always empty when I need it.", "I only use half of what it can do.", "I was happier without."),
    ),
    (
        "wear, wearing, clothes, dress, fashion, head, feet, hand, hands, body, hair, face",
        ("I wear whatever is clean.", "Nobody ever asked me that.", "I would have to look in the mirror."),
    ),
    (
        "funny, laugh, joke, smile, happy, happiness",
        ("My own mistakes, most of all.", "It takes very little.", "Bad puns. The worse the better."),
    ),
    (
        "hint, hints, guess, secret, clue, win, lose, rules",
        ("You will have to try harder than that!", "I am not giving in so soon.", "I still have a few turns left."),
    ),
    (
        "i don't know, no idea, no, nope, never, not",
        ("Why not?", "Fair enough. Then something else?", "That is a clear answer, at least."),
    ),
    ("yes, yeah, sure, ok, okay, right, exactly, correct", ("Good, so we agree.", "I thought as much.", "And then?")),
)
_BY_NAME: dict[str, list[int]] = defaultdict(list)
for _number, (_names, _) in enumerate(_SUBJECTS):
    for _name in _names.split(", "):
        _BY_NAME[_name].append(_number)
_ANY_WORD = re.compile(r"\w+")
_PHRASES = re.compile(rf"\b(?:{'|'.join(name for name in _BY_NAME if not name.isalpha())})\b")
_QUESTIONS = (
    (
        re.compile(r"\bwhy\b"),
        ("There must be a reason, but I do not see it.", "Because it has always been so?", "I wonder, too."),
    ),
    (
        re.compile(r"\bwho(?:se|m)?\b"),
        ("Nobody that I know.", "Somebody famous?", "My aunt would have an answer to that."),
    ),
    (
        re.compile(r"\bwhere\b"),
        ("Not around here, I think.", "Far away from where I am sitting.", "Indoors or outdoors?"),
    ),
    (re.compile(r"\bwhen\b"), ("Not today, I hope.", "Once in a while.", "Later than one should.")),
    (
        re.compile(r"\bhow (?:many|much|often|long|old|far)\b"),
        ("More than I can count.", "I am bad with numbers.", "Rather few, I would say."),
    ),
    (re.compile(r"\bhow\b"), ("With a lot of patience.", "Step by step, I suppose.", "I leave that to others.")),
    (
        re.compile(r"\b(?:what|which)\b.*\?"),
        ("Something obvious, I am sure.", "A hard one! Several things come to mind.", "Give me a moment. No, nothing."),
    ),
    (
        re.compile(r"\b(?:do|did|have|are|can|could|would|will|is|does|was)\b.*\?"),
        ("Now and then, yes.", "Not that I remember.", "I would say so, but do not ask me why."),
    ),
    (
        re.compile(r"\b(?:it|they|this|these)\b"),
        ("And what does one do with it?", "That could be half the things in the world.", "Does everybody have one?"),
    ),
)
_ECHOES = (
    "You said “{}”. What do you mean by that?",
    "Hard to say. Why “{}”, of all things?",
    "What has “{}” got to do with it?",
    "“{}” makes me think of my childhood, for some reason.",
    "Do you mean “{}” as a good thing or a bad one?",
    "I know little about “{}”, to be honest.",
    "Funny that you bring up “{}”. Go on.",
)
_PROBES = (
    "Is it something one can touch?",
    "Would a child know it?",
    "Does it make a noise?",
    "Is there one in this room?",
    "Is it older than we are?",
    "Is it alive?",
    "Can one own more than one of them?",
    "Is it more for work or for fun?",
    "Do you have one yourself?",
    "Would I miss it if it were gone?",
)
_VAGUE = (
    "I would rather hear about you.",
    "You first!",
    "I would have to think about that. Can you say more?",
    "Good question. What would you answer?",
    "I am not sure where you are going with this.",
    "Many things, really. Give me another hint.",
    "That depends. Tell me more.",
    "My mind is a blank. Try it another way.",
    "I feel that this is a trap.",
    "I have an answer, but I had better keep it to myself.",
)
_OPENINGS = (
    "Let me think.",
    "Hm.",
    "Interesting.",
    "I see.",
    "Tricky.",
    "Well, well.",
    "You are good at this.",
    "No hurry.",
)
_ASKING = (
    "What else can you tell me?",
    "Can you put it differently?",
    "And what about you?",
    "Is there more to it?",
    "What made you think of that?",
    "Where does that lead?",
    "Could you be more precise?",
    "What would most people say?",
)
