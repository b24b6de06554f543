"""Accepts the evacuation of a server of a lost host, or says why not and what its operator can do.

Proxmox VE carries out each call about a VM on the VM's node, so none works while that is gone. A
second VM on the same disk could destroy it: nothing proves that the first one has stopped. What is
left is Proxmox VE's own high availability, which fences the node and recovers what it manages:
that is waited for (``conductor.servers.move.evacuation``). Of others the configuration can be
moved by hand once the node is fenced; the record follows (``conductor.sync.relocation``).
"""

from __future__ import annotations

from dataclasses import dataclass

from common.context import RequestContext
from common.errors import HostNotFound, Invalid, Unavailable
from common.log import logger
from common.messages.facts import HaService, HostFacts
from common.messages.scheduling import Decision, RequestSpec
from common.resources.migrations import MigrationStatus, MigrationType
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.access import check_state, scope
from conductor.plans import EvacuationPlan
from conductor.servers.move import destination
from conductor.servers.move.begin_live_migration import place
from conductor.store.hosts import registry
from conductor.store.records import Operation, Server
from conductor.store.servers import migrations, servers
from conductor.store.transactions import Transaction
from conductor.sync import whereabouts

LOG = logger(__name__)

ACTION = "evacuate"
_MOVE = "mv /etc/pve/nodes/{source}/qemu-server/{vmid}.conf /etc/pve/nodes/{target}/qemu-server/"


@dataclass(frozen=True)
class _Lost:
    """A server whose host is gone."""

    server: Server
    facts: HostFacts
    """Of its host, as last reported."""
    request: RequestSpec
    """What it needs of another host."""


def accept(cloud: Cloud, ctxt: RequestContext, server_uuid: str, host: str | None) -> Operation:
    """See ``ConductorRpc.evacuate_server``. A refusal claims, writes and moves nothing."""
    with cloud.store.read() as connection:
        lost = _look(cloud, connection, ctxt, server_uuid, host)
    why = why_not(lost.facts, lost.request)
    if why:
        raise _refusal(lost, f"It can't be evacuated: {why}. Bring node {lost.facts.node} back.")
    service, known = _service(cloud, ctxt, lost.server)
    if service is None or not service.is_recovered:
        raise _by_hand(cloud, ctxt, lost, _what_ha_does(service, known=known))
    if service.online and service.node == lost.facts.node:
        raise _in_use(lost.facts.host)
    if host is not None:
        # The manager takes no request where to recover a guest.
        raise Invalid(
            "The HA manager of Proxmox VE recovers its VM, and chooses the node itself. Evacuate "
            f"it without a host; migrate it to {host} once it runs.",
            server_uuid=server_uuid,
        )
    return cloud.store.run(lambda c: _begin(cloud, c, ctxt, server_uuid))


def why_not(facts: HostFacts, request: RequestSpec) -> str:
    """Return why a VM can't be evacuated while its host is gone; empty: it can. Pure."""
    own = any(one.name == facts.vm_storage and not one.shared for one in facts.storages)
    if own and not request.volume_backed:
        return f"its disk is on the node's own storage {facts.vm_storage}"
    local = next((one for one in request.volumes if one.node is not None), None)
    if local is not None:
        return f"it has a volume on the node's own storage {local.storage}"
    return "" if request.vm is None else facts.pinned.get(str(request.vm[1]), "")


def _look(
    cloud: Cloud, connection: Transaction, ctxt: RequestContext, uuid: str, host: str | None
) -> _Lost:
    """Return the server. Raises, in Nova's words and order, what Nova would refuse."""
    server = servers.alive(connection, uuid, scope(ctxt), lock=False)
    if host is not None:
        _check_host(connection, server, host)
    check_state(server, ACTION)
    if server.host is None or server.vmid is None:
        raise Invalid(f"Instance {uuid} can't be evacuated: it has no VM.")
    facts, _ = registry.host(connection, server.host)
    # An agent elsewhere may carry the host: then it knows whether the node itself is there.
    if facts.online and cloud.worker_of(connection, server.host) is not None:
        raise _in_use(server.host)
    wanted = destination.Wanted(server.uuid, server.flavor, host)
    return _Lost(server, facts, destination.request_of(connection, server, wanted))


def _check_host(connection: Transaction, server: Server, host: str) -> None:
    try:
        registry.host(connection, host)
    except HostNotFound as error:
        raise HostNotFound(f"Compute host {host} not found.", host=host) from error
    if host == server.host:
        raise Invalid("The target host can't be the same one.")


def _in_use(host: str) -> Invalid:
    return Invalid(f"Compute service of {host} is still in use.")


def _service(cloud: Cloud, ctxt: RequestContext, server: Server) -> tuple[HaService | None, bool]:
    """Return the HA manager's entry for the server's VM, and whether the manager answered."""
    try:
        return whereabouts.ha_service(cloud, ctxt, server), True
    except Unavailable as error:
        LOG.warning("Server %s: %s", server.uuid, error.message)
        return None, False


def _begin(
    cloud: Cloud, connection: Transaction, ctxt: RequestContext, server_uuid: str
) -> Operation:
    lost = _look(cloud, connection, ctxt, server_uuid, None)
    server = lost.server
    # What it was interrupted in, as whatever it did ended with its host.
    destination.end_left(connection, server)
    row = migrations.insert(
        connection,
        str(ctxt.user_id),
        server,
        dict(server.flavor),
        kind=MigrationType.EVACUATION,
        status=MigrationStatus.ACCEPTED,
    )
    plan = EvacuationPlan(source=place(lost.facts, server.vmid), migration_id=row.id)
    operation, _ = start.take(connection, cloud, ctxt, server, ACTION, plan)
    migrations.set_status(connection, row.id, MigrationStatus.ACCEPTED, operation)
    return operation


def _what_ha_does(service: HaService | None, *, known: bool) -> str:
    """Return a sentence on what the HA manager will do; empty: nothing. Pure."""
    if service is not None:
        state = service.state if service.state == "error" else service.wanted
        return f"The HA manager has its VM in state {state}, and won't recover it."
    if known:
        return "Its VM is no HA resource."
    return "If its VM is an HA resource in state started, Proxmox VE recovers it by itself."


def _by_hand(cloud: Cloud, ctxt: RequestContext, lost: _Lost, ha: str) -> Invalid:
    decision = cloud.scheduler.preview(ctxt, (lost.request,))[0]
    if decision.host is None:
        return _refusal(
            lost, f"{ha} No other host would take it. {decision.reason or ''}".rstrip()
        )
    return _refusal(lost, f"{ha} {_line(cloud, lost, decision)}")


def _line(cloud: Cloud, lost: _Lost, decision: Decision) -> str:
    with cloud.store.read() as connection:
        target = registry.host(connection, str(decision.host))[0].node
    source = lost.facts.node
    move = _MOVE.format(source=source, vmid=lost.server.vmid, target=target)
    return (
        f"Once node {source} is powered off and can't come back by itself, "
        f"as root on {target}: {move} - the record follows."
    )


def _refusal(lost: _Lost, what: str) -> Invalid:
    uuid, node = lost.server.uuid, lost.facts.node
    return Invalid(
        f"Instance {uuid} can't be evacuated by a request: Proxmox VE changes no VM of a node "
        f"that is gone ({node}), and a second VM on its disk could destroy it. {what}",
        server_uuid=uuid,
    )
