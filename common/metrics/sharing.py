"""The directory in which gunicorn's workers share their values; made by their master.

Imports nothing of prometheus_client, which must find the variable when it is imported.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
#: PID of the master that made the directory: a master's replacement inherits its environment
_OWNER = "MICRONOVA_METRICS_OWNER"

_LOCK = "port.lock"


def begin() -> None:
    """Make the directory, once; called by the master before it forks workers."""
    if not _is_ours():
        os.environ[VARIABLE] = tempfile.mkdtemp(prefix="micronova-metrics-")
        os.environ[_OWNER] = str(os.getpid())


def end() -> None:
    """Remove it; called by the master at its end."""
    if _is_ours():
        shutil.rmtree(os.environ.pop(VARIABLE), ignore_errors=True)


def _is_ours() -> bool:
    return VARIABLE in os.environ and os.environ.get(_OWNER) == str(os.getpid())


def await_turn() -> None:
    """Return once no other worker of this service holds the port; at once if none shares it.

    The kernel releases the lock when this process ends, however it ends, and gives it to another
    worker at once.
    """
    directory = os.environ.get(VARIABLE)
    if directory is None:
        return
    # Never closed: the kernel does so when the process ends.
    descriptor = os.open(Path(directory) / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
