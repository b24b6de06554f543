"""Receive signals through a file descriptor, so that none interrupts other work."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def received_signals() -> Iterator[int]:
    """Yield a descriptor on which signals arrive as bytes, their numbers."""
    wanted = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
    read, write = os.pipe()
    for descriptor in (read, write):
        os.set_blocking(descriptor, False)
    handlers = {number: signal.signal(number, lambda *_: None) for number in wanted}
    previous = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, wanted)
    try:
        yield read
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.set_wakeup_fd(previous)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        os.close(read)
        os.close(write)


def numbers(descriptor: int) -> bytes:
    """Return the numbers of the signals since the last call; never waits."""
    try:
        return os.read(descriptor, 4096)
    except BlockingIOError:
        return b""
