"""Deadlines that a design states relative to an event, such as 30 days after taking part. Pure."""

from datetime import date, datetime, timedelta

_AFTER_CLOSE = "close"  # the last word of a deadline that counts from the close of the wave


def day_of(deadline: str, took_part: datetime | None, closed: datetime | None) -> date | None:
    """The last day of a deadline, given when the person took part and when the wave closed.

    None if it has not begun to count: the person is still taking part, or the wave is open.
    """
    days, _, _, what = deadline.split(" ", 3)
    since = closed if what == _AFTER_CLOSE else took_part
    return None if since is None else (since + timedelta(days=int(days))).date()


def last_linked_day(deadline: str, took_part: datetime | None, closed: datetime | None) -> date | None:
    """The last day on which a person's keyed hash is kept: that of the deadline, but not before the wave closes.

    None if it is not known yet: the person is still taking part, or the wave is open.
    """
    day = day_of(deadline, took_part, closed)
    return None if day is None or closed is None else max(day, closed.date())
