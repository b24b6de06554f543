"""Networks on SDN vnets: the ranges of VNIs that projects get, and the names of our vnets."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from common import ids
from common.errors import Invalid

#: VNIs have 24 bits
HIGHEST_VNI = 2**24 - 1
#: what PVE::Network::SDN::Zones::VxlanPlugin gives a vnet of a zone without one
MTU = 1450
ANY_CLUSTER = "*"
_BEGINNING = "mn"
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_LENGTH = 6
#: digits of an epoch at most
_EPOCH = 18
_OURS = re.compile(rf"{_BEGINNING}[0-9a-z]{{{_LENGTH}}}")
#: what Proxmox VE takes in an alias, of what projects' IDs may have
_PROJECT = re.compile(r"[0-9A-Za-z._-]{1,64}")
_CLUSTER = re.compile(r"\*|[A-Za-z0-9._-]+")
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9]{1,7}")


@dataclass(frozen=True)
class VniRange:
    """VNIs of a zone that projects' networks get."""

    cluster: str
    """``*``: every cluster that has the zone."""
    zone: str
    first: int
    last: int

    def holds(self, cluster: str) -> bool:
        """Return whether it is of this cluster."""
        return self.cluster in (ANY_CLUSTER, cluster)


def parse(text: str) -> VniRange:
    """Parse ``CLUSTER:ZONE:FIRST-LAST``. Raises Invalid."""
    where, _, numbers = text.strip().rpartition(":")
    cluster, _, zone = where.rpartition(":")
    first, dash, last = numbers.partition("-")
    try:
        found = VniRange(cluster, zone, int(first), int(last if dash else first))
    except ValueError as error:
        raise Invalid(f"{text}: {error}") from error
    if (
        not _CLUSTER.fullmatch(cluster)
        or not _ZONE.fullmatch(zone)
        or not 1 <= found.first <= found.last <= HIGHEST_VNI
    ):
        raise Invalid(
            f"{text}: a cluster or *, a zone and VNIs from 1 to "
            f"{HIGHEST_VNI} are needed, the lower one first"
        )
    return found


def parse_all(texts: Iterable[str]) -> tuple[VniRange, ...]:
    """Parse all of ``[networks] tenant_vnets``. Raises Invalid."""
    return tuple(map(parse, texts))


def name(network_id: str, turn: int = 0) -> str:
    """Return the name of a network's vnet: at most 8 characters, Proxmox VE's limit.

    ``turn``: number of another name to try if that one is taken.
    """
    text = f"{network_id}/{turn}" if turn else network_id
    number = int.from_bytes(hashlib.sha256(text.encode()).digest())
    digits = []
    for _ in range(_LENGTH):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return _BEGINNING + "".join(digits)


def alias(network_id: str, cloud: str, epoch: int = 0, project: str = "") -> str:
    """Return the alias of a network's vnet: its owner, as several clouds may share a zone.

    ``epoch``: how far the cloud's record was when it was made. ``project``: the network's.
    """
    if _PROJECT.fullmatch(project):
        return f"{network_id} {cloud} {epoch} {project}"
    return f"{network_id} {cloud} {epoch or ''}".rstrip()


def owner(text: str) -> tuple[str, str] | None:
    """Return the network and the cloud that an alias names; None: it names none."""
    network_id, cloud, *_ = _words(text)
    return (network_id, cloud) if ids.is_uuid(network_id) else None


def epoch(text: str) -> int:
    """Return the epoch that an alias names; 0: it names none."""
    number = _words(text)[2]
    return int(number) if number.isascii() and number.isdigit() and len(number) <= _EPOCH else 0


def project(text: str) -> str:
    """Return the project that an alias names; empty: it names none."""
    return _words(text)[3]


def _words(text: str) -> list[str]:
    """Return network, cloud, epoch and project."""
    return [*text.split(), "", "", "", ""][:4]


def is_ours(bridge: str) -> bool:
    """Return whether a vnet has a name as ours have. That alone proves nothing."""
    return _OURS.fullmatch(bridge) is not None
