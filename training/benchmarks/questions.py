"""Multiple-choice questions in a file, one JSON object per line: `{"question", "choices", "answer"}`, scored here.

As `choices`, a question is written as `Question: …`, a line `Answer:` and a space with a choice; there are no examples
before it. As `letters`, a chat model is shown all choices under letters and asked for one of them.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Any, NamedTuple

from training.benchmarks.chats import AnswerRequest
from training.benchmarks.scores import TaskResult, choice_scores, headline, mean_score
from training.data import read_objects
from training.errors import TrainingRefused, shown
from training.hashes import file_hash

SOURCE = "parlor"
_MOST_TOKENS = 16  # of an answer that is to be one letter
# Where an answer gives its letter, the surest place first. L stands for the letters of the question.
_NOUN = r"(?i:\b(?:answer|option|choice|letter)\b)"
_BEFORE = r"[\s:=*_`(\[{\"'“‘-]*"  # what may be between a word and a letter that belong together
_ALONE = r"(?!\w|['’]\w)"  # "A's" is no letter
_PLACES = (
    rf"{_NOUN}(?:\s+(?:is|was|(?:would|should|must)\s+be)\b)?{_BEFORE}(?:{_NOUN}{_BEFORE})?\b(L){_ALONE}",
    r"\b(L)[*_`)\]]*\s+is\s+(?:the\s+)?(?:right|correct|best|answer)\b",
    rf"[(\[{{*_`]\s*(?:{_NOUN}\s+)?(L)(?=\s*[)\]}}*_`.:,])",  # in brackets or bold, perhaps with its choice
    r"(?m:^)\s*(?:[>-]\s*)?(L)(?=\s*(?:[.,:;)!]|(?m:$)|[-–—]\s))",  # alone on a line, or before its choice
    rf"(?<!\w)(?<!\w['’])(L){_ALONE}",
)

Pairs = Sequence[tuple[str, str]]  # contexts, and what may follow each


class Question(NamedTuple):
    """A question, its choices, and the index of the right one, counted from 0."""

    text: str
    choices: Sequence[str]
    answer: int


def read_questions(path: Path, limit: int | None = None) -> list[Question]:
    """The questions in a file, the first `limit` of them. Raises TrainingRefused, naming the line."""
    return [_question(place, raw) for place, raw in read_objects(path)][:limit]


def score_choices(
    name: str, path: Path, limit: int | None, log_likelihoods: Callable[[Pairs], Sequence[float]]
) -> TaskResult:
    """The result of a file's questions as `choices`; `log_likelihoods` gives that of each continuation after its
    context.
    """
    questions = read_questions(path, limit)
    pairs = [(f"Question: {each.text}\nAnswer:", f" {choice}") for each in questions for choice in each.choices]
    values = iter(log_likelihoods(pairs))
    of_each = [[next(values) for _ in each.choices] for each in questions]
    found = choice_scores(of_each, [each.choices for each in questions], [each.answer for each in questions])
    return TaskResult(name, len(questions), headline([*found]), found, SOURCE, _version_of_questions(path))


def score_letters(
    name: str, path: Path, limit: int | None, answers: Callable[[Sequence[AnswerRequest]], Sequence[str]]
) -> TaskResult:
    """The result of a file's questions as `letters`; `answers` gives the answer to each chat, and `chosen_letter` its
    letter.
    """
    questions = read_questions(path, limit)
    texts = answers([AnswerRequest(_with_letters(each), _MOST_TOKENS) for each in questions])
    right = [
        float(chosen_letter(text, len(each.choices)) == ascii_uppercase[each.answer])
        for text, each in zip(texts, questions, strict=True)
    ]
    found = {"exact_match": mean_score(right)}
    return TaskResult(name, len(questions), headline([*found]), found, SOURCE, _version_of_questions(path))


def chosen_letter(text: str, choices: int) -> str | None:
    """The letter that an answer to a question with `choices` choices gives; None if it gives none.

    A letter may also be a word of the answer ("A good question"): one after "answer is", in brackets or bold, alone on
    a line or before its choice takes precedence, and of several in such places the last one counts.
    """
    letters = ascii_uppercase[:choices]
    for place in _PLACES:
        if found := re.findall(place.replace("(L)", f"([{letters}])"), text):
            return str(found[-1])
    return None


def _with_letters(question: Question) -> str:
    listed = "\n".join(f"{letter}. {choice}" for letter, choice in zip(ascii_uppercase, question.choices, strict=False))
    return f"{question.text}\n{listed}\nAnswer with the letter of the right choice alone."


def _version_of_questions(path: Path) -> str:
    """The version of the questions: the beginning of the file's hash."""
    return file_hash(path)[:12]


def _question(place: str, raw: Any) -> Question:
    text, choices, answer = (
        raw.get(name) if isinstance(raw, dict) else None for name in ("question", "choices", "answer")
    )
    if not isinstance(text, str) or not text:
        raise TrainingRefused(f"{place}: question: expected text, got {shown(text)}")
    if not isinstance(choices, list) or not all(isinstance(each, str) and each for each in choices):
        raise TrainingRefused(f"{place}: choices: expected texts, got {shown(choices)}")
    if not 2 <= len(choices) <= len(ascii_uppercase):
        raise TrainingRefused(f"{place}: choices: expected 2 to {len(ascii_uppercase)} of them, got {len(choices)}")
    if type(answer) is not int or not 0 <= answer < len(choices):
        raise TrainingRefused(f"{place}: answer: expected a number from 0 to {len(choices) - 1}, got {shown(answer)}")
    return Question(text, choices, answer)
