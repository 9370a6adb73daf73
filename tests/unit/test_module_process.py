"""Modules that run as processes of their own: what they answer, and what is said of those that do not."""

import json

import pytest

from app.core.module_process import BrokeOffError, run_module


def test_a_module_answers_what_it_was_given() -> None:
    assert json.loads(run_module("json.tool", "--compact", given={"a": [1]}, seconds=60)) == {"a": [1]}


def test_the_last_line_of_a_module_that_breaks_says_why() -> None:
    with pytest.raises(BrokeOffError, match=r"No module named app\.nowhere$"):
        run_module("app.nowhere", given="x" * 200_000, seconds=60)


def test_a_module_that_takes_too_long_is_ended() -> None:
    with pytest.raises(TimeoutError):
        run_module("http.server", "--bind", "127.0.0.1", "0", given=None, seconds=2)
