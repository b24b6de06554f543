"""Signs of calls that are being answered, so that their callers neither ask another server nor
give up.

A caller with patience takes a server for silent, or frozen, after so long without a sign. A
process that stands still sends none, and neither does a process that has stood still
for so long: its callers have gone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from common.log import logger
from common.rpc.deadlines import Deadline

LOG = logger(__name__)

#: how many signs a caller's patience has room for: some may be late
_SIGNS = 4
#: seconds between two looks at whether a sign is due
_LOOK_SECONDS = 0.5


class Signs:
    """Sends the signs of all calls that a process answers, from one thread."""

    def __init__(self, look_seconds: float = _LOOK_SECONDS) -> None:
        self._look_seconds = look_seconds
        self._lock = threading.Lock()
        self._answering: dict[int, tuple[Any, Deadline, float]] = {}
        """{number: message, deadline, last sign}."""
        self._thread: threading.Thread | None = None

    @contextmanager
    def sent_for(self, incoming: Any, deadline: Deadline | None) -> Iterator[None]:
        """Send signs during the block, if the caller waits for them."""
        if deadline is None or deadline.wait.patience is None:
            yield
            return
        with self._lock:
            self._answering[id(incoming)] = incoming, deadline, time.monotonic()
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="rpc-signs", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                del self._answering[id(incoming)]

    def _run(self) -> None:
        pause = threading.Event()
        while not pause.wait(self._look_seconds):
            for number, incoming, deadline in self._due():
                self._send(number, incoming, deadline)

    def _due(self) -> list[tuple[int, Any, Deadline]]:
        now = time.monotonic()
        with self._lock:
            return [
                (number, incoming, deadline)
                for number, (incoming, deadline, last) in self._answering.items()
                if now - last >= (deadline.wait.patience or 0.0) / _SIGNS
            ]

    def _send(self, number: int, incoming: Any, deadline: Deadline) -> None:
        signed = time.monotonic()
        if deadline.over():
            return
        try:
            incoming.heartbeat()
        except Exception as error:  # noqa: BLE001 - whatever the driver raises: there is no sign
            LOG.debug("A sign could not be sent: %s", error)
            return
        deadline.extend(signed)
        with self._lock:
            if number in self._answering:
                self._answering[number] = incoming, deadline, signed
