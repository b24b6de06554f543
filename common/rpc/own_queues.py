"""Queues that one process alone reads: they expire some time after its end.

oslo.messaging lets only reply and fanout queues expire. The queue of a process that never comes
again, as of a container with another host name, would be replicated for ever.
"""

from __future__ import annotations

#: seconds without a reader after which such a queue is deleted, with what it holds
EXPIRE_SECONDS = 1800

#: of the servers of this process
NAMES: set[str] = set()


def add(topic: str, server: str) -> None:
    """Let the queue of a server expire; called before it listens."""
    NAMES.add(f"{topic}.{server}")
