"""The catalogs of other languages: whole, in step with the pages, and safe to fill in."""

import random
import re

import pytest
from babel import Locale
from babel.messages.catalog import Message

from app.core.config import ENGLISH, ROOT, known_languages
from app.games import GAMES
from app.games.base import Violation
from app.games.negotiation.rules import NEGOTIATION
from app.job_kinds import JOB_KINDS
from app.web.translations import FROM_BELOW, read_catalog, script_words
from scripts.translations import extracted, unfinished

LANGUAGES = [language for language in known_languages() if language != ENGLISH]
PLACEHOLDER = re.compile(r"%\(\w+\)s|%")
SPECIAL = re.compile(r"[\"'<>&{}]")


def texts(of: object) -> list[str]:
    """One text, or all plural forms."""
    return [of] if isinstance(of, str) else [str(each) for each in of or ()]  # type: ignore[attr-defined]


def messages(language: str) -> list[Message]:
    return [message for message in read_catalog(language) if message.id]


def test_german_is_there() -> None:
    assert "de" in LANGUAGES


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_of_the_pages_is_translated_and_nothing_else_is(language: str) -> None:
    on_pages = {str(message.id) for message in extracted() if message.id}
    assert on_pages ^ {str(message.id) for message in messages(language)} == set(), "`make translations` brings them in"
    assert [message.id for message in unfinished(read_catalog(language))] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_translation_fills_in_what_its_original_does(language: str) -> None:
    wrong = []
    for message in messages(language):
        wanted = sorted(set(PLACEHOLDER.findall(texts(message.id)[-1])))
        wrong += [text for text in texts(message.string) if sorted(set(PLACEHOLDER.findall(text))) != wanted]
    assert wrong == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_translation_can_break_out_of_where_it_stands(language: str) -> None:
    brought = [
        text
        for message in messages(language)
        for text in texts(message.string)
        if set(SPECIAL.findall(text)) - set(SPECIAL.findall("".join(texts(message.id))))
    ]
    assert brought == []


def test_german_pages_of_players_and_participants_say_du() -> None:
    formal = re.compile(r"(?<=[a-zäöüß,] )(Sie|Ihnen|Ihr|Ihre[mnrs]?)\b")
    for_them = [
        message
        for message in messages("de")
        if any(place.startswith("templates/") and "/admin/" not in place for place, _ in message.locations)
    ]
    assert len(for_them) > 500
    assert [text for message in for_them for text in texts(message.string) if formal.search(text)] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_numbers_have_as_many_forms_as_the_language(language: str) -> None:
    catalog = read_catalog(language)
    forms = {len(texts(message.string)) for message in catalog if message.pluralizable}
    assert forms == {catalog.num_plurals}


@pytest.mark.parametrize("language", LANGUAGES)
def test_scripts_find_every_text_they_ask_for(language: str) -> None:
    words, kinds = script_words(language), Locale.parse(language).plural_form.tags | {"other"}
    asked = {"t": set(), "tn": set()}  # type: dict[str, set[str]]
    for path in (ROOT / "static" / "js").rglob("*.js"):
        for name, text in re.findall(r'\b(tn?)\(\s*"((?:[^"\\]|\\.)+)"', path.read_text()):
            asked[name].add(text)
    assert asked["t"]
    assert {text for text in asked["t"] if not isinstance(words.get(text), str)} == set()
    assert {text: set(words[text]) for text in asked["tn"]} == dict.fromkeys(asked["tn"], kinds)


def test_english_pages_need_no_words() -> None:
    assert script_words(ENGLISH) == {}


def test_the_names_of_all_games_can_be_translated() -> None:
    known = {message.id for message in extracted()}
    assert {text for game in GAMES.values() for text in (game.title, *game.roles, *game.outcomes)} <= known


MOVES = [
    ((), "Hello."),
    ((), "[message] Hello. [message] You."),
    ((), "[message]"),
    ((), "[propose] (1 books, 0 hats, 0 balls)"),
    (("[message] Hello.",), "[propose] one book"),
    (("[message] Hello.",), "[propose] (9 books, 0 hats, 0 balls)"),
    (("[message] Hello.", "[propose] (0 books, 0 hats, 0 balls)"), "[message] Wait."),
]


@pytest.mark.parametrize(("said", "text"), MOVES)
def test_a_refusal_by_the_rules_has_words_in_other_languages(said: tuple[str, ...], text: str) -> None:
    state = NEGOTIATION.initial(NEGOTIATION.config({"first": 0}), random.Random(1))
    for number, move in enumerate(said):
        event = NEGOTIATION.parse(state, number % 2, move)
        assert not isinstance(event, Violation)
        state = NEGOTIATION.apply(state, event)
    refusal = NEGOTIATION.parse(state, len(said) % 2, text)
    assert isinstance(refusal, Violation)
    scripts = "".join((ROOT / "static/js" / name).read_text() for name in ("match.js", "games/negotiation.js"))
    assert re.search(rf"^  {refusal.code}: ", scripts, re.MULTILINE)
    assert f"`{refusal.code}`" in (ROOT / "docs/protocol.md").read_text()


@pytest.mark.parametrize("language", LANGUAGES)
def test_jobs_of_every_kind_are_called_by_words_of_the_language(language: str) -> None:
    words = {message.id: message.string for message in read_catalog(language) if message.string}
    for kind in JOB_KINDS:
        assert re.fullmatch(r"[A-ZÄÖÜ]\w+ 3", kind.subject(3).render(lambda text: str(words[text])))


def test_what_is_named_for_translators_is_still_said_below() -> None:
    code = [path.read_text() for path in (ROOT / "app").rglob("*.py") if path.name != "words.py"]
    said = "\n".join(code)
    assert [text for text in FROM_BELOW if text not in said and text.lower().replace(" ", "_") not in said] == []
