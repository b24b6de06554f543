"""Questions about a server's VM, which its agent answers at once."""

from __future__ import annotations

from common.context import RequestContext
from common.errors import Conflict, ServerStateConflict, Unavailable, Unimplemented
from common.messages.guests import Diagnostics, GuestTarget
from common.messages.questions import Diagnose, ReadConsoleLog
from common.resources.states import PowerState
from conductor.cloud import Cloud, silence
from conductor.engine.access import scope
from conductor.store.records import Server
from conductor.store.servers import servers
from conductor.store.transactions import Transaction

#: where Nova's word is another one
_WORDS = {PowerState.NOSTATE: "pending"}


def diagnose(cloud: Cloud, ctxt: RequestContext, server_uuid: str) -> Diagnostics:
    """See ``ConductorRpc.diagnose_server``."""
    with cloud.store.read() as connection:
        server = servers.alive(connection, server_uuid, scope(ctxt), lock=False)
        reached = target(cloud, connection, server)
    found = cloud.compute.ask(ctxt, reached, Diagnose(reached))
    if found.power_state is not PowerState.RUNNING:
        raise ServerStateConflict(
            action="get_diagnostics",
            server_uuid=server_uuid,
            attribute="power state",
            state=_WORDS.get(found.power_state, found.power_state.name.lower()),
        )
    return found


def console_log(cloud: Cloud, ctxt: RequestContext, server_uuid: str) -> str:
    """See ``ConductorRpc.server_console_log``."""
    with cloud.store.read() as connection:
        server = servers.alive(connection, server_uuid, scope(ctxt), lock=False)
        reached = target(cloud, connection, server)
    text = cloud.compute.ask(ctxt, reached, ReadConsoleLog(server_uuid))
    if text is None:
        raise Unimplemented
    return text


def target(cloud: Cloud, connection: Transaction, server: Server) -> GuestTarget:
    """Return where the server's VM is.

    Raises Conflict, in Nova's words, for a server without a host, and Unavailable while no agent
    serves the host.
    """
    placed = (server.host, server.cluster, server.node, server.vmid)
    if server.host is None or None in placed:
        raise Conflict(f"Instance {server.uuid} is not ready")
    worker = cloud.worker_of(connection, server.host)
    if worker is None:
        raise Unavailable(silence(server.host))
    return GuestTarget(
        server.uuid, worker, str(server.cluster), str(server.node), int(server.vmid or 0)
    )
