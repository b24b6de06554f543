"""Privileges that the driver needs and the token has, and the commands that grant the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from compute.hypervisor.proxmox.settings import Token

ROLE = "Micronova"
#: granted on everything by a role of its own: on a token's root path the other role would apply to
#: every VM and storage
AUDIT_ROLE = "MicronovaAudit"
#: privileges on the root for one purpose each: a role of its own, which nothing inherits
_ROOT_ROLES = {"Sys.Console": "MicronovaHA", "Sys.Modify": "MicronovaSteer"}

#: for vnets alone; what is under its path inherits it
_SDN_ROLE = "MicronovaSDN"
_SDN = "/sdn"
#: the zone of plain bridges
_PLAIN = "/sdn/zones/localnetwork"

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
#: optional: without it no volume can be backed up
BACKUP = ("VM.Backup",)
#: optional: without it no server can be moved
MIGRATE = ("VM.Migrate",)
#: since 9.0 guests' agents have privileges of their own, and the monitor needs Sys.Audit on a VM
_OWN_AGENT_SINCE = 9
_DISKS = ("Datastore.Allocate", "Datastore.AllocateSpace", "Datastore.Audit")
_FILES = ("Datastore.Allocate", "Datastore.AllocateSpace", "Datastore.AllocateTemplate")
_IMPORT = ("Datastore.AllocateSpace", "Datastore.Audit")
_ZONE = ("SDN.Use",)
_VNETS = ("SDN.Allocate", "SDN.Audit", "SDN.Use")
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


def agent(version: str) -> str:
    """Return the privilege for all that a guest's agent may be asked."""
    return "VM.GuestAgent.Unrestricted" if _is_modern(version) else "VM.Monitor"


def steering(version: str, path: str = "/vms") -> list[Need]:
    """Return what QEMU's monitor needs to end a live migration of the VMs under a path."""
    why = "aborting and forcing the end of live migrations"
    monitor = "Sys.Audit" if _is_modern(version) else "VM.Monitor"
    return [Need("/", ("Sys.Modify",), why), Need(path, (monitor,), why)]


def optional(version: str, *, affinity_rules: bool = False) -> list[Need]:
    """Return what a cluster's token may lack: without it, one thing is refused, the rest works."""
    found = [
        Need("/vms", MIGRATE, "resizes to other hosts and migrations"),
        Need("/vms", CONSOLE, "consoles"),
        Need("/vms", BACKUP, "backups of volumes"),
        Need("/vms", (agent(version),), "administrators' passwords in guests"),
        *steering(version),
    ]
    if affinity_rules:
        found.append(Need("/", ("Sys.Console",), "affinity rules of high availability"))
    return found


def backups(storage: str, vms: str = "/vms") -> list[Need]:
    """Return what backups of VMs under a path need, to be made on a storage and removed there."""
    why = "backups of volumes"
    return [
        Need(vms, BACKUP, why),
        Need(f"/storage/{storage}", ("Datastore.AllocateSpace", "Datastore.Audit"), why),
    ]


def vnets(zones: Iterable[str]) -> list[Need]:
    """Return what the networks of projects need in these SDN zones.

    The configuration is applied as a whole, so all that waits in it must be visible. Each path
    needs all of them: a role on a zone takes the place of what the zone inherits.
    """
    names = list(zones)
    paths = [_SDN, *(f"{_SDN}/zones/{zone}" for zone in names)] if names else []
    return [Need(path, _VNETS, "networks on SDN vnets") for path in paths]


def _is_modern(version: str) -> bool:
    return int(version.partition(".")[0] or 0) >= _OWN_AGENT_SINCE


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
        Need(_PLAIN, _ZONE, "attach interfaces to bridges"),
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
    for role in (ROLE, AUDIT_ROLE, _SDN_ROLE, *_ROOT_ROLES.values()):
        ours = [need for need in listed if _role(need) == role]
        names = ",".join(sorted({name for need in ours for name in need.privileges}))
        if names:
            # The role may exist already, with fewer privileges.
            lines.append(
                f"{{ pveum role add {role} --privs '{names}'"
                f" || pveum role modify {role} --append 1 --privs '{names}'; }}"
            )
        # A token's privileges are those that both it and its user have.
        alone = " --propagate 0" if role in _ROOT_ROLES.values() else ""
        for path in dict.fromkeys(need.path for need in ours):
            for who in (f"--users '{token.user}'", f"--tokens '{token.id}'"):
                lines.append(f"pveum acl modify {path}{alone} {who} --roles {role}")
    return lines


def _role(need: Need) -> str:
    default = AUDIT_ROLE if need.privileges == _AUDIT else ROLE
    if need.path.startswith(_SDN) and need.path != _PLAIN:
        default = _SDN_ROLE
    return _ROOT_ROLES.get(need.privileges[0], default)


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
