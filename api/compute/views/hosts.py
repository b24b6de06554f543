"""The state of compute services, as services and servers show it."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from common import clock
from db.reads.servers import Server


def is_up(last_seen_at: datetime.datetime | None, forced_down: bool, down_seconds: float) -> bool:
    """Return whether a service reported lately and isn't forced down."""
    if forced_down or last_seen_at is None:
        return False
    return clock.utcnow() - last_seen_at < datetime.timedelta(seconds=down_seconds)


@dataclass(frozen=True)
class HostStatus:
    """The `host_status` of servers that were read with their host's service."""

    down_seconds: float
    unknown_only: bool
    """Whether the policy allows nothing but UNKNOWN."""

    def of(self, server: Server) -> str | None:
        """Return the status; empty for a server on no host, None where the policy hides it."""
        status = self._status(server)
        return None if self.unknown_only and status != "UNKNOWN" else status

    def _status(self, server: Server) -> str:
        if not server.host or server.service_disabled is None:
            return ""
        if server.service_forced_down:
            return "DOWN"
        if server.service_disabled:
            return "MAINTENANCE"
        if server.node_online is False:
            # The agent is up but can't reach the node.
            return "UNKNOWN"
        return "UP" if is_up(server.service_seen_at, False, self.down_seconds) else "UNKNOWN"
