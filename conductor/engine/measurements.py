"""What agents have measured of servers and hosts."""

from __future__ import annotations

from common.context import RequestContext
from common.errors import Conflict, NotFound
from common.messages.measurements import Measured, Period
from common.messages.questions import Measure
from conductor.cloud import Cloud
from conductor.engine import guests, host_agent
from conductor.engine.access import scope
from conductor.store.servers import servers, vmids


def of_server(cloud: Cloud, ctxt: RequestContext, server_uuid: str, period: Period) -> Measured:
    """See ``ConductorRpc.measure_server``."""
    with cloud.store.read() as connection:
        server = servers.alive(connection, server_uuid, scope(ctxt), lock=False)
        at = guests.target(cloud, connection, server)
        since = vmids.held_since(connection, at.cluster, at.vmid, server_uuid)
    if since is None:
        raise Conflict(f"The journal never gave VMID {at.vmid} to the server.")
    wanted = Measure(at.node, period, vmid=at.vmid, since=since)
    return cloud.compute.ask(ctxt, at, wanted)


def of_host(
    cloud: Cloud, ctxt: RequestContext, host: str, period: Period, storage: str | None
) -> Measured:
    """See ``ConductorRpc.measure_host``."""
    agent = host_agent.of_host(cloud, host)
    if storage is not None and storage not in {one.name for one in agent.facts.storages}:
        raise NotFound(f"Host {host} doesn't have a storage {storage}.")
    wanted = Measure(agent.facts.node, period, storage=storage)
    return cloud.compute.ask(ctxt, agent.target, wanted)
