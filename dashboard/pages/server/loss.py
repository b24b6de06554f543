"""What is lost with a server that is deleted: its addresses, and which of its volumes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.cloud import VOLUME, Call, rows

VOLUMES = Call(VOLUME, "/volumes/detail", {"limit": 1000}, optional=True)
"""What names volumes."""


@dataclass(frozen=True)
class Loss:
    """One server, and what is lost with it."""

    id: str
    name: str
    addresses: tuple[tuple[str, str], ...]
    """Network and address."""
    volumes: tuple[tuple[str, bool], ...]
    """Name, and whether it is deleted with the server."""


def names_of(volumes: Any) -> Mapping[str, str]:
    """Return the names of volumes by ID, of the answer to `VOLUMES`."""
    return {one["id"]: one["name"] or one["id"] for one in rows(volumes, "volumes")}


def loss(server: Mapping[str, Any], names: Mapping[str, str]) -> Loss:
    """Return what is lost with a server; a volume without a name there is shown by its ID."""
    return Loss(
        id=server["id"],
        name=server["name"] or server["id"],
        addresses=tuple(
            (network, one["addr"])
            for network, given in server["addresses"].items()
            for one in given
        ),
        volumes=tuple(
            (names.get(one["id"], one["id"]), bool(one.get("delete_on_termination")))
            for one in server.get("os-extended-volumes:volumes_attached", ())
        ),
    )
