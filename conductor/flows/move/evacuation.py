"""Why a server of a lost host is not evacuated from here, and what its operator can do.

Proxmox VE carries out each call about a VM on the VM's node, so none works while that is gone. A
second VM on the same disk could destroy it: nothing proves that the first one has stopped. What is
left is Proxmox VE's own high availability, or moving the VM's configuration by hand once the node
is fenced. Both are seen, and the record follows (``conductor.sync.relocation``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from common.context import RequestContext
from common.errors import HostNotFound, Invalid
from common.messages.facts import HostFacts
from common.messages.scheduling import Decision, RequestSpec
from conductor.cloud import Cloud
from conductor.flows.accept import check_state, scope
from conductor.flows.move import destination
from conductor.store import registry, servers
from conductor.store.servers import Server
from conductor.store.transactions import Transaction

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


def refuse(cloud: Cloud, ctxt: RequestContext, server_uuid: str, host: str | None) -> NoReturn:
    """See ``ConductorClient.evacuate_server``. Nothing is claimed, written or sent to an agent."""
    with cloud.store.read() as connection:
        lost = _look(cloud, connection, ctxt, server_uuid, host)
    why = kept(lost.facts, lost.server.vmid)
    if why:
        raise _refusal(lost, f"It can't be evacuated: {why}. Bring node {lost.facts.node} back.")
    decision = cloud.scheduler.preview(ctxt, (lost.request,))[0]
    if decision.host is None:
        raise _refusal(lost, f"No other host would take it. {decision.reason or ''}".rstrip())
    raise _refusal(lost, _by_hand(cloud, lost, decision))


def kept(facts: HostFacts, vmid: int | None) -> str:
    """Return why a VM can't be evacuated while its host is gone; empty: it can. Pure."""
    own = any(one.name == facts.vm_storage and not one.shared for one in facts.storages)
    if own:
        return f"its disk is on the node's own storage {facts.vm_storage}"
    return facts.pinned.get("" if vmid is None else str(vmid), "")


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
        raise Invalid(f"Compute service of {server.host} is still in use.")
    wanted = destination.Wanted(server.uuid, server.flavor, host)
    return _Lost(server, facts, destination.request_of(connection, server, wanted))


def _check_host(connection: Transaction, server: Server, host: str) -> None:
    try:
        registry.host(connection, host)
    except HostNotFound as error:
        raise HostNotFound(f"Compute host {host} not found.", host=host) from error
    if host == server.host:
        raise Invalid("The target host can't be the same one.")


def _by_hand(cloud: Cloud, lost: _Lost, decision: Decision) -> str:
    with cloud.store.read() as connection:
        target = registry.host(connection, str(decision.host))[0].node
    source = lost.facts.node
    move = _MOVE.format(source=source, vmid=lost.server.vmid, target=target)
    return (
        "If its VM is an HA resource in state started, Proxmox VE recovers it by itself. "
        f"Otherwise, once node {source} is powered off and can't come back by itself, "
        f"as root on {target}: {move} - the record follows in both cases."
    )


def _refusal(lost: _Lost, what: str) -> Invalid:
    uuid, node = lost.server.uuid, lost.facts.node
    return Invalid(
        f"Instance {uuid} can't be evacuated by a request: Proxmox VE changes no VM of a node "
        f"that is gone ({node}), and a second VM on its disk could destroy it. {what}",
        server_uuid=uuid,
    )
