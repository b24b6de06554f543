"""Every call that the driver sends to Proxmox VE, with its purpose and the privileges it needs.

From this one list come the roles in docs/proxmox.md and of ``micronova proxmox prepare``, what the
preflight and the doctor check, and the role of the simulator's agent. A call that isn't here fails
the tests; so does one whose privileges are fewer than Proxmox VE's API schema says, and a
privilege that no call needs. Pure.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass


class Purpose(enum.Enum):
    """Why calls are sent: what is refused without their privileges."""

    SERVERS = "create, configure, run and destroy VMs"
    MEMBERS = "see the cluster's members and quorum"
    NODES = "see nodes and tasks"
    BRIDGES = "attach interfaces to bridges"
    DISKS = "root disks"
    FILES = "config drives"
    IMAGES = "images"
    MOVES = "resizes to other hosts and migrations"
    CONSOLES = "consoles"
    BACKUPS = "backups of volumes"
    SNAPSHOTS = "snapshots of volumes"
    UPLOADS = "images that users upload"
    PASSWORDS = "administrators' passwords in guests"
    PINGS = "health checks by guests' agents"
    STEERING = "aborting and forcing the end of live migrations"
    AFFINITY = "affinity rules of high availability"
    VNETS = "networks on SDN vnets"
    ZONES = "interfaces on vnets of administrators' zones"
    DEVICES = "mapped devices of guests"


#: without these no server can be built
NEEDED = (
    Purpose.SERVERS,
    Purpose.MEMBERS,
    Purpose.NODES,
    Purpose.BRIDGES,
    Purpose.DISKS,
    Purpose.FILES,
    Purpose.IMAGES,
)
#: refused without their privileges while all else works; in the documented role
DOCUMENTED = (
    Purpose.MOVES,
    Purpose.CONSOLES,
    Purpose.BACKUPS,
    Purpose.SNAPSHOTS,
    Purpose.UPLOADS,
)
#: in no documented role: more than most clouds need, and no configuration asks for it
BY_CHOICE = (Purpose.PASSWORDS, Purpose.PINGS, Purpose.STEERING)

ROOT, NODES, VMS, STORAGES = "/", "/nodes", "/vms", "/storage"
SDN = "/sdn"
PLAIN = "/sdn/zones/localnetwork"
"""The zone of plain bridges."""
DEVICES = "/mapping/pci"


@dataclass(frozen=True)
class Right:
    """One privilege on a path, and on all that is under it."""

    path: str
    privilege: str
    since: int = 0
    """The first major version in which it has this name."""
    before: int = 99
    """The first major version in which it has another name."""

    def is_named_in(self, major: int) -> bool:
        """Return whether a major version has a privilege of this name, for this call."""
        return self.since <= major < self.before


Rights = tuple[Right, ...]

#: since 9.0 guests' agents have privileges of their own, and the monitor needs Sys.Audit on a VM
OWN_AGENT_SINCE = 9


def _on(path: str, *privileges: str) -> Rights:
    return tuple(Right(path, one) for one in privileges)


def _renamed(path: str, now: str, before: str) -> Rights:
    return (
        Right(path, now, since=OWN_AGENT_SINCE),
        Right(path, before, before=OWN_AGENT_SINCE),
    )


_ANYBODY: Rights = ()
_AUDIT = _on(ROOT, "Sys.Audit")
_NODE = _on(NODES, "Sys.Audit")
_SEE = _on(VMS, "VM.Audit")
_POWER = _on(VMS, "VM.PowerMgmt")
_NICS = _on(VMS, "VM.Config.Network")
_AGENT = _renamed(VMS, "VM.GuestAgent.Unrestricted", "VM.Monitor")
_PING = _renamed(VMS, "VM.GuestAgent.Audit", "VM.Monitor")
_SNAPSHOT = _on(VMS, "VM.Snapshot")
_RULES = _on(ROOT, "Sys.Console")
_VNETS = _on(SDN, "SDN.Allocate", "SDN.Audit", "SDN.Use")
_LIST = _on(STORAGES, "Datastore.AllocateSpace", "Datastore.Audit")
#: its content decides which options a VM gets
_CONFIG = _on(
    VMS,
    *("VM.Config.CDROM", "VM.Config.CPU", "VM.Config.Disk", "VM.Config.HWType"),
    *("VM.Config.Memory", "VM.Config.Network", "VM.Config.Options"),
)
_DISK = _on(VMS, "VM.Config.Disk")

_N = "nodes/{node}"
_VM = f"{_N}/qemu/{{vmid}}"
_STORAGE = f"{_N}/storage/{{storage}}"
_FIREWALL = f"{_VM}/firewall"

Calls = Mapping[str, Rights]

_SERVERS: Calls = {
    "GET cluster/resources": _SEE,
    f"POST {_N}/qemu": _on(VMS, "VM.Allocate") + _CONFIG,
    f"POST {_VM}/clone": _on(VMS, "VM.Allocate", "VM.Clone"),
    f"POST {_VM}/template": _on(VMS, "VM.Allocate"),
    f"DELETE {_VM}": _on(VMS, "VM.Allocate"),
    f"GET {_VM}/config": _SEE,
    f"GET {_N}/lxc/{{vmid}}/config": _SEE,
    f"POST {_VM}/config": _CONFIG,
    f"PUT {_VM}/config": _CONFIG,
    f"PUT {_VM}/resize": _DISK,
    f"POST {_VM}/move_disk": _DISK,
    f"GET {_VM}/feature": _SEE,
    f"GET {_VM}/pending": _SEE,
    f"GET {_VM}/snapshot": _SEE,
    f"GET {_VM}/snapshot/{{snapshot}}/config": _SEE,
    f"GET {_VM}/rrddata": _SEE,
    f"GET {_VM}/status/current": _SEE,
    f"POST {_VM}/status/reboot": _POWER,
    f"POST {_VM}/status/reset": _POWER,
    f"POST {_VM}/status/resume": _POWER,
    f"POST {_VM}/status/shutdown": _POWER,
    f"POST {_VM}/status/start": _POWER,
    f"POST {_VM}/status/stop": _POWER,
    f"POST {_VM}/status/suspend": _POWER + _DISK,
    f"GET {_FIREWALL}/options": _SEE,
    f"PUT {_FIREWALL}/options": _NICS,
    f"GET {_FIREWALL}/rules": _SEE,
    f"POST {_FIREWALL}/rules": _NICS,
    f"DELETE {_FIREWALL}/rules/{{entry}}": _NICS,
    f"GET {_FIREWALL}/ipset": _SEE,
    f"POST {_FIREWALL}/ipset": _NICS,
    f"GET {_FIREWALL}/ipset/{{set}}": _SEE,
    f"POST {_FIREWALL}/ipset/{{set}}": _NICS,
    f"DELETE {_FIREWALL}/ipset/{{set}}": _NICS,
    f"DELETE {_FIREWALL}/ipset/{{set}}/{{cidr}}": _NICS,
}
_MEMBERS: Calls = {
    "GET version": _ANYBODY,
    "GET cluster/status": _AUDIT,
    "GET cluster/options": _AUDIT,
    "GET cluster/replication": _AUDIT,
    "GET cluster/firewall/options": _AUDIT,
    "GET cluster/ha/groups": _AUDIT,
    "GET cluster/ha/resources": _AUDIT,
    "GET cluster/ha/rules": _AUDIT,
    "GET cluster/ha/status/current": _AUDIT,
    "GET access/permissions": _ANYBODY,
    "GET access/acl": _ANYBODY,  # what it may change of it; else nothing
    "GET access/users": _ANYBODY,
    "GET access/users/{user}/token/{token}": _ANYBODY,
}
_NODES: Calls = {
    f"GET {_N}/status": _NODE,
    f"GET {_N}/rrddata": _NODE,
    f"GET {_N}/network": _NODE,
    f"GET {_N}/capabilities/qemu/machines": _ANYBODY,
    f"GET {_N}/certificates/info": _ANYBODY,
    f"GET {_N}/lxc": _ANYBODY,
    f"GET {_N}/services": _NODE,
    f"GET {_N}/time": _NODE,
    # Others' tasks are seen with it only: one of them may hold a lock.
    f"GET {_N}/tasks": _NODE,
    f"GET {_N}/tasks/{{upid}}/status": _NODE,
    f"GET {_N}/tasks/{{upid}}/log": _NODE,
}
_BRIDGES: Calls = {
    f"POST {_N}/qemu": _on(PLAIN, "SDN.Use"),
    f"POST {_VM}/config": _on(PLAIN, "SDN.Use"),
    "GET cluster/sdn/vnets": _ANYBODY,
    "GET cluster/sdn/zones": _ANYBODY,
}
_DISKS: Calls = {
    "GET storage": _on(STORAGES, "Datastore.Audit"),
    f"GET {_STORAGE}/content": _LIST,
    f"GET {_STORAGE}/content/{{volume}}": _LIST,
    f"GET {_STORAGE}/status": _on(STORAGES, "Datastore.Audit"),
    f"GET {_STORAGE}/rrddata": _on(STORAGES, "Datastore.Audit"),
    # Without Datastore.Allocate a storage lists nobody's disks.
    f"DELETE {_STORAGE}/content/{{volume}}": _on(STORAGES, "Datastore.Allocate"),
    f"POST {_N}/qemu": _on(STORAGES, "Datastore.AllocateSpace"),
    f"POST {_VM}/clone": _on(STORAGES, "Datastore.AllocateSpace"),
    f"PUT {_VM}/resize": _on(STORAGES, "Datastore.AllocateSpace"),
    f"POST {_VM}/move_disk": _on(STORAGES, "Datastore.AllocateSpace"),
    f"POST {_VM}/status/suspend": _on(STORAGES, "Datastore.AllocateSpace"),
}
_FILES: Calls = {
    f"GET {_STORAGE}/content": _on(STORAGES, "Datastore.AllocateSpace"),
    f"POST {_STORAGE}/upload": _on(STORAGES, "Datastore.AllocateTemplate"),
    f"DELETE {_STORAGE}/content/{{volume}}": _on(STORAGES, "Datastore.Allocate"),
}
_IMAGES: Calls = {
    f"GET {_STORAGE}/content": _LIST,
    f"GET {_STORAGE}/content/{{volume}}": _LIST,
    f"POST {_N}/qemu": _LIST,
}
_UPLOADS: Calls = {
    f"POST {_STORAGE}/upload": _on(STORAGES, "Datastore.AllocateTemplate"),
    f"DELETE {_STORAGE}/content/{{volume}}": _on(STORAGES, "Datastore.Allocate"),
}
_MOVES: Calls = {
    f"GET {_VM}/migrate": _on(VMS, "VM.Migrate"),
    f"POST {_VM}/migrate": _on(VMS, "VM.Migrate"),
}
_CONSOLES: Calls = {
    f"POST {_VM}/vncproxy": _on(VMS, "VM.Console"),
    f"POST {_VM}/termproxy": _on(VMS, "VM.Console"),
    f"GET {_VM}/vncwebsocket": _on(VMS, "VM.Console"),
}
_BACKUPS: Calls = {
    f"POST {_N}/vzdump": _on(VMS, "VM.Backup") + _LIST,
    f"GET {_STORAGE}/content": _LIST,
    f"PUT {_STORAGE}/content/{{volume}}": _on(VMS, "VM.Backup") + _LIST,
    f"DELETE {_STORAGE}/content/{{volume}}": _on(VMS, "VM.Backup") + _LIST,
}
_SNAPSHOTS: Calls = {
    f"POST {_VM}/snapshot": _SNAPSHOT,
    f"DELETE {_VM}/snapshot/{{snapshot}}": _SNAPSHOT,
    f"POST {_VM}/snapshot/{{snapshot}}/rollback": _SNAPSHOT,
}
_PASSWORDS: Calls = {
    f"POST {_VM}/agent/ping": _AGENT,
    f"POST {_VM}/agent/set-user-password": _AGENT,
}
_PINGS: Calls = {
    f"POST {_VM}/agent/ping": _PING,
}
_STEERING: Calls = {
    f"POST {_VM}/monitor": _on(ROOT, "Sys.Modify") + _renamed(VMS, "Sys.Audit", "VM.Monitor"),
}
_AFFINITY: Calls = {
    "POST cluster/ha/resources": _RULES,
    "PUT cluster/ha/resources/{name}": _RULES,
    "DELETE cluster/ha/resources/{name}": _RULES,
    "POST cluster/ha/rules": _RULES,
    "PUT cluster/ha/rules/{name}": _RULES,
    "DELETE cluster/ha/rules/{name}": _RULES,
}
_OF_VNETS: Calls = {
    f"GET {_N}/sdn/zones/{{zone}}/content": _on(SDN, "SDN.Audit"),
    "GET cluster/sdn/controllers": _VNETS,
    "GET cluster/sdn/vnets/{vnet}/subnets": _VNETS,
    "POST cluster/sdn/vnets": _VNETS,
    "DELETE cluster/sdn/vnets/{vnet}": _VNETS,
    "PUT cluster/sdn": _VNETS,
}
_ZONES: Calls = {
    # What isn't seen is no network.
    "GET cluster/sdn/vnets": _on(SDN, "SDN.Audit"),
    f"POST {_N}/qemu": _on(SDN, "SDN.Use"),
    f"POST {_VM}/config": _on(SDN, "SDN.Use"),
}
_DEVICES: Calls = {
    "GET cluster/mapping/pci": _on(DEVICES, "Mapping.Use"),
    f"POST {_N}/qemu": _on(DEVICES, "Mapping.Use"),
}

CALLS: Mapping[Purpose, Calls] = {
    Purpose.SERVERS: _SERVERS,
    Purpose.MEMBERS: _MEMBERS,
    Purpose.NODES: _NODES,
    Purpose.BRIDGES: _BRIDGES,
    Purpose.DISKS: _DISKS,
    Purpose.FILES: _FILES,
    Purpose.IMAGES: _IMAGES,
    Purpose.UPLOADS: _UPLOADS,
    Purpose.MOVES: _MOVES,
    Purpose.CONSOLES: _CONSOLES,
    Purpose.BACKUPS: _BACKUPS,
    Purpose.SNAPSHOTS: _SNAPSHOTS,
    Purpose.PASSWORDS: _PASSWORDS,
    Purpose.PINGS: _PINGS,
    Purpose.STEERING: _STEERING,
    Purpose.AFFINITY: _AFFINITY,
    Purpose.VNETS: _OF_VNETS,
    Purpose.ZONES: _ZONES,
    Purpose.DEVICES: _DEVICES,
}
"""Purpose → call (method, and path as ``templates.template`` gives it) → its privileges."""


def named() -> frozenset[str]:
    """Return all calls, each as method and path's template."""
    return frozenset(call for calls in CALLS.values() for call in calls)


def rights(purpose: Purpose, version: str = "") -> Iterator[Right]:
    """Yield the rights for a purpose once each; an empty version is the newest."""
    major = int(version.partition(".")[0] or OWN_AGENT_SINCE)
    found = (one for wanted in CALLS[purpose].values() for one in wanted)
    yield from dict.fromkeys(one for one in found if one.is_named_in(major))


def privileges(purpose: Purpose, path: str, version: str = "") -> tuple[str, ...]:
    """Return the privileges that a purpose needs on a path."""
    return tuple(sorted({one.privilege for one in rights(purpose, version) if one.path == path}))
