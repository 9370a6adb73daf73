"""Errors: one line in English for programs and terminals, and parts that a page can translate."""

import pickle

import pytest

from app.core.errors import Conflict, FieldName, Invalid, NotFound, Phrase, Verbatim, check_name, either


def test_an_error_is_one_line_of_field_expected_got_and_remedy() -> None:
    error = Invalid(
        "limit",
        expected=Phrase("a whole number from %(least)s to %(most)s", least=1, most=1000),
        got="many",
        remedy=Phrase("leave it out"),
    )
    assert str(error) == error.message == "limit: expected a whole number from 1 to 1000, got 'many'; leave it out"
    assert (error.field, error.code, error.status) == ("limit", "invalid", 400)


@pytest.mark.parametrize(
    ("got", "shown"),
    [(7, "7"), ("7", "'7'"), (None, "None"), (Phrase("none"), "none"), (Verbatim("a, b"), "a, b"), ("x" * 99, "…")],
)
def test_what_came_is_shown_as_its_value_and_short(got: object, shown: str) -> None:
    message = NotFound("model", expected="one that exists", got=got).message
    assert message.startswith("model: expected one that exists, got ")
    assert message.endswith(shown)
    assert len(message) < 100


def test_a_line_begins_with_the_subject_where_there_is_one() -> None:
    assert Conflict("round", expected="one", got=0, subject="round 3").message == "round 3: expected one, got 0"
    assert Invalid(None, expected="an object", got=0).message == "expected an object, got 0"


def test_an_error_within_a_file_keeps_its_field_and_names_the_place() -> None:
    error = Invalid("word", expected="a word", got=0).at("words.txt, line 2")
    assert (error.field, error.message) == ("word", "words.txt, line 2: word: expected a word, got 0")
    assert Invalid(None, expected="a word", got=0).at("words.txt").message == "words.txt: expected a word, got 0"


@pytest.mark.parametrize(("choices", "text"), [(["a"], "a"), (["a", "b"], "a or b"), (["a", "b", "c"], "a or b or c")])
def test_choices_are_joined_by_or(choices: list[str], text: str) -> None:
    assert str(either(choices)) == text


def test_the_parts_of_an_error_are_translated_but_not_what_came() -> None:
    german = {
        "expected %(expected)s, got %(got)s": "erwartet: %(expected)s, erhalten: %(got)s",
        "%(choices)s or %(last)s": "%(choices)s oder %(last)s",
        "see %(field)s": "siehe %(field)s",
    }
    error = Invalid(
        "rule", expected=either(["or", "b"]), got="or", remedy=Phrase("see %(field)s", field=FieldName("key_env"))
    )
    assert error.is_translatable()
    line = error.line(lambda text: german.get(text, text), {"rule": "Regel", "key_env": "Schlüssel"}.__getitem__)
    assert line == "Regel: erwartet: or oder b, erhalten: 'or'; siehe “Schlüssel”"
    assert error.message == "rule: expected or or b, got 'or'; see key_env"


def test_an_error_with_english_text_is_not_translatable() -> None:
    assert not Invalid("a", expected="a word", got=0).is_translatable()
    assert not Invalid("a", expected=Phrase("a word"), got=0, remedy="try again").is_translatable()


def test_an_error_crosses_a_process() -> None:
    error = check_fails("name", " x")
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert (type(copy), copy.field, copy.message) == (type(error), error.field, error.message)


def check_fails(field: str, value: str) -> Invalid:
    with pytest.raises(Invalid) as found:
        check_name(field, value)
    return found.value
