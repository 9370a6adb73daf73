"""Which tests the processes of `pytest -n` take, and in which order.

A file stays in one process, for what its tests share. So do the browser tests of either half: one Chromium and one
Parlor serve them. A long file that came last would keep other processes waiting.
"""

from itertools import islice
from typing import Any

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

FIRST = (
    "tests/browser/",
    "tests/integration/test_notebooks.py",
    "tests/integration/test_chaos.py",
    "tests/integration/test_transformers_serve.py",
    "tests/integration/test_publishing.py",
    "tests/integration/test_training_part.py",
    "tests/integration/test_models_process.py",
    "tests/integration/test_client.py",
    "tests/integration/test_supervisor.py",
    "tests/integration/test_kill.py",
    "tests/integration/test_jobs",
    "tests/integration/test_campaigns.py",
    "tests/integration/test_rounds_kill.py",
    "tests/integration/test_protocol.py",
    "tests/integration/test_clocks.py",
    "tests/integration/test_request_bodies.py",
    "tests/integration/test_cli_doctor.py",
    "tests/integration/test_admin",
    "tests/integration/test_result_reports.py",
    "tests/training/test_resume.py",
    "tests/unit/bench/test_parsers.py",
    "tests/integration/",
    "tests/training/",
    "tests/unit/",
)
SECOND_HALF = "tests/browser/test_g"  # half of the time, the files in the order of their names


def place(test: str) -> int:
    """When a test, given by its node id, is to be taken: the number of the first line above that fits."""
    return next((number for number, beginning in enumerate(FIRST) if test.startswith(beginning)), len(FIRST))


class Scheduler(LoadFileScheduling):
    """Hands out files in the order in which they were collected, and the browser tests as if they were two files.

    A test that has ended its process has failed and is not taken again, by which it would end the next one, too.
    """

    def __init__(self, *options: Any) -> None:
        super().__init__(*options)
        self._ended_theirs: set[str] = set()

    def remove_node(self, node: WorkerController) -> str | None:
        running = (test for unit in self.assigned_work[node].values() for test, done in unit.items() if not done)
        self._ended_theirs.update(islice(running, 1))
        return super().remove_node(node)

    def _reschedule(self, node: WorkerController) -> None:
        if node in self.registered_collections:  # a process that begins while another ends has not collected yet
            super()._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        scope, unit = next(iter(self.workqueue.items()))
        unit.update(dict.fromkeys(self._ended_theirs & unit.keys(), True))
        if not all(unit.values()):
            super()._assign_work_unit(node)
            return
        self.assigned_work.setdefault(node, {})[scope] = self.workqueue.pop(scope)
        self._reschedule(node)

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith("tests/browser/"):
            return "tests/browser, first half" if nodeid < SECOND_HALF else "tests/browser, second half"
        return super()._split_scope(nodeid)
