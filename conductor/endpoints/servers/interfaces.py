"""The RPC endpoint of servers' interfaces."""

from __future__ import annotations

from common.context import RequestContext
from common.errors import Invalid, Unavailable
from common.resources.states import OperationState, ResourceType
from conductor.cloud import Cloud
from conductor.engine import awaited
from conductor.engine.runner import Submits
from conductor.rpc.servers.interfaces import Attachment
from conductor.servers.guest.begin_plug import PlugAcceptance
from conductor.store.records import Operation

#: within the time that an API waits for its conductor
WAIT_SECONDS = 20.0


class InterfaceEndpoint:
    """See ``conductor.rpc.InterfaceRpc``."""

    def __init__(
        self, cloud: Cloud, runner: Submits, *, wait_seconds: float = WAIT_SECONDS
    ) -> None:
        """``wait_seconds``: how long an attach that is to be seen done is waited for."""
        self._cloud, self._runner, self._wait_seconds = cloud, runner, wait_seconds
        self._accept = PlugAcceptance(cloud)

    def attach_interface(
        self, ctxt: RequestContext, server_uuid: str, asked: Attachment, *, wait: bool
    ) -> str:
        ctxt.about(ResourceType.SERVER, server_uuid)
        operation, port_id = self._accept.attach(ctxt, server_uuid, asked)
        self._runner.submit(operation)
        if wait:
            self._await(operation)
        return port_id

    def detach_interface(self, ctxt: RequestContext, server_uuid: str, port_id: str) -> None:
        ctxt.about(ResourceType.SERVER, server_uuid)
        self._submit(self._accept.detach(ctxt, server_uuid, port_id))

    def detach_address(self, ctxt: RequestContext, server_uuid: str, address: str) -> None:
        ctxt.about(ResourceType.SERVER, server_uuid)
        self._submit(self._accept.detach_address(ctxt, server_uuid, address))

    def _submit(self, operation: Operation | None) -> None:
        if operation is not None:
            self._runner.submit(operation)

    def _await(self, operation: Operation) -> None:
        """Return once it is done. Raises Invalid or Unavailable where it comes to nothing."""
        ended = awaited.end_of(self._cloud.store, operation.id, self._wait_seconds)
        if ended is None:
            raise Unavailable(
                "The interface is still being attached; the server's actions show how it ends."
            )
        if ended.state == OperationState.DONE:
            return
        text = f"Failed to attach network adapter device to {operation.server_uuid}"
        raise (Invalid if awaited.is_refusal(ended) else Unavailable)(text)
