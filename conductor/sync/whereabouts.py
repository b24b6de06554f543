"""Where a server's VM is now, and recording that others have moved it there."""

from __future__ import annotations

from common.context import RequestContext
from common.errors import HostNotFound, Unavailable
from common.messages.facts import HaService, HostFacts, Inspection
from common.messages.questions import Agent, FindHaService, Inspect
from common.resources.states import VmState
from conductor.cloud import Cloud
from conductor.store.hosts import registry
from conductor.store.ledger import transitions
from conductor.store.records import Server
from conductor.store.servers import server_groups
from conductor.store.servers import vm_states as store
from conductor.store.transactions import Transaction


def ha_service(cloud: Cloud, ctxt: RequestContext, server: Server) -> HaService | None:
    """Return the HA manager's entry of its VM; None: there is none. Raises Unavailable."""
    return cloud.compute.ask(
        ctxt, _agent(cloud, server, None), FindHaService(int(server.vmid or 0))
    )


def inspect(cloud: Cloud, ctxt: RequestContext, server: Server, node: str | None) -> Inspection:
    """Return a close look at its VM, first on this node. Raises Unavailable."""
    return cloud.compute.ask(
        ctxt,
        _agent(cloud, server, node),
        Inspect(int(server.vmid or 0), node, server.uuid),
    )


def _agent(cloud: Cloud, server: Server, node: str | None) -> Agent:
    cluster = str(server.cluster)
    with cloud.store.read() as connection:
        worker = store.worker_in(connection, cluster, node, cloud.down(connection))
    if worker is None:
        raise Unavailable(f"No agent of cluster {cluster} answers.")
    return Agent(worker, cluster)


def host_of(cloud: Cloud, cluster: str, node: str) -> HostFacts | None:
    """Return the host of a node; None: no agent has reported it."""
    with cloud.store.read() as connection:
        there = store.hosts_of(connection, cluster).get(node)
        if there is None:
            return None
        try:
            return registry.host(connection, there.host)[0]
        except HostNotFound:
            return None


def arrive(
    connection: Transaction,
    server: Server,
    facts: HostFacts,
    operation_id: int,
    vm_state: VmState,
    power_state: int,
    *,
    takes_over: bool = False,
) -> tuple[Server, str | None]:
    """Record that its VM is on this host; return the server, and how its group is violated."""
    zone = registry.host(connection, facts.host, lock=True)[0].availability_zone
    broken = server_groups.follow(connection, server, facts.host)
    now = transitions.move(
        connection,
        server,
        operation_id=operation_id,
        vm_state=vm_state,
        task_state=None,
        takes_over=takes_over,
        power_state=power_state,
        host=facts.host,
        node=facts.node,
        availability_zone=zone,
    )
    return now, broken
