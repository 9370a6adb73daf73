"""How fast is too fast."""

import pytest

from app.web.bucket import Bucket


def test_a_burst_is_allowed_and_then_the_pace() -> None:
    bucket = Bucket(5, now=0)
    assert [bucket.take(0) for _ in range(12)] == [True] * 10 + [False] * 2
    assert not bucket.take(0.1)
    assert bucket.take(0.3)
    assert sum(bucket.take(0.3 + step / 100) for step in range(1, 1001)) in (50, 51)


def test_a_slow_pace_lets_one_through_now_and_then() -> None:
    bucket = Bucket(0.1, now=0)
    assert bucket.take(0)
    assert not bucket.take(5)
    assert bucket.take(20)
    assert not bucket.take(21)


def test_no_limit_is_no_limit() -> None:
    bucket = Bucket(0, now=0)
    assert all(bucket.take(0) for _ in range(1000))


def test_what_is_taken_on_credit_is_paid_back_at_the_pace() -> None:
    bucket = Bucket(10, now=0)
    assert bucket.spend(20, 0) == 0
    assert bucket.spend(5, 0) == pytest.approx(0.5)
    assert bucket.spend(5, 1) == 0
    assert Bucket(0, now=0).spend(10**6, 0) == 0
