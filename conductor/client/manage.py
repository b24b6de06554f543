"""Calls about adopted, held and abandoned servers."""

from __future__ import annotations

from common.context import RequestContext
from conductor.client.base import Base
from conductor.messages import Adopted, Adoption
from conductor.rpc_api import ManageRpc


class ManageCalls(Base):
    """See ``conductor.rpc_api.ManageRpc``."""

    def adopt(self, ctxt: RequestContext, adoption: Adoption) -> Adopted:
        """Look at an existing VM, write its record, and begin to take it under management.

        Raises NotFound (no such cluster or VM), Conflict (with the reason: it is a template,
        locked, somebody's already …), QuotaExceeded, Unavailable (it can't be looked at).
        """
        return self._rpc.call(ctxt, ManageRpc.adopt, adoption=adoption)

    def forget(
        self, ctxt: RequestContext, server_uuid: str, reason: str | None, *, force: bool
    ) -> None:
        """Delete a record whose VM isn't ours, or can't be looked at (only with ``force``).

        Raises ServerNotFound; Conflict where the VM is the server's, or can't be looked at;
        Invalid when it is forced without a reason.
        """
        self._rpc.call(ctxt, ManageRpc.forget, server_uuid=server_uuid, reason=reason, force=force)

    def mark_server(self, ctxt: RequestContext, server_uuid: str) -> None:
        """Write the owner mark of a server's VM again, where all else proves it the server's.

        Raises ServerNotFound, and Conflict where the record names no VM that the journal gave it.
        """
        self._rpc.call(ctxt, ManageRpc.mark_server, server_uuid=server_uuid)

    def hold_server(self, ctxt: RequestContext, server_uuid: str, *, held: bool) -> None:
        """Stop retries for the server, or allow them again. Raises ServerNotFound."""
        self._rpc.call(ctxt, ManageRpc.hold_server, server_uuid=server_uuid, held=held)

    def retry_server(self, ctxt: RequestContext, server_uuid: str) -> None:
        """Retry at once what waits; look at the VM of a server in ERROR that waits for nothing.

        Raises ServerNotFound; Conflict where nothing waits, and for a server that is held.
        """
        self._rpc.call(ctxt, ManageRpc.retry_server, server_uuid=server_uuid)
