"""The content of a new cluster: nodes, storages, images, the agent's user, root's password."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from simulator.state.access import Access, Grant, Token, User, hash_password
from simulator.state.cluster import Cluster
from simulator.state.firewall_config import Firewall
from simulator.state.model import GIB, MIB, TB, Node, Storage, Volume
from simulator.state.roles import agent_roles
from simulator.state.storage_kinds import KINDS

AGENT_USER = "micronova@pve"
AGENT_TOKEN = "agent"  # noqa: S105 - a name
INSTALLED_CONTENT = ["iso", "vztmpl", "backup"]
LOCAL_CONTENT = ["images", "iso", "import", "vztmpl", "rootdir", "backup", "snippets"]
SHARED_CONTENT = ["images", "iso", "import"]

# Name, virtual size, size of the file.
IMAGES = (
    ("debian-12.qcow2", 3 * GIB, 420 * MIB),
    ("ubuntu-24.04.qcow2", 3584 * MIB, 590 * MIB),
    ("cirros.qcow2", 112 * MIB, 21 * MIB),
)


#: further required options of a storage without files
_OPTIONS = {
    "lvm": {"vgname": "{name}"},
    "lvmthin": {"vgname": "{name}", "thinpool": "data"},
    "rbd": {"pool": "{name}"},
    "zfspool": {"pool": "{name}"},
}


@dataclass(frozen=True)
class Secrets:
    """What is written to 0600 files: the agent token's secret and root's password."""

    token: str
    password: str

    @staticmethod
    def new() -> Secrets:
        """Return random ones."""
        raw = secrets.token_hex(16)
        parts = (raw[:8], raw[8:12], raw[12:16], raw[16:20], raw[20:])
        return Secrets("-".join(parts), secrets.token_urlsafe(18))


class Shape(Protocol):
    """What a new cluster is like."""

    @property
    def nodes(self) -> int:
        """Number of nodes."""

    @property
    def bridges(self) -> int:
        """Number of bridges of each node."""

    @property
    def optional_privileges(self) -> bool:
        """Whether the agent's token has what it may lack, too."""

    @property
    def unprepared(self) -> bool:
        """Whether it is as the installer leaves it."""


def add_nodes(cluster: Cluster, first: int, count: int, bridges: int) -> None:
    """Add the nodes `pve{first}` and following with their bridges, as far as missing."""
    names = [f"vmbr{number}" for number in range(bridges)]
    for number in range(count):
        name = f"pve{first + number}"
        if name not in cluster.nodes:
            address = f"10.{99 + cluster.index}.{(number + 1) // 256}.{(number + 1) % 256}"
            node = Node(name, number + 1, address, bridges=[])
            cluster.nodes[name] = node
        node = cluster.nodes[name]
        missing = [bridge for bridge in names if bridge not in node.bridges]
        if missing:
            node.bridges += missing
            cluster.save("node", name, node)


def add_storages(cluster: Cluster) -> None:
    """Add `local` on every node, `shared` for all, and the images to import."""
    keep = {"prune-backups": "keep-all=1"}
    local = Storage(
        "local", "dir", "/var/lib/vz", list(LOCAL_CONTENT), False, 8 * TB, options=keep
    )
    shared = Storage(
        "shared",
        "nfs",
        "/mnt/pve/shared",
        list(SHARED_CONTENT),
        True,
        64 * TB,
        options={"server": "10.0.0.10", "export": "/export/shared", **keep},
    )
    for storage in (local, shared):
        cluster.storages[storage.id] = storage
        cluster.save("storage", storage.id, storage)
    for name, virtual, size in IMAGES:
        checksum = hashlib.sha256(name.encode()).hexdigest()
        cluster.add_volume(
            Volume(
                "shared",
                "",
                f"import/{name}",
                "import",
                "qcow2",
                size,
                size,
                virtual_size=virtual,
                checksum=checksum,
            )
        )


def add_installed_storages(cluster: Cluster) -> None:
    """Add what the installer makes: files in `local`, disks in `local-lvm`, no image."""
    local = Storage("local", "dir", "/var/lib/vz", list(INSTALLED_CONTENT), False, 100 * GIB)
    thin = Storage("local-lvm", "lvmthin", "", ["rootdir", "images"], False, TB)
    thin.options = {"vgname": "pve", "thinpool": "data"}
    for storage in (local, thin):
        cluster.storages[storage.id] = storage
        cluster.save("storage", storage.id, storage)


def add_storage(
    cluster: Cluster,
    name: str,
    storage_type: str,
    *,
    shared: bool,
    capacity: int = TB,
    more: Mapping[str, str] | None = None,
) -> Storage:
    """Add a storage for disks of any type that is known, as an administrator does.

    ``more``: other options of its configuration.
    """
    if storage_type not in KINDS:
        raise ValueError(f"storages are {', '.join(sorted(KINDS))}")
    path = f"/mnt/pve/{name}" if KINDS[storage_type].files else ""
    options = {key: text.format(name=name) for key, text in _OPTIONS.get(storage_type, {}).items()}
    made = Storage(name, storage_type, path, ["images"], shared, capacity)
    made.options = {**options, **(more or {})}
    cluster.storages[name] = made
    cluster.save("storage", name, made)
    return made


def add_root(cluster: Cluster, known: Secrets) -> None:
    """Add root with a password."""
    hashed = hash_password(known.password, secrets.token_hex(8))
    cluster.access.users["root@pam"] = User("root@pam", hashed)
    cluster.save_access()


def add_agent(cluster: Cluster, known: Secrets, *, optional: bool = False) -> None:
    """Add the agent's user with a token that has the documented roles.

    ``optional``: also what may be lacking.
    """
    access: Access = cluster.access
    token = Token(AGENT_TOKEN, known.token, privsep=True)
    access.users[AGENT_USER] = User(AGENT_USER, tokens={AGENT_TOKEN: token})
    both = ((AGENT_USER, "user"), (f"{AGENT_USER}!{AGENT_TOKEN}", "token"))
    for role in agent_roles(optional):
        access.roles[role.name] = role.privileges & access.roles["Administrator"]
        access.grants += [
            Grant(path, who, kind, role.name, role.inherited)
            for path in role.paths
            for who, kind in both
        ]
    cluster.save_access()


def seed(
    cluster: Cluster,
    first: int,
    options: Shape,
    known: Secrets,
) -> None:
    """Fill an empty cluster."""
    with cluster.turn():
        add_nodes(cluster, first, options.nodes, options.bridges)
        add_root(cluster, known)
        if options.unprepared:
            add_installed_storages(cluster)
        else:
            add_storages(cluster)
            add_agent(cluster, known, optional=options.optional_privileges)
        cluster.save("options", "options", cluster.options)


def turn_firewall_on(cluster: Cluster) -> None:
    """Turn on the datacenter's firewall, which a new cluster has off."""
    with cluster.turn():
        made = Firewall("cluster", {"enable": "1"})
        cluster.firewalls[made.key] = made
        cluster.save("firewall", made.key, made)
