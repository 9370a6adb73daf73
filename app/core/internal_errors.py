"""The message for an unforeseen error: a reference, under which the log has the error and its traceback.

A raw Python error does not help a reader of a job's page, and may reveal what should not be shown.
"""

import re
import secrets
from typing import Any

import structlog

log = structlog.get_logger()
_PYTHONS_OWN = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)\b(?::|$)")


def internal_error(what: str, problem: BaseException, **facts: Any) -> str:
    """Log an error with `facts` about where it happened; the line for the row of the job or match."""
    reference = secrets.token_hex(4)
    log.error(what, reference=reference, exc_info=problem, **facts)
    what_broke = problem.strerror if isinstance(problem, OSError) and problem.strerror else "something broke"
    return f"internal error {reference}: {what_broke}; the log says more under this reference"


def unexplained(what: str, code: int, last_line: str) -> str:
    """Why a process ended without giving a reason: the last line that it printed, unless that is Python's own."""
    if not last_line:
        return f"{what} ended with exit code {code} and said nothing"
    if _PYTHONS_OWN.match(last_line):
        return f"internal error: {what} ended with exit code {code}; its log says where"
    return last_line
