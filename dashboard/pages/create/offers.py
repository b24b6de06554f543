"""What a new server can be made of, and what is left of the quotas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.cloud import COMPUTE, IMAGE, NETWORK, VOLUME, Call, rows
from dashboard.pages import flavors
from dashboard.visit import Visit

Rows = Sequence[Mapping[str, Any]]

_MOST = 1000
_CALLS = (
    flavors.EVERY,
    Call(IMAGE, "/v2/images", {"limit": _MOST, "status": "active", "sort": "created_at:desc"}),
    Call(NETWORK, "/v2.0/networks", {"limit": _MOST}, optional=True),
    Call(COMPUTE, "/os-keypairs", {"limit": _MOST}, optional=True),
    Call(COMPUTE, "/os-availability-zone", optional=True),
    Call(NETWORK, "/v2.0/security-groups", {"limit": _MOST}, optional=True),
    Call(COMPUTE, "/os-server-groups", {"limit": _MOST}, optional=True),
    Call(VOLUME, "/volumes/detail", {"limit": _MOST, "status": "available"}, optional=True),
    Call(VOLUME, "/types", optional=True),
    Call(COMPUTE, "/limits", optional=True),
    Call(VOLUME, "/limits", optional=True),
)
CALLS = len(_CALLS)
"""How many calls the form takes."""


@dataclass(frozen=True)
class Offers:
    """All that the form offers."""

    flavors: Rows
    """The smallest first."""
    images: Rows
    """Those with data, the newest first."""
    networks: Rows
    keys: Sequence[str]
    zones: Sequence[str]
    groups: Sequence[str]
    """Names of security groups."""
    server_groups: Rows
    volumes: Rows
    """Those that no server has."""
    types: Sequence[str]
    """Names of volume types."""
    limits: Mapping[str, int]
    """Of servers and of volumes, with what is used; -1: no limit."""

    def image(self, image_id: str) -> Mapping[str, Any] | None:
        """Return an image; None: it isn't offered."""
        return next((one for one in self.images if one["id"] == image_id), None)

    def flavor(self, flavor_id: str) -> Mapping[str, Any] | None:
        """Return a flavor; None: it isn't offered."""
        return next((one for one in self.flavors if one["id"] == flavor_id), None)

    @property
    def bootable(self) -> Rows:
        """Volumes that a server can boot from."""
        return [one for one in self.volumes if one["bootable"] == "true"]

    def grouped(self, project_id: str) -> Iterator[tuple[str, Rows]]:
        """Yield images in groups: titles and rows."""
        by_title: dict[str, list[Mapping[str, Any]]] = {title: [] for title in _TITLES}
        for one in self.images:
            by_title[_title(one, project_id)].append(one)
        yield from ((title, found) for title, found in by_title.items() if found)


_PUBLIC, _OWN, _SNAPSHOTS, _OTHERS = "Public", "Of this project", "Snapshots", "Of other projects"
_TITLES = (_PUBLIC, _OWN, _SNAPSHOTS, _OTHERS)


def offers(visit: Visit) -> Offers:
    """Return what the form offers."""
    sizes, images, networks, keys, zones, groups, servers, volumes, types, *limits = (
        visit.cloud.together(*_CALLS)
    )
    return Offers(
        flavors=flavors.by_size(sizes["flavors"]),
        images=[one for one in images["images"] if not one.get("os_hidden")],
        networks=[one for one in rows(networks, "networks") if not one.get("router:external")],
        keys=[one["keypair"]["name"] for one in rows(keys, "keypairs")],
        zones=[one["zoneName"] for one in rows(zones, "availabilityZoneInfo")],
        groups=list(dict.fromkeys(one["name"] for one in rows(groups, "security_groups"))),
        server_groups=rows(servers, "server_groups"),
        volumes=[one for one in rows(volumes, "volumes") if one["status"] == "available"],
        types=[one["name"] for one in rows(types, "volume_types")],
        limits={
            name: number
            for answer in limits
            if answer
            for name, number in answer["limits"]["absolute"].items()
        },
    )


def _title(image: Mapping[str, Any], project_id: str) -> str:
    if image.get("image_type") in ("snapshot", "backup"):
        return _SNAPSHOTS
    if image["visibility"] == "public":
        return _PUBLIC
    return _OWN if image.get("owner") == project_id else _OTHERS
