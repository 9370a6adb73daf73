"""The statuses of a job.

waiting → running → done
                  → failed → (resumed) → waiting, or → cancelling where a vendor may still train
                  → cancelling → cancelled → (resumed) → waiting
"""

WAITING, RUNNING, DONE, FAILED = "waiting", "running", "done", "failed"
CANCELLING, CANCELLED = "cancelling", "cancelled"
STATUSES = (WAITING, RUNNING, CANCELLING, CANCELLED, FAILED, DONE)
OPEN = (WAITING, RUNNING)  # a worker may work on it
LIVE = (*OPEN, CANCELLING)  # its status will change on its own
INTERRUPTED = "interrupted"  # the name of a running job that nobody works on and no worker will be called for
REMOVED = "removed"  # the name of a finished job once what it made was removed
STOPPED = (FAILED, CANCELLED, INTERRUPTED)  # jobs that can be resumed
