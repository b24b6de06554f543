"""Privileges that the driver needs and the token has, and the commands that grant the rest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from shlex import quote

from compute.hypervisor.proxmox.api import calls
from compute.hypervisor.proxmox.api.calls import Purpose
from compute.hypervisor.proxmox.settings import ClusterSettings, Token

ROLE = "Micronova"
#: granted on everything by a role of its own: on a token's root path the other role would apply to
#: every VM and storage
AUDIT_ROLE = "MicronovaAudit"
#: privileges on the root for one purpose each: a role of its own, which nothing inherits
_ROOT_ROLES = {"Sys.Console": "MicronovaHA", "Sys.Modify": "MicronovaSteer"}
#: the path of what a token may, which any token may read
PERMISSIONS = "access/permissions"
_AUDIT = ("Sys.Audit",)

#: for vnets alone; what is under its path inherits it
_SDN_ROLE = "MicronovaSDN"

#: what has privileges on the objects under it
_KINDS = (calls.VMS, calls.STORAGES, calls.NODES, calls.DEVICES, calls.PLAIN, calls.SDN)

#: optional: without it there are no consoles
CONSOLE = calls.privileges(Purpose.CONSOLES, calls.VMS)
#: path → privilege → whether it propagates, as ``/access/permissions`` answers
Granted = Mapping[str, Mapping[str, int]]

#: privilege → another, which Proxmox VE takes instead: its schema asks for any of both
_INSTEAD = {"VM.GuestAgent.Audit": "VM.GuestAgent.Unrestricted"}

#: any of these on a path makes what is under it visible in lists
_SHOWS = {
    calls.VMS: frozenset({"VM.Audit"}),
    calls.STORAGES: frozenset({"Datastore.Audit", "Datastore.AllocateSpace"}),
}


@dataclass(frozen=True)
class Need:
    """Privileges on one path, and their purpose."""

    path: str
    privileges: tuple[str, ...]
    why: str


def of(purpose: Purpose, version: str = "", at: Mapping[str, str] | None = None) -> list[Need]:
    """Return what a purpose needs; ``at`` has narrower paths for some of its paths."""
    paths = dict.fromkeys(one.path for one in calls.rights(purpose, version))
    return [
        Need(
            (at or {}).get(path, path),
            calls.privileges(purpose, path, version),
            purpose.value,
        )
        for path in paths
    ]


def _on_storage(purpose: Purpose, storage: str) -> list[Need]:
    return of(purpose, at={calls.STORAGES: f"{calls.STORAGES}/{storage}"})


def steering(version: str, path: str = calls.VMS) -> list[Need]:
    """Return what QEMU's monitor needs to end a live migration of the VMs under a path."""
    return of(Purpose.STEERING, version, at={calls.VMS: path})


def optional(version: str, *, affinity_rules: bool = False) -> list[Need]:
    """Return what a cluster's token may lack: without it, one thing is refused, the rest works.

    On storages that is asked for with their names; see ``needs``.
    """
    purposes = [*calls.DOCUMENTED, *calls.BY_CHOICE]
    purposes += [Purpose.AFFINITY] if affinity_rules else []
    found = [need for purpose in purposes for need in of(purpose, version)]
    return [need for need in found if need.path != calls.STORAGES]


def uploads(import_storages: Iterable[str]) -> list[Need]:
    """Return what images that users upload need on these storages."""
    return [need for name in import_storages for need in _on_storage(Purpose.UPLOADS, name)]


def backups(storage: str, vms: str = calls.VMS) -> list[Need]:
    """Return what backups of VMs under a path need, to be made on a storage and removed there."""
    return of(Purpose.BACKUPS, at={calls.VMS: vms, calls.STORAGES: f"{calls.STORAGES}/{storage}"})


def vnets(zones: Iterable[str]) -> list[Need]:
    """Return what the networks of projects need in these SDN zones.

    The configuration is applied as a whole, so all that waits in it must be visible. Each path
    needs all of them: a role on a zone takes the place of what the zone inherits.
    """
    names = list(zones)
    paths = [calls.SDN, *(f"{calls.SDN}/zones/{zone}" for zone in names)] if names else []
    return [need for path in paths for need in of(Purpose.VNETS, at={calls.SDN: path})]


