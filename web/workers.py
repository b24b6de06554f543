"""Reports gunicorn workers that ended, as the master replaces them silently.

Used in gunicorn's hook ``when_ready``, which gets the master before it has any worker.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

_WAITED = os.WEXITED | os.WNOHANG | os.WNOWAIT


def watch(master: Any, report: Callable[[str], None]) -> None:
    """Report how each worker ended, except after a successful exit."""
    reap = master.reap_workers

    def look_and_reap() -> None:
        # The master discards their exit status: read it first.
        for pid, worker in list(master.WORKERS.items()):
            how = _ended(pid, aborted=worker.aborted, timeout_seconds=master.timeout)
            if how is not None:
                report(how)
        reap()

    master.reap_workers = look_and_reap


def _ended(pid: int, *, aborted: bool, timeout_seconds: float) -> str | None:
    """Return how a process ended; None while it runs, and after success."""
    try:
        found = os.waitid(os.P_PID, pid, _WAITED)
    except ChildProcessError:
        return None
    if found is None or (found.si_code == os.CLD_EXITED and found.si_status == 0):
        return None
    if aborted:
        return f"killed: it gave no sign of life for {timeout_seconds:g} s"
    if found.si_code == os.CLD_EXITED:
        return f"exit code {found.si_status}"
    name = signal.Signals(found.si_status).name
    hint = "; perhaps the machine is out of memory" if name == "SIGKILL" else ""
    return f"killed by {name}{hint}"
