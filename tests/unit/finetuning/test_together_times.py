"""The times in Together's answers."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from app.finetuning.together.answers import TogetherJob

NOON = 1_767_268_800.0  # 2026-01-01T12:00:00Z


@pytest.fixture(params=["UTC", "Asia/Tokyo"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The time zone of this machine."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-01-01T12:00:00Z", NOON),
        ("2026-01-01T12:00:00", NOON),  # without a zone it is UTC, wherever this machine stands
        ("2026-01-01T14:00:00+02:00", NOON),
        ("noon", None),
        (None, None),
    ],
)
def test_a_time_is_read_with_its_zone_or_as_utc(text: Any, seconds: float | None) -> None:
    assert TogetherJob.model_validate({"id": "ft-1", "created_at": text}).created_at == seconds