ANY_STORAGE = Need(
    calls.STORAGES,
    tuple(
        sorted(
            {
                privilege
                for purpose in (*calls.NEEDED, *calls.DOCUMENTED)
                for privilege in calls.privileges(purpose, calls.STORAGES)
            }
        )
    ),
    "disks, config drives, images",
)
"""What is asked for while no storage can be seen, so that none can be named."""


def needs(
    vm_storages: Iterable[str], iso_storages: Iterable[str], import_storages: Iterable[str]
) -> list[Need]:
    """Return the privileges that a cluster with these storages needs."""
    found = [
        need for purpose in calls.NEEDED for need in of(purpose) if need.path != calls.STORAGES
    ]
    for purpose, names in (
        (Purpose.DISKS, vm_storages),
        (Purpose.FILES, iso_storages),
        (Purpose.IMAGES, import_storages),
    ):
        for name in names:
            found += _on_storage(purpose, name)
    return found


def lacking(granted: Granted, needed: Iterable[Need]) -> list[Need]:
    """Return what the token lacks of these, by ``/access/permissions``."""
    missing = []
    for need in needed:
        has = _effective(granted, need.path)
        rest = tuple(one for one in need.privileges if not {one, _INSTEAD.get(one)} & has)
        if rest:
            missing.append(Need(need.path, rest, need.why))
    return missing


def sight(path: str) -> Need:
    """Return what makes visible what is under a path of VMs or storages."""
    name = "VM.Audit" if path.startswith(calls.VMS) else "Datastore.Audit"
    return Need(path, (name,), "sight")


def hidden(granted: Granted) -> Iterator[str]:
    """Yield paths under which VMs or storages may be hidden from the token."""
    for root, shows in _SHOWS.items():
        named = (path for path in granted if path.startswith(f"{root}/"))
        for path in (root, *named):
            if not shows & _effective(granted, path):
                yield path


def _effective(granted: Granted, path: str) -> set[str]:
    """Return privileges on a path: those there, or propagated from its nearest listed parent."""
    return set(granted[path]) if path in granted else _inherited(granted, path)


def _inherited(granted: Granted, path: str) -> set[str]:
    """Return what the nearest listed parent of a path propagates."""
    parent = path
    while parent != "/":
        parent = parent.rsplit("/", 1)[0] or "/"
        if parent in granted:
            return {name for name, propagates in granted[parent].items() if propagates}
    return set()


def sentence(missing: Iterable[Need]) -> str:
    """Return the missing privileges as text: path and privileges."""
    return "; ".join(f"{need.path}: {', '.join(need.privileges)}" for need in missing)


@dataclass(frozen=True)
class Role:
    """A role, and the paths on which user and token get it."""

    name: str
    privileges: tuple[str, ...]
    paths: tuple[str, ...]
    inherited: bool
    """Whether what is under the paths inherits it."""


def roles(missing: Iterable[Need]) -> list[Role]:
    """Return the roles that grant it."""
    listed = list(missing)
    found = []
    for name in (ROLE, AUDIT_ROLE, _SDN_ROLE, *_ROOT_ROLES.values()):
        ours = [need for need in listed if _role(need) == name]
        granted = sorted({one for need in ours for one in need.privileges})
        if granted:
            paths = tuple(dict.fromkeys(need.path for need in ours))
            alone = name in _ROOT_ROLES.values()
            found.append(Role(name, tuple(granted), paths, not alone))
    return found


def _with_inherited(missing: Iterable[Need], granted: Granted) -> Iterator[Need]:
    """Yield what is missing, and what of ours the token has on these paths by inheritance alone.

    A role on a path takes the place of all that the path inherits (PVE::AccessControl, ``roles``):
    with what is missing alone, a token whose role is on the root would lose everything there.
    """
    listed = list(missing)
    yield from listed
    for path in dict.fromkeys(need.path for need in listed if need.path != calls.ROOT):
        inherited = _inherited(granted, path)
        if inherited != _effective(granted, path):
            continue  # it has a role of its own there, to which another one is added
        kind = next((root for root in _KINDS if f"{path}/".startswith(f"{root}/")), path)
        for purpose in Purpose:
            asked = {right.privilege for right in calls.rights(purpose) if right.path == kind}
            if asked & inherited:
                yield Need(path, tuple(sorted(asked & inherited)), purpose.value)


