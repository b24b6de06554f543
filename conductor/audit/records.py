"""Compares the record with itself, with placement, and with the clusters. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping

from common.messages.inventory import ClusterInventory, SeenVm
from common.resources.states import VmState
from conductor.audit.facts import Facts, Finding, ServerFacts
from conductor.audit.holders import places

#: time after its deadline for an operation to clean up before it is reported
OVERDUE = datetime.timedelta(seconds=900)
#: states in which a server has a VM
PRESENT = frozenset(
    {
        *(VmState.ACTIVE, VmState.STOPPED, VmState.PAUSED, VmState.SUSPENDED),
        *(VmState.RESIZED, VmState.RESCUED, VmState.SOFT_DELETED),
        *(VmState.SHELVED, VmState.SHELVED_OFFLOADED),
    }
)


def records(facts: Facts) -> Iterator[Finding]:
    """Yield what is wrong about servers, allocations, ports, VMIDs and operations."""
    yield from _servers(facts)
    yield from _allocations(facts)
    yield from _ports(facts)
    yield from _group_places(facts)
    yield from _vmids(facts)
    yield from _operations(facts)


# --- servers


def _servers(facts: Facts) -> Iterator[Finding]:
    seen = {cluster: {vm.vmid: vm for vm in i.vms} for cluster, i in facts.inventories.items()}
    for server in _idle(facts):
        if server.task_state is not None or server.vm_state == VmState.BUILDING:
            text = f"It is {server.vm_state} ({server.task_state}), and no operation is open."
            yield _of(server, "server_abandoned", text)
        if server.place is None or server.cluster not in seen:
            continue
        vm = seen[server.cluster].get(int(server.vmid or 0))
        if vm is None:
            if server.vm_state in PRESENT and not facts.inventories[server.cluster].short:
                text = f"Cluster {server.cluster} has no VM {server.vmid}."
                yield _of(server, "server_without_vm", text)
            continue
        if vm.node != server.node:
            text = f"VM {vm.vmid} is on {vm.node}, by the record on {server.node}."
            yield _of(server, "vm_elsewhere", text)
        yield from _size(server, vm)


def _size(server: ServerFacts, vm: SeenVm) -> Iterator[Finding]:
    pairs = (
        ("CPUs", vm.vcpus, _given(server, "vcpus")),
        ("MiB of memory", vm.memory_mib, _given(server, "memory_mib")),
    )
    wrong = [
        f"{has} {what}, by the record {says}"
        for what, has, says in pairs
        if has is not None and has != says
    ]
    if wrong:
        yield _of(server, "quota_mismatch", f"VM {vm.vmid} has {'; '.join(wrong)}.")


def _given(server: ServerFacts, name: str) -> int:
    """Return what its VM was given; a resized server holds the larger of two sizes."""
    if server.vm_state == VmState.RESIZED:
        return int(server.flavor[name])
    return int(getattr(server, name))


def _why_no_vm(server: ServerFacts | None) -> str:
    if server is None:
        return "is unknown"
    return "is deleted" if server.deleted_at is not None else "has no VM"


def _idle(facts: Facts) -> Iterator[ServerFacts]:
    """Yield servers that are not deleted and have no open operation."""
    for server in facts.servers.values():
        if server.deleted_at is None and server.uuid not in facts.busy:
            yield server


def _of(server: ServerFacts, kind: str, cause: str, **evidence: object) -> Finding:
    return Finding(
        kind,
        server.uuid,
        cause,
        True,
        server.uuid,
        server.cluster,
        server.node,
        server.vmid,
        {"vm_state": server.vm_state, "task_state": server.task_state, **evidence},
    )


# --- allocations


def _allocations(facts: Facts) -> Iterator[Finding]:
    if facts.allocations is None:
        return
    hosts = {host.uuid: host.host for host in facts.hosts.values()}
    yield from _held_by_migrations(facts, hosts)
    for consumer, by_provider in facts.allocations.items():
        if consumer in facts.holders or consumer in facts.left:
            continue
        server = facts.servers.get(consumer)
        if consumer in facts.busy or (server is not None and server.place is not None):
            continue
        where = ", ".join(sorted(hosts.get(uuid, uuid) for uuid in by_provider))
        held = {hosts.get(uuid, uuid): dict(some) for uuid, some in by_provider.items()}
        if server is None:
            text = f"A consumer that was never a server has allocations on {where}."
            yield Finding("allocation_unknown", consumer, text, False, evidence=held)
            continue
        text = f"The server {_why_no_vm(server)} and has allocations on {where}."
        yield Finding("allocation_without_server", consumer, text, True, consumer, evidence=held)
    for server in _idle(facts):
        host = facts.hosts.get(str(server.host))
        if server.place is not None and host is not None:
            yield from _allocation(facts, server, host.uuid, hosts)


def _held_by_migrations(facts: Facts, hosts: Mapping[str, str]) -> Iterator[Finding]:
    """Yield differences between what migrations hold and should hold: resources of the host that a
    server moves to, and then, until it is confirmed or reverted, of the host that it left."""
    for holder in facts.holders.values():
        if holder.server_uuid in facts.busy:
            continue
        there = (facts.allocations or {}).get(holder.uuid, {})
        held = {hosts.get(uuid, uuid): dict(some) for uuid, some in there.items()}
        wanted = {str(holder.host): dict(holder.amounts)} if holder.open else {}
        if held == wanted:
            continue
        kind = "migration_allocation_differs" if holder.open else "migration_allocation_left"
        state = "is open" if holder.open else "has ended"
        text = f"A migration of the server {state} and holds {held}, by the record {wanted}."
        yield Finding(
            kind, holder.uuid, text, not holder.open, holder.server_uuid, evidence={"held": held}
        )


def _allocation(
    facts: Facts, server: ServerFacts, provider: str, hosts: Mapping[str, str]
) -> Iterator[Finding]:
    held = (facts.allocations or {}).get(server.uuid)
    wanted = {provider: server.amounts}
    if held is None and not server.amounts:
        # Parked, with a volume as its disk.
        return
    if held is None:
        yield _of(server, "server_without_allocation", f"It has none on {server.host}.")
    elif {uuid: dict(some) for uuid, some in held.items()} != wanted:
        named = {hosts.get(uuid, uuid): dict(some) for uuid, some in held.items()}
        text = f"It holds {named}, by the record {server.amounts} on {server.host}."
        yield _of(server, "allocation_differs", text, held=named)


# --- addresses, VMIDs, operations


def _ports(facts: Facts) -> Iterator[Finding]:
    by_server: dict[str, set[str]] = {}
    # The others were made by users, for servers to come.
    for port in (one for one in facts.ports if one.server_uuid):
        by_server.setdefault(port.server_uuid, set()).update(port.ips)
        server = facts.servers.get(port.server_uuid)
        if port.server_uuid in facts.busy or (server is not None and server.place is not None):
            continue
        gone = (
            "is unknown" if server is None else "is deleted" if server.deleted_at else "has no VM"
        )
        held = ", ".join(port.ips)
        text = f"The server of the port {gone}; the port holds {held or 'no address'}."
        evidence = {"ip": held or None}
        yield Finding(
            "port_without_server", port.id, text, True, port.server_uuid, evidence=evidence
        )
    for server in _idle(facts):
        missing = set(server.addresses) - by_server.get(server.uuid, set())
        if missing:
            text = f"It shows {', '.join(sorted(missing))}, which no port of it holds."
            yield _of(server, "address_without_port", text)


def _group_places(facts: Facts) -> Iterator[Finding]:
    for place in facts.group_places:
        holder = facts.holders.get(place.server_uuid)
        if holder is not None and (holder.open or holder.server_uuid in facts.busy):
            continue
        server = facts.servers.get(place.server_uuid)
        if place.server_uuid in facts.busy or (server is not None and server.place is not None):
            continue
        text = f"Its server {_why_no_vm(server)}; it holds a place of its group on {place.host}."
        evidence = {"group": place.group_uuid, "host": place.host}
        uuid = place.server_uuid
        yield Finding("group_place_without_server", uuid, text, True, uuid, evidence=evidence)


def _vmids(facts: Facts) -> Iterator[Finding]:
    templates = {(one.cluster, one.vmid) for one in facts.templates}
    held = places(facts)
    for place, row in facts.reservations.items():
        server = facts.servers.get(row.server_uuid or "")
        owned = (
            place in templates
            or place in held
            or place in facts.busy_holders
            or (server is not None and server.place == place)
        )
        if owned or row.state != "reserved" or row.server_uuid in facts.busy:
            continue
        inventory = facts.inventories.get(row.cluster)
        clear = inventory is not None and _is_clear(inventory, row.vmid)
        who = f"server {row.server_uuid}" if row.server_uuid else "a template"
        text = f"It is reserved for {who}, which doesn't have it."
        yield Finding(
            "vmid_without_owner",
            f"{row.cluster}/{row.vmid}",
            text,
            clear,
            row.server_uuid,
            row.cluster,
            None,
            row.vmid,
            {"since": row.since.isoformat(), "seen_empty": clear},
        )
    for server in _idle(facts):
        if server.place is None:
            continue
        reserved = facts.reservations.get(server.place)
        if reserved is None or reserved.server_uuid != server.uuid:
            by = f"reserved for {reserved.server_uuid}" if reserved else "not reserved"
            text = f"Its VMID {server.vmid} is {by}."
            yield _of(server, "vmid_not_reserved", text)


def _is_clear(inventory: ClusterInventory, vmid: int) -> bool:
    """Return whether the whole cluster was read and has nothing with this VMID."""
    taken = {vm.vmid for vm in inventory.vms} | {one.vmid for one in inventory.volumes}
    return not inventory.unseen and vmid not in taken


def _operations(facts: Facts) -> Iterator[Finding]:
    for operation in facts.operations:
        server = facts.servers.get(operation.server_uuid or "")
        if operation.deadline is None or operation.deadline + OVERDUE > facts.now:
            continue
        if server is not None and server.held:
            continue  # an operator holds it
        late = int((facts.now - operation.deadline).total_seconds())
        last = f": {operation.message}" if operation.message else "."
        text = f"The {operation.action} is {operation.state}, {late} s after its deadline{last}"
        evidence = {"attempt": operation.attempt, "started_at": operation.started_at.isoformat()}
        yield Finding(
            "operation_overdue",
            str(operation.id),
            text,
            True,
            operation.server_uuid,
            evidence=evidence,
        )
