"""Moves that a model gives as JSON: the schema of its answer, and the text of the move. Pure.

An answer is `{"move": {FORM: CONTENT}}`; the game defines the forms and their contents. The outer object is needed
because servers accept no choice at the top level of a schema.
"""

import json
from collections.abc import Mapping
from typing import Any

from app.core.validation import Schema
from app.games.base import Game, View


def answer_schema(game: Game[Any], view: View) -> str:
    """The JSON Schema of an answer of the seat that sees `view`, whose turn it is."""
    forms = [object_schema({form: content}) for form, content in game.answer_forms(view).items()]
    return json.dumps({"title": "move", **object_schema({"move": forms[0] if len(forms) == 1 else {"anyOf": forms}})})


def move_of_answer(game: Game[Any], view: View, text: str) -> str | None:
    """The text of the move in that seat's answer; None if the answer is no such object."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return None
    move = answer["move"] if isinstance(answer, dict) and answer.keys() == {"move"} else None
    if not isinstance(move, dict) or len(move) != 1:
        return None
    [(form, content)] = move.items()
    return game.written_move(view, form, content)


def object_schema(fields: Mapping[str, Schema]) -> Schema:
    """The schema of an object with these fields and no others."""
    return {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}
