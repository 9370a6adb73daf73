"""Modules that run as processes of their own: what they answer, and what is said of those that do not."""

import json
from typing import Any

import pytest

from app.core.module_process import BrokeOffError, ModuleProcess, run_module

_ENDLESS = ("http.server", "--bind", "127.0.0.1", "0")  # reads nothing of its input


def test_a_module_answers_what_it_was_given() -> None:
    assert json.loads(run_module("json.tool", "--compact", given={"a": [1]}, seconds=60)) == {"a": [1]}


def test_the_last_line_of_a_module_that_breaks_says_why() -> None:
    with pytest.raises(BrokeOffError, match=r"No module named app\.nowhere$"):
        run_module("app.nowhere", given="x" * 200_000, seconds=60)


@pytest.mark.parametrize("given", [None, "x" * 200_000], ids=["little", "more than a pipe holds"])
def test_a_module_that_takes_too_long_is_ended(given: str | None) -> None:
    with pytest.raises(TimeoutError):
        run_module(*_ENDLESS, given=given, seconds=2)


def test_a_module_is_ended_with_whoever_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    started = list[ModuleProcess]()

    def interrupted(process: ModuleProcess, given: Any) -> None:
        started.append(process)
        raise KeyboardInterrupt

    monkeypatch.setattr(ModuleProcess, "give", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_module(*_ENDLESS, given=None, seconds=60)
    with pytest.raises(BrokeOffError):
        started[0].check()
