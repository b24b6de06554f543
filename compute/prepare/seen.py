"""What a cluster has of what may be prepared, read as an administrator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compute.hypervisor.proxmox.settings import Token

Get = Callable[..., Any]
"""``get(path, **query)`` of a cluster's API."""

_SDN = "cluster/sdn"


@dataclass(frozen=True)
class Storage:
    """A configured storage; no ``nodes`` are all."""

    name: str
    type: str
    content: tuple[str, ...]
    shared: bool
    disabled: bool
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Seen:
    """What a cluster has."""

    version: str
    nodes: tuple[str, ...]
    """Those that are online; the first one has answered."""
    addresses: tuple[str, ...]
    user: Mapping[str, Any] | None
    token: Mapping[str, Any] | None
    roles: Mapping[str, frozenset[str]]
    grants: frozenset[tuple[str, str, str, str]]
    """Path, ``user`` or ``token``, its name, role."""
    pools: frozenset[str]
    storages: tuple[Storage, ...]
    zones: frozenset[str]
    unapplied: tuple[str, ...]
    """Zones and vnets that were changed and not applied."""
    images: frozenset[tuple[str, str, str]]
    """Node, storage, file."""
    secret_known: bool = False
    """Whether the token's file has its secret."""

    @property
    def enabled(self) -> bool:
        """Whether the user exists and may log in."""
        return self.user is not None and bool(int(self.user.get("enable", 1)))


def read(get: Get, token: Token) -> Seen:
    """Return what a cluster has; whether the token's secret is known is left open."""
    members = [one for one in get("cluster/status") if one["type"] == "node"]
    members.sort(key=lambda one: (not one.get("local"), one["name"]))
    nodes = tuple(str(one["name"]) for one in members if one.get("online"))
    users = {one["userid"]: one for one in get("access/users")}
    tokens = get(f"access/users/{token.user}/token") if token.user in users else []
    storages = tuple(_storages(get))
    return Seen(
        version=str(get("version")["version"]),
        nodes=nodes,
        addresses=tuple(str(one["ip"]) for one in members if one.get("ip")),
        user=users.get(token.user),
        token=next((one for one in tokens if one["tokenid"] == token.name), None),
        roles={
            one["roleid"]: frozenset(str(one.get("privs", "")).split(","))
            for one in get("access/roles")
        },
        grants=frozenset(
            (one["path"], one["type"], one["ugid"], one["roleid"]) for one in get("access/acl")
        ),
        pools=frozenset(one["poolid"] for one in get("pools")),
        storages=storages,
        zones=frozenset(one["zone"] for one in get(f"{_SDN}/zones")),
        unapplied=tuple(_unapplied(get)),
        images=frozenset(_images(get, nodes, storages)),
    )


def _storages(get: Get) -> Iterator[Storage]:
    for one in get("storage"):
        yield Storage(
            str(one["storage"]),
            str(one["type"]),
            tuple(part for part in str(one.get("content", "")).split(",") if part != "none"),
            bool(one.get("shared")),
            bool(one.get("disable")),
            tuple(part for part in str(one.get("nodes", "")).split(",") if part),
        )


def _unapplied(get: Get) -> Iterator[str]:
    for kind in ("zone", "vnet"):
        listed = get(f"{_SDN}/{kind}s", pending=1)
        yield from (str(one[kind]) for one in listed if one.get("state"))


def _images(
    get: Get, nodes: tuple[str, ...], storages: tuple[Storage, ...]
) -> Iterator[tuple[str, str, str]]:
    for storage in storages:
        if "import" not in storage.content or storage.disabled:
            continue
        for node in nodes:
            if storage.nodes and node not in storage.nodes:
                continue
            for one in get(f"nodes/{node}/storage/{storage.name}/content", content="import"):
                yield node, storage.name, str(one["volid"]).rpartition("/")[2]
