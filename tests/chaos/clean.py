"""Nothing is left that no record owns, and records, volumes, allocations and addresses agree."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa

from common.errors import NotFound
from common.resources.states import OPEN_STATES
from db import schema
from placement.client import PlacementClient
from simulator.qemu.archives import owner

SETTLE_SECONDS = 20
HA = "high availability:"
OURS = "micronova: "
#: how the notes of a backup's archive begin
NOTES = "micronova: backup="
#: states in which a server has a VM, and with it addresses and an allocation
WITH_VM = frozenset(
    {"active", "stopped", "paused", "suspended", "resized", "rescued"}
    | {"shelved", "shelved_offloaded"}
)
#: statuses in which a volume, or the copy that is a snapshot, rests in its holder
RESTING = frozenset(
    {"available", "in-use", "reserved", "error"}
    | {"error_deleting", "error_extending", "error_restoring"}
)
#: migrations that are over: they hold nothing
ENDED = frozenset({"confirmed", "reverted", "error", "failed", "completed", "cancelled", "done"})


def differences(
    connection: sa.Connection, clusters: Mapping[str, Any], placement: PlacementClient
) -> list[str]:
    """Every difference between the record and what exists; ``clusters`` by name."""
    found: list[str] = []
    alive = {
        row.uuid: row
        for row in connection.execute(
            sa.select(schema.servers).where(schema.servers.c.deleted_at.is_(None))
        )
    }
    found += _operations(connection)
    found += _addresses(connection, alive)
    found += _allocations(connection, alive, placement)
    for name, state in clusters.items():
        found += _cluster(connection, name, state, alive)
    return found


def _operations(connection: sa.Connection) -> list[str]:
    columns = schema.operations.c
    rows = connection.execute(sa.select(schema.operations).where(columns.state.in_(OPEN_STATES)))
    return [f"operation {row.id} ({row.action}) is {row.state}: {row.message}" for row in rows]


def _addresses(connection: sa.Connection, alive: Mapping[str, Any]) -> list[str]:
    rows = list(connection.execute(sa.select(schema.ports)))
    found = [
        f"port {row.id} ({row.ip}) of server {row.server_uuid}, which is gone"
        for row in rows
        if row.server_uuid not in alive
    ]
    having = {row.server_uuid for row in rows}
    found += [
        f"server {uuid} runs without a port"
        for uuid, row in alive.items()
        if row.vm_state in WITH_VM and uuid not in having
    ]
    return found


def _allocations(
    connection: sa.Connection, alive: Mapping[str, Any], placement: PlacementClient
) -> list[str]:
    found, having = [], set()
    migrations = schema.migrations.c
    moving = set(
        connection.scalars(
            sa.select(migrations.uuid).where(
                migrations.status.not_in(ENDED), migrations.server_uuid.in_(list(alive))
            )
        )
    )
    hosts = {row.uuid: row.host for row in connection.execute(sa.select(schema.hosts))}
    for uuid, host in hosts.items():
        try:
            held = placement.provider_allocations(uuid)
        except NotFound:
            found.append(f"host {host} has no resource provider")
            continue
        for consumer, amounts in held.items():
            having.add(consumer)
            if consumer in moving:
                continue
            server = alive.get(consumer)
            if server is None or server.host != host:
                found.append(f"allocation of {consumer} on {host}: {amounts}")
    found += [
        f"server {uuid} on {row.host} has no allocation"
        for uuid, row in alive.items()
        if row.vm_state in WITH_VM and uuid not in having
    ]
    return found


def _cluster(
    connection: sa.Connection, name: str, state: Mapping[str, Any], alive: Mapping[str, Any]
) -> list[str]:
    templates = {
        row.vmid
        for row in connection.execute(
            sa.select(schema.templates.c.vmid).where(schema.templates.c.cluster == name)
        )
    }
    owned = {row.vmid: row for row in alive.values() if row.cluster == name and row.vmid}
    held = [row for row in connection.execute(sa.select(schema.volumes)) if row.cluster == name]
    snapshots = list(connection.execute(sa.select(schema.volume_snapshots)))
    copies = [row for row in snapshots if row.cluster == name]
    holders = {row.vmid for row in [*held, *copies] if row.vmid is not None}
    found = _vmids(connection, name, templates | holders, alive)
    found += _held(connection, state, [*held, *copies])
    found += _snapshots(state, held, snapshots)
    for vm in state["vms"]:
        server = owned.get(vm["vmid"])
        what = f"VM {vm['vmid']} on {vm['node']}"
        if server is None and vm["vmid"] not in templates | holders:
            found.append(f"{what} is nobody's")
        elif vm["lock"] and not (server is not None and vm["lock"] == server.vm_state):
            found.append(f"{what} is locked ({vm['lock']})")
        elif server is not None and vm["node"] != server.node:
            found.append(f"{what} is of server {server.uuid}, recorded on {server.node}")
    there = {vm["vmid"] for vm in state["vms"]}
    found += [
        f"server {row.uuid} has no VM {vmid}"
        for vmid, row in owned.items()
        if row.vm_state in WITH_VM and vmid not in there
    ]
    # A template that was not made, or not made to its end, leaves nothing either.
    owners = ((templates | holders) & there) | owned.keys()
    found += _volumes(state, owners, {row.uuid for row in owned.values()})
    found += _archives(connection, name, state, holders)
    found += _affinity(connection, state, owned.keys())
    found += [f"lock {one['name']} is held or waited for" for one in state["locks"]]
    found += [f"task {task['upid']} runs" for task in state["tasks"]]
    return found


def _held(
    connection: sa.Connection, state: Mapping[str, Any], volumes: Collection[Any]
) -> list[str]:
    """Each volume rests in its holder, and one VM at the most names it: its server's."""
    attached = {
        row.volume_id: row.server_uuid
        for row in connection.execute(sa.select(schema.volume_attachments))
    }
    vmids = {row.uuid: row.vmid for row in connection.execute(sa.select(schema.servers))}
    vms = {vm["vmid"]: vm["config"] for vm in state["vms"]}
    found = []
    for row in volumes:
        if row.status not in RESTING or row.volid is None or row.vmid is None:
            continue
        holder = vms.get(row.vmid, {})
        parked = holder.get("unused0") == row.volid and str(holder.get("protection")) == "1"
        if not parked or "scsi0" in holder:
            found.append(f"volume {row.id} ({row.status}) doesn't rest in VM {row.vmid}")
        naming = sorted(
            vmid
            for vmid, config in vms.items()
            if vmid != row.vmid and any(_volid(value) == row.volid for value in config.values())
        )
        wanted = [vmids[attached[row.id]]] if row.id in attached else []
        free = row.status in ("available", "in-use") and (row.status == "in-use") != bool(wanted)
        if naming != wanted or free:
            found.append(
                f"volume {row.id} ({row.status}) is named by VMs {naming} instead of {wanted}"
            )
    return found


