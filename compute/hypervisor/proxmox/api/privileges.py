"""Privileges that the driver needs and the token has, and the commands that grant the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from compute.hypervisor.proxmox.settings import Token

ROLE = "Micronova"
#: granted on everything by a role of its own: on a token's root path the other role would apply to
#: every VM and storage
AUDIT_ROLE = "MicronovaAudit"

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
#: optional: without it there are no consoles
CONSOLE = ("VM.Console",)
#: optional: without it no server can be moved
MIGRATE = ("VM.Migrate",)
_DISKS = ("Datastore.Allocate", "Datastore.AllocateSpace", "Datastore.Audit")
_FILES = ("Datastore.Allocate", "Datastore.AllocateSpace", "Datastore.AllocateTemplate")
_IMPORT = ("Datastore.AllocateSpace", "Datastore.Audit")
_ZONE = ("SDN.Use",)
_AUDIT = ("Sys.Audit",)
#: any of these on a path makes what is under it visible in lists
_SHOWS = {
    "/vms": frozenset({"VM.Audit"}),
    "/storage": frozenset({"Datastore.Audit", "Datastore.AllocateSpace"}),
}


@dataclass(frozen=True)
class Need:
    """Privileges on one path, and their purpose."""

    path: str
    privileges: tuple[str, ...]
    why: str


ANY_STORAGE = Need(
    "/storage", tuple(sorted({*_DISKS, *_FILES, *_IMPORT})), "disks, config drives, images"
)
"""What is asked for while no storage can be seen, so that none can be named."""


def needs(
    vm_storages: Iterable[str], iso_storages: Iterable[str], import_storages: Iterable[str]
) -> list[Need]:
    """Return the privileges that a cluster with these storages needs."""
    found = [
        Need("/vms", _VM, "create, configure, run and destroy VMs"),
        # /cluster/status needs it on the root itself, each node's status on its own path.
        Need("/", _AUDIT, "see the cluster's members and quorum"),
        Need("/nodes", _AUDIT, "see nodes and tasks"),
        Need("/sdn/zones/localnetwork", _ZONE, "attach interfaces to bridges"),
    ]
    found += [Need(f"/storage/{name}", _DISKS, "root disks") for name in vm_storages]
    found += [Need(f"/storage/{name}", _FILES, "config drives") for name in iso_storages]
    found += [Need(f"/storage/{name}", _IMPORT, "images") for name in import_storages]
    return found


def lacking(granted: Mapping[str, Mapping[str, int]], needed: Iterable[Need]) -> list[Need]:
    """Return what the token lacks of these, by ``/access/permissions``."""
    missing = []
    for need in needed:
        has = _effective(granted, need.path)
        rest = tuple(one for one in need.privileges if one not in has)
        if rest:
            missing.append(Need(need.path, rest, need.why))
    return missing


def hidden(granted: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Yield paths under which VMs or storages may be hidden from the token."""
    for root, shows in _SHOWS.items():
        named = (path for path in granted if path.startswith(f"{root}/"))
        for path in (root, *named):
            if not shows & _effective(granted, path):
                yield path


def _effective(granted: Mapping[str, Mapping[str, int]], path: str) -> set[str]:
    """Return privileges on a path: those there, or propagated from its nearest listed parent."""
    if path in granted:
        return set(granted[path])
    parent = path
    while parent != "/":
        parent = parent.rsplit("/", 1)[0] or "/"
        if parent in granted:
            return {name for name, propagates in granted[parent].items() if propagates}
    return set()


def sentence(missing: Iterable[Need]) -> str:
    """Return the missing privileges as text: path and privileges."""
    return "; ".join(f"{need.path}: {', '.join(need.privileges)}" for need in missing)


def grant_lines(missing: Iterable[Need], token: Token) -> list[str]:
    """Return the commands that grant it, to run as root on a node of the cluster."""
    listed = list(missing)
    lines = []
    for role in (ROLE, AUDIT_ROLE):
        ours = [need for need in listed if _role(need) == role]
        names = ",".join(sorted({name for need in ours for name in need.privileges}))
        if names:
            # The role may exist already, with fewer privileges.
            lines.append(
                f"{{ pveum role add {role} --privs '{names}'"
                f" || pveum role modify {role} --append 1 --privs '{names}'; }}"
            )
        # A token's privileges are those that both it and its user have.
        for path in dict.fromkeys(need.path for need in ours):
            lines.append(f"pveum acl modify {path} --users '{token.user}' --roles {role}")
            lines.append(f"pveum acl modify {path} --tokens '{token.id}' --roles {role}")
    return lines


def _role(need: Need) -> str:
    return AUDIT_ROLE if need.privileges == _AUDIT else ROLE


def token_lines(token: Token) -> list[str]:
    """Return the commands that create the user, which may exist already, and the token."""
    return [
        f"{{ pveum user add {token.user} || true; }}",
        f"pveum user token add {token.user} {token.name} --privsep 1",
    ]


def all_grant_lines(token: Token) -> list[str]:
    """Return the commands that grant everything ever needed, whatever the storages' names."""
    consoles = Need("/vms", CONSOLE, "consoles")
    moves = Need("/vms", MIGRATE, "migrations")
    return grant_lines([*needs((), (), ()), consoles, moves, ANY_STORAGE], token)


def migrate_lines(token: Token) -> list[str]:
    """Return the commands that let servers be moved."""
    return grant_lines([Need("/vms", MIGRATE, "migrations")], token)
