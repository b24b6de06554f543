"""Signs of life of conductors and schedulers: a tick that is sent to oneself and consumed.

A timer casts a tick to the process's own queue; consuming it tells the conductor. So a sign of
life proves that the process still takes messages, not only that it runs.
"""

from __future__ import annotations

import os
import socket
import threading

import oslo_messaging

from common import context, rpc
from common.context import RequestContext
from common.log import logger
from common.messages.topics import CONDUCTOR_TOPIC

LOG = logger(__name__)

#: seconds between two signs; a service is down after six missed ones
INTERVAL_SECONDS = 10.0


def process_name() -> str:
    """A name for this process that no other one on any machine has now."""
    return f"{socket.gethostname()}-{os.getpid()}"


class Beat:
    """Reports one process as alive, for as long as it consumes."""

    def __init__(self, transport: oslo_messaging.Transport, binary: str, name: str) -> None:
        self._binary, self._name = binary, name
        self._topic = f"alive.{binary}"
        self._own = rpc.Client(transport, self._topic)
        self._conductor = rpc.Client(transport, CONDUCTOR_TOPIC)
        self._server = rpc.Server(transport, self._topic, name, [self], workers=1)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"beat-{binary}", daemon=True)

    def start(self) -> None:
        """Begin; the first sign goes out at once."""
        self._server.start()
        self._thread.start()

    def stop(self) -> None:
        """No more signs."""
        self._stopped.set()
        self._thread.join()
        self._server.stop()

    def tick(self, ctxt: RequestContext) -> None:
        """Our own tick came through: tell the conductor."""
        self._conductor.cast(ctxt, "alive", binary=self._binary, host=self._name)

    def _run(self) -> None:
        while True:
            try:
                self._own.cast(context.internal(), "tick", server=self._name)
            except oslo_messaging.MessagingException:
                LOG.warning("The message bus does not take our sign of life; trying again.")
            if self._stopped.wait(INTERVAL_SECONDS):
                return
