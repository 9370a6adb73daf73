"""A person on the pages of a study, by a test client, and the matches that are played on the way."""

import hashlib
import html
import re
from collections.abc import Callable
from typing import Any

from flask.testing import FlaskClient
from sqlalchemy import Engine
from werkzeug.test import TestResponse

from app.core.extensions import reading, writing
from app.matches import live
from app.matches.lobby import person_in
from app.matches.stored import StoredMatch, load
from app.matches.turns import WorkerContext, play_turn

AT_ONCE = {"reply_after": {"seconds_per_word": 0, "least": 0, "most": 0}}
MATCH = re.compile(r"/play/([\w-]+)$")


def prolific_id(name: str) -> str:
    """The id that somebody has at Prolific: 24 hexadecimal digits."""
    return hashlib.sha256(name.encode()).hexdigest()[:24]


def door_of(name: str, wave: str = "main", study: str = "two-models", visit: str | None = None) -> str:
    """The link by which somebody comes from Prolific, on their first visit unless another one is named."""
    named = f"visit-of-{name}".replace(" ", "-") if visit is None else visit
    return f"/s/{study}/{wave}?PROLIFIC_PID={prolific_id(name)}&STUDY_ID=66f0c1&SESSION_ID={named}"


def text_of(response: TestResponse) -> str:
    """The words of a page, without its tags."""
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", response.text).split()))


class Walker:
    """Somebody who goes through a study. `page` is the last page that was shown."""

    def __init__(self, client: FlaskClient, door: str, **headers: str) -> None:
        self.client = client
        self.headers = headers
        self.page = client.get(door, headers=headers)
        self.address = client.post(door, headers=headers).location or ""
        self.look()

    def look(self) -> str:
        """Open the page of the step that is due; its words."""
        self.page = self.client.get(self.address)
        return text_of(self.page)

    @property
    def step(self) -> str:
        """The step whose page is shown."""
        found = re.search(r'name="step" value="([^"]*)"', self.page.text)
        return found[1] if found else ""

    @property
    def title(self) -> str:
        found = re.search(r"<title>(.*?)</title>", self.page.text)
        return html.unescape(found[1]) if found else ""

    @property
    def heading(self) -> str:
        found = re.search(r"<h1[^>]*>(.*?)</h1>", self.page.text)
        return html.unescape(found[1]) if found else ""

    def send(self, step: str | None = None, **form: Any) -> TestResponse:
        """Send the form of the page, and show what comes then, unless that is a match."""
        due = self.step if step is None else step
        fields = {name.replace("__", "."): value for name, value in form.items()}
        answer = self.client.post(self.address, data={"step": due, **fields})
        self.page = answer
        if answer.status_code == 303 and answer.location == self.address:
            self.look()
        return answer

    def answer_quiz(self, *words: str) -> None:
        """Choose the options with these words, question by question that is still asked."""
        chosen = {}
        asked = re.findall(r'<input type="radio" name="(q\d+)" value="(\d+)"[^>]*> <span>(.*?)</span>', self.page.text)
        for name, word in zip(dict.fromkeys(name for name, _, _ in asked), words, strict=True):
            chosen[name] = next(
                value for other, value, option in asked if (other, html.unescape(option)) == (name, word)
            )
        attempt = re.search(r'name="attempt" value="(\d+)"', self.page.text)
        self.send(attempt=attempt[1] if attempt else "", **chosen)


def play_out(engine: Engine, context: Callable[..., WorkerContext], match_id: str) -> StoredMatch:
    """Play a match to its end: the person writes, and in a negotiation asks for one thing of each kind."""
    while True:
        with reading(engine) as session:
            record = load(session, match_id)
        if record.match.over:
            return record
        if record.model_to_move:
            play_turn(context(), match_id)
            continue
        with writing(engine) as session:
            live.submit(session, live.MoveSubmission(match_id, person_in(record), _move(record)), instant=True)


def _move(record: StoredMatch) -> str:
    if record.match.game.name == "negotiation" and record.match.ply > 0:
        counts = record.match.state.config.counts
        return "[propose] ({} books, {} hats, {} balls)".format(*(min(1, count) for count in counts))
    return "[message] Shall we begin?" if record.match.game.name == "negotiation" else "Tell me more about that."
