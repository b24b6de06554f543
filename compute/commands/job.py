"""A job: one command, run by one thread, with its reports, deadline and cancellation."""

from __future__ import annotations

import contextlib
import datetime
import enum
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from common import clock
from common.context import RequestContext
from common.messages.commands import Command
from common.messages.reports import Category, Report, Working
from compute.commands.journal import Journal, Send
from compute.hypervisor.port import Abandoned, Cancelled, HypervisorError, Lost

#: an unwinding gets at least this long, even after the deadline
UNWIND_SECONDS = 180
#: pause until a conductor is asked again that did not answer
ASK_AGAIN_SECONDS = 0.5


class MayStart(enum.Enum):
    """Whether a VM may be started."""

    YES = enum.auto()
    NO = enum.auto()
    """Another worker has the operation, or it has ended."""
    LOST = enum.auto()
    """The ledger has no such operation, since its last commits were lost."""


class Ledger(Protocol):
    """What the conductors' ledger says of a worker, with its tenure, and of a job's attempt."""

    def accepts(self, worker: str) -> bool:
        """Return whether a command to this address is this worker's to carry out."""

    def is_over(self, worker: str) -> bool:
        """Return whether the tenure has ended: another worker, or process, continues."""

    def may_undo(self, worker: str, working: Working) -> bool:
        """Return whether it still holds the attempt as the worker's; False if nobody answers."""

    def may_start(self, worker: str, working: Working) -> MayStart | None:
        """Return the same, once it is written that the VM may run; None if nobody answers."""


class Job:
    """Implements ``port.Work``."""

    def __init__(
        self,
        command: Command,
        ctxt: RequestContext,
        send: Send,
        ledger: Ledger,
        *,
        done_before: bool = False,
    ) -> None:
        self._command = command
        self._ledger = ledger
        self.only_look = ctxt.only_look
        """Whether the job may change nothing: it succeeds if all is as the command wants it."""
        self.done_before = done_before or self.only_look
        """Whether the result may be in use, so that this job undoes nothing: an earlier run ended
        well, and may be reported, or the job only looks."""
        self.ctxt = ctxt
        self.journal = Journal(command, send)
        self._deadline = command.deadline
        self._cancelled = False
        self._abandoned = False
        self._wake = threading.Event()
        self.came_at = time.monotonic()
        """When the command came, by this process's clock."""
        self.begun = False
        """Whether a thread has begun it."""

    @property
    def command(self) -> Command:
        """The latest copy of the command."""
        return self._command

    @property
    def key(self) -> tuple[str, int]:
        """The key: jobs with the same key run one after the other."""
        return (self._command.placed.cluster, self._command.placed.vmid)

    @property
    def cancelled(self) -> bool:
        """Whether another operation overtook this one."""
        return self._cancelled

    def working(self) -> Working:
        """Return the sign of life of this job."""
        command = self._command
        return Working(command.operation_id, command.attempt, command.placed.host)

    def repeated(self, command: Command) -> None:
        """Take over attempt and deadline of a repeated command."""
        self._command = command
        self._deadline = command.deadline
        self.journal.command = command

    @contextlib.contextmanager
    def looking(self) -> Iterator[Callable[[], None]]:
        """Only look within the block, see ``only_look``.

        Yields a function that reports the look's steps in place of the failed step. Without a call
        of it they are never reported: nobody needs to know of a look that found nothing.
        """
        journal, reports = self.journal, list[Report]()
        before = self.only_look, self.done_before
        self.only_look = self.done_before = True
        self.journal = look = journal.aside(reports.append)
        try:
            yield lambda: journal.adopt(look, reports)
        finally:
            self.only_look, self.done_before = before
            self.journal = journal
            journal.command = self._command

    def cancel(self) -> None:
        """Let the job unwind at its next step."""
        self._cancelled = True

    def abandon(self) -> None:
        """Let the job end where it stands, without a report: the process stops."""
        self._abandoned = True
        self._wake.set()

    def begin_unwinding(self) -> None:
        """Ignore cancellations from here on, and guarantee some time."""
        self._cancelled = False
        self._deadline = max(self._deadline, clock.after(UNWIND_SECONDS))

    def require_still_ours(self) -> None:
        """Raise Abandoned unless the ledger still has the attempt as this worker's.

        This thread may have hung, its lease run out, and another worker have taken the operation
        over and carried it out. An undo would then change a server that is in use.
        """
        if not self._ledger.may_undo(self._command.worker, self.working()):
            raise Abandoned

    def require_may_start(self) -> None:
        """Let a conductor write that the server's VM may run from now on.

        Until that is written, a build whose agent falls silent continues at another host. If no
        conductor answers, the job asks again until its deadline. Raises Abandoned if the VM may
        not run; Lost if the ledger has lost the operation.
        """
        worker, working = self._command.worker, self.working()
        while (may := self._ledger.may_start(worker, working)) is None:
            self.check()
            self.pause(ASK_AGAIN_SECONDS)
        if may is not MayStart.YES:
            raise Lost if may is MayStart.LOST else Abandoned

    def report(self, *, upid: str | None = None, **detail: Any) -> None:
        """Report facts of the step that runs."""
        self.journal.note(upid, detail)

    def progress(self, **detail: Any) -> None:
        """Report the step's progress."""
        self.journal.progress(detail)

    def check(self) -> None:
        """Raise what prevents the job from continuing."""
        self.check_time()
        if self._cancelled:
            raise Cancelled

    def check_time(self) -> None:
        """Raise Abandoned or, past the deadline, HypervisorError (task_timeout)."""
        if self._abandoned or self._ledger.is_over(self._command.worker):
            raise Abandoned
        if clock.utcnow() >= self._deadline:
            raise HypervisorError(
                Category.TASK_TIMEOUT,
                f"The deadline {self._deadline.isoformat()} passed.",
            )

    def pause(self, seconds: float) -> None:
        """Wait; returns early only by raising."""
        left = (self._deadline - clock.utcnow()) / datetime.timedelta(seconds=1)
        self._wake.wait(max(0.0, min(seconds, left)))
        self.check_time()
