"""gunicorn's configuration file in Keystone's process: what the parent is told, end with it.

Two descriptors come from the parent, their numbers in the environment: a pipe's write end, and one
that becomes readable when the parent process ends, however it ends. On the pipe go lines of JSON:
``{"ready": true}`` when a worker has loaded Keystone, ``{"ended": how}`` when one ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import threading
from typing import Any

from web.workers import watch

READY_FD = "MICRONOVA_KEYSTONE_READY_FD"
PARENT_FD = "MICRONOVA_KEYSTONE_PARENT_FD"


def when_ready(server: Any) -> None:
    """Watch the workers that are to come; called by gunicorn."""
    watch(server, lambda how: _tell(ended=how))


def post_worker_init(worker: Any) -> None:
    """Say that the application is loaded, and watch the parent; called by gunicorn."""
    watcher = threading.Thread(
        target=_stop_with_parent,
        args=(int(os.environ[PARENT_FD]), os.getppid()),
        name="parent-watch",
        daemon=True,
    )
    watcher.start()
    _tell(ready=True)


def _tell(**message: Any) -> None:
    with contextlib.suppress(BrokenPipeError):  # the parent is about to end us
        os.write(int(os.environ[READY_FD]), json.dumps(message).encode() + b"\n")


def _stop_with_parent(parent_fd: int, master_pid: int) -> None:
    poll = select.poll()
    poll.register(parent_fd, select.POLLIN | select.POLLHUP)
    poll.poll()
    os.kill(master_pid, signal.SIGTERM)