def _snapshots(
    state: Mapping[str, Any], volumes: Collection[Any], snapshots: Collection[Any]
) -> list[str]:
    """Each snapshot in a holder has a record, and each that is available is in its holder."""
    vms = {vm["vmid"]: vm["snapshots"] for vm in state["vms"]}
    found = []
    for volume in volumes:
        there = set(vms.get(volume.vmid, ()))
        mine = [row for row in snapshots if row.volume_id == volume.id and row.snapname]
        left = there - {row.snapname for row in mine}
        missing = {row.snapname for row in mine if row.status == "available"} - there
        found += [f"snapshot {one} in VM {volume.vmid} is nobody's" for one in sorted(left)]
        found += [f"snapshot {one} is not in VM {volume.vmid}" for one in sorted(missing)]
    return found


def _archives(
    connection: sa.Connection, name: str, state: Mapping[str, Any], holders: Collection[int]
) -> list[str]:
    """Each archive of a holder, or with a backup's notes, is a backup's, and each backup has its
    own. Others are of servers: a person made them."""
    columns = schema.volume_backups.c
    rows = connection.execute(sa.select(columns.archive).where(columns.cluster == name))
    known = {row.archive for row in rows if row.archive is not None}
    there = {one["volid"]: one["notes"] for one in state["volumes"] if one["content"] == "backup"}
    found = [f"archive {volid} is not there" for volid in sorted(known - there.keys())]
    for volid in sorted(there.keys() - known):
        if there[volid].startswith(NOTES) or owner(_name(volid)) in holders:
            found.append(f"archive {volid} is nobody's")
    return found


def _name(volid: str) -> str:
    """A volume's name on its storage."""
    return volid.partition(":")[2]


def _volid(value: Any) -> str:
    return str(value).partition(",")[0]


def _affinity(
    connection: sa.Connection, state: Mapping[str, Any], vmids: Collection[int]
) -> list[str]:
    """Of what is written of server groups all is of a group, and of its servers."""
    groups = set(connection.scalars(sa.select(schema.server_groups.c.uuid)))
    sids = {f"vm:{vmid}" for vmid in vmids}
    found = []
    for one in state["ha"]["resources"]:
        comment = str(one["options"].get("comment"))
        if comment.startswith(OURS) and (
            one["sid"] not in sids or comment.rpartition("=")[2] not in groups
        ):
            found.append(f"{HA} resource {one['sid']} is nobody's")
    for one in state["ha"]["rules"]:
        if one["rule"].startswith("micronova-") and (
            not sids.issuperset(one["resources"]) or one["rule"][-36:] not in groups
        ):
            found.append(f"{HA} rule {one['rule']} is nobody's")
    return found


def _vmids(
    connection: sa.Connection, name: str, templates: set[int], alive: Mapping[str, Any]
) -> list[str]:
    rows = connection.execute(
        sa.select(schema.vmids).where(
            schema.vmids.c.cluster == name, schema.vmids.c.state == "reserved"
        )
    )
    return [
        f"VMID {row.vmid} is reserved for {row.server_uuid}, which is gone"
        for row in rows
        if row.vmid not in templates
        and (row.server_uuid not in alive or alive[row.server_uuid].vmid != row.vmid)
    ]


def _volumes(state: Mapping[str, Any], vmids: set[int], servers: set[str]) -> list[str]:
    found = []
    for volume in state["volumes"]:
        if volume["content"] == "images" and volume["vmid"] not in vmids:
            found.append(f"volume {volume['volid']} is nobody's")
        drive = volume["content"] == "iso" and "micronova-" in volume["name"]
        if drive and not any(uuid in volume["name"] for uuid in servers):
            found.append(f"volume {volume['volid']} is nobody's")
    return found