def grant_lines(
    missing: Iterable[Need], token: Token, granted: Granted | None = None
) -> list[str]:
    """Return the commands that grant it, to run as root on a node of the cluster.

    ``granted``: the token's present privileges, which it must not lose.
    """
    lines = []
    for role in roles(_with_inherited(missing, granted or {})):
        names = ",".join(role.privileges)
        # The role may exist already, with fewer privileges.
        lines.append(
            f"{{ pveum role add {role.name} --privs '{names}'"
            f" || pveum role modify {role.name} --append 1 --privs '{names}'; }}"
        )
        # A token's privileges are those that both it and its user have.
        alone = "" if role.inherited else " --propagate 0"
        for path in role.paths:
            for who in (f"--users {_quoted(token.user)}", f"--tokens {_quoted(token.id)}"):
                lines.append(f"pveum acl modify {path}{alone} {who} --roles {role.name}")
    return lines


def _quoted(text: str) -> str:
    """Return a value in quotes, also where it needs none, as a token beside it does."""
    found = quote(text)
    return found if found.startswith("'") else f"'{found}'"


def remedy(missing: Iterable[Need], token: Token, granted: Granted) -> str | None:
    """Return the commands that grant it as one line; None: nothing is missing."""
    lines = grant_lines(missing, token, granted)
    return f"as root on a node of the cluster: {' && '.join(lines)}" if lines else None


def _role(need: Need) -> str:
    default = AUDIT_ROLE if need.privileges == _AUDIT else ROLE
    if need.path.startswith(calls.SDN) and need.path != calls.PLAIN:
        default = _SDN_ROLE
    return _ROOT_ROLES.get(need.privileges[0], default)


def token_lines(token: Token) -> list[str]:
    """Return the commands that create the user, which may exist already, and the token."""
    return [
        f"{{ pveum user add {quote(token.user)} || true; }}",
        f"pveum user token add {quote(token.user)} {quote(token.name)} --privsep 1",
    ]


def secret_lines(token: Token) -> list[str]:
    """Return the commands that create the token, or give an existing token a new secret.

    Both print the secret, which then belongs into the token's file: see ``token_file``.
    """
    user, add = token_lines(token)
    modify = f"pveum user token modify {quote(token.user)} {quote(token.name)} --regenerate 1"
    return [user, f"{{ {add} || {modify}; }}"]


def token_file(cluster: ClusterSettings, token: Token | None = None) -> str:
    """Return the option for the printed secret of a token; None: of the cluster's own."""
    name = (token or cluster.token).id
    return f"# [proxmox:{cluster.name}] token_file = <a file with {name}=…>"


def documented() -> list[Need]:
    """Return the role of docs/proxmox.md: all that has the same name in every version."""
    found = [*needs((), (), ()), ANY_STORAGE]
    for purpose in calls.DOCUMENTED:
        found += [need for need in of(purpose) if need.path != calls.STORAGES]
    return found


def all_grant_lines(token: Token) -> list[str]:
    """Return the commands that grant the documented role, whatever the storages' names."""
    return grant_lines(documented(), token)


#: how Proxmox VE names missing privileges: a path, and alternatives, any one sufficient
_REFUSED = re.compile(r"Permission check failed \((/[^,]*), ([\w.|]+)\)")
#: a privilege is granted on all objects of a kind, and for vnets on their zone
_ROOTS = (
    re.compile(rf"{calls.PLAIN}|/sdn/zones/[^/]+"),
    *(re.compile(root) for root in (calls.VMS, calls.STORAGES, calls.NODES, calls.DEVICES)),
)


def refusal(message: str) -> list[Need]:
    """Return what a refusal of Proxmox VE names as lacking, where a role would grant it."""
    found = _REFUSED.search(message)
    if found is None:
        return []
    roots = (one[0] for root in _ROOTS if (one := root.match(found[1])))
    path, listed = next(roots, found[1]), set(found[2].split("|"))
    asked = {name for purpose in Purpose for name in calls.privileges(purpose, path)}
    return [Need(path, tuple(sorted(listed & asked or listed)), "what was refused")]
