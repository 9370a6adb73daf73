"""The statuses of a job.

waiting → running → done
                  → failed → (resumed) → waiting, or → cancelling where a vendor may still train
                  → cancelling → cancelled → (resumed) → waiting
"""

WAITING, RUNNING, DONE, FAILED = "waiting", "running", "done", "failed"
CANCELLING, CANCELLED = "cancelling", "cancelled"
STATUSES = (WAITING, RUNNING, CANCELLING, CANCELLED, FAILED, DONE)
OPEN = (WAITING, RUNNING)  # somebody may work at it
LIVE = (*OPEN, CANCELLING)  # it will change by itself
INTERRUPTED = "interrupted"  # what a running one is called while nobody is at it and no worker will be called
REMOVED = "removed"  # what one that is over is called once what it has made was removed
STOPPED = (FAILED, CANCELLED, INTERRUPTED)  # what can be resumed
