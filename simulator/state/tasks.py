"""Workers: UPIDs, logs, exit statuses, and the lists of running and finished tasks."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from simulator.engine import Engine, Process, Work
from simulator.errors import PveError, WorkerKilled, bad_parameters
from simulator.state.access import Identity
from simulator.state.model import Node, Task

KEPT_PER_NODE = 5000

_UPID = re.compile(
    r"^UPID:([a-zA-Z0-9][a-zA-Z0-9-]*):([0-9A-F]{8}):([0-9A-F]{8,9}):([0-9A-F]{8}):"
    r"([^:\s]+):([^:\s]*):([^:\s]+):$"
)


class Job:
    """A task as its worker gets it."""

    def __init__(self, task: Task, save: Callable[[Task], None]) -> None:
        self.task = task
        self._save = save

    def log(self, text: str) -> None:
        """Write one line to the log."""
        self.task.log.append(text)
        self._save(self.task)

    def warn(self, text: str) -> None:
        """Write a warning that counts: the task will end as `WARNINGS: n`."""
        self.task.warnings += 1
        self.log(f"WARN: {text}")


class TaskBook:
    """The tasks of one cluster."""

    def __init__(
        self,
        engine: Engine,
        turn: Callable[[], AbstractContextManager[object]],
        save: Callable[[Task], None],
        forget: Callable[[Task], None],
    ) -> None:
        self._engine = engine
        self._turn = turn
        self._save = save
        self._forget = forget
        self.tasks: dict[str, Task] = {}
        self.running: dict[str, Process] = {}
        self._finished: dict[str, deque[Task]] = {}

    def start(
        self, node: Node, kind: str, subject: str, who: Identity, body: Callable[[Job], Work]
    ) -> str:
        """Start a worker and return its UPID; it takes its first step on the timer thread."""
        task = self._new(node, kind, subject, who)
        process = Process(body(Job(task, self._save)), self._turn)
        process.on_end = lambda ended: self._ended(task, ended)
        self.tasks[task.upid] = task
        self.running[task.upid] = process
        self._save(task)
        self._engine.spawn(process)
        return task.upid

    @staticmethod
    def _new(node: Node, kind: str, subject: str, who: Identity) -> Task:
        now = time.time()
        node.last_pid = node.last_pid + 1 if node.last_pid < 4_000_000 else 1000
        pid, pstart = node.last_pid, int((now - node.booted) * 100) + 200
        upid = (
            f"UPID:{node.name}:{pid:08X}:{pstart:08X}:{int(now):08X}:{kind}:{subject}:"
            f"{who.authid}:"
        )
        return Task(upid, node.name, pid, pstart, int(now), kind, subject, who.user, who.tokenid)

    def _ended(self, task: Task, process: Process) -> None:
        error = process.error
        task.endtime = int(time.time())
        self.running.pop(task.upid, None)
        if process.killed or isinstance(error, WorkerKilled):
            task.exitstatus = "unexpected status"
        elif error is not None:
            text = error.task_text if isinstance(error, PveError) else f"{error!r}"
            task.exitstatus = " ".join(text.strip().split("\n"))
            task.log.append(f"TASK ERROR: {task.exitstatus}")
        elif task.warnings:
            task.exitstatus = f"WARNINGS: {task.warnings}"
            task.log.append(f"TASK {task.exitstatus}")
        else:
            task.exitstatus = "OK"
            task.log.append("TASK OK")
        self._save(task)
        self._archive(task)

    def _archive(self, task: Task) -> None:
        finished = self._finished.setdefault(task.node, deque())
        finished.appendleft(task)
        if len(finished) > KEPT_PER_NODE:
            oldest = finished.pop()
            self.tasks.pop(oldest.upid, None)
            self._forget(oldest)

    def restore(self, tasks: Iterator[Task]) -> None:
        """Add the tasks of an earlier process; those that ran then count as killed."""
        for task in sorted(tasks, key=lambda one: (one.endtime or one.starttime, one.upid)):
            if task.running:
                task.exitstatus, task.endtime = "unexpected status", int(time.time())
                self._save(task)
            self.tasks[task.upid] = task
            self._archive(task)

    def find(self, upid: str, node: str) -> Task:
        """Return the task of a UPID on a node. Raises Proxmox VE's 400 if there is none."""
        match = _UPID.match(upid)
        if match is None:
            raise bad_parameters(upid="unable to parse worker upid")
        task = self.tasks.get(upid)
        if task is None or match.group(1) != node:
            raise bad_parameters(upid="no such task")
        return task

    def active(self, node: str | None = None) -> list[Task]:
        """Return running tasks, newest first."""
        found = [self.tasks[upid] for upid in self.running]
        return sorted(
            (task for task in found if node in (None, task.node)),
            key=lambda task: (-task.starttime, task.upid),
        )

    def archive(self, node: str) -> Iterator[Task]:
        """Yield a node's finished tasks, the last finished first."""
        return iter(self._finished.get(node, ()))

    def stop(self, upid: str) -> None:
        """Send SIGTERM to a running worker."""
        process = self.running.get(upid)
        if process is not None:
            self._engine.interrupt(process)

    def kill(self, upid: str) -> None:
        """Send SIGKILL to a running worker."""
        process = self.running.get(upid)
        if process is not None:
            self._engine.kill(process)

    def fail(self, upid: str, text: str) -> None:
        """Raise an error in a running worker."""
        process = self.running.get(upid)
        if process is not None:
            self._engine.throw(process, PveError(text))
