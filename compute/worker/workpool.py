"""The threads that run jobs; jobs on one VM id run one after the other.

Messages and heartbeats have threads of their own, so jobs never delay them.
"""

from __future__ import annotations

import collections
import concurrent.futures
import threading
import time
from collections.abc import Callable

from common.messages.commands import Command, Destroy
from common.messages.queues import OPERATIONS, Queue
from common.messages.reports import Outcome, Working
from common.metrics import table
from common.metrics.instruments import Samples
from compute.commands.job import Job
from compute.queues import Entry, counted
from compute.worker.repeats import asked

_NAME = "compute-work"


class WorkPool:
    """Jobs by VM id: the first of each runs, the others wait.

    ``run`` returns the outcome to report, or None if there is none.
    """

    def __init__(self, threads: int, run: Callable[[Job], Outcome | None]) -> None:
        self._run = run
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._lines: dict[tuple[str, int], collections.deque[Job]] = {}
        self._closed = False
        self._count = threads
        self.idle = Queue(OPERATIONS, OPERATIONS, threads, shared=True)
        """The queue of a host that has no jobs."""
        self._threads = concurrent.futures.ThreadPoolExecutor(threads, _NAME)
        table.POOL_HELD.watch(self._sample_held)
        table.POOL_THREADS.watch(self._sample_threads)

    def submit(self, job: Job) -> bool:
        """Add a job; return False if the operation is here already, and continues unchanged.

        A destroy cancels every build of the same server before it.
        """
        command = job.command
        with self._lock:
            line = self._lines.setdefault(job.key, collections.deque())
            for other in line:
                if _same(other.command, command) and other.ctxt.only_look == job.ctxt.only_look:
                    other.repeated(command)
                    return False
            if isinstance(command, Destroy) and command.ends_builds:
                for other in line:
                    if other.command.resource_id == command.resource_id:
                        other.cancel()
            line.append(job)
            if len(line) == 1 and not self._closed:
                self._threads.submit(self._work, job)
        return True

    def working(self) -> tuple[Working, ...]:
        """Return signs of life of all jobs, waiting ones too."""
        with self._lock:
            return tuple(job.working() for line in self._lines.values() for job in line)

    def operations(self, cluster: str) -> tuple[int, ...]:
        """Return the operations of a cluster's jobs, waiting ones too."""
        with self._lock:
            jobs = [job.command for line in self._lines.values() for job in line]
        return tuple(one.operation_id for one in jobs if one.placed.cluster == cluster)

    def queues(self) -> dict[str, Queue]:
        """Return the queue of each host that has jobs."""
        now = time.monotonic()
        with self._lock:
            entries = [
                Entry(job.command.placed.host, None if job.begun else now - job.came_at)
                for line in self._lines.values()
                for job in line
            ]
        return counted(entries, self.idle)

    def stop(self, seconds: float) -> bool:
        """Stop jobs without unwinding; return whether all ended within the time."""
        with self._idle:
            self._closed = True
            for line in self._lines.values():
                for job in line:
                    job.abandon()
            done = self._idle.wait_for(lambda: not self._lines, timeout=seconds)
        self._threads.shutdown(wait=done, cancel_futures=True)
        return done

    def _sample_held(self) -> Samples:
        with self._lock:
            return {(_NAME,): sum(map(len, self._lines.values()))}

    def _sample_threads(self) -> Samples:
        return {(_NAME,): self._count}

    def _work(self, job: Job) -> None:
        job.begun = True
        table.POOL_WAIT_SECONDS.observe(time.monotonic() - job.came_at, _NAME)
        outcome: Outcome | None = None
        try:
            outcome = self._run(job)
        finally:
            # Leaves the queue before its end is reported: a command sent again in answer to the
            # outcome is a new run, not a repetition of this one.
            self._done(job)
        if outcome is not None:
            job.journal.close(outcome)

    def _done(self, job: Job) -> None:
        with self._idle:
            line = self._lines[job.key]
            line.popleft()
            if line and not self._closed:
                self._threads.submit(self._work, line[0])
            else:
                del self._lines[job.key]
                self._idle.notify_all()


def _same(one: Command, other: Command) -> bool:
    """Return whether it is the same command, repeated.

    The undo of a running command is not: it queues behind it and reports its own outcome. Nor is
    what was begun in a tenure that has ended: it ends where it stands.
    """
    same = one.operation_id == other.operation_id and one.worker == other.worker
    return same and asked(one) == asked(other)
