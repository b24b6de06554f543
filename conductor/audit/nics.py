"""Compares the interfaces of VMs with the ports of their servers. Pure.

Only VMs whose configuration was read in this look show theirs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from common.messages.facts import NicFacts
from common.messages.inventory import SeenVm
from conductor.audit.facts import Facts, Finding, PortFacts, ServerFacts
from conductor.audit.records import PRESENT
from conductor.store.networks.segments import OF_OTHERS


def nics(facts: Facts) -> Iterator[Finding]:
    """Yield ports without an interface, interfaces without a port, and those elsewhere."""
    ports: defaultdict[str, list[PortFacts]] = defaultdict(list)
    for port in facts.ports:
        ports[port.server_uuid].append(port)
    for server, vm in read_vms(facts):
        if vm.nics is not None:
            yield from _of_vm(facts, server, vm.nics, ports[server.uuid])


def read_vms(facts: Facts) -> Iterator[tuple[ServerFacts, SeenVm]]:
    """Yield each server without an open operation, and its VM, if that was read and is proven."""
    vms = {
        (cluster, vm.vmid): vm
        for cluster, inventory in facts.inventories.items()
        for vm in inventory.vms
    }
    for server in facts.servers.values():
        vm = vms.get(server.place) if server.place else None
        if vm is None or server.uuid in facts.busy or server.vm_state not in PRESENT:
            continue
        if vm.read and vm.proven and vm.server_uuid == server.uuid and not vm.lock_live:
            yield server, vm


def _of_vm(
    facts: Facts, server: ServerFacts, seen: Sequence[NicFacts], ports: Sequence[PortFacts]
) -> Iterator[Finding]:
    there = {one.mac: one for one in seen}
    for port in ports:
        nic, network = there.pop(port.mac, None), facts.networks.get(port.network_id)
        evidence: dict[str, object] = {
            "port": port.id,
            "mac": port.mac,
            "network": port.network_id,
        }
        if nic is None:
            text = f"VM {server.vmid} has no interface {port.mac}, which is port {port.id}."
            yield _finding("port_without_nic", server, port.id, text, evidence)
        elif network is not None and (nic.bridge, nic.vlan) != (network.bridge, network.vlan):
            has, wanted = _wire(nic.bridge, nic.vlan), _wire(network.bridge, network.vlan)
            text = f"Interface {port.mac} is on {has}, network {network.name} is {wanted}."
            more = {"bridge": network.bridge, "vlan": network.vlan, "has": has}
            yield _finding("nic_elsewhere", server, port.id, text, evidence | more)
    for mac in sorted(there):
        if mac.startswith(facts.mac_prefix):
            text = f"VM {server.vmid} has an interface {mac}, which no port of its server is."
            subject = f"{server.cluster}/{server.vmid}/{mac}"
            yield _finding("nic_without_port", server, subject, text, {"mac": mac})


def tags_of_others(facts: Facts) -> Iterator[Finding]:
    """Yield VLAN tags of ``[networks] tenant_vlans`` that other VMs use."""
    networks = {(one.bridge, one.vlan): one for one in facts.networks.values()}
    for cluster, inventory in facts.inventories.items():
        for tag in inventory.other_tags or ():
            if not any(one.has(tag.bridge, tag.vlan) for one in facts.tenant_vlans):
                continue
            network = networks.get((tag.bridge, tag.vlan))
            whose = f"network {network.name} ({network.id})" if network else "no network yet"
            yield Finding(
                OF_OTHERS,
                f"{cluster}/{tag.vmid}/{tag.bridge}/{tag.vlan}",
                f"VM {tag.vmid}, which is not ours, is on {_wire(tag.bridge, tag.vlan)}, which "
                f"is for networks of projects: {whose}.",
                cluster=cluster,
                node=tag.node,
                vmid=tag.vmid,
                evidence={
                    "bridge": tag.bridge,
                    "vlan": tag.vlan,
                    "network": network.id if network else None,
                },
            )


def _wire(bridge: str, vlan: int | None) -> str:
    return f"{bridge}, VLAN {vlan}" if vlan is not None else f"{bridge} without a VLAN"


def _finding(
    kind: str, server: ServerFacts, subject: str, cause: str, evidence: dict[str, object]
) -> Finding:
    where = (server.cluster, server.node, server.vmid)
    return Finding(kind, subject, cause, True, server.uuid, *where, evidence)
