"""The least rate of a client: the longer it takes, the more it must send or read in the same time.

So a slow line gets through, and no client occupies a slot for hours with a few bytes a minute.
Pure.
"""

from __future__ import annotations

MOST_BYTES_PER_SECOND = 32_768
"""No client must be faster than this."""


class Pace:
    """Repeated deadlines for a number of bytes, which doubles after each period."""

    def __init__(self, seconds: float, least_bytes: int, now: float) -> None:
        """``seconds``: for the first ``least_bytes``, and for what follows each time."""
        self._seconds, self._least_bytes = seconds, least_bytes
        self._spent = 0.0
        self._since, self._received = now, 0
        self._paused_at = now
        self.deadline = now + seconds
        """When the client is too slow, unless it makes progress."""

    @property
    def needed_bytes(self) -> int:
        """How many bytes extend the client's deadline."""
        most = max(self._least_bytes, int(self._seconds * MOST_BYTES_PER_SECOND))
        return min(most, int(self._least_bytes * 2 ** min(32.0, self._spent / self._seconds)))

    def progressed(self, count: int, now: float) -> None:
        """Note that so many bytes more have passed."""
        self._received += count
        if self._received >= self.needed_bytes:
            self._spent += now - self._since
            self._since, self._received = now, 0
            self.deadline = now + self._seconds

    def pause(self, now: float) -> None:
        """Stop counting time: the server is not waiting for the client."""
        self._paused_at = now

    def resume(self, now: float) -> None:
        """Count time again."""
        gap = now - self._paused_at
        self._since += gap
        self.deadline += gap
