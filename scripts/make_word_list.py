"""Makes the target words of Adversarial Taboo: common English nouns, screened, in data/taboo/words.txt.

    python scripts/make_word_list.py [FILE]

Needs the `dev` extra, for wordfreq. The result depends only on the pinned versions of wordfreq and lemminflect and
on data/taboo/blocklist.txt; data/SOURCES.md holds its hash. After a change, run it and put the printed hash there.
"""

import hashlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from lemminflect import getAllInflections, getAllLemmas
from wordfreq import top_n_list, zipf_frequency

DATA = Path(__file__).resolve().parent.parent / "data" / "taboo"
MOST_COMMON = 20_000  # words of English, by frequency, that are looked at
SHORTEST = 3

# Zipf frequencies: the logarithm to base 10 of a word's occurrences in a billion words.
LEAST_PLURAL = 2.5  # of a plain noun's plural: below it, the word is no common countable noun
LEAST_MIXED_PLURAL = 2.8  # the same of a word that is a verb, too
# How much more common the plural of such a word is than its past and its -ing form: then it is mostly a noun.
ABOVE_PAST = 0.9
ABOVE_ING = 0.6


def target_words(blocked: set[str]) -> list[str]:
    """The screened nouns, in alphabetical order."""
    common = (word for word in top_n_list("en", MOST_COMMON) if word.isascii() and word.isalpha())
    return sorted(word for word in common if len(word) >= SHORTEST and word not in blocked and is_common_noun(word))


def is_common_noun(word: str) -> bool:
    """Whether a word is a singular, countable noun, and nothing else or seldom anything else."""
    lemmas = getAllLemmas(word)
    inflections = getAllInflections(word)
    if word not in lemmas.get("NOUN", ()):
        return False
    plural = frequency(form for form in inflections.get("NNS", ()) if form != word)
    if set(lemmas) == {"NOUN"}:
        return lemmas["NOUN"] == (word,) and plural >= LEAST_PLURAL
    if set(lemmas) != {"NOUN", "VERB"} or lemmas["VERB"] != (word,):
        return False
    past = frequency(form for tag in ("VBD", "VBN") for form in inflections.get(tag, ()) if form != word)
    ing = frequency(inflections.get("VBG", ()))
    return plural >= LEAST_MIXED_PLURAL and plural - past >= ABOVE_PAST and plural - ing >= ABOVE_ING


def frequency(forms: Iterable[str]) -> float:
    """The Zipf frequency of the most common of some forms; 0 for none."""
    return max((zipf_frequency(form, "en") for form in forms), default=0.0)


def read_blocklist(path: Path) -> Iterator[str]:
    """The words of a blocklist, without its comments."""
    for line in path.read_text(encoding="utf-8").splitlines():
        yield from line.partition("#")[0].split()


def main(arguments: list[str]) -> None:
    out = Path(arguments[0]) if arguments else DATA / "words.txt"
    words = target_words(set(read_blocklist(DATA / "blocklist.txt")))
    content = "".join(f"{word}\n" for word in words).encode()
    out.write_bytes(content)
    sys.stdout.write(f"{out}: {len(words)} words, sha256 {hashlib.sha256(content).hexdigest()}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
