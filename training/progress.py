"""The events of a training as JSON lines: `{"event": …, "at": …}`, one per line, flushed at once."""

import json
import math
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO


class Progress:
    """Writes events to a stream. Numbers that JSON cannot represent (NaN, infinity) become null."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._follower: Callable[[str, Mapping[str, Any]], None] | None = None

    def follow(self, follower: Callable[[str, Mapping[str, Any]], None]) -> None:
        """Pass each later event and its facts to `follower`, once it is written."""
        self._follower = follower

    def tell(self, event: str, **facts: Any) -> None:
        """Write one event; event names are in docs/training.md."""
        line = json.dumps(
            {"event": event, "at": round(time.time(), 3)} | {name: _json_value(value) for name, value in facts.items()}
        )
        self._stream.write(line + "\n")
        self._stream.flush()
        if self._follower is not None:
            self._follower(event, facts)


def _json_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _json_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class StopRequest:
    """A request to end the training. During the steps it takes effect after the current one, else at once."""

    def __init__(self) -> None:
        self.asked = False
        self.gentle = False

    def ask(self, *_: object) -> None:
        """A signal handler. Raises KeyboardInterrupt outside the steps, or on the second request."""
        if self.asked or not self.gentle:
            raise KeyboardInterrupt
        self.asked = True
