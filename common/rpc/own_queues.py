"""Queues that one process alone reads: they expire some time after its end.

oslo.messaging lets only reply and fanout queues expire. The queue of a process that never comes
again, as of a container with another host name, would be replicated for ever.
"""

from __future__ import annotations

import sys
from typing import Any

#: seconds without a reader after which such a queue is deleted, with what it holds
EXPIRE_SECONDS = 1800

_names: set[str] = set()


def add(topic: str, server: str) -> None:
    """Let the queue of a server expire; called before it listens."""
    _names.add(f"{topic}.{server}")


def prepare() -> None:
    """Have the rabbit driver declare them so, if it is loaded; idempotent."""
    rabbit: Any = sys.modules.get("oslo_messaging._drivers.impl_rabbit")
    if rabbit is None or hasattr(rabbit.Consumer, "expires_alone"):
        return

    class Consumer(rabbit.Consumer):  # type: ignore[misc]
        """A consumer whose queue expires if it is of one process."""

        expires_alone = True

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            if self.queue_name in _names:
                self.queue_arguments["x-expires"] = EXPIRE_SECONDS * 1000

    rabbit.Consumer = Consumer
