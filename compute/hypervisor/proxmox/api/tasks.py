"""Waiting for tasks: one watcher per node, one call per interval for any number of tasks.

A watcher's thread lives only while somebody waits for a task of its node. The interval grows with
the youngest task's age, from 50 ms to a second. The final status and the log's tail are read once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from common.log import logger
from common.messages.reports import Category
from common.metrics import table
from compute.hypervisor.port import Work
from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.api.deadlines import DEADLINES, OTHER_DEADLINE
from compute.hypervisor.proxmox.api.errors import ApiError, category_of_task
from compute.hypervisor.proxmox.api.transfers import COPYING, Transfers
from compute.hypervisor.proxmox.api.upid import Upid, parse

LOG = logger(__name__)

FIRST_SECONDS = 0.05
LAST_SECONDS = 1.0
#: share of a task's age between two looks at it
PACE = 0.2
#: seconds between two reads of a copy's progress: grow with its age, from the first to the last
WATCH_FIRST_SECONDS = 2.0
WATCH_LAST_SECONDS = 10.0
WATCH_PACE = 0.1
#: how long a node's tasks may be unreadable before their outcome counts as unknown
BLIND_SECONDS = 90.0
LOG_LINES = 20

LIST_LIMIT = 1000
#: how many of the last clones' logs are read to find one
CLONES = 200

#: how often a waiter checks its own deadline
_CHECK_SECONDS = 0.5


@dataclass(frozen=True)
class Ended:
    """How a task ended."""

    upid: str
    exit_status: str

    @property
    def ok(self) -> bool:
        """Whether it did its work; warnings count as success, and need a look."""
        return self.exit_status == "OK" or self.warnings

    @property
    def warnings(self) -> bool:
        """Whether it ended with warnings."""
        return self.exit_status.startswith("WARNINGS")


@dataclass
class _Wait:
    upid: str
    since: float
    over: threading.Event = field(default_factory=threading.Event)
    exit_status: str | None = None
    error: ApiError | None = None

    def pause(self, now: float) -> float:
        return min(LAST_SECONDS, max(FIRST_SECONDS, PACE * (now - self.since)))


class _Watcher:
    """Watches the tasks of one node while there are any."""

    def __init__(self, client: Client, node: str, blind_seconds: float) -> None:
        self._client, self._node = client, node
        self._blind_seconds = blind_seconds
        self._changed = threading.Condition()
        self._waits: list[_Wait] = []
        self._running = False
        self._seen_at = 0.0

    def add(self, wait: _Wait) -> None:
        with self._changed:
            self._waits.append(wait)
            if not self._running:
                self._running = True
                self._seen_at = time.monotonic()
                name = f"compute-tasks-{self._node}"
                threading.Thread(target=self._loop, name=name, daemon=True).start()
            self._changed.notify()

    def drop(self, wait: _Wait) -> None:
        with self._changed:
            if wait in self._waits:
                self._waits.remove(wait)

    def _loop(self) -> None:
        while True:
            with self._changed:
                if not self._waits:
                    self._running = False
                    return
                now = time.monotonic()
                self._changed.wait(min(wait.pause(now) for wait in self._waits))
                waits = list(self._waits)
            self._look(waits)
            for wait in waits:
                if wait.over.is_set():
                    self.drop(wait)

    def _look(self, waits: Sequence[_Wait]) -> None:
        try:
            due = waits if len(waits) == 1 else self._not_running(waits)
            for wait in due:
                self._finish(wait)
            self._seen_at = time.monotonic()
        except ApiError as error:
            self._blind(waits, error.message)
        except Exception as error:
            # Whatever the answer was: no other thread polls.
            LOG.exception("The tasks of node %s can't be read.", self._node)
            self._blind(waits, type(error).__name__)

    def _blind(self, waits: Sequence[_Wait], why: str) -> None:
        if time.monotonic() - self._seen_at > self._blind_seconds:
            for wait in waits:
                self._fail(wait, f"The task can't be seen: {why}")

    def _not_running(self, waits: Sequence[_Wait]) -> list[_Wait]:
        listed = self._client.get(f"nodes/{self._node}/tasks", source="active", limit=LIST_LIMIT)
        running = {one["upid"] for one in listed if is_running(one)}
        return [wait for wait in waits if wait.upid not in running]

    def _finish(self, wait: _Wait) -> None:
        try:
            status = self._client.get(f"nodes/{self._node}/tasks/{wait.upid}/status")
        except ApiError as error:
            if not error.no_task:
                raise
            self._fail(wait, "The node knows nothing of the task.")
            return
        if status.get("status") == "running":
            return
        wait.exit_status = str(status.get("exitstatus", "unexpected status"))
        wait.over.set()

    @staticmethod
    def _fail(wait: _Wait, message: str) -> None:
        wait.error = ApiError(Category.UNKNOWN_OUTCOME, message)
        wait.error.upid = wait.upid
        wait.over.set()


def is_running(listed: Mapping[str, Any]) -> bool:
    """Return whether a task list's entry runs. The active list also has some that just ended."""
    return "endtime" not in listed and listed.get("status") in (None, "", "RUNNING")


