"""Privileges that the driver needs, what the token has, and the lines that grant the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from compute.hypervisor.proxmox.settings import Token

ROLE = "Micronova"

_VM = (
    "VM.Allocate",
    "VM.Audit",
    "VM.Clone",
    "VM.Config.CDROM",
    "VM.Config.CPU",
    "VM.Config.Disk",
    "VM.Config.HWType",
    "VM.Config.Memory",
    "VM.Config.Network",
    "VM.Config.Options",
    "VM.PowerMgmt",
)
_DISKS = ("Datastore.Allocate", "Datastore.AllocateSpace", "Datastore.Audit")
_FILES = ("Datastore.Allocate", "Datastore.AllocateSpace", "Datastore.AllocateTemplate")
_IMPORT = ("Datastore.AllocateSpace", "Datastore.Audit")
_ZONE = ("SDN.Use",)
_NODE = ("Sys.Audit",)


@dataclass(frozen=True)
class Need:
    """Privileges on one path, and what for."""

    path: str
    privileges: tuple[str, ...]
    why: str


def needs(
    vm_storages: Iterable[str], iso_storages: Iterable[str], import_storages: Iterable[str]
) -> list[Need]:
    """All that a cluster with these storages asks for."""
    found = [
        Need("/vms", _VM, "create, configure, run and destroy VMs"),
        Need("/nodes", _NODE, "see nodes and tasks"),
        Need("/sdn/zones/localnetwork", _ZONE, "attach interfaces to bridges"),
    ]
    found += [Need(f"/storage/{name}", _DISKS, "root disks") for name in vm_storages]
    found += [Need(f"/storage/{name}", _FILES, "config drives") for name in iso_storages]
    found += [Need(f"/storage/{name}", _IMPORT, "images") for name in import_storages]
    return found


def lacking(granted: Mapping[str, Mapping[str, int]], needed: Iterable[Need]) -> list[Need]:
    """What of it the token lacks, by the answer of ``/access/permissions``."""
    missing = []
    for need in needed:
        has = _effective(granted, need.path)
        rest = tuple(one for one in need.privileges if one not in has)
        if rest:
            missing.append(Need(need.path, rest, need.why))
    return missing


def _effective(granted: Mapping[str, Mapping[str, int]], path: str) -> set[str]:
    """Privileges on a path: those named there, or on its nearest listed parent and propagated."""
    if path in granted:
        return set(granted[path])
    parent = path
    while parent != "/":
        parent = parent.rsplit("/", 1)[0] or "/"
        if parent in granted:
            return {name for name, propagates in granted[parent].items() if propagates}
    return set()


def sentence(missing: Iterable[Need]) -> str:
    """What is missing, for people: path and privileges."""
    return "; ".join(f"{need.path}: {', '.join(need.privileges)}" for need in missing)


def grant_lines(missing: Iterable[Need], token: Token) -> list[str]:
    """The commands that grant it, to run as root on a node of the cluster."""
    listed = list(missing)
    names = sorted({name for need in listed for name in need.privileges})
    paths = dict.fromkeys(need.path for need in listed)
    lines = [f"pveum role add {ROLE} --privs '{','.join(names)}'"] if names else []
    # The rights of a token are those that both it and its user have.
    for path in paths:
        lines.append(f"pveum acl modify {path} --users '{token.user}' --roles {ROLE}")
        lines.append(f"pveum acl modify {path} --tokens '{token.id}' --roles {ROLE}")
    return lines


def all_lines(token: Token) -> list[str]:
    """The commands that make user, token, role and rights from nothing."""
    everything = needs(["*"], ["*"], ["*"])
    names = sorted({name for need in everything for name in need.privileges})
    paths = ("/vms", "/nodes", "/storage", "/sdn/zones/localnetwork")
    lines = [
        f"pveum user add {token.user}",
        f"pveum user token add {token.user} {token.name} --privsep 1",
        f"pveum role add {ROLE} --privs '{','.join(names)}'",
    ]
    for path in paths:
        lines.append(f"pveum acl modify {path} --users '{token.user}' --roles {ROLE}")
        lines.append(f"pveum acl modify {path} --tokens '{token.id}' --roles {ROLE}")
    return lines
