"""For whom a thread acts: a worker in one of its tenures, whose leases its writes need."""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from contextlib import contextmanager

_worker: contextvars.ContextVar[str | None] = contextvars.ContextVar("worker", default=None)


@contextmanager
def acting_for(worker: str) -> Iterator[None]:
    """Have this thread act for a worker, by its address, within the block."""
    token = _worker.set(worker)
    try:
        yield
    finally:
        _worker.reset(token)


def acts_for() -> str | None:
    """Return whom this thread acts for; None: no command, but the holder of the lease."""
    return _worker.get()
