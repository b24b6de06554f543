"""Calls about adopted, held and abandoned servers."""

from __future__ import annotations

from common.context import RequestContext
from conductor.client.base import Base
from conductor.messages import Adopted, Adoption
from conductor.rpc_api import ManageRpc


class ManageCalls(Base):
    """See ``conductor.rpc_api.ManageRpc``."""

    def adopt(self, ctxt: RequestContext, adoption: Adoption) -> Adopted:
        """Look at an existing VM, write its record, and begin to manage it.

        Raises NotFound (no such cluster or VM), Conflict (with the reason: it is a template,
        locked, another server's …), QuotaExceeded, Unavailable (the VM can't be read).
        """
        return self._rpc.call(ctxt, ManageRpc.adopt, adoption=adoption)

    def abandon(
        self, ctxt: RequestContext, server_uuid: str, reason: str | None, *, force: bool
    ) -> None:
        """Delete a record whose VM isn't ours, or can't be read (only with ``force``).

        Raises ServerNotFound; Conflict if the VM is the server's, or can't be read; Invalid if
        forced without a reason.
        """
        self._rpc.call(
            ctxt, ManageRpc.abandon, server_uuid=server_uuid, reason=reason, force=force
        )

    def mark_server(self, ctxt: RequestContext, server_uuid: str) -> None:
        """Write the owner mark of a server's VM again, if all else proves it the server's.

        Raises ServerNotFound; Conflict if the record has no VM that the journal gave it.
        """
        self._rpc.call(ctxt, ManageRpc.mark_server, server_uuid=server_uuid)

    def hold_server(self, ctxt: RequestContext, server_uuid: str, *, held: bool) -> None:
        """Stop retries for the server, or allow them again. Raises ServerNotFound."""
        self._rpc.call(ctxt, ManageRpc.hold_server, server_uuid=server_uuid, held=held)

    def retry_server(self, ctxt: RequestContext, server_uuid: str) -> None:
        """Retry a waiting operation at once; check the VM of a server in ERROR without one.

        Raises ServerNotFound; Conflict if nothing waits, or the server is held.
        """
        self._rpc.call(ctxt, ManageRpc.retry_server, server_uuid=server_uuid)
