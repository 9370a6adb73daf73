"""The judges: the table of the strict one, and what no text may do to either."""

import random
import re
import string
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.games.taboo.judges import RULES, is_form_of, judge, released_plural
from app.games.taboo.words import target_words
from tests.effort import growth

TABLE = Path(__file__).with_name("strict_cases.txt")
TEXTS = st.text(st.characters(exclude_categories=())) | st.lists(
    st.sampled_from(["i know the word! it", " is ", "cat", "cats", "'", "`", "\n", "c", "a", "t", " ", "-", "4", "not"])
).map("".join)


def read_table():
    for number, line in enumerate(TABLE.read_text(encoding="utf-8").splitlines(), 1):
        if line and not line.startswith("#"):
            target, text, expected = (
                re.sub(r"\\u([0-9a-f]{4})", lambda code: chr(int(code[1], 16)), cell) for cell in line.split(" | ")
            )
            yield pytest.param(target, text, expected, id=f"line {number}")


CASES = list(read_table())


def test_the_table_has_at_least_150_cases():
    assert len({(case.values[0], case.values[1]) for case in CASES}) == len(CASES) >= 150


@pytest.mark.parametrize(("target", "text", "expected"), CASES)
def test_the_strict_judge_finds(target, text, expected):
    verdict = judge("strict", target, text)
    found = "said" if verdict.said else "silent"
    if verdict.guess is not None:
        found = "right" if verdict.right else "wrong"
    assert found == expected, verdict


@pytest.mark.parametrize(
    ("text", "said", "declared", "right"),
    [
        ("I know the word! It is `cat`!", True, True, True),
        ("i know the word! it is catalog", True, True, True),
        ("I know the word! It is not cat", True, True, True),
        ("I know the word! It must be cat", True, True, False),
        ("I know the word! It is dog", False, True, False),
        ("I know the word! It", False, False, False),
        ("I know the word! It\n is cat", True, False, False),
        ("I know the word! It's\ncat", True, True, False),
        ("I know the word, it is cat", True, False, False),
        ("I know the word! It is\ncat. I know the word! It is 'cats'", True, True, True),
        ("Concatenate", True, False, False),
        ("c a t", False, False, False),
    ],
)
def test_the_released_rule_is_kept_with_its_quirks(text, said, declared, right):
    verdict = judge("released", "Cat", text)
    assert (verdict.said is not None, verdict.guess is not None, verdict.right) == (said, declared, right)


def test_the_released_rule_knows_irregular_plurals():
    assert judge("released", "mouse", "three blind mice").said == "mice"
    assert judge("released", "city", "I know the word! It is cities").right


def test_the_released_rule_takes_the_target_literally():
    assert judge("released", "c.t", "cat").said is None
    assert not judge("released", "c.t", "I know the word! It is cat").right


@given(
    text=TEXTS,
    target=st.sampled_from(["cat", "merry-go-round", "naïve"]) | st.text(min_size=1),
    rule=st.sampled_from(RULES),
)
@settings(max_examples=250, deadline=None)
def test_no_text_and_no_target_raises(text, target, rule):
    if target.strip():
        verdict = judge(rule, target, text)
        assert verdict.guess is not None or not verdict.right


@given(word=st.sampled_from(["cat", "cats", "Cat", "CATS!"]), before=st.text(" .,!\n"), after=st.text(" .,!\n"))
def test_a_bare_form_is_found_whatever_punctuation_is_around_it(word, before, after):
    assert judge("strict", "cat", f"dog {before}{word}{after} dog").said


REPEATED = ["a", " ", "a ", "a-", "1a", "-", "!", "'", "a'", "\u200b", "é", "Ж", "犬", "\n", "$", ": ", "a.", "_a"]
REPEATED += ["c4t5 ", "the ", "word ", "i now ", "i know the word", "i know the word! it is ", "merry go "]
REPEATED += ["i know the word! it is not ", "do you think ", "not i know the word! ", "it's c "]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("piece", REPEATED)
@pytest.mark.timeout(20)
def test_the_effort_to_judge_one_thing_again_and_again_grows_no_faster_than_the_text(rule, piece):
    # The target of several parts takes the longest way.
    def work(letters):
        judge(rule, "merry-go-round", piece * (letters // len(piece)))

    assert growth(work, 3_000, 30_000) < 40  # a hundred if it were quadratic


@pytest.mark.parametrize("rule", RULES)
def test_the_effort_to_judge_words_never_seen_grows_no_faster_than_their_number(rule):
    rng = random.Random(5)

    def work(words):
        judge(rule, "cat", " ".join("".join(rng.choices(string.ascii_lowercase, k=7)) for _ in range(words)))

    assert growth(work, 300, 3_000) < 40  # a hundred if it were quadratic


def test_a_form_is_an_inflection_and_not_merely_a_word_with_the_same_beginning():
    assert is_form_of("geese", "goose")
    assert not is_form_of("goosed" * 9, "goose")


# What TextBlob makes of these is no plural in use: `nuclei`, `tacos` and `dramas` are.
NO_PLURALS = {
    *("bonuss", "cactuss", "campuss", "caucuss", "circuss", "dramata", "logoes", "metroes", "nucleuss", "patriarches"),
    *("stimuluss", "surpluss", "tacoes", "viruss"),
}


def test_the_plural_of_every_word_of_the_list_is_a_form_of_it():
    plurals = {released_plural(word): word for word in target_words()}
    assert {plural for plural, word in plurals.items() if not is_form_of(plural, word)} == NO_PLURALS


def test_what_the_library_misses_is_a_form_all_the_same():
    assert is_form_of("nuclei", "nucleus")
    assert is_form_of("patriarchs", "patriarch")
    assert is_form_of("viruses", "virus")


def test_the_released_plural_of_every_word_of_the_list_is_that_of_the_library_of_the_published_code():
    from textblob import Word  # brings nltk, which no other process of the tests should wait for

    assert {word: released_plural(word) for word in target_words()} == {
        word: str(Word(word).pluralize()) for word in target_words()
    }


@pytest.mark.parametrize(
    ("target", "text", "said"),
    [
        ("gentleman", "There were two gentlemen at the door.", "gentlemen"),
        ("nucleus", "Atoms have nuclei.", None),
        ("cow", "Kine is an old word for cattle.", "kine"),
        ("matrix", "They multiply matrices.", "matrices"),
        ("fungus", "Mushrooms are fungi.", "fungi"),
    ],
)
def test_the_released_judge_knows_the_plurals_of_the_published_code_and_no_others(target, text, said):
    assert judge("released", target, text).said == said


def test_the_released_judge_does_without_what_its_library_brings_along():
    code = (
        "import sys; from app.games.taboo.judges import judge;"
        " assert judge('released', 'gentleman', 'two gentlemen').said;"
        "heavy = {'nltk', 'numpy', 'textblob'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_the_games_loads_no_library_of_inflections():
    heavy = "{'lemminflect', 'simplemma', 'textblob', 'numpy'}"
    code = f"import sys, app.games; assert not {heavy} & set(sys.modules), {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_only_taboo_loads_the_libraries_of_inflections():
    code = (
        "import sys; from app.games import find_game; find_game('negotiation').prepare();"
        " assert 'lemminflect' not in sys.modules; find_game('taboo').prepare(); assert 'lemminflect' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
