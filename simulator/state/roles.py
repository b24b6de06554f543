"""Privileges and the built-in roles, as data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

_VM_CONFIG = frozenset(
    f"VM.Config.{part}"
    for part in (
        "CDROM",
        "CPU",
        "Cloudinit",
        "Disk",
        "HWType",
        "Memory",
        "Network",
        "Options",
    )
)
_AGENT = frozenset(
    f"VM.GuestAgent.{part}"
    for part in ("Audit", "FileRead", "FileSystemMgmt", "FileWrite", "Unrestricted")
)
VM_ADMIN = (
    _VM_CONFIG
    | _AGENT
    | {
        "VM.Allocate",
        "VM.Audit",
        "VM.Backup",
        "VM.Clone",
        "VM.Console",
        "VM.Migrate",
        "VM.PowerMgmt",
        "VM.Replicate",
        "VM.Snapshot",
        "VM.Snapshot.Rollback",
    }
)
VM_USER = (_AGENT - {"VM.GuestAgent.Unrestricted"}) | {
    "VM.Audit",
    "VM.Backup",
    "VM.Config.CDROM",
    "VM.Config.Cloudinit",
    "VM.Console",
    "VM.PowerMgmt",
}
DATASTORE_USER = frozenset({"Datastore.AllocateSpace", "Datastore.Audit"})
DATASTORE_ADMIN = DATASTORE_USER | {"Datastore.Allocate", "Datastore.AllocateTemplate"}
SDN_USER = frozenset({"SDN.Audit", "SDN.Use"})
SYS_ADMIN = frozenset({"Sys.Audit", "Sys.Console", "Sys.Syslog"})
MAPPING_USER = frozenset({"Mapping.Audit", "Mapping.Use"})
USER_ADMIN = frozenset({"Group.Allocate", "Realm.AllocateUser", "User.Modify"})
POOL_ADMIN = frozenset({"Pool.Allocate", "Pool.Audit"})
ADMIN = (
    VM_ADMIN
    | DATASTORE_ADMIN
    | SDN_USER
    | {"SDN.Allocate"}
    | SYS_ADMIN
    | MAPPING_USER
    | USER_ADMIN
    | POOL_ADMIN
)
ALL = ADMIN | {
    "Mapping.Modify",
    "Permissions.Modify",
    "Realm.Allocate",
    "Sys.AccessNetwork",
    "Sys.Incoming",
    "Sys.Modify",
    "Sys.PowerMgmt",
}

ROLES: dict[str, frozenset[str]] = {
    "Administrator": ALL,
    "NoAccess": frozenset(),
    "PVEAdmin": ADMIN,
    "PVEAuditor": frozenset(
        {
            "Datastore.Audit",
            "Mapping.Audit",
            "Pool.Audit",
            "SDN.Audit",
            "Sys.Audit",
            "VM.Audit",
            "VM.GuestAgent.Audit",
        }
    ),
    "PVEDatastoreAdmin": DATASTORE_ADMIN,
    "PVEDatastoreUser": DATASTORE_USER,
    "PVEMappingAdmin": MAPPING_USER | {"Mapping.Modify"},
    "PVEMappingUser": MAPPING_USER,
    "PVEPoolAdmin": POOL_ADMIN,
    "PVEPoolUser": frozenset({"Pool.Audit"}),
    "PVESDNAdmin": SDN_USER | {"SDN.Allocate"},
    "PVESDNUser": SDN_USER,
    "PVESysAdmin": SYS_ADMIN,
    "PVETemplateUser": frozenset({"VM.Audit", "VM.Clone"}),
    "PVEUserAdmin": USER_ADMIN,
    "PVEVMAdmin": VM_ADMIN,
    "PVEVMUser": VM_USER,
}

# Version 8 had one privilege where 9 has five.
LEGACY_AGENT = frozenset({"VM.Monitor"})


def roles_of(legacy: bool) -> dict[str, frozenset[str]]:
    """Return the built-in roles of a version."""
    if not legacy:
        return dict(ROLES)
    admins = {"Administrator", "PVEAdmin", "PVEVMAdmin"}
    return {
        name: (privileges - _AGENT) | (LEGACY_AGENT if name in admins else frozenset())
        for name, privileges in ROLES.items()
    }


@dataclass(frozen=True)
class AgentRole:
    """A role of the agent's, and the paths on which its user and token have it."""

    name: str
    privileges: frozenset[str]
    paths: tuple[str, ...]
    inherited: bool


# Generated from the documented privileges, so that tests notice if the agent needs more.
_AGENT_FILE = Path(__file__).parents[1] / "agent_role.json"


def agent_roles(optional: bool) -> Iterator[AgentRole]:
    """Yield the agent's roles: those that are documented, or also what is optional."""
    found = orjson.loads(_AGENT_FILE.read_bytes())["optional" if optional else "documented"]
    for one in found:
        named, paths = frozenset(one["privileges"]), tuple(one["paths"])
        yield AgentRole(one["name"], named, paths, one["inherited"])
