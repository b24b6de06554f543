"""gunicorn's worker of threads, which ends without waiting for connections that ask nothing."""

from __future__ import annotations

import itertools
import time

from gunicorn.workers.gthread import ThreadWorker

LINGER_SECONDS = 0.3
"""How long a kept connection stays open at the end, for a request that is on its way already."""


class Worker(ThreadWorker):  # type: ignore[misc]
    """Ends when the requests that it has taken are answered."""

    def _cap_keepalive(self, deadline: float) -> None:
        """Let connections without a request go soon; gunicorn calls this when the end begins.

        It gives kept connections two seconds, and those that never sent a byte (which it
        doesn't count here) their whole keep-alive time.
        """
        soon = min(deadline, time.monotonic() + LINGER_SECONDS)
        for connection in itertools.chain(self.keepalived_conns, self.pending_conns):
            connection.timeout = min(connection.timeout, soon)
