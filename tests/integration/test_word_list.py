"""The target words: what is in the list, and that the kept script makes the very same one."""

import hashlib
import subprocess
import sys
from pathlib import Path

from app.games.taboo.rules import TABOO
from app.games.taboo.words import WORD_LIST, target_words

ROOT = Path(__file__).resolve().parents[2]
CONTENT = WORD_LIST.read_bytes()


def test_there_are_at_least_2000_sorted_unique_lower_case_words():
    words = target_words()
    assert len(words) >= 2000
    assert list(words) == sorted(set(words))
    assert all(word.isascii() and word.isalpha() and word.islower() for word in words)
    assert CONTENT.decode() == "".join(f"{word}\n" for word in words)


def test_every_word_can_be_a_target():
    assert all(TABOO.config({"word": word}).word == word for word in target_words())


def test_no_blocked_word_is_in_it():
    lines = WORD_LIST.with_name("blocklist.txt").read_text(encoding="utf-8").splitlines()
    blocked = {word for line in lines for word in line.partition("#")[0].split()}
    assert not blocked & set(target_words())


def test_the_sources_state_its_size_and_hash():
    sources = (ROOT / "data" / "SOURCES.md").read_text(encoding="utf-8")
    assert hashlib.sha256(CONTENT).hexdigest() in sources
    assert f"{len(target_words()):,} common English nouns" in sources


def test_the_script_makes_it_again_byte_for_byte(tmp_path):
    again = tmp_path / "words.txt"
    subprocess.run([sys.executable, ROOT / "scripts" / "make_word_list.py", again], check=True, capture_output=True)
    assert again.read_bytes() == CONTENT
