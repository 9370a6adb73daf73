"""The words that people use to bargain, typing slips included, by their role in a sentence."""

import re


def _set_of_words(words: str) -> frozenset[str]:
    return frozenset(words.split())


TOKEN = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+|[.!?;:,]|-(?=\s)")

ITEMS: dict[str, tuple[int, bool]] = {  # which item, and whether it is a plural
    word: (item, plural)
    for item, plural, words in (
        (0, False, "book bok boook bookk novel"),
        (0, True, "books boks bookss boosk bokos boooks novels"),
        (1, False, "hat hatt cap"),
        (1, True, "hats hatts hast htas hts hates caps"),
        (2, False, "ball bal bll basketball baskeball basketbal bball"),
        (2, True, "balls bals blls ballls basketballs baskeballs basketbals bballs"),
    )
    for word in words.split()
}
ARTICLES = frozenset(("a", "an", "another"))
NUMBERS: dict[str, int] = {str(n): n for n in range(100)}
NUMBERS.update(none=0, zero=0, one=1, two=2, three=3, four=4, five=5, six=6, seven=7, eight=8, nine=9, ten=10)
NUMBERS.update(both=2, couple=2, pair=2)
NUMBERS.update(dict.fromkeys((*ARTICLES, "single"), 1))

SPEAKER, LISTENER, EACH = "speaker", "listener", "each"
_PARTS = {
    SPEAKER: "i me ill id im ive i'll i'd i'm i've gimme lemme myself iam imma",
    LISTENER: "you u ya you'll you'd youll youd you've yall yourself ur you're youre yuo yoou yo",
    EACH: "each we we'll we'd",
    "mine": "mine",
    "yours": "yours",
    "all": "all every whole entire al alll",
    "everything": "everything everthing evrything eveyrthing everyting anything",
    "things": "items item stuff things",
    "rest": "rest else remainder remaining leftover leftovers others reste remains res",
    "half": "half split share divide halve splitting sharing",
    "but": "but except excluding minus besides",
    "give": "give offer giving trade part sacrifice surrender spare budge budging offering lose cede",
    "want": "want need wants needs wanna interested require use",
    "take": "take keep have get",
    "not": (
        "not don't dont can't cant cannot won't wont wouldn't wouldnt never didn't isn't aren't couldn't doesn't doesnt"
        " shouldn't nor couldnt"
    ),
    "no": "no",
    "for": "for",
    "without": "without",
    "or": "or",
    "stop": ". ! ? ; :",
    "comma": ", - if",
}
PART: dict[str, str] = {word: part for part, words in _PARTS.items() for word in words.split()}
# "Take the hats" at the head of a clause tells the listener to; after "I'll" it does not.
OPENERS = _set_of_words(". ! ? ; : , then just ok okay fine no so well sure alright please and")
ASIDE = frozenset(("thank", "thanks", "with", "from", "between", "of"))  # "with you" is nobody's share
PLEASED = frozenset(("deal", "ok", "okay", "good"))  # "ok for you?" is nobody's share either

WORTH = _set_of_words(
    "worth value values valued valuable points point pts matter matters worthless useless important care cares"
    " favourite favorite fond"
)
LITTLE = _set_of_words(
    "nothing least little less worthless useless zero not don't dont doesn't doesnt no low lower nada 0"
)

NO = _set_of_words(
    "no nope nah noo nooo never can't cant cannot won't wont not don't dont doesn't doesnt refuse reject rejected"
    " unfair unacceptable impossible ridiculous sorry decline pass"
)
NO_PHRASES = ("too much", "too low", "too little")
YES = _set_of_words(
    "deal dea dael ok okay okey oky k kk okk sure yes yess yeah yea yep yup yups ya ye agree agreed agreeed agrred"
    " accept accepted alright allright aight right fine perfect great good cool done fair works work correct sounds"
    " gladly absolutely definitely awesome excellent happy thanks thank thx exactly bet settled sold"
)
CLEAR_YES = _set_of_words("deal agree agreed accept accepted fine ok okay sure yes yeah sold alright works")
YES_PHRASES = ("do that", "do it", "go for it", "live with that", "got it", "will do", "\U0001f44d", "\U0001f91d", "✅")
KIND_NO = ("no problem", "no prob", "no worries", "why not", "not bad", "not a problem", "can't complain", "don't mind")
FINAL = (
    "final",
    "last offer",
    "take it or leave",
    "or no deal",
    "or nothing",
    "best i can",
    "not budging",
    "won't budge",
    "or there is no",
)
MORE = frozenset(("too", "also", "atleast", "plus", "extra", "instead"))
MORE_PHRASES = ("as well", "at least")
