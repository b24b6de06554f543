"""What is decided about after a restore: one thing each, and what becomes of it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from common.messages.inventory import ClusterInventory, SeenVm
from common.resources.states import OperationState, ResourceType
from conductor.audit.facts import OpenOperation
from conductor.restore_guard import destroys
from conductor.store.records import Operation

#: in which order things are adopted: what others need comes first
ORDER = (
    *(ResourceType.NETWORK, ResourceType.IMAGE, ResourceType.TEMPLATE, ResourceType.SERVER),
    *(ResourceType.VOLUME, ResourceType.SNAPSHOT, ResourceType.BACKUP),
)


class Verdict(enum.StrEnum):
    """What becomes of something."""

    ADOPT = "adopt"  #: it becomes the record's again
    LEAVE = "leave"  #: it is left as it is, and its addresses, MACs and VMID are given to nobody
    LOST = "lost"  #: in the record, and not in the clusters


@dataclass(frozen=True)
class Known:
    """What the record has, beyond the facts of an audit."""

    cidrs: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Network → the CIDRs of its subnets."""
    images: frozenset[str] = frozenset()
    """Those with data in a cluster."""
    last: int = 0
    """While everything is held: the last operation that was open when the record was put back."""


@dataclass(frozen=True)
class Item:
    """One thing, and what becomes of it."""

    verdict: Verdict
    resource_type: ResourceType
    resource_id: str
    where: str
    text: str
    """Why, in a sentence."""
    cluster: str = ""
    vm: SeenVm | None = None
    found: Any = None
    """What a network, an image, a backup or a snapshot is adopted from."""
    ends: bool = False
    """It can be decided about soon: until then everything is held."""


def is_build_of_before(one: OpenOperation | Operation, last: int) -> bool:
    """Return whether an open operation is a build that waits while everything is held."""
    building = one.action == "create" and one.state != OperationState.UNWINDING
    return building and one.id <= last


def is_held(one: OpenOperation | Operation, last: int) -> bool:
    """Return whether an open operation waits until everything is decided; ``last``: as above."""
    return last > 0 and destroys(one)


def of_vm(
    verdict: Verdict,
    kind: ResourceType,
    resource_id: str,
    inventory: ClusterInventory,
    vm: SeenVm,
    text: str,
    found: Any = None,
) -> Item:
    """Return the item of what a VM is, or has."""
    where = f"VM {vm.vmid} of cluster {inventory.cluster}"
    return Item(verdict, kind, resource_id, where, text, inventory.cluster, vm, found)


def is_proven(facts_cloud: str, vm: SeenVm) -> bool:
    """Return whether all marks prove a VM to be this cloud's."""
    return vm.read and bool(facts_cloud) and vm.cloud == facts_cloud and vm.proven
