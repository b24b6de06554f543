"""How workers ended, as their master reports it."""

from __future__ import annotations

import os
import signal
import types

import pytest

from web.workers import watch


class Master:
    """A process with one child, as gunicorn's master has workers."""

    timeout = 30

    def __init__(self, pid: int, *, aborted: bool = False) -> None:
        self.WORKERS = {pid: types.SimpleNamespace(aborted=aborted)}

    def reap_workers(self) -> None:
        """Take the ends of children, as gunicorn does."""
        for pid in list(self.WORKERS):
            if os.waitpid(pid, os.WNOHANG)[0]:
                del self.WORKERS[pid]


def a_worker(*, code: int = 0, number: int = 0) -> int:
    """Return a child that has ended, by a code or by a signal."""
    pid = os.fork()
    if pid == 0:
        if number:
            os.kill(os.getpid(), number)
        os._exit(code)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return pid


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    ("worker", "aborted", "said"),
    [
        ({}, False, []),
        ({"code": 3}, False, ["exit code 3"]),
        ({"number": signal.SIGTERM}, False, ["killed by SIGTERM"]),
        (
            {"number": signal.SIGKILL},
            False,
            ["killed by SIGKILL; perhaps the machine is out of memory"],
        ),
        ({"code": 1}, True, ["killed: it gave no sign of life for 30 s"]),
    ],
)
def test_how_a_worker_ended(worker: dict[str, int], aborted: bool, said: list[str]) -> None:
    master, reports = Master(a_worker(**worker), aborted=aborted), list[str]()
    watch(master, reports.append)
    master.reap_workers()
    assert reports == said
    assert not master.WORKERS
    master.reap_workers()
    assert reports == said
