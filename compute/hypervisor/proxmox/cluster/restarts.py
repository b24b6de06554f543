"""Restarted VMs, whose node holds the configuration lock for some time.

When QEMU has ended, the node cleans up after it, beginning some seconds later. If the VM runs
again by then, the clean-up takes the configuration's lock and waits up to 30 s for an end that
doesn't come. A call that needs the lock during that time waits 10 s, fails, and leaves an error
in the node's task list. So calls wait here until such a clean-up is about to end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

#: shares of the time that a clean-up waits (30 s): until it begins, until it certainly hasn't
#: begun, and for how long a call waits for a lock itself
_BEGINS, _STILL_FREE, _CALL_WAITS = 0.12, 0.05, 0.33
#: number of remembered VMs from which old ones are removed
_MANY = 1000


class Restarts:
    """When the VMs of one cluster ended, and which were restarted; thread-safe."""

    def __init__(self, seconds: float = 30.0, timer: Callable[[], float] = time.monotonic) -> None:
        """``seconds``: how long a clean-up waits for a VM that runs again. 0: none does."""
        self._seconds, self._timer = seconds, timer
        self._lock = threading.Lock()
        self._ended: dict[int, float] = {}
        #: when it ended, and when the clean-up began to wait for it
        self._windows: dict[int, tuple[float, float]] = {}

    @property
    def call_seconds(self) -> float:
        """How long a call waits for a VM's lock before it fails."""
        return self._seconds * _CALL_WAITS

    def ended(self, vmid: int) -> None:
        """Record that we ended a VM's QEMU just now."""
        with self._lock:
            self._drop_old()
            self._windows.pop(vmid, None)
            self._ended[vmid] = self._timer()

    def now(self) -> float:
        """Return the time, to be given to ``started``."""
        return self._timer()

    def started(self, vmid: int, posted: float) -> None:
        """Record that a VM runs again; ``posted``: when the start was sent.

        A start that was sent before the clean-up began has the lock first, however long its task
        takes: the clean-up waits for it, and then for a VM that runs.
        """
        with self._lock:
            ended, begins = self._ended.pop(vmid, None), self._seconds * _BEGINS
            if ended is not None and posted - ended <= begins:
                self._windows[vmid] = (ended, max(ended + begins, self._timer()))

    def pause_seconds(self, vmid: int) -> float:
        """Return the seconds to wait before a call that needs the VM's lock; it waits the rest."""
        with self._lock:
            window = self._windows.get(vmid)
            if window is None:
                return 0.0
            (ended, begins), now = window, self._timer()
            rest = begins + self._seconds - now
            if rest <= 0:
                del self._windows[vmid]
                return 0.0
            if now < ended + self._seconds * _STILL_FREE:
                return 0.0
            return max(0.0, rest - self._seconds * _CALL_WAITS * 0.8)

    def _drop_old(self) -> None:
        before = self._timer() - 2 * self._seconds
        if len(self._ended) > _MANY:
            self._ended = {vmid: at for vmid, at in self._ended.items() if at >= before}
        if len(self._windows) > _MANY:
            self._windows = {vmid: at for vmid, at in self._windows.items() if at[0] >= before}
