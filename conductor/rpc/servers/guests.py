"""Calls about what runs in servers."""

from __future__ import annotations

from typing import Protocol

from common.context import RequestContext
from common.messages.guests import Diagnostics
from common.messages.measurements import Measured, Period


class GuestRpc(Protocol):
    """What runs in servers."""

    def diagnose_server(self, ctxt: RequestContext, server_uuid: str) -> Diagnostics:
        """Return how a running server does, as its host sees it now.

        Raises ServerNotFound, Conflict (no host yet), ServerStateConflict (it doesn't run),
        Unavailable (its agent, or the cluster, doesn't answer).
        """

    def measure_server(self, ctxt: RequestContext, server_uuid: str, period: Period) -> Measured:
        """Return measurements of a server since it has its VMID; it need not run.

        Raises ServerNotFound, Conflict (no host yet), Unavailable (its agent, or the cluster,
        doesn't answer).
        """

    def server_console_log(self, ctxt: RequestContext, server_uuid: str) -> str:
        """Return what is kept of the server's serial line, perhaps nothing.

        Raises ServerNotFound, Conflict (no host yet), Unimplemented (logs are off), Unavailable
        (its agent doesn't answer).
        """

    def change_password(self, ctxt: RequestContext, server_uuid: str, password: str) -> None:
        """Set the password of the server's administrator in its guest; returns when it is set.

        Raises ServerNotFound, ServerLocked, ServerStateConflict, Conflict (the guest has no agent
        that answers, or refuses), Unavailable (the host's agent, or the cluster, doesn't answer).
        """
