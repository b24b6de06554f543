"""The state of compute services and nodes, as services, hypervisors and servers show it."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Protocol

from common import clock
from db.reads.servers.servers import Server


class Reporting(Protocol):
    """A service as it was read, with what its agent says of its node."""

    @property
    def last_seen_at(self) -> datetime.datetime | None: ...
    @property
    def forced_down(self) -> bool: ...
    @property
    def reached(self) -> bool: ...
    @property
    def trouble(self) -> str | None: ...


def is_up(service: Reporting, down_seconds: float) -> bool:
    """Return whether a service reports, isn't forced down, and reaches its node."""
    if service.forced_down or not service.reached:
        return False
    return _reports(service.last_seen_at, down_seconds)


def trouble(host: Reporting, down_seconds: float) -> str | None:
    """Return why a host can't be used, in a sentence; None: it can, unless it is disabled.

    It is the agent's sentence, as long as the agent reports.
    """
    if host.forced_down:
        return "The service is forced down."
    if host.last_seen_at is None:
        return "Its agent has never reported."
    if not _reports(host.last_seen_at, down_seconds):
        return f"Its agent has not reported since {clock.iso(host.last_seen_at)}."
    return host.trouble


def disabled_reason(given: str | None, host: Reporting, *, disabled: bool) -> str | None:
    """Return what services show: the operator's reason, else the agent's, marked as Nova does."""
    if disabled or host.trouble is None:
        return given
    return f"AUTO: {host.trouble}"


def _reports(last_seen_at: datetime.datetime | None, down_seconds: float) -> bool:
    if last_seen_at is None:
        return False
    return clock.utcnow() - last_seen_at < datetime.timedelta(seconds=down_seconds)


@dataclass(frozen=True)
class HostStatus:
    """The `host_status` of servers that were read with their host's service."""

    silent_since: datetime.datetime
    """A service that wasn't seen after it is down."""
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
        seen_at = server.service_seen_at
        return "UP" if seen_at is not None and seen_at > self.silent_since else "UNKNOWN"
