import json
from pathlib import Path

import pytest

from app.core.errors import Invalid
from app.society.priors import MOST_DIALOGUES, parse_priors, read_priors
from app.society.questions import parse_questions, read_questions
from app.society.text_files import LONGEST_TEXT

PAIR = {"question": "Q?", "answer": "A."}
LABELS = "file: expected an object with lists of questions and answers under the labels good and bad"


def refusal(raw: bytes, parse: object = parse_questions) -> str:
    with pytest.raises(Invalid) as refused:
        parse(raw, "file")  # type: ignore[operator]
    assert "\n" not in refused.value.message
    return refused.value.message


def test_questions_are_lines_without_the_empty_ones() -> None:
    assert parse_questions(b"\xef\xbb\xbfOne?\r\n\n  Two?  \nOne?", "file") == ("One?", "Two?", "One?")


def test_questions_may_be_a_json_list_whose_texts_have_lines() -> None:
    assert parse_questions(b'["One?\\nReally?", " Two? "]', "file") == ("One?\nReally?", "Two?")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "file: expected at least one question, got an empty file"),
        (b" \n\n ", "file: expected at least one question, got an empty file"),
        (b"[]", "file: expected at least one question, got an empty file"),
        (b'{"questions": ["One?"]}', "file: expected one question per line, or a JSON list of texts, got JSON objects"),
        (b'["One?",', "file: expected JSON, got none from line 1 on"),
        (b"\xff\xfa", "file: expected a text in UTF-8, got bytes that are not UTF-8"),
        (b'["One?", 2]', "file, item 2: expected a text of 1 to 20000 characters, got 2"),
        (b'["One?", "  "]', "file, item 2: expected a text of 1 to 20000 characters, got '  '"),
        (b'["\\ud800"]', "file, item 1: expected a text of 1 to 20000 characters, got '\\ud800'"),
        (b"One?\nTwo\0?", "file, line 2: expected a text of 1 to 20000 characters, got 'Two\\x00?'"),
        (
            b"One?\n\n" + b"x" * (LONGEST_TEXT + 1),
            "file, line 3: expected a text of 1 to 20000 characters, got a longer one",
        ),
    ],
)
def test_a_bad_file_of_questions_is_refused_in_one_line(raw: bytes, message: str) -> None:
    assert refusal(raw) == message


def test_priors_are_questions_with_answers_by_label() -> None:
    raw = json.dumps({"bad": [PAIR], "good": [PAIR, {"question": " R? ", "answer": " B. "}]}).encode()
    assert parse_priors(raw, "file") == {"good": (("Q?", "A."), ("R?", "B.")), "bad": (("Q?", "A."),)}
    assert parse_priors(json.dumps({"bad": []}).encode(), "file") == {"bad": ()}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], f"{LABELS}, got list"),
        ({}, f"{LABELS}, got none"),
        (
            {"good": [PAIR], "evil": []},
            f"{LABELS}, got 'good', 'evil'",
        ),
        ({"good": {}}, "file: expected a list under the label good, got dict"),
        ({"good": [PAIR, "x"]}, "file, good, item 2: expected an object with question and answer, got 'x'"),
        ({"bad": [{"question": "Q?"}]}, "file, bad, item 1: expected an object with question and answer, got question"),
        (
            {"bad": [{**PAIR, "answer": ""}]},
            "file, bad, item 1: expected a text of 1 to 20000 characters, got ''",
        ),
        (
            {"bad": [PAIR, PAIR]},
            "file, bad, item 2: expected each question once under a label, as it keeps its first answer, got 'Q?'",
        ),
    ],
)
def test_a_bad_file_of_priors_is_refused_in_one_line(value: object, message: str) -> None:
    assert refusal(json.dumps(value).encode(), parse_priors) == message


def test_of_a_published_dialogue_the_first_answer_is_a_memory_of_its_label() -> None:
    dialogues = [
        {"question": " Why? ", "response": "You: Because.\nFriend: Oh!\nYou: Yes.", "morality_label": "bad"},
        {"question": "How?", "response": "Slowly.", "morality_label": "good", "index": 3},
        {"question": "How?", "response": "Fast.", "morality_label": "good"},
        {"question": "When?", "response": "Friend: now?", "morality_label": "good"},
    ]
    found = parse_priors(json.dumps(dialogues).encode(), "file")
    assert found == {"good": (("How?", "Slowly."),), "bad": (("Why?", "Because."),)}
    bad = [*dialogues, {"question": "q", "response": "a", "morality_label": "so-so"}]
    expected = "file, item 5: expected an object with question, response and morality_label, which is good or bad"
    assert refusal(json.dumps(bad).encode(), parse_priors).startswith(f"{expected}, got ")


def test_of_a_published_file_so_many_dialogues_of_each_label_are_taken() -> None:
    dialogues = [
        {"question": f"{label} {place}?", "response": "You: Yes.", "morality_label": label}
        for place in range(MOST_DIALOGUES + 5)
        for label in ("good", "bad")
    ]
    found = parse_priors(json.dumps(dialogues).encode(), "file")
    assert [len(found["good"]), len(found["bad"])] == [MOST_DIALOGUES, MOST_DIALOGUES]
    assert found["bad"][-1] == (f"bad {MOST_DIALOGUES - 1}?", "Yes.")


def test_priors_that_are_no_json_are_refused_with_the_line() -> None:
    assert refusal(b'{"good":\n[}', parse_priors) == "file: expected JSON, got none from line 2 on"
    assert refusal(b"[" * 100_000, parse_priors).startswith("file: expected JSON, got ")


def test_a_file_that_is_not_there_is_refused_by_its_path(tmp_path: Path) -> None:
    for read in (read_questions, read_priors):
        with pytest.raises(Invalid, match=r"none\.txt: expected a file that can be read, got no such file"):
            read(tmp_path / "none.txt")
