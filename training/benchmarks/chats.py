"""Chats that a task sends to a model behind an API, which is called elsewhere: requested here, answered in a file.

Whoever runs the benchmark calls the model for each chat of the requests file, adds the answers and runs it again.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple


class AnswerRequest(NamedTuple):
    """One user message, and the maximum number of tokens of its answer, which is to be the likeliest one."""

    text: str
    most_tokens: int

    @property
    def key(self) -> str:
        """The key under which its answer is found: the same chat is asked once."""
        return hashlib.sha256(json.dumps(self).encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """The request as a line of the requests file."""
        return {"key": self.key, "text": self.text, "max_tokens": self.most_tokens}


class AnswersMissing(Exception):
    """Chats must be answered before a task can be scored."""

    def __init__(self, requests: Sequence[AnswerRequest]) -> None:
        super().__init__(f"{len(requests)} chats without an answer")
        self.requests = requests


class RecordedAnswers:
    """The answers in a file, one JSON object per line: `{"key", "text"}`."""

    def __init__(self, path: Path) -> None:
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self._texts = {each["key"]: each["text"] for each in map(json.loads, lines)}

    def of(self, requests: Sequence[AnswerRequest]) -> list[str]:
        """The answer to each request. Raises AnswersMissing with the requests that have none."""
        missing = {each.key: each for each in requests if each.key not in self._texts}
        if missing:
            raise AnswersMissing([*missing.values()])
        return [self._texts[each.key] for each in requests]


def write_requests(path: Path, requests: Sequence[AnswerRequest]) -> None:
    """Write the requests, completely or not at all."""
    draft = path.with_suffix(".part")
    draft.write_text("".join(f"{json.dumps(each.as_json())}\n" for each in requests), encoding="utf-8")
    draft.replace(path)
