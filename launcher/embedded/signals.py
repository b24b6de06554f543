"""Signals as something to wait for beside pipes: none interrupts what is being done."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def told_signals() -> Iterator[int]:
    """Give a descriptor that tells signals by their numbers, none of which interrupts anything."""
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
    """Return the numbers of the signals told since they were read last; never waits."""
    try:
        return os.read(descriptor, 4096)
    except BlockingIOError:
        return b""
