"""Whether a server can be suspended, asked before the request is accepted."""

from __future__ import annotations

from common.context import RequestContext
from common.errors import Conflict, Unavailable
from common.log import logger
from common.messages.questions import Agent, Inspect
from conductor.cloud import Cloud
from conductor.engine import access

LOG = logger(__name__)


def require(cloud: Cloud, ctxt: RequestContext, server_uuid: str) -> None:
    """Raise Conflict if the memory of the server's VM can't be saved to disk.

    Only its host knows. Where that doesn't answer the request is accepted, and the command, which
    looks again, fails then. Raises what the acceptance would raise.
    """
    with cloud.store.read() as connection:
        server = access.free(connection, ctxt, server_uuid, "suspend", lock=False)
        worker = cloud.worker_of(connection, str(server.host))
    if worker is None or server.vmid is None:
        return
    try:
        found = cloud.compute.ask(
            ctxt,
            Agent(worker, str(server.cluster)),
            Inspect(server.vmid, server.node, server_uuid),
        )
    except Unavailable as error:
        LOG.warning("Server %s is suspended unasked: %s", server_uuid, error.message)
        return
    if found.ours and found.unsuspendable is not None:
        raise Conflict(f"Instance {server_uuid} cannot be suspended: {found.unsuspendable}")
