"""The calls between what a cluster has and what is wanted. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from common.errors import ConfigurationError
from compute.hypervisor.proxmox.api import privileges
from compute.hypervisor.proxmox.api.privileges import Role
from compute.prepare.seen import Seen, Storage
from compute.prepare.wanted import Image, Wanted, Zone, needs

_PVESH = {"POST": "create", "PUT": "set"}
#: types of storages that hold files, as their plugins say (PVE::Storage::Plugin, ``content``)
_FILES = frozenset({"dir", "nfs", "cifs", "btrfs"})
_OF_FILES = ("iso", "import")


@dataclass(frozen=True)
class Change:
    """A call, and what it makes."""

    what: str
    method: str
    path: str
    values: Mapping[str, str]
    makes_secret: bool = False
    """Whether the answer has the secret of the token."""

    @property
    def line(self) -> str:
        """The command that does the same, as root on a node."""
        words = ["pvesh", _PVESH[self.method], f"/{self.path}"]
        return shlex.join(
            words + [w for key, text in self.values.items() for w in (f"--{key}", text)]
        )


APPLY = Change("the SDN configuration is applied on all nodes", "PUT", "cluster/sdn", {})


def changes(wanted: Wanted, seen: Seen) -> list[Change]:
    """Return what to call, in this order. Raises ConfigurationError for what can't be had."""
    return [
        *_identity(wanted, seen),
        *_grants(wanted, seen),
        *([] if not wanted.pool or wanted.pool in seen.pools else [pool(wanted.pool)]),
        *_contents(wanted, seen),
        *_zones(wanted, seen),
        *_images(wanted, seen),
    ]


def pool(name: str) -> Change:
    """Return the call that makes a resource pool."""
    return Change(f"pool {name}", "POST", "pools", {"poolid": name})


def _identity(wanted: Wanted, seen: Seen) -> Iterator[Change]:
    token = wanted.token
    path = f"access/users/{token.user}"
    if seen.user is None:
        yield Change(f"user {token.user}", "POST", "access/users", {"userid": token.user})
    elif not seen.enabled:
        yield Change(f"user {token.user} is enabled", "PUT", path, {"enable": "1"})
    here = f"{path}/token/{token.name}"
    if seen.token is None:
        yield Change(f"token {token.id}", "POST", here, {"privsep": "1"}, makes_secret=True)
        return
    if not int(seen.token.get("privsep", 1)):
        what = f"token {token.id} gets privileges of its own, instead of all of its user's"
        yield Change(what, "PUT", here, {"privsep": "1"})
    if not seen.secret_known:
        what = f"token {token.id} gets another secret: who uses the present one is locked out"
        yield Change(what, "PUT", here, {"regenerate": "1"}, makes_secret=True)


def _grants(wanted: Wanted, seen: Seen) -> Iterator[Change]:
    for role in privileges.roles(needs(wanted, seen.version)):
        yield from _role(role, seen)
        for path in role.paths:
            lacking = [one for one in _both(wanted) if (path, *one, role.name) not in seen.grants]
            if lacking:
                names = {f"{kind}s": name for kind, name in lacking}
                propagate = "1" if role.inherited else "0"
                yield Change(
                    f"role {role.name} on {path} for {' and '.join(names.values())}",
                    *("PUT", "access/acl"),
                    {"path": path, **names, "roles": role.name, "propagate": propagate},
                )


