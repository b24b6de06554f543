"""Decides whether a VM may be adopted, and makes its record. Pure."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Sequence

from common import ids
from common.errors import Conflict, MicronovaError, NotFound, Unavailable
from common.messages.facts import Inspection, NicFacts
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.manage import Adoption
from conductor.store.networks.networks import Network

_NOT_IN_NAMES = re.compile(r"[^\x20-\x7e]+")


def is_marked_ours(found: Inspection, cloud: str) -> bool:
    """Return whether its marks name a server of this cloud; the record must not have that."""
    return bool(cloud) and found.marked_by is not None and found.cloud == cloud


def refusal(found: Inspection, cluster: str, cloud: str) -> MicronovaError | None:
    """Return why the VM can't be adopted, or None. ``cloud`` is the ID of this one."""
    what = f"VM {found.vmid} of cluster {cluster}"
    if found.failure is not None:
        return Unavailable(f"{what} can't be looked at: {found.failure.message}")
    if not found.exists:
        return NotFound(f"Cluster {cluster} has no VM {found.vmid}.")
    reasons = (
        (found.kind != "vm", f"is a {found.kind}: only virtual machines can be adopted."),
        (
            found.marked_by is not None and not is_marked_ours(found, cloud),
            f"carries the mark of server {found.marked_by}. If that server is not to be found, "
            "take the line with the mark out of the VM's description first.",
        ),
        (
            found.lock is not None,
            f"is locked ({found.lock}): wait until its task has ended.",
        ),
        (not found.vcpus or not found.memory_mib, "says nothing of its size."),
    )
    return next((Conflict(f"{what} {text}") for applies, text in reasons if applies), None)


def flavor(found: Inspection, server_uuid: str) -> FlavorSnapshot:
    """Return a flavor of the server's own, with what its VM has; it is in no list."""
    return FlavorSnapshot(
        id=f"adopted-{server_uuid}",
        name=f"adopted-{found.vcpus}-{found.memory_mib}-{found.disk_gib}",
        vcpus=found.vcpus,
        memory_mib=found.memory_mib,
        disk_gib=found.disk_gib,
    )


def too_small(chosen: FlavorSnapshot, found: Inspection) -> Conflict | None:
    """Return why a flavor is smaller than the VM, or None."""
    short = [
        f"{has} {unit} in the VM, {says} in the flavor"
        for has, says, unit in (
            (found.vcpus, chosen.vcpus, "VCPU"),
            (found.memory_mib, chosen.memory_mib, "MiB RAM"),
            (found.disk_gib, chosen.disk_gib, "GiB disk"),
        )
        if has > says
    ]
    if not short:
        return None
    return Conflict(f"Flavor {chosen.name} is too small: {'; '.join(short)}.")


def own_uuid(found: Inspection) -> str | None:
    """Return the VM's SMBIOS UUID, if it can be a server's; the record decides if it is free."""
    text = found.smbios_uuid
    if text is None or not ids.is_uuid(text):
        return None
    number = uuid.UUID(text)
    return None if number.int in (0, 2**128 - 1) else str(number)


def name(asked: Adoption, found: Inspection) -> str:
    """Return the server's name."""
    return asked.name or _NOT_IN_NAMES.sub("", found.name).strip()[:255] or f"vm-{found.vmid}"


def known_nics(
    nics: Sequence[NicFacts], networks: Sequence[Network]
) -> Iterator[tuple[NicFacts, Network]]:
    """Return the interfaces whose network is known by bridge and VLAN."""
    by_bridge = {(network.bridge, network.vlan): network for network in networks}
    for nic in nics:
        network = by_bridge.get((nic.bridge, nic.vlan))
        if network is not None:
            yield nic, network
