"""A job's progress, shown in a terminal and in a notebook: by tqdm if installed, else in a line of text."""

import sys
import warnings
from importlib import import_module
from typing import Any

_WIDTH = 30  # characters in a bar


class ProgressBar:
    """A bar for one job. shown: whether to show it; None: only in a terminal or a notebook."""

    def __init__(self, title: str, shown: bool | None) -> None:
        self._title = title
        self._shown = _is_watched() if shown is None else shown
        self._tqdm: Any = _tqdm_class() if self._shown else None
        self._bar: Any = None
        self._written = ""

    def show(self, status: str, done: int, of: int | None) -> None:
        """Show how many steps are done; `of` is None while their total is unknown."""
        if not self._shown:
            return
        if self._tqdm is not None:
            self._bar = self._bar if self._bar is not None else self._tqdm(desc=self._title, total=of)
            self._bar.total, self._bar.n = of, done
            self._bar.set_postfix_str(status)
            return
        filled = _WIDTH * done // of if of else 0
        line = f"{self._title} [{'#' * filled:.<{_WIDTH}}] {done}{f' of {of}' if of else ''}, {status}"
        if line != self._written:
            print(f"\r{line:<{len(self._written)}}", end="", file=sys.stderr, flush=True)
            self._written = line

    def close(self) -> None:
        """Leave the bar as it is, and go to the next line."""
        if self._bar is not None:
            self._bar.close()
        elif self._written:
            print(file=sys.stderr)


def _is_watched() -> bool:
    return "ipykernel" in sys.modules or bool(getattr(sys.stderr, "isatty", bool)())


def _tqdm_class() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about missing widgets, without which its bar is a line of text
        try:
            return import_module("tqdm.auto").tqdm
        except ImportError:
            return None