def _both(wanted: Wanted) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return user and token: a token may what both may."""
    return ("user", wanted.token.user), ("token", wanted.token.id)


def _role(role: Role, seen: Seen) -> Iterator[Change]:
    present = seen.roles.get(role.name)
    if present is None:
        privs = ",".join(role.privileges)
        what = f"role {role.name}: {', '.join(role.privileges)}"
        yield Change(what, "POST", "access/roles", {"roleid": role.name, "privs": privs})
        return
    lacking = [one for one in role.privileges if one not in present]
    if lacking:
        what = f"role {role.name} gets {', '.join(lacking)}"
        values = {"append": "1", "privs": ",".join(lacking)}
        yield Change(what, "PUT", f"access/roles/{role.name}", values)


def _contents(wanted: Wanted, seen: Seen) -> Iterator[Change]:
    unknown = sorted(set(wanted.contents) - {one.name for one in seen.storages})
    if unknown:
        names = ", ".join(one.name for one in seen.storages)
        raise ConfigurationError(f"There is no storage {unknown[0]}; there are {names}.")
    for storage in seen.storages:
        asked = contents(wanted, seen, storage)
        added = [one for one in asked if one not in storage.content]
        if added:
            whole = ",".join([*storage.content, *added])
            what = f"storage {storage.name} gets content {', '.join(added)}"
            yield Change(what, "PUT", f"storage/{storage.name}", {"content": whole})


def contents(wanted: Wanted, seen: Seen, storage: Storage) -> Sequence[str]:
    """Return the contents that a storage is to have: present, asked for, or of no storage yet."""
    asked = [*storage.content, *wanted.contents.get(storage.name, ())]
    listed = {content for names in wanted.contents.values() for content in names}
    for content in _OF_FILES:
        offered = any(content in one.content for one in seen.storages if not one.disabled)
        if not offered and content not in listed and storage == _best(seen.storages):
            asked.append(content)
    return list(dict.fromkeys(asked))


def _best(storages: Iterable[Storage]) -> Storage | None:
    """Return the storage for files: for all nodes rather than some, shared rather than local."""
    fit = [one for one in storages if one.type in _FILES and not one.disabled]
    return min(fit, key=lambda one: (bool(one.nodes), not one.shared), default=None)


def zone(wanted: Zone, addresses: Sequence[str]) -> Change:
    """Return the call that makes a zone. Raises ConfigurationError where it lacks an option.

    ``addresses``: of the nodes, which a zone of VXLAN connects unless it names its peers.
    """
    if wanted.type == "vlan" and "bridge" not in wanted.options:
        raise ConfigurationError(f"--zone {wanted.name}=vlan,bridge=… lacks its bridge.")
    options = dict(wanted.options)
    if wanted.type == "vxlan" and "peers" not in options:
        if not addresses:
            raise ConfigurationError(
                f"--zone {wanted.name}=vxlan,peers=… lacks the addresses of the nodes."
            )
        options["peers"] = ",".join(addresses)
    what = f"SDN zone {wanted.name}, {wanted.type}"
    values = {"zone": wanted.name, "type": wanted.type, **options}
    return Change(what, "POST", "cluster/sdn/zones", values)


def _zones(wanted: Wanted, seen: Seen) -> Iterator[Change]:
    names = {one.name for one in wanted.zones}
    made = [one for one in wanted.zones if one.name not in seen.zones]
    for one in made:
        if not one.type:
            raise ConfigurationError(
                f"There is no SDN zone {one.name}: --zone {one.name}=vxlan makes one."
            )
        yield zone(one, seen.addresses)
    if made or names & set(seen.unapplied):
        others = [one for one in seen.unapplied if one not in names]
        if others:
            raise ConfigurationError(
                f"Changes of others are not applied yet: {', '.join(others)}. They would be "
                "applied with the zone: pvesh set /cluster/sdn applies them, pvesh create "
                "/cluster/sdn/rollback discards them."
            )
        yield APPLY


def _images(wanted: Wanted, seen: Seen) -> Iterator[Change]:
    for image in wanted.images:
        storage = _for_images(wanted, seen)
        for node in [seen.nodes[0]] if storage.shared else _on(storage, seen.nodes):
            if (node, storage.name, image.file) not in seen.images:
                yield _download(image, node, storage)


def _for_images(wanted: Wanted, seen: Seen) -> Storage:
    fit = [one for one in seen.storages if "import" in contents(wanted, seen, one)]
    best = _best(fit)
    if best is None:
        raise ConfigurationError("No storage can hold images: --storage NAME=import names one.")
    return best


def _on(storage: Storage, nodes: Sequence[str]) -> list[str]:
    return [one for one in nodes if not storage.nodes or one in storage.nodes]


def _download(image: Image, node: str, storage: Storage) -> Change:
    return Change(
        f"image {image.file} in storage {storage.name} of {node}, downloaded from {image.url}",
        *("POST", f"nodes/{node}/storage/{storage.name}/download-url"),
        {"content": "import", "filename": image.file, "url": image.url},
    )


def lines(found: Iterable[Change]) -> list[str]:
    """Return the commands that do the same."""
    return [one.line for one in found]