class Tasks:
    """All watchers of one cluster."""

    def __init__(
        self,
        client: Client,
        deadlines: Mapping[str, float] = DEADLINES,
        blind_seconds: float = BLIND_SECONDS,
        watch_seconds: float = WATCH_FIRST_SECONDS,
        cluster: str = "",
    ) -> None:
        self._cluster = cluster
        self._client = client
        self._watch_seconds = watch_seconds
        self._deadlines, self._blind_seconds = deadlines, blind_seconds
        self._lock = threading.Lock()
        self._watchers: dict[str, _Watcher] = {}

    def wait(self, work: Work, upid: str, expected_bytes: int = 0) -> Ended:
        """Wait until the task has ended well (warnings included).

        The progress of a long copy is reported; see ``transfers``.

        Raises ApiError with the task's category, id and log tail when it failed,
        ``unknown_outcome`` when that can't be read, ``task_timeout`` after the deadline of its
        kind, and what ``work.check_time`` raises. A task is never stopped, since that could
        interrupt its clean-up.
        """
        parsed = parse(upid)
        if parsed is None:
            raise ApiError(Category.UNKNOWN_OUTCOME, f"This is no task id: {upid!r}.")
        began, result = time.perf_counter(), "ok"
        try:
            return self._wait(work, parsed, expected_bytes)
        except ApiError as error:
            result = error.category.value
            raise
        except Exception:
            result = "left"
            raise
        finally:
            labels = (self._cluster, parsed.kind)
            table.PROXMOX_TASKS.count(*labels, result)
            table.PROXMOX_TASK_SECONDS.observe(time.perf_counter() - began, *labels)

    def _wait(self, work: Work, parsed: Upid, expected_bytes: int) -> Ended:
        upid = parsed.text
        wait = _Wait(upid, time.monotonic())
        limit = self._deadlines.get(parsed.kind, OTHER_DEADLINE)
        watcher = self._watcher(parsed.node)
        watcher.add(wait)
        copy = None
        if parsed.kind in COPYING:
            copy = _Copy(self, work, parsed, expected_bytes, self._watch_seconds)
        try:
            while not wait.over.wait(min(_CHECK_SECONDS, self._watch_seconds, limit)):
                work.check_time()
                if copy is not None:
                    copy.look()
                if time.monotonic() - wait.since > limit:
                    raise self._overdue(parsed, limit)
        finally:
            watcher.drop(wait)
        if wait.error is not None:
            raise wait.error
        ended = Ended(upid, wait.exit_status or "")
        if not ended.ok:
            raise self._failed(parsed, ended)
        return ended

    def active(self, node: str) -> list[Upid]:
        """Return a node's running tasks, as far as the token may see them."""
        listed = self._client.get(f"nodes/{node}/tasks", source="active", limit=LIST_LIMIT)
        return _parsed(one["upid"] for one in listed if is_running(one))

    def of_vm(self, node: str, vmid: int, kind: str) -> list[Upid]:
        """Return tasks of a kind on a VMID, running or ended, the newest first."""
        listed = self._client.get(
            f"nodes/{node}/tasks", source="all", vmid=vmid, typefilter=kind, limit=50
        )
        found = _parsed(one["upid"] for one in listed)
        return sorted(found, key=lambda one: one.start, reverse=True)

    def spans(self, node: str, vmid: int, kind: str, who: str) -> list[tuple[int, int]]:
        """Return start and end, by the node's clock, of a user's ended tasks on a VMID."""
        path = f"nodes/{node}/tasks"
        listed = self._client.get(path, source="all", vmid=vmid, typefilter=kind, limit=50)
        found = [(parse(one["upid"]), one.get("endtime")) for one in listed]
        return [
            (upid.start, int(end))
            for upid, end in found
            if upid is not None and upid.who == who and end is not None
        ]

    def clone_spans(self, node: str, vmid: int, who: str) -> list[tuple[int, int]]:
        """Return the same of a user's clones to a VMID: only their logs name the VMID."""
        path = f"nodes/{node}/tasks"
        listed = self._client.get(path, source="all", typefilter="qmclone", limit=CLONES)
        found = []
        for one in listed:
            upid, end = parse(one["upid"]), one.get("endtime")
            if upid is not None and upid.who == who and end is not None:
                head = self.log_head(upid)
                if any(line.rstrip().endswith(f"with ID {vmid}") for line in head):
                    found.append((upid.start, int(end)))
        return found

    def recent(self, node: str, kind: str) -> list[Upid]:
        """Return the last tasks of a kind on a node, running or ended, the newest first."""
        path = f"nodes/{node}/tasks"
        listed = self._client.get(path, source="all", typefilter=kind, limit=50)
        return _parsed(one["upid"] for one in listed)

    def log_head(self, upid: Upid, lines: int = 3) -> tuple[str, ...]:
        """Return the first lines of a task's log; empty when it can't be read."""
        try:
            path = f"nodes/{upid.node}/tasks/{upid.text}/log"
            listed = self._client.get(path, start=0, limit=lines)
        except ApiError:
            return ()
        return tuple(str(line.get("t", "")) for line in listed)

    def log_from(self, upid: Upid, start: int) -> tuple[str, ...]:
        """Return a task's log from a line on; empty when it can't be read."""
        try:
            path = f"nodes/{upid.node}/tasks/{upid.text}/log"
            listed = self._client.get(path, start=start, limit=500)
        except ApiError:
            return ()
        return tuple(str(line.get("t", "")) for line in listed)

    def log_tail(self, upid: Upid, lines: int = LOG_LINES) -> tuple[str, ...]:
        """Return the last lines of a task's log; empty when it can't be read."""
        try:
            path = f"nodes/{upid.node}/tasks/{upid.text}/log"
            listed = self._client.get(path, start=0, limit=500)
        except ApiError:
            return ()
        return tuple(str(line.get("t", "")) for line in listed[-lines:])

    def _overdue(self, upid: Upid, limit: float) -> ApiError:
        error = ApiError(
            Category.TASK_TIMEOUT,
            f"Task {upid.kind} of {upid.subject or upid.node} did not end in {limit:.0f} s.",
        )
        error.upid = upid.text
        error.log_tail = self.log_tail(upid)
        return error

    def _failed(self, upid: Upid, ended: Ended) -> ApiError:
        log = self.log_tail(upid)
        error = ApiError(
            category_of_task(ended.exit_status, log),
            f"Task {upid.kind} of {upid.subject or upid.node} failed: {ended.exit_status}",
            text=ended.exit_status,
        )
        error.upid = upid.text
        error.log_tail = log
        if error.category is Category.AUTHORIZATION:
            error.remedy = self._client.grant(ended.exit_status)
        return error

    def _watcher(self, node: str) -> _Watcher:
        with self._lock:
            return self._watchers.setdefault(
                node, _Watcher(self._client, node, self._blind_seconds)
            )


class _Copy:
    """A task's progress: its log is read now and then, and new progress is reported."""

    def __init__(
        self, tasks: Tasks, work: Work, task: Upid, expected_bytes: int, first_seconds: float
    ) -> None:
        self._tasks, self._work, self._task = tasks, work, task
        self._first_seconds = first_seconds
        self._log = Transfers(expected_bytes)
        self._began = self._looked = time.monotonic()
        self._logged: Mapping[str, int] = {}

    def look(self) -> None:
        """Report the progress, if it is time to read it; one call."""
        now = time.monotonic()
        age = now - self._began
        pause = min(WATCH_LAST_SECONDS, max(self._first_seconds, WATCH_PACE * age))
        if now - self._looked < pause:
            return
        self._log.read(self._tasks.log_from(self._task, self._log.lines))
        found = self._log.progress(age)
        if found and found != self._logged:
            self._work.progress(**found)
            self._logged = found
        self._looked = time.monotonic()


def _parsed(upids: Iterable[str]) -> list[Upid]:
    return [one for one in map(parse, upids) if one is not None]
