"""gunicorn's configuration file in Keystone's process: ready signal, end with the parent.

Two descriptors come from the parent, their numbers in the environment: a pipe's write end
that is told when the worker has loaded Keystone, and one that becomes readable when the
parent process ends, however it ends.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from typing import Any

READY_FD = "MICRONOVA_KEYSTONE_READY_FD"
PARENT_FD = "MICRONOVA_KEYSTONE_PARENT_FD"


def post_worker_init(worker: Any) -> None:
    """Say that the application is loaded, and watch the parent; called by gunicorn."""
    watcher = threading.Thread(
        target=_stop_with_parent,
        args=(int(os.environ[PARENT_FD]), os.getppid()),
        name="parent-watch",
        daemon=True,
    )
    watcher.start()
    try:
        os.write(int(os.environ[READY_FD]), b"ready\n")
    except BrokenPipeError:
        # A worker that replaces a dead one: the parent stopped listening long ago.
        worker.log.info("worker replaced")


def _stop_with_parent(parent_fd: int, master_pid: int) -> None:
    poll = select.poll()
    poll.register(parent_fd, select.POLLIN | select.POLLHUP)
    poll.poll()
    os.kill(master_pid, signal.SIGTERM)
