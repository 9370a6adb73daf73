"""Which tests the processes of `pytest -n` take, and in which order.

A file stays in one process, for what its tests share. So do all browser tests: one Chromium and one Parlor serve them,
and two browsers at once take the focus from each other. A long file that came last would keep other processes waiting.
"""

from xdist.scheduler import LoadFileScheduling

FIRST = (
    "tests/browser/",
    "tests/integration/test_chaos.py",
    "tests/integration/test_supervisor.py",
    "tests/integration/test_kill.py",
    "tests/integration/test_jobs",
    "tests/integration/test_campaigns.py",
    "tests/integration/test_rounds_kill.py",
    "tests/integration/test_protocol.py",
    "tests/integration/test_clocks.py",
    "tests/integration/test_cli_doctor.py",
    "tests/integration/test_admin",
    "tests/training/test_resume.py",
    "tests/integration/",
    "tests/training/",
    "tests/unit/",
)


def place(test: str) -> int:
    """When a test, given by its node id, is to be taken: the number of the first line above that fits."""
    return next((number for number, beginning in enumerate(FIRST) if test.startswith(beginning)), len(FIRST))


class Scheduler(LoadFileScheduling):
    """Hands out files in the order in which they were collected, and the browser tests as if they were one file."""

    def _split_scope(self, nodeid: str) -> str:
        return "tests/browser" if nodeid.startswith("tests/browser/") else super()._split_scope(nodeid)
