"""Calls about servers that are adopted, held or abandoned by administrators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from common.context import RequestContext
from conductor.rpc.servers.flavors import FlavorSnapshot


@dataclass(frozen=True)
class Adoption:
    """An existing VM that is to become a server."""

    cluster: str
    vmid: int
    project_id: str
    user_id: str
    name: str | None = None
    """None: the VM's name."""
    flavor: FlavorSnapshot | None = None
    """None: a flavor is made from what the VM has."""


@dataclass(frozen=True)
class Adopted:
    """The new record; its states show the progress of the adoption."""

    server_uuid: str
    operation_id: int


class ManageRpc(Protocol):
    """Servers that are adopted, held or abandoned by administrators."""

    def adopt(self, ctxt: RequestContext, adoption: Adoption) -> Adopted:
        """Look at an existing VM, write its record, and begin to manage it.

        Raises NotFound (no such cluster or VM), Conflict (with the reason: it is a template,
        locked, another server's …), QuotaExceeded, Unavailable (the VM can't be read).
        """

    def abandon(
        self, ctxt: RequestContext, server_uuid: str, reason: str | None, *, force: bool
    ) -> None:
        """Delete a record whose VM isn't ours, or can't be read (only with ``force``).

        Raises ServerNotFound; Conflict if the VM is the server's, or can't be read; Invalid if
        forced without a reason.
        """

    def hold_server(self, ctxt: RequestContext, server_uuid: str, *, held: bool) -> None:
        """Stop retries for the server, or allow them again. Raises ServerNotFound."""

    def mark_server(self, ctxt: RequestContext, server_uuid: str) -> None:
        """Write the owner mark of a server's VM again, if all else proves it the server's.

        Raises ServerNotFound; Conflict if the record has no VM that the journal gave it.
        """

    def retry_server(self, ctxt: RequestContext, server_uuid: str) -> None:
        """Retry a waiting operation at once; check the VM of a server in ERROR without one.

        Raises ServerNotFound; Conflict if nothing waits, or the server is held.
        """
